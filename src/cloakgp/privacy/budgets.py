"""Valid budgets (ε, δ): invalid ones, and those beyond the range of noise, are refused."""

from __future__ import annotations

import math

import numpy as np

Pair = tuple[float, float]

# What can be asked for: see `check_budget`.
SMALLEST_EPSILON, LARGEST_EPSILON, SMALLEST_DELTA = 1e-6, 1e10, 1e-15


def check_budget(epsilon: float, delta: float, *, pure: bool = False, part: bool = False) -> None:
    """Refuse a budget that is none, or one with which noise cannot be drawn as it should.

    Below ε = 1e-6 float64 does not tell the parts of a budget from more than the whole; beyond 1e10
    noise is lost in the rounding of answers; and below δ = 1e-15 the grid of Gaussian noise may
    cost as much (`cloakgp.privacy.accounting.discretisation_delta`). No use of these is known.

    Parameters
    ----------
    epsilon, delta : float
    pure : bool
        Whether δ may be 0.
    part : bool
        Whether it is part of a budget that was checked: its ε and δ may be smaller.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> check_budget(1.0, 1e-6)
    """
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise ValueError(f"{name} must be a number, got {value!r}")
    # numpy compares a float16 with a float64 in 16 bits.
    epsilon, delta = float(epsilon), float(delta)
    check_pair(epsilon, delta, pure=pure)
    if epsilon > LARGEST_EPSILON or (epsilon < SMALLEST_EPSILON and not part):
        size = "large" if epsilon > 1 else "small"
        raise ValueError(
            f"epsilon = {epsilon} is too {size}: give one from {SMALLEST_EPSILON:g} to "
            f"{LARGEST_EPSILON:g}; 1 is a usual choice"
        )
    if 0 < delta < SMALLEST_DELTA and not part:
        instead = ", or 0 for Laplace noise" if pure else ""
        raise ValueError(
            f"delta = {delta} is too small for noise on a grid: give at least "
            f"{SMALLEST_DELTA:g}{instead}"
        )


def check_pair(epsilon: float, delta: float, *, pure: bool = False) -> None:
    """Refuse an invalid pair (ε, δ), of a budget or of several together.

    Parameters
    ----------
    epsilon, delta : float
    pure : bool
        Whether δ may be 0.

    Raises
    ------
    ValueError
        Unless 0 < ε < ∞ and 0 < δ < 1.

    Examples
    --------
    >>> check_pair(1e300, 1e-300)
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"epsilon must be positive and finite, got {epsilon}: 1 is a usual choice")
    if not (0 < delta < 1 or (pure and delta == 0)):
        least = "be at least 0 and below 1" if pure else "lie strictly between 0 and 1"
        raise ValueError(
            f"delta must {least}, got {delta}: well below one over the number of people is a usual "
            "choice"
        )
