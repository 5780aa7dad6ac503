"""Lines that say how far an experiment is."""

from __future__ import annotations

import pytest

from experiments import progress
from experiments.progress import Lines


@pytest.fixture
def clock(monkeypatch):
    """A clock that tests move."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def take_steps(lines, clock, *, count, seconds):
    for _ in range(count):
        clock[0] += seconds
        lines.tick()


def test_what_is_left_goes_by_steps_that_were_not_kept_from_before(clock):
    lines = Lines("cells", steps=1_000)
    take_steps(lines, clock, count=900, seconds=0.001)
    assert lines.line() == "cells: 900 of 1000, 1 s"
    take_steps(lines, clock, count=10, seconds=6.0)
    # 90 steps, of six seconds and a little.
    assert lines.line() == "cells: 910 of 1000, 61 s, some 548 s left"


def test_nothing_is_left_in_the_end(clock):
    lines = Lines("folds", steps=2)
    take_steps(lines, clock, count=2, seconds=3.0)
    assert lines.line() == "folds: 2 of 2, 6 s, some 0 s left"
