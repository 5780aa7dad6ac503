"""Tally of draws, for the message about an interrupted call.

Noise that has been drawn is spent, though the call that drew it returns nothing: what it made of it
may have been seen. A ledger counts that by itself (`cloakgp.privacy.spending`). Here it is said,
with a ledger and without: in a note of the exception, and on the command line in a sentence.
Everything here is known without an output.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from cloakgp.privacy.accounting import Guarantee
from cloakgp.utils.formatting import ceiling

# At which what Gaussian noise spends is told, where no δ was asked for.
USUAL_DELTA = 1e-6
# Relative margin on sums, far above what float64 loses on the way.
ROUNDING = 2.0**-40


class Drawn(Protocol):
    """The cost of one draw of noise."""

    @property
    def mu(self) -> float:
        """Of Gaussian noise: sensitivity over noise sd."""

    @property
    def epsilon(self) -> float:
        """Of noise that needs no δ."""

    @property
    def answers(self) -> int:
        """The number of answers with Gaussian noise."""

    @property
    def coarseness(self) -> float:
        """Σ (grid / noise sd)² over these."""

    @property
    def cohort(self) -> int:
        """Which rows it is about, beside draws about others; nobody's output is in two."""


_tally: ContextVar[list[Drawn] | None] = ContextVar("_tally", default=None)


@contextmanager
def tallied() -> Iterator[list[Drawn]]:
    """Collect the draws within a block, in a list that grows.

    Examples
    --------
    >>> with tallied() as drawn:
    ...     pass
    >>> drawn
    []
    """
    around, drawn = _tally.get(), list[Drawn]()
    token = _tally.set(drawn)
    try:
        yield drawn
    finally:
        _tally.reset(token)
        if around is not None:
            around += drawn


def is_tallied() -> bool:
    """Return whether an outer block collects draws.

    Examples
    --------
    >>> is_tallied()
    False
    """
    return _tally.get() is not None


def note_draw(cost: Drawn) -> None:
    """Note a draw, directly before it is made."""
    tally = _tally.get()
    if tally is not None:
        tally.append(cost)


def describe_spent(drawn: Sequence[Drawn], *, delta: float = 0.0) -> str:
    """Return the joint spending of draws, in words that begin in the middle of a sentence.

    Of draws about several cohorts it is the largest amount of one, part by part.

    Parameters
    ----------
    drawn : sequence of Drawn
        At least one.
    delta : float
        At which it is told if there is Gaussian noise; 1e-6 if it is 0.

    Examples
    --------
    >>> from cloakgp.privacy.spending import Cost
    >>> describe_spent([Cost("laplace", epsilon=0.25)] * 2)
    'ε = 0.5, with no δ,'
    >>> describe_spent([Cost("gaussian", mu=0.5, answers=1)])
    '(ε, δ) = (2.26, 1e-06)'
    >>> describe_spent([Cost("laplace", epsilon=0.5), Cost("laplace", epsilon=0.25, cohort=1)])
    'ε = 0.5, with no δ,'
    """
    cohorts = [
        [each for each in drawn if each.cohort == cohort]
        for cohort in {one.cohort for one in drawn}
    ]
    pure = max(math.fsum(each.epsilon for each in one) for one in cohorts)
    mu = max(math.hypot(*(each.mu for each in one)) for one in cohorts)
    if not mu:
        return f"ε = {ceiling(pure)}, with no δ,"
    # Of a whole that answers divided, pure parts count by their sum alone.
    together = Guarantee(
        epsilon=1.0,
        delta=delta or USUAL_DELTA,
        mu=mu * (1 + ROUNDING),
        answers=max(sum(each.answers for each in one) for one in cohorts),
        coarseness=max(math.fsum(each.coarseness for each in one) for one in cohorts),
        laplace=(pure * (1 + ROUNDING),) if pure else (),
        adaptive=True,
    )
    try:
        return f"(ε, δ) = ({ceiling(together.epsilon_at(together.delta))}, {together.delta:g})"
    except ValueError:
        beside = f" and, with no δ, ε = {ceiling(pure)}" if pure else ""
        return f"Gaussian noise with μ = {ceiling(mu)}{beside}"
