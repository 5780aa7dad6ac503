"""Progress of an order: its current step, and its share done."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

# Gaps start at about the number of answers; the bar runs from here, in equal steps per factor.
FIRST_GAP = 1e3


@dataclass(frozen=True)
class State:
    """The current step.

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
    """Receives the progress of each kind of work, and shows it.

    Attributes
    ----------
    show : callable
    target : float or None
        The certified gap at which a design stops, if there is one.
    """

    show: Callable[[State], None]
    target: float | None = None

    def step(self, what: str) -> None:
        """Announce a step of unknown duration."""
        self.show(State(what, what))

    def gap(self, certified: float) -> None:
        """Announce the certified gap of a design."""
        text = f"designing the noise: certified gap {certified:.1e}"
        if self.target is None:
            self.show(State("designing", text))
        elif certified <= self.target:
            self.step("asking the outputs, and learning from the noisy answers")
        else:
            share = share_done(certified, gap=self.target)
            self.show(State("designing", f"{text}, until {self.target:.0e}", share, 1.0))

    def rows(self, what: str, done: int, total: int | None) -> None:
        """Announce the number of finished rows of a pass."""
        of_all = "" if total is None else f" of {total:,}"
        self.show(State(what, f"{what}: {done:,}{of_all} rows", done, total, steady=True))


def share_done(certified: float, *, gap: float) -> float:
    """Return the progress of a design, from 0 to 1, on a logarithmic scale.

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
