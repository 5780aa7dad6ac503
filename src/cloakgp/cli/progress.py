"""Progress of a long command: its current step, and its share done.

On a terminal one line moves, and goes when the work is done. Into a file or a pipe a line is
written now and then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
from cloakgp.orders.progress import Reporter, State

# Seconds between two lines where nothing can move.
SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def reporting(first_step: str, *, gap: float | None = None) -> Iterator[Reporter]:
    """Show the current step of a long command.

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
    """The time left of steps that have an estimate."""

    def render(self, task: Task) -> Text:
        """Return it as text."""
        if not task.fields["steady"] or task.total is None:
            return Text("")
        return Text.assemble("left ", super().render(task))


@contextmanager
def _lines() -> Iterator[Callable[[State], None]]:
    """Write the latest state now and then, also during silent steps."""
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
