r"""Reproducing kernel Hilbert space: posterior means as its points, and how outputs move them.

The posterior mean less the prior mean is f(.) = Σ_j α_j k(., x_j) with α = K_y⁻¹ (y − m). If output
j changes by d, then α changes by d times column j of K_y⁻¹, and f by

    g = d Σ_i [K_y⁻¹]_ij k(., x_i),    ‖g‖²_H = d² [K_y⁻¹ K K_y⁻¹]_jj,

since ⟨k(., x), k(., x')⟩_H = k(x, x'). So the exact sensitivity of f in the space H of the latent
function's kernel k is d·max_j √[K_y⁻¹ K K_y⁻¹]_jj (2018 paper, equations 3 to 5, evaluated instead
of bounded): a change from one bound to the other attains it.

f lies in the span of the N functions k(., x_j). With K = U Λ Uᵀ, the functions

    e_i(.) = Σ_j A_ji k(., x_j),    A = U Λ^-½,    Aᵀ K A = I,

are an orthonormal basis of that span, and the coordinates of f in it are β = Φ K_y⁻¹ (y − m), where
Φ = Λ^½ Uᵀ holds e_i(x_j). So ‖f‖_H = ‖β‖₂, and the columns of W = Φ K_y⁻¹ have the lengths above.

A sparse prior has Q_ab = K_aZ (K_ZZ + jitter)⁻¹ K_Zb in the place of k. Its posterior mean lies in
the space of k too, where its norm is the same but for the jitter, which only lowers it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from cloakgp.models.covariance import LowRankCovariance
from cloakgp.models.exact import ExactPrior
from cloakgp.models.sparse import SparsePrior
from cloakgp.utils.arrays import Array


@dataclass(frozen=True, eq=False)
class FunctionSpan:
    """An orthonormal basis of possible posterior means, and the mean's coordinates in it.

    Attributes
    ----------
    prior : ExactPrior or SparsePrior
    X : array of shape (N, D)
    representers : array of shape (N, k)
        A: basis function i is the sum over rows of A_ji k(., x_j).
    coordinates : array of shape (k, N)
        W: from outputs, less the prior mean, to the coordinates of the posterior mean.
    """

    prior: ExactPrior | SparsePrior
    X: Array
    representers: Array
    coordinates: Array

    def at(self, X_query: Array) -> Array:
        """Return the basis functions at query points, shape (P, k)."""
        values: Array = self.prior.cross_covariance(X_query, self.X) @ self.representers
        return values

    def unspanned_covariance(self, X_query: Array) -> Array:
        """Return the part of the kernel between query points that the span leaves out.

        Shape (P, P). The covariance, given its values at all rows, of a Gaussian process with this
        kernel: zero at the rows, the whole kernel far from them.
        """
        spanned = self.at(X_query)
        kernel = self.prior.cross_covariance(X_query, X_query.copy())
        left: Array = kernel - spanned @ spanned.T
        return (left + left.T) / 2


def function_span(prior: ExactPrior | SparsePrior, X: Array) -> FunctionSpan:
    """Return the span of the kernel at some rows, up to rounding.

    Directions whose variance Λ_i is below N·2⁻⁵² of the largest are left out: they are not told
    from rounding in K. What the mean has along them is lost, at a query point with variance k(x, x)
    at most √(k(x, x) N 2⁻⁵² Λ_1) ‖K_y⁻¹ (y − m)‖₂.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    X : array of shape (N, D)

    Returns
    -------
    FunctionSpan

    Raises
    ------
    ValueError
        As `output_covariance` of the prior.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> prior = ExactPrior(kernel=RBF(), noise_variance=1.0, mean=0.0)
    >>> span = function_span(prior, np.array([[0.0], [0.0], [9.0]]))
    >>> span.representers.shape
    (3, 2)
    """
    covariance = prior.output_covariance(X)
    if isinstance(covariance, LowRankCovariance):
        _, scales, directions = np.linalg.svd(covariance.features, full_matrices=False)
        variances = np.square(scales)
    else:
        variances, columns = linalg.eigh(covariance.latent)
        variances, directions = variances[::-1], columns[:, ::-1].T
    tolerance = len(X) * np.finfo(np.float64).eps * max(float(variances[0]), 0.0)
    rank = int(np.count_nonzero(variances > tolerance))
    scales, directions = np.sqrt(variances[:rank]), directions[:rank]
    root = scales[:, None] * directions
    # Φ (Φᵀ Φ + D)⁻¹ = (I + Φ D⁻¹ Φᵀ)⁻¹ Φ D⁻¹, and the eigenvalues of that sum are at least 1.
    divided = root / covariance.noise
    inner = np.eye(rank) + divided @ root.T
    return FunctionSpan(
        prior=prior,
        X=X,
        representers=directions.T / scales,
        coordinates=np.asarray(linalg.cho_solve(linalg.cho_factor(inner), divided))
        if rank
        else divided,
    )


def rkhs_sensitivity(prior: ExactPrior | SparsePrior, X: Array) -> float:
    """Return max_j √[K_y⁻¹ K K_y⁻¹]_jj, the move of the posterior mean per unit of one output.

    Exact; see the head of this module. In inverse output units: times an output's change and
    √k(x, x) it is an sd in output units.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    X : array of shape (N, D)

    Examples
    --------
    One row: f = k(., x) y / (k(x, x) + noise), of norm y √k(x, x) / (k(x, x) + noise).

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> prior = ExactPrior(kernel=4.0 * RBF(), noise_variance=1.0, mean=0.0)
    >>> round(rkhs_sensitivity(prior, np.zeros((1, 1))), 12)
    0.4
    """
    return _longest(function_span(prior, X).coordinates)


@dataclass(frozen=True, eq=False)
class FunctionQuestions:
    """Questions about outputs whose answers are a whole function.

    Attributes
    ----------
    strategy : array of shape (k, N)
        R = W / Δ, with the longest column Δ of W: its own has norm 1.
    representers : array of shape (N, k)
        Δ A. With answers R (y − m) the posterior mean at X_query is
        m + cross_covariance(X_query, X) @ representers @ answers.
    """

    strategy: Array
    representers: Array


def function_questions(prior: ExactPrior | SparsePrior, X: Array) -> FunctionQuestions:
    """Return the questions whose answers are the coordinates of the posterior mean.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    X : array of shape (N, D)

    Raises
    ------
    ValueError
        As `function_span`.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> prior = ExactPrior(kernel=RBF(), noise_variance=1.0, mean=0.0)
    >>> function_questions(prior, np.array([[0.0], [9.0]])).strategy.shape
    (2, 2)
    """
    span = function_span(prior, X)
    longest = _longest(span.coordinates)
    if longest == 0:
        return FunctionQuestions(strategy=span.coordinates, representers=span.representers)
    return FunctionQuestions(
        strategy=span.coordinates / longest, representers=span.representers * longest
    )


@dataclass(frozen=True)
class SensitivityBounds:
    """The 2018 paper's bounds of the sensitivity, per unit of one output, next to the exact value.

    Attributes
    ----------
    exact : float
        `rkhs_sensitivity`.
    diagonal : float
        √κ max_j [K_y⁻¹]_jj; not in the paper.
    signed : float
        √κ b(K_y⁻¹): the largest sum of the positive, or of the negative, entries of a column (after
        equation 4; algorithm 1).
    infinity : float
        √κ ‖K_y⁻¹‖_∞, the largest sum of absolute values (after equation 4).
    """

    exact: float
    diagonal: float
    signed: float
    infinity: float


def sensitivity_bounds(prior: ExactPrior | SparsePrior, X: Array) -> SensitivityBounds:
    r"""Return the 2018 paper's bounds of ‖f − f'‖_H per unit of one output, and the exact value.

    The paper has kernels with values in [0, 1] and bounds |f(x) − f'(x)| by d·b(K_y⁻¹) for every x,
    then takes this for a bound of the norm in H (after equation 5). It is one, for another reason;
    for a kernel of variance at most κ,

        exact ≤ √κ max_j [K_y⁻¹]_jj ≤ √κ b(K_y⁻¹) ≤ √κ ‖K_y⁻¹‖_∞.

    Proof of the first. Let a = [K_y⁻¹]_jj and D be the noise variances, K = K_y − D. Then
    [K_y⁻¹ K K_y⁻¹]_jj = a − Σ_i D_i [K_y⁻¹]_ij² ≤ a (1 − D_j a). As 1/a is the variance of output j
    given all others, a ≥ 1/(κ + D_j), so that 1 − D_j a ≤ κ/(κ + D_j) ≤ κ a. The second holds since
    a is one of the positive entries of its column.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    X : array of shape (N, D)

    Returns
    -------
    SensitivityBounds

    Raises
    ------
    ValueError
        As `function_span`.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> prior = ExactPrior(kernel=RBF(), noise_variance=1.0, mean=0.0)
    >>> bounds = sensitivity_bounds(prior, np.zeros((1, 1)))
    >>> round(bounds.exact, 12), round(bounds.diagonal, 12), round(bounds.signed, 12)
    (0.5, 0.5, 0.5)
    """
    exact = rkhs_sensitivity(prior, X)
    outputs = prior.row_covariance(X, X.copy()) + np.diag(prior.row_noise(X))
    inverse = linalg.cho_solve(linalg.cho_factor(outputs, lower=True), np.eye(len(X)))
    largest = float(np.sqrt(prior.query_variance(X).max()))
    positive = np.maximum(inverse, 0.0).sum(axis=0).max()
    negative = np.maximum(-inverse, 0.0).sum(axis=0).max()
    return SensitivityBounds(
        exact=exact,
        diagonal=largest * float(np.diag(inverse).max()),
        signed=largest * float(max(positive, negative)),
        infinity=largest * float(np.abs(inverse).sum(axis=0).max()),
    )


def _longest(columns: Array) -> float:
    """Return the length of the longest column; 0 without rows."""
    return float(np.sqrt(np.square(columns).sum(axis=0).max()))
