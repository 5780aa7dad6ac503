"""Bisection of an interval on a condition that holds up to some point."""

from __future__ import annotations

from collections.abc import Callable


def bracket(
    holds: Callable[[float], bool], low: float, high: float, *, steps: int
) -> tuple[float, float]:
    """Return a short interval that contains the point up to which a condition holds.

    Parameters
    ----------
    holds : callable
        True at the low end, and false at the high end.
    low, high : float
    steps : int
        Number of halvings.

    Returns
    -------
    low, high : float
        The condition holds at the first, and fails at the second.

    Examples
    --------
    >>> bracket(lambda number: number**2 < 2, 0.0, 2.0, steps=3)
    (1.25, 1.5)
    """
    for _ in range(steps):
        middle = (low + high) / 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low, high
