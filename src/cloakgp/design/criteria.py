r"""What a design minimises: the volume of the noise (`logdet`) or its mean square (`trace`).

Both problems ask for the covariance M of the noise under c_jᵀ M⁻¹ c_j ≤ 1 for every column c_j of
the (reduced) cloaking matrix. Their duals live on the simplex of column weights u, with
S(u) = Σ_j u_j c_j c_jᵀ, and are written here in one form: minimise a convex function of u ≥ 0, with

* ``logdet``: −log det S(u) / r, the D-optimal design, whose answer is the minimum-volume ellipsoid
  (Titterington 1975; Todd 2016, *Minimum-Volume Ellipsoids*, chapter 2); M = r·S;
* ``trace``: −2 log tr S(u)^½, a Φ_p-optimal design (Pukelsheim 1993, chapter 6);
  M = tr(S^½)·S^½.

Adding a constant to either function only rescales u, so −gradient obeys Σ_j u_j g_j = 1 on the
simplex, and u is optimal exactly when g_j ≤ 1 everywhere: max_j g_j − 1 is the certified gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from scipy import linalg

from cloakgp.arrays import Array

CriterionName = Literal["logdet", "trace"]

# Below this share of the largest √λ of S, float64 holds no digits of the smaller ones. They are
# raised to it: M changes there, and the sensitivity is computed from that very M.
ROOT_FLOOR = 1e-16
# Step of the quadrature for 1/(ρ_a + ρ_b), in log t, and how far it reaches beyond 1/ρ. Its
# relative error, some 4 |Γ(1 + 2πi/step)| = 1e-4, bends the path of a Newton step, not its end.
QUADRATURE_STEP = 0.8
QUADRATURE_BELOW, QUADRATURE_ABOVE = 1e-6, 12.0


class Iterate(Protocol):
    """One design, factorised."""

    def value(self) -> float:
        """Return the criterion's dual function, to be minimised."""

    def gains(self, columns: Array) -> Array:
        """Return g_j, minus the gradient, for every column; at most 1 at the optimum."""

    def curvature(self, columns: Array) -> Array:
        """Return the matrix of second derivatives over the columns given."""

    def noise_root(self) -> Array:
        """Return L with M = L Lᵀ, the covariance that this design proposes (up to scale)."""


@dataclass(frozen=True)
class LogDetIterate:
    """S = G Gᵀ by Cholesky."""

    factor: Array

    def value(self) -> float:
        """Return −log det S / r."""
        return -2.0 * float(np.log(np.abs(np.diag(self.factor))).mean())

    def gains(self, columns: Array) -> Array:
        """Return c_jᵀ S⁻¹ c_j / r."""
        whitened = linalg.solve_triangular(self.factor, columns, lower=True)
        gains: Array = np.einsum("ij,ij->j", whitened, whitened) / len(self.factor)
        return gains

    def curvature(self, columns: Array) -> Array:
        """Return (c_iᵀ S⁻¹ c_j)² / r."""
        whitened = linalg.solve_triangular(self.factor, columns, lower=True)
        return np.asarray(np.square(whitened.T @ whitened) / len(self.factor), dtype=np.float64)

    def noise_root(self) -> Array:
        """Return √r·G."""
        return self.factor * float(np.sqrt(len(self.factor)))


@dataclass(frozen=True)
class TraceIterate:
    """S = Q diag(λ) Qᵀ; ``roots`` holds √λ."""

    roots: Array
    directions: Array

    def value(self) -> float:
        """Return −2 log tr S^½."""
        return -2.0 * float(np.log(self.roots.sum()))

    def gains(self, columns: Array) -> Array:
        """Return c_jᵀ S^-½ c_j / tr S^½."""
        rotated = self.directions.T @ columns
        gains: Array = (1.0 / self.roots) @ np.square(rotated)
        return gains / float(self.roots.sum())

    def curvature(self, columns: Array) -> Array:
        """Return g_i g_j / 2 + Σ_ab c_ia c_ja c_ib c_jb / (ρ_a ρ_b (ρ_a + ρ_b)) / tr S^½, ρ = √λ.

        The sum is the derivative of S^-½, by the divided differences of λ ↦ λ^-½ in the
        eigenbasis of S (Bhatia 1997, *Matrix Analysis*, theorem V.3.3). Its r² terms a pair become
        a few tens by 1/(ρ_a + ρ_b) = ∫ exp(−t ρ_a) exp(−t ρ_b) dt, with the trapezoidal rule in
        log t: every node is the square of a matrix product.
        """
        rotated = self.directions.T @ columns
        exponents = np.arange(
            np.log(QUADRATURE_BELOW / self.roots.max()),
            np.log(QUADRATURE_ABOVE / self.roots.min()) + QUADRATURE_STEP,
            QUADRATURE_STEP,
        )
        gains = self.gains(columns)
        curvature = np.outer(gains, gains) / 2
        for node in np.exp(exponents):
            damped = rotated * (np.exp(-node * self.roots) / self.roots)[:, None]
            weight = QUADRATURE_STEP * node / float(self.roots.sum())
            curvature += weight * np.square(damped.T @ rotated)
        return np.asarray(curvature, dtype=np.float64)

    def noise_root(self) -> Array:
        """Return Q λ^¼ (tr S^½)^½."""
        root: Array = self.directions * np.sqrt(self.roots * self.roots.sum())
        return root


def factorise(criterion: CriterionName, columns: Array, weights: Array) -> Iterate:
    """Factorise S(u) for a criterion.

    Parameters
    ----------
    criterion : {"logdet", "trace"}
    columns : array of shape (r, n)
    weights : array of shape (n,)
        Positive, with columns that span all r dimensions.
    """
    # √λ from the singular values of the columns: twice the digits of an eigenvalue of S.
    triangular = linalg.qr((columns * np.sqrt(weights)).T, mode="r")[0][: len(columns)]
    directions, roots, _ = linalg.svd(triangular.T)
    roots = np.maximum(roots, ROOT_FLOOR * roots[0])
    if criterion == "trace":
        return TraceIterate(roots=roots, directions=directions)
    lower = linalg.qr((directions * roots).T, mode="r")[0][: len(roots)]
    return LogDetIterate(factor=lower.T)
