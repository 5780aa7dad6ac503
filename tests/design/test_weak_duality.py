"""When a search ends: at the gap, or as soon as it is out of reach."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.design.weak_duality import CHECKS, PACE, Point, Record


def point(explained):
    nothing = np.zeros((1, 1))
    return Point(strategy=nothing, explained=explained, slopes=nothing, answered=nothing)


def checks(gaps, *, target, gains=None, limit=10 * CHECKS):
    """How many certificates are looked at, of a strategy that leaves 1 with these gaps."""
    record = Record(2.0, gap=target)
    record.note(point(1.0), excess=1.0)
    record.expect_no_more_answers()
    for number in range(1, limit):
        gain = 0.0 if gains is None else gains(number)
        record.note(point(1.0 + gain), excess=gaps(number))
        if record.finished():
            return number
    raise AssertionError("it went on")


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.96])
def test_a_steady_pace_reaches_the_gap(rate):
    expected = int(np.ceil(np.log(1e-2) / np.log(rate)))
    assert checks(lambda n: rate**n, target=1e-2) == pytest.approx(expected, abs=1)


def test_what_stands_still_ends_soon():
    assert checks(lambda _: 0.1, target=1e-3) <= 2 * PACE
    # Gaps that are not the best so far tell nothing.
    assert checks(lambda n: 0.1 + 0.05 * np.cos(n), target=1e-3) <= 4 * PACE


def test_a_pace_that_is_too_slow_ends_before_all_checks_are_spent():
    assert checks(lambda n: 0.999**n, target=1e-6) <= 2 * PACE
    assert PACE < checks(lambda n: 1.0 / n, target=1e-6) < CHECKS


def test_a_strategy_that_still_gains_goes_on_until_the_end():
    assert checks(lambda _: 0.5, target=1e-3, gains=lambda n: 1e-4 * n) == CHECKS
    assert checks(lambda _: 0.5, target=1e-3, gains=lambda n: 1e-6 * n) <= 2 * PACE


def test_a_pause_after_progress_does_not_end_it():
    """Bounds come down in steps: the later half of all certificates is looked at."""
    steps = lambda n: 0.5 ** (1 + n // 8)  # noqa: E731
    assert checks(steps, target=1e-3) == 72


def test_the_best_bound_and_the_best_strategy_make_the_certificate():
    seen = []
    record = Record(2.0, gap=1e-6, progress=seen.append, least=0.25)
    record.note(point(1.0), excess=0.5)
    assert record.gap == pytest.approx(0.5)
    record.note(point(1.2), excess=1.0)
    assert record.best.explained == 1.2
    assert record.gap == pytest.approx(1 - 0.5 / 0.8)
    record.note(point(1.1), excess=0.2)
    assert record.best.explained == 1.2
    assert record.gap == pytest.approx(1 - 0.7 / 0.8)
    assert record.gap_of(1.0) == pytest.approx(0.3)
    assert seen == sorted(seen, reverse=True)
    assert not record.finished()
