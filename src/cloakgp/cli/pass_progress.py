"""Show how far a pass over a large table has come, and how long it will take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from cloakgp.cli.console import stderr


@dataclass
class PassDisplay:
    """One line of the terminal: what is being done, a bar, and the time left of this pass.

    Attributes
    ----------
    display : rich.progress.Progress
    task : rich.progress.TaskID
    what : str
        The pass that is under way.
    """

    display: Progress
    task: TaskID
    what: str = ""

    def watch(self, what: str, done: int, total: int | None) -> None:
        """Show how many rows of a pass are done."""
        if what != self.what:
            self.what = what
            self.display.reset(self.task)
        self.display.update(
            self.task, description=f"{what}: {done:,} rows", completed=done, total=total
        )

    def gap(self, certified: float) -> None:
        """Show how close to the optimum a design is between passes."""
        self.display.update(self.task, description=f"designing: certified gap {certified:.1e}")


@contextmanager
def pass_progress() -> Iterator[PassDisplay]:
    """Show a line while a large table is gone through, and take it away afterwards.

    Yields
    ------
    PassDisplay
    """
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=stderr,
        transient=True,
        disable=not stderr.is_terminal,
    ) as display:
        yield PassDisplay(display=display, task=display.add_task("opening the table", total=None))
