"""Mixtures of normal laws: their quantiles."""

from __future__ import annotations

import numpy as np
from scipy import special

from cloakgp.utils.arrays import Array

# Of what lies between the quantiles of the parts.
HALVINGS = 80


def mixture_quantiles(means: Array, sds: Array, weights: Array, probability: float) -> Array:
    """Return a quantile of each of n mixtures of k normal laws, shape (n,), by bisection.

    Parameters
    ----------
    means, sds : arrays of shape (n, k)
    weights : array of shape (k,)
    probability : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> halves = np.array([0.5, 0.5])
    >>> mixture_quantiles(np.array([[0.0, 0.0]]), np.array([[1.0, 3.0]]), halves, 0.975).round(3)
    array([4.935])
    """
    # The least quantile of the parts is no more, the greatest no less.
    ends = means + special.ndtri(probability) * sds
    low, high = ends.min(axis=1), ends.max(axis=1)
    sds = np.maximum(sds, np.finfo(np.float64).tiny)
    for _ in range(HALVINGS if len(weights) > 1 else 0):
        middle = (low + high) / 2
        below = special.ndtr((middle[:, None] - means) / sds) @ weights < probability
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    found: Array = (low + high) / 2
    return found
