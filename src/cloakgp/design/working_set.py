"""Which columns a step of the solver works on: those that carry the weight, and span everything.

What is left out is found again by the gains of all columns, so a poor choice costs steps and
nothing else, but for one thing: the weighted columns must go on spanning every dimension. Writing
what S loses with the columns J as S^½ E S^½, tr E = Σ_J u_j c_jᵀ S⁻¹ c_j. So while that sum stays
below 1, S keeps the share 1 − tr E of itself in every direction, however weak.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from cloakgp.arrays import Array
from cloakgp.design.criteria import Iterate, squared_lengths

Indices = NDArray[np.intp]

# How many times as many columns as there are dimensions to begin with, and at least how many.
FIRST_SHARE, FIRST_COLUMNS = 3, 50
# How hard a gain counts against a weight, in guessing which columns matter.
GAIN_POWER = 3
# The least share of S, in any direction, that the first columns hold, or others join.
SPANNING_SHARE = 0.01
# At most what share of the working columns, or how many, may enter at once.
ENTERING_SHARE, ENTERING_COLUMNS = 0.25, 20
# Columns leave below this share of the mean weight, and while the trace of what S loses is small.
LEAVING_SHARE, LEAVING_LOSS = 0.1, 0.1


def first_columns(columns: Array, weights: Array, *, iterate: Iterate, gains: Array) -> Indices:
    """Return the columns that seem to matter, and enough of the others to span every dimension.

    Parameters
    ----------
    columns : array of shape (r, n)
    weights, gains : array of shape (n,)
    iterate : Iterate
        Of these weights.

    Returns
    -------
    array of int
        Ascending.

    Examples
    --------
    >>> from cloakgp.design.criteria import factorise
    >>> columns, weights = np.eye(2), np.array([0.5, 0.5])
    >>> first_columns(columns, weights, iterate=factorise("trace", columns, weights),
    ...               gains=np.ones(2))
    array([0, 1])
    """
    dimension, count = columns.shape
    size = max(FIRST_SHARE * dimension, FIRST_COLUMNS)
    if count <= size:
        return np.arange(count)
    promise = weights * gains**GAIN_POWER
    chosen = np.sort(np.argpartition(-promise, size)[:size])
    whitened = iterate.whitened(columns) * np.sqrt(weights)
    held = whitened[:, chosen]
    if np.linalg.eigvalsh(held @ held.T)[0] >= SPANNING_SHARE:
        return chosen
    # Whitened, directions of little weight count as much as any.
    _, pivots = linalg.qr(whitened, mode="r", pivoting=True)
    return np.union1d(chosen, pivots[:dimension])


def leaving(
    columns: Array, weights: Array, slack: Array, *, iterate: Iterate, gains: Array, gap: float
) -> Indices:
    """Return which of the working columns seem to carry no weight, and are not needed to span.

    Parameters
    ----------
    columns : array of shape (r, m)
    weights, slack, gains : array of shape (m,)
    iterate : Iterate
        Of these weights.
    gap : float
        Of these weights.

    Returns
    -------
    array of int
    """
    idle = (weights < LEAVING_SHARE / len(weights)) & (slack > 10 * weights)
    idle &= gains < 1.0 - 2.0 * gap
    candidates = np.flatnonzero(idle)
    candidates = candidates[np.argsort(weights[candidates])]
    losses = weights[candidates] * squared_lengths(iterate.whitened(columns[:, candidates]))
    return candidates[np.cumsum(losses) < LEAVING_LOSS]


def entering(gains: Array, working: Indices, *, gap: float) -> Indices:
    """Return which other columns join: those of the largest gains above 1.

    Parameters
    ----------
    gains : array of shape (n,)
        Of all columns.
    working : array of int
        The columns that are there already.
    gap : float
        The one asked for; gains that are not in its way are let be.

    Returns
    -------
    array of int

    Examples
    --------
    >>> entering(np.array([1.0, 1.2, 1.3, 0.5]), np.array([2]), gap=1e-3)
    array([1])
    """
    above = gains > 1.0 + gap / 2
    above[working] = False
    candidates = np.flatnonzero(above)
    limit = max(int(ENTERING_SHARE * len(working)), ENTERING_COLUMNS)
    if len(candidates) > limit:
        candidates = candidates[np.argpartition(-gains[candidates], limit)[:limit]]
    return candidates
