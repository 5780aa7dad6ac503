"""Show how a design comes closer to its optimum while one waits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from cloakgp import design
from cloakgp.cli.console import stderr

# Gaps start at about the number of answers; the bar runs from here, in equal steps per factor.
FIRST_GAP = 1e3


@contextmanager
def design_progress(*, gap: float) -> Iterator[design.Progress]:
    """Show a bar while a design improves, and take it away afterwards.

    Parameters
    ----------
    gap : float
        The certified gap at which the design stops.

    Yields
    ------
    callable
        To be called with the gap certified so far.
    """
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TimeElapsedColumn(),
        console=stderr,
        transient=True,
        disable=not stderr.is_terminal,
    ) as display:
        task = display.add_task("preparing the prior", total=1.0)

        def show(certified: float) -> None:
            display.update(
                task,
                description=f"designing the noise: certified gap {certified:.1e}, until {gap:.0e}",
                completed=share_done(certified, gap=gap),
            )

        yield show


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
