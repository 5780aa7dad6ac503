"""What one sees while one waits: a moving line on a terminal, a line now and then in a log."""

from __future__ import annotations

import io
import re
import time

import pytest
from rich.console import Console

from cloakgp.cli import progress
from cloakgp.cli.progress import reporting
from cloakgp.orders.progress import share_done


@pytest.fixture
def log(monkeypatch):
    """Standard error as a file, where a line is due very soon."""
    written = io.StringIO()
    monkeypatch.setattr(progress, "stderr", Console(file=written, width=200))
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.05)
    return written


@pytest.fixture
def terminal(monkeypatch):
    written = io.StringIO()
    # It is asked when a console is made.
    monkeypatch.setenv("TERM", "xterm")
    console = Console(file=written, width=200, force_terminal=True, legacy_windows=False)
    monkeypatch.setattr(progress, "stderr", console)
    return written


@pytest.fixture
def dumb_terminal(log, monkeypatch):
    """A terminal on which nothing can move."""
    monkeypatch.setenv("TERM", "dumb")
    console = Console(file=log, width=200, force_terminal=True, legacy_windows=False)
    monkeypatch.setattr(progress, "stderr", console)
    return log


@pytest.fixture
def wait_for(wait_until):
    """Wait until words are shown."""

    def wait(written: io.StringIO, words: str) -> None:
        wait_until(
            lambda: words in written.getvalue(),
            told=lambda: f"{words!r} was never shown: {written.getvalue()[-500:]!r}",
        )

    return wait


@pytest.mark.parametrize("shown", ["log", "dumb_terminal", "terminal"])
def test_every_kind_of_work_is_shown(shown, request, wait_for):
    written = request.getfixturevalue(shown)
    with reporting("choosing the prior", gap=1e-3) as reporter:
        wait_for(written, "choosing the prior")
        reporter.gap(0.25)
        wait_for(written, "designing the noise: certified gap 2.5e-01, until 1e-03")
        reporter.gap(1e-4)
        wait_for(written, "asking the outputs")
        reporter.rows("gathering", 1000, 4000)
        wait_for(written, "gathering: 1,000 of 4,000 rows")
        reporter.rows("certifying", 5, None)
        wait_for(written, "certifying: 5 rows")
        reporter.step("[bold]learning[/]")
        wait_for(written, "[bold]learning[/]")
    assert ("\x1b" in written.getvalue()) == (shown == "terminal")


def test_a_step_that_says_nothing_moves_all_the_same(log, wait_until):
    """In a log too: the same step again and again, with the seconds so far."""
    with reporting("preparing the design"):
        wait_until(lambda: log.getvalue().count("\n") >= 3)
    lines = log.getvalue().splitlines()
    assert all(re.fullmatch(r"preparing the design \(\d+ s so far\)", line) for line in lines)


def test_short_work_writes_nothing_into_a_log(log, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 1e6)
    with reporting("predicting") as reporter:
        reporter.rows("predicting", 1, 2)
    # It has not been waited for, either.
    assert log.getvalue() == ""


def test_a_log_ends_with_the_work_even_if_it_fails(log):
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), reporting("working"):
        fail()
    kept = log.getvalue()
    time.sleep(0.2)
    assert log.getvalue() == kept


def test_a_terminal_keeps_nothing(terminal, wait_for):
    with reporting("working"):
        wait_for(terminal, "working")
    assert terminal.getvalue().endswith("\x1b[2K") or "\x1b[1A" in terminal.getvalue()


def test_time_left_is_told_of_rows_only(terminal, wait_for):
    with reporting("working", gap=1e-3) as reporter:
        reporter.gap(0.1)
        wait_for(terminal, "certified gap")
        assert "left" not in terminal.getvalue()
        reporter.rows("gathering", 10, 40)
        wait_for(terminal, "left")


def test_the_bar_is_logarithmic():
    assert share_done(1e-3, gap=1e-3) == share_done(0.0, gap=1e-3) == 1.0
    assert share_done(float("inf"), gap=1e-3) == share_done(1e4, gap=1e-3) == 0.0
