r"""Objectives of a design: the volume of the noise (`logdet`), or its mean square (`trace`).

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
from typing import Protocol

import numpy as np
from scipy import linalg

from cloakgp.utils.arrays import Array
from cloakgp.utils.names import CriterionName

# Below this share of the largest √λ of S, float64 holds no digits of the smaller ones. They are
# raised to it: M changes there, and the sensitivity is computed from that very M.
ROOT_FLOOR = 1e-16
# The eigenvalues of a product S = C diag(u) Cᵀ carry an error of eps of the largest. Where the
# least is above this share of the largest, gains keep ten digits; below, S is never formed.
PRODUCT_CONDITION = 1e-6
# Step of the quadrature for 1/(ρ_a + ρ_b), in log t, and how far it reaches. Its relative error,
# some 4 |Γ(1 + 2πi/step)| = 2e-2, bends the path of a Newton step, not its end.
QUADRATURE_STEP = 1.6
QUADRATURE_BELOW, QUADRATURE_ABOVE = 1e-2, 3.0


class Iterate(Protocol):
    """One design, factorised."""

    @property
    def raised(self) -> bool:
        """Whether weak directions were raised, so that this is not quite the design asked for."""

    def value(self) -> float:
        """Return the criterion's dual function, to be minimised."""

    def gains(self, columns: Array) -> Array:
        """Return g_j, minus the gradient, for every column; at most 1 at the optimum."""

    def curvature(self, columns: Array) -> Array:
        """Return the matrix of second derivatives over the columns given."""

    def whiten(self, columns: Array) -> Array:
        """Return columns whose inner products are c_iᵀ S⁻¹ c_j."""

    def condition(self) -> float:
        """Return the condition number of S."""

    def noise_root(self) -> Array:
        """Return L with M = L Lᵀ, the covariance that this design proposes (up to scale)."""


@dataclass(frozen=True)
class LogDetIterate:
    """S = G Gᵀ by Cholesky."""

    factor: Array
    raised: bool = False

    def value(self) -> float:
        """Return −log det S / r."""
        return -2.0 * float(np.log(np.abs(np.diag(self.factor))).mean())

    def gains(self, columns: Array) -> Array:
        """Return c_jᵀ S⁻¹ c_j / r."""
        return squared_lengths(self.whiten(columns)) / len(self.factor)

    def curvature(self, columns: Array) -> Array:
        """Return (c_iᵀ S⁻¹ c_j)² / r."""
        whitened = self.whiten(columns)
        products = whitened.T @ whitened
        np.multiply(products, products, out=products)
        products /= len(self.factor)
        return np.asarray(products, dtype=np.float64)

    def whiten(self, columns: Array) -> Array:
        """Return G⁻¹ c_j."""
        # An inverse and a product, which over many columns take half as long as substitution; for
        # a triangle the bound on the error is the same (Higham 2002, section 14.2).
        inverse, _ = linalg.lapack.dtrtri(self.factor, lower=1)
        return np.asarray(inverse @ columns, dtype=np.float64)

    def condition(self) -> float:
        """Return the squared condition number of G."""
        return float(np.linalg.cond(self.factor)) ** 2

    def noise_root(self) -> Array:
        """Return √r·G."""
        return self.factor * float(np.sqrt(len(self.factor)))


