"""Screening of columns: those that no optimal design weighs, and those that a step works on.

`may_carry_weight` rules columns out for good, by the proof below. `first_columns`, `entering` and
`leaving` choose the working set of a step of the solver: columns that carry the weight, and span
everything. What these leave out is found again by the gains of all columns, so a poor choice costs
steps and nothing else, but for one thing: the weighted columns must go on spanning every dimension.
Writing what S loses with the columns J as S^½ E S^½, tr E = Σ_J u_j c_jᵀ S⁻¹ c_j. So while that sum
stays below 1, S keeps the share 1 − tr E of itself in every direction, however weak.

Columns that provably carry no weight in any optimal design
------------------------------------------------------------
Let S belong to weights u on the simplex with the certified relative gap e = max_j g_j − 1 ≥ 0, and
let X* be the optimal inverse covariance, c_jᵀ X* c_j ≤ 1 for every column. By complementarity a
column carries weight in an optimal design only where c_jᵀ X* c_j = 1. X* is not known, but the
gap confines it. Write r for the number of dimensions.

**logdet** (Harman and Pronzato 2007, theorem 1). X* = S*⁻¹/r. Let A = S^-½ S* S^-½. From the gap,
tr A = Σ_j u*_j c_jᵀ S⁻¹ c_j ≤ r (1 + e); from X* being feasible,
tr A⁻¹ = Σ_j u_j c_jᵀ S*⁻¹ c_j ≤ r.
If λ is the least eigenvalue of A, the others sum to at most r (1 + e) − λ, so their inverses sum
to at least (r − 1)² / (r (1 + e) − λ), and

    1/λ + (r − 1)² / (r (1 + e) − λ) ≤ r,   that is   λ² − (2 + r e) λ + 1 + e ≤ 0.

So λ is at least the smaller root, 1 + r e/2 − ½ sqrt(r e (4 + r e − 4/r)). Where c_j carries
weight, r = c_jᵀ S*⁻¹ c_j ≤ c_jᵀ S⁻¹ c_j / λ, that is g_j ≥ λ.

**trace**. Let t = tr S^½, so that g_j = c_jᵀ S^-½ c_j / t, and Ω = S^½/t, of trace 1. The point
S^-½ / (t (1 + e)) is feasible, so the optimum obeys tr X*⁻¹ ≤ (1 + e) t²; and X* being feasible,
tr(S X*) = Σ_j u_j c_jᵀ X* c_j ≤ 1. With Y = t S^¼ X* S^¼ these say tr(Ω Y) ≤ 1 and
tr(Ω Y⁻¹) ≤ 1 + e. Adding them, D = Y^½ − Y^-½ has

    ‖D Ω^½‖_F² = tr(Ω Y) + tr(Ω Y⁻¹) − 2 ≤ e.

Let z = S^-¼ c_j / √t, so that ‖z‖² = g_j and c_jᵀ X* c_j = zᵀ Y z. Then ‖D z‖ ≤ ‖D Ω^½‖ ‖Ω^-½ z‖ ≤
√e h_j with h_j² = zᵀ Ω⁻¹ z = c_jᵀ S⁻¹ c_j. Since Y^½ = D/2 + (1 + D²/4)^½ and
‖(1 + D²/4)^½ z‖² = ‖z‖² + ‖D z‖²/4, we have ‖Y^½ z‖ ≤ ‖D z‖/2 + (g_j + ‖D z‖²/4)^½, which is
below 1 exactly when ‖D z‖ < 1 − g_j. So a column with g_j + √e h_j < 1 carries no weight. (The
bound on ‖D z‖ is attained, by a D of rank one along Ω⁻¹ z.)

**Rounding.** Products and solutions with S err by at most some r ε_mach κ relatively, κ the
condition number of S (Higham 2002, theorem 10.4). All of g, h² and e are taken to be wrong by
r ε_mach κ times a safety factor; where that leaves no digits, nothing is ruled out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from cloakgp.design.objectives import Iterate, LogDetIterate, squared_lengths
from cloakgp.utils.arrays import Array

Indices = NDArray[np.intp]

# How many times the rounding errors that theory allows for are counted.
ROUNDING_FACTOR = 16.0
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


def may_carry_weight(iterate: Iterate, columns: Array, *, gap: float) -> NDArray[np.bool_]:
    """Return the columns that may have weight in an optimal design.

    The optimum over a set of columns that holds those of ``iterate`` and on which ``gap`` was
    certified; ``columns`` are any of that set. The others can be left out for good: the optimum
    without them is the same, and so are the gaps certified without them.

    Parameters
    ----------
    iterate : Iterate
        Of weights that sum to 1.
    columns : array of shape (r, n)
    gap : float
        max_j g_j − 1 over the whole set, or more.

    Returns
    -------
    array of bool, shape (n,)

    Examples
    --------
    >>> from cloakgp.design.objectives import factorise
    >>> columns = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
    >>> optimum = factorise("trace", columns, np.array([0.5, 0.5, 0.0]))
    >>> may_carry_weight(optimum, columns, gap=1e-6)
    array([ True,  True, False])
    """
    dimension = len(columns)
    rounding = ROUNDING_FACTOR * dimension * np.finfo(np.float64).eps * iterate.condition()
    if not (0.0 <= gap < np.inf and rounding < 1.0):
        return np.ones(columns.shape[1], dtype=bool)
    widened = (1.0 + gap) * (1.0 + rounding) - 1.0
    gains = iterate.gains(columns) * (1.0 + rounding)
    if isinstance(iterate, LogDetIterate):
        excess = dimension * widened
        spread = np.sqrt(max(excess * (4.0 + excess - 4.0 / dimension), 0.0))
        # The smaller root as the product of both over the larger: no difference of like numbers.
        least = (1.0 + widened) / (1.0 + excess / 2.0 + spread / 2.0)
        return np.asarray(gains >= least, dtype=bool)
    leverages = squared_lengths(iterate.whiten(columns)) * (1.0 + rounding)
    return np.asarray(gains + np.sqrt(widened * leverages) >= 1.0, dtype=bool)


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
    >>> from cloakgp.design.objectives import factorise
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
    whitened = iterate.whiten(columns) * np.sqrt(weights)
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
    losses = weights[candidates] * squared_lengths(iterate.whiten(columns[:, candidates]))
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
