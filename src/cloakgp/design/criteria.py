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

# Below this share of the largest eigenvalue of S, float64 holds no digits of the smaller ones.
# They are raised to it: M changes there, and the sensitivity is computed from that very M.
EIGENVALUE_FLOOR = 1e-16


class Iterate(Protocol):
    """One design, factorised."""

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

    def gains(self, columns: Array) -> Array:
        """Return c_jᵀ S^-½ c_j / tr S^½."""
        rotated = self.directions.T @ columns
        gains: Array = (1.0 / self.roots) @ np.square(rotated)
        return gains / float(self.roots.sum())

    def curvature(self, columns: Array) -> Array:
        """Return g_i g_j / 2 + Σ_ab c_ia c_ja c_ib c_jb / (√λ_a √λ_b (√λ_a + √λ_b)) / tr S^½.

        The sum is the derivative of S^-½, by the divided differences of λ ↦ λ^-½ in the
        eigenbasis of S (Bhatia 1997, *Matrix Analysis*, theorem V.3.3).
        """
        rotated = self.directions.T @ columns
        upper_a, upper_b = np.triu_indices(len(self.roots))
        root_a, root_b = self.roots[upper_a], self.roots[upper_b]
        multiplicity = np.where(upper_a == upper_b, 1.0, 2.0)
        scale = np.sqrt(multiplicity / (root_a * root_b * (root_a + root_b)))
        products = rotated[upper_a] * rotated[upper_b] * scale[:, None]
        gains = self.gains(columns)
        curvature: Array = products.T @ products
        return curvature / float(self.roots.sum()) + np.outer(gains, gains) / 2

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
    scaled = columns * np.sqrt(weights)
    eigenvalues, directions = linalg.eigh(scaled @ scaled.T)
    floored = np.maximum(eigenvalues, EIGENVALUE_FLOOR * eigenvalues[-1])
    if criterion == "trace":
        return TraceIterate(roots=np.sqrt(floored), directions=directions)
    # The triangular root of the floored S, by QR: R Rᵀ with no loss of digits.
    triangular = linalg.qr((directions * np.sqrt(floored)).T, mode="r")[0][: len(floored)]
    return LogDetIterate(factor=triangular.T)