@dataclass(frozen=True)
class TraceIterate:
    """S = Q diag(λ) Qᵀ; ``roots`` holds √λ."""

    roots: Array
    directions: Array
    raised: bool = False

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
        some ten by 1/(ρ_a + ρ_b) = ∫ exp(−t ρ_a) exp(−t ρ_b) dt, with the trapezoidal rule in
        log t: every node is the square of a matrix product. Unlike an expansion in eigenvectors,
        it has the same relative error for every pair, however weak its directions.
        """
        whitened = self.whiten(columns)
        total = float(self.roots.sum())
        gains = self.roots @ np.square(whitened) / total
        curvature = np.outer(gains, gains) / 2
        exponents = np.arange(
            np.log(QUADRATURE_BELOW / self.roots.max()),
            np.log(QUADRATURE_ABOVE / self.roots.min()) + QUADRATURE_STEP,
            QUADRATURE_STEP,
        )
        nodes = np.exp(exponents)
        weights = QUADRATURE_STEP * nodes / total
        # Where the integrand is exp(0) still, the nodes left out sum to a geometric series.
        weights[0] *= 1.0 + 1.0 / np.expm1(QUADRATURE_STEP)
        term = np.empty_like(curvature)
        for node, weight in zip(nodes, np.sqrt(weights), strict=True):
            damped = whitened * (weight * self.roots * np.exp(-node * self.roots))[:, None]
            np.matmul(damped.T, whitened, out=term)
            np.multiply(term, term, out=term)
            curvature += term
        return np.asarray(curvature, dtype=np.float64)

    def whiten(self, columns: Array) -> Array:
        """Return diag(λ)^-½ Qᵀ c_j."""
        whitened: Array = (self.directions.T @ columns) / self.roots[:, None]
        return whitened

    def condition(self) -> float:
        """Return max λ / min λ."""
        return float(self.roots.max() / self.roots.min()) ** 2

    def noise_root(self) -> Array:
        """Return Q λ^¼ (tr S^½)^½."""
        root: Array = self.directions * np.sqrt(self.roots * self.roots.sum())
        return root


def factorise(
    criterion: CriterionName, columns: Array, weights: Array, *, rough: bool = False
) -> Iterate:
    """Factorise S(u) for a criterion.

    Parameters
    ----------
    criterion : {"logdet", "trace"}
    columns : array of shape (r, n)
    weights : array of shape (n,)
        Positive, with columns that span all r dimensions.
    rough : bool
        Whether directions in which S is weaker than 1e-16 of its largest eigenvalue may be raised
        to it: several times faster where S is close to singular, and the same elsewhere. The
        iterate says whether that happened.

    Examples
    --------
    >>> design = factorise("logdet", np.eye(2), np.array([0.5, 0.5]))
    >>> design.gains(np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]]))
    array([1. , 1. , 0.5])
    """
    product = (columns * weights) @ columns.T
    quick = _from_product(criterion, product, rough=rough) if np.isfinite(product).all() else None
    if quick is not None:
        return quick
    # √λ from the singular values of the columns: twice the digits of an eigenvalue of S.
    triangular = linalg.qr((columns * np.sqrt(weights)).T, mode="r")[0][: len(columns)]
    directions, roots, _ = linalg.svd(triangular.T)
    roots = np.maximum(roots, ROOT_FLOOR * roots[0])
    if criterion == "trace":
        return TraceIterate(roots=roots, directions=directions)
    lower = linalg.qr((directions * roots).T, mode="r")[0][: len(roots)]
    return LogDetIterate(factor=lower.T)


def squared_lengths(columns: Array) -> Array:
    """Return ‖c_j‖² for the columns of a matrix."""
    lengths: Array = np.einsum("ij,ij->j", columns, columns)
    return lengths


def _from_product(criterion: CriterionName, product: Array, *, rough: bool) -> Iterate | None:
    """Factorise S itself, or return None where that loses too many digits."""
    if criterion == "logdet":
        factor, failed = linalg.lapack.dpotrf(product, lower=1, clean=1)
        if not failed:
            norm = float(np.abs(product).sum(axis=0).max())
            share, _ = linalg.lapack.dpocon(factor, norm, uplo="L")
            if share > PRODUCT_CONDITION:
                return LogDetIterate(factor=factor)
        if not rough:
            return None
    values, directions = np.linalg.eigh(product)
    weak = bool(values[0] <= PRODUCT_CONDITION * values[-1])
    if weak and not rough:
        return None
    roots = np.sqrt(np.maximum(values, np.finfo(np.float64).eps * values[-1]))
    if criterion == "trace":
        return TraceIterate(roots=roots, directions=directions, raised=weak)
    lower = linalg.qr((directions * roots).T, mode="r")[0]
    return LogDetIterate(factor=lower.T, raised=True)
