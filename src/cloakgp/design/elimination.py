r"""Columns that provably carry no weight in any optimal design.

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

from cloakgp.arrays import Array
from cloakgp.design.criteria import Iterate, LogDetIterate, squared_lengths

ROUNDING_FACTOR = 16.0


def may_carry_weight(iterate: Iterate, columns: Array, *, gap: float) -> NDArray[np.bool_]:
    """Tell which columns an optimal design may put weight on.

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
    >>> from cloakgp.design.criteria import factorise
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
    leverages = squared_lengths(iterate.whitened(columns)) * (1.0 + rounding)
    return np.asarray(gains + np.sqrt(widened * leverages) >= 1.0, dtype=bool)
