"""Means over draws with their standard errors, and how tables show both.

From fewer than `FEWEST` draws no standard error is told: that of two is less than half of what it
should be in one case of three.
"""

from __future__ import annotations

import numpy as np

from cloakgp.utils.arrays import Array

FEWEST = 5


def standard_error(draws: Array) -> float | None:
    """Return the standard error of the mean of draws, None where there are too few to tell.

    Parameters
    ----------
    draws : array of shape (draws,)

    Examples
    --------
    >>> standard_error(np.array([1.0, 3.0, 2.0, 1.0, 3.0])).__round__(3)
    0.447
    >>> standard_error(np.array([1.0, 3.0]))
    """
    if len(draws) < FEWEST:
        return None
    return float(draws.std(ddof=1) / np.sqrt(len(draws)))
