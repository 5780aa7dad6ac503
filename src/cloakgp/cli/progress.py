"""Progress of a long command: what is being done, and how far it has come.

On a terminal one line moves, and goes when the work is done. Into a file or a pipe a line is
written now and then.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from cloakgp.cli.console import stderr

# Gaps start at about the number of answers; the bar runs from here, in equal steps per factor.
FIRST_GAP = 1e3
# Seconds between two lines where nothing can move.
SECONDS_BETWEEN_LINES = 10.0


@dataclass(frozen=True)
class State:
    """What is being done.

    Attributes
    ----------
    step : str
    text : str
        The step in words, with how far it has come.
    done, total : float or None
        Of the step; None where that is not known.
    steady : bool
        Whether the time that is left can be told from the time spent.
    """

    step: str
    text: str
    done: float | None = None
    total: float | None = None
    steady: bool = False


@dataclass(frozen=True)
class Reporter:
    """Takes what each kind of work can say of itself, and has it shown.

    Attributes
    ----------
    show : callable
    target : float or None
        The certified gap at which a design stops, if there is one.
    """

    show: Callable[[State], None]
    target: float | None = None

    def step(self, what: str) -> None:
        """Say what begins, of which nobody knows how long it takes."""
        self.show(State(what, what))

    def gap(self, certified: float) -> None:
        """Say how close to the optimum a design is certified to be."""
        text = f"designing the noise: certified gap {certified:.1e}"
        if self.target is None:
            self.show(State("designing", text))
        elif certified <= self.target:
            self.step("asking the outputs, and learning from the noisy answers")
        else:
            share = share_done(certified, gap=self.target)
            self.show(State("designing", f"{text}, until {self.target:.0e}", share, 1.0))

    def rows(self, what: str, done: int, total: int | None) -> None:
        """Say how many rows of a pass are done."""
        of_all = "" if total is None else f" of {total:,}"
        self.show(State(what, f"{what}: {done:,}{of_all} rows", done, total, steady=True))


@contextmanager
def reporting(first_step: str, *, gap: float | None = None) -> Iterator[Reporter]:
    """Show what is done while one waits.

    Parameters
    ----------
    first_step : str
    gap : float, optional
        The certified gap at which a design stops.

    Yields
    ------
    Reporter
    """
    moves = stderr.is_terminal and not stderr.is_dumb_terminal
    with _moving_line() if moves else _lines() as show:
        reporter = Reporter(show=show, target=gap)
        reporter.step(first_step)
        yield reporter


@contextmanager
def _moving_line() -> Iterator[Callable[[State], None]]:
    """Show states on one line with a bar, and take it away afterwards."""
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TimeElapsedColumn(),
        _TimeLeft(),
        console=stderr,
        transient=True,
    ) as display:
        shown = ""

        def show(state: State) -> None:
            nonlocal shown
            if state.step != shown:
                shown = state.step
                for before in display.task_ids:
                    display.remove_task(before)
                display.add_task(state.text, total=state.total, steady=state.steady)
            display.update(
                display.task_ids[0],
                description=state.text,
                completed=state.done,
                total=state.total,
            )

        yield show


class _TimeLeft(TimeRemainingColumn):
    """The time left, of steps of which it can be told."""

    def render(self, task: Task) -> Text:
        """Return it as text."""
        if not task.fields["steady"] or task.total is None:
            return Text("")
        return Text.assemble("left ", super().render(task))


@contextmanager
def _lines() -> Iterator[Callable[[State], None]]:
    """Write the latest state now and then, also while a step says nothing of itself."""
    latest = State("", "")
    ended = threading.Event()
    begun = time.monotonic()

    def show(state: State) -> None:
        nonlocal latest
        latest = state

    def write() -> None:
        while not ended.wait(SECONDS_BETWEEN_LINES):
            seconds = time.monotonic() - begun
            stderr.print(Text(f"{latest.text} ({seconds:,.0f} s so far)"), soft_wrap=True)

    writer = threading.Thread(target=write, name="progress", daemon=True)
    writer.start()
    try:
        yield show
    finally:
        ended.set()
        writer.join()


def share_done(certified: float, *, gap: float) -> float:
    """Return how far a design has come, from 0 to 1, on a logarithmic scale.

    Examples
    --------
    >>> share_done(1.0, gap=1e-3)
    0.5
    """
    if certified <= gap:
        return 1.0
    if not certified < FIRST_GAP:
        return 0.0
    return math.log(FIRST_GAP / certified) / math.log(FIRST_GAP / gap)
