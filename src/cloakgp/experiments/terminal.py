"""Where the commands print: tables of one width, so that figures stay whole in a pipe too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from cloakgp.experiments.crossvalidation import Tick

# Rich takes 80 columns where there is no terminal, and would cut figures off to fit.
WIDTH = 144

console = Console(highlight=False, width=WIDTH)


def table_titled(title: str) -> Table:
    """Return an empty table in the commands' style.

    Parameters
    ----------
    title : str

    Examples
    --------
    >>> table_titled("figures").title
    'figures'
    """
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, caption_justify="left")


@contextmanager
def progress(what: str, *, steps: int) -> Iterator[Tick]:
    """Show a bar on stderr while something takes its steps.

    Parameters
    ----------
    what : str
    steps : int

    Yields
    ------
    callable
        To be called after every step.
    """
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=steps)
        yield lambda: bar.advance(task)
