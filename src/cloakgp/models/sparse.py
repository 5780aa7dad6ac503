"""Sparse Gaussian processes on inducing inputs: FITC, DTC and SoR.

Inducing inputs are k-means centres of the public inputs, as default query points of many rows are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import linalg
from scipy.linalg import blas
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.models.covariance import LowRankCovariance
from cloakgp.models.evaluation import KernelBlocks
from cloakgp.models.latent import (
    RELATIVE_JITTER,
    NotPositiveDefiniteError,
    check_positive_definite,
    latent_covariance,
    latent_variance,
    white_noise_variance,
)
from cloakgp.models.prior import check_numbers
from cloakgp.models.scatter import Scatter
from cloakgp.models.trend import Trend
from cloakgp.utils.arrays import Array, as_matrix
from cloakgp.utils.clusters import cluster_rows

Approximation = Literal["fitc", "dtc", "sor"]
APPROXIMATIONS: tuple[Approximation, ...] = ("fitc", "dtc", "sor")

KMEANS_RESTARTS = 10
# With more centres than this, where they start matters little, and one start is enough.
FEW_CENTRES = 100
# Rows times centres, below which one thread is fastest.
SMALL_TABLE = 1e6
BLOCK_ROWS = 512


@dataclass(frozen=True)
class SparsePrior:
    r"""A Gaussian-process prior seen through M inducing inputs Z.

    With Q_ab = K_aZ (K_ZZ + jitter)⁻¹ K_Zb (Quiñonero-Candela and Rasmussen 2005), rows have the
    covariance Q_ff and query points K_*f = Q_*f. The approximations differ in the rest:

    ======== =============================== ==========
    name     noise of a row                  K_**
    ======== =============================== ==========
    ``fitc`` diag(K_ff − Q_ff) + noise       K_**
    ``dtc``  noise                           K_**
    ``sor``  noise                           Q_**
    ======== =============================== ==========

    Attributes
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        In squared output units.
    noise_variance : float
        Of each output, in squared output units.
    mean : float
        In output units.
    inducing : array of shape (M, D)
        Chosen from public inputs only.
    approximation : {"fitc", "dtc", "sor"}
    scatter : Scatter or None
        By how much the noise is larger here than there; None if it is the same everywhere.
    trend : Trend or None
        A public prediction of outputs, beside the mean.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> prior = SparsePrior(kernel=RBF(), noise_variance=1.0, mean=0.0,
    ...                     inducing=np.zeros((1, 1)))
    >>> prior.cloaking_matrix(np.zeros((1, 1)), np.zeros((1, 1))).round(6)
    array([[0.5]])
    """

    kernel: Kernel
    noise_variance: float
    mean: float
    inducing: Array
    approximation: Approximation = "fitc"
    scatter: Scatter | None = None
    trend: Trend | None = None

    def validate(self) -> None:
        """Refuse numbers that are none.

        Raises
        ------
        ValueError
            If mean or noise variance are beyond what can be computed with, or the latter is
            negative.
        """
        check_numbers(self)
        if self.approximation not in APPROXIMATIONS:
            raise ValueError(f"unknown approximation {self.approximation!r}")

    @cached_property
    def inducing_factor(self) -> Array:
        """The lower Cholesky factor of K_ZZ + jitter, shape (M, M)."""
        covariance = latent_covariance(self.kernel, self.inducing, self.inducing.copy())
        check_positive_definite(self.kernel, covariance)
        largest = float(np.diag(covariance).max())
        if largest <= 0:
            raise NotPositiveDefiniteError(self.kernel)
        covariance[np.diag_indices(len(covariance))] += RELATIVE_JITTER * largest
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)

    @cached_property
    def _inverse_factor(self) -> Array:
        """The inverse of the factor, in Fortran's order.

        Rows are many and the factor is one. BLAS multiplies by a triangle three times as fast as it
        solves for one; the jitter keeps the factor's condition below 10⁴ √M, so that no more than
        five of float64's sixteen digits are lost either way.
        """
        inverse = linalg.solve_triangular(
            self.inducing_factor, np.eye(len(self.inducing)), lower=True, check_finite=False
        )
        return np.asfortranarray(inverse, dtype=np.float64)

    @cached_property
    def inducing_trend(self) -> Array:
        """μ, the prior mean of the inducing variables u in f = m + Vᵀu, shape (M,)."""
        if self.trend is None:
            return np.zeros(len(self.inducing))
        mean: Array = self._inverse_factor @ self.trend(self.inducing)
        return mean

    def means_of(self, features: Array) -> Array:
        """Return the prior mean of the latent function at points of features V, shape (P,)."""
        if self.trend is None:
            return np.full(features.shape[1], self.mean)
        mean: Array = self.mean + self.inducing_trend @ features
        return mean

    def means(self, X: Array) -> Array:
        """Return the prior mean of the latent function at P points, shape (P,)."""
        if self.trend is None:
            return np.full(len(X), self.mean)
        return self.means_of(self.features(X))

    def features(self, X: Array) -> Array:
        """Return V with Q_ab = V_aᵀ V_b, shape (M, n)."""
        features = np.empty((len(self.inducing), len(X)), order="F")
        covariances = KernelBlocks(self.kernel, self.inducing)
        # In blocks that stay in the processor's cache, multiplied where they lie.
        for start in range(0, len(X), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            block = features[:, rows]
            block[:] = covariances(X[rows]).T
            block[:] = blas.dtrmm(1.0, self._inverse_factor, block, lower=1, overwrite_b=1)
        return features

    def cross_covariance(self, X_query: Array, X: Array) -> Array:
        """Return K_*f = Q_*f, shape (P, N)."""
        return self.features(X_query).T @ self.features(X)

    def row_covariance(self, X: Array, Z: Array) -> Array:
        """Return Q between rows, shape (N, M)."""
        return self.cross_covariance(X, Z)

    def row_noise(self, X: Array) -> Array:
        """Return the diagonal part of the rows' covariance, shape (N,).

        Raises
        ------
        ValueError
            If it is zero for some row: the model then has no covariance to invert.
        """
        if self.approximation != "fitc":
            return self._checked_noise(self.observation_noise(X))
        return self.features_and_noise(X)[1]

    def features_and_noise(self, X: Array) -> tuple[Array, Array]:
        """Return `features` and `row_noise` together, at the cost of the first.

        Raises
        ------
        ValueError
            As `row_noise`.
        """
        features, noise = self.features(X), self.observation_noise(X)
        if self.approximation == "fitc":
            explained = np.einsum("mn,mn->n", features, features)
            noise = noise + np.maximum(latent_variance(self.kernel, X) - explained, 0.0)
        return features, self._checked_noise(noise)

    def _checked_noise(self, noise: Array) -> Array:
        if noise.min() <= 0:
            raise ValueError("a sparse model needs noise: set a noise_variance above zero")
        return noise

    def query_covariance(self, X_query: Array) -> Array:
        """Return K_** (Q_** for SoR), shape (P, P)."""
        if self.approximation == "sor":
            return self.cross_covariance(X_query, X_query)
        return latent_covariance(self.kernel, X_query, X_query.copy())

    def query_variance(self, X_query: Array) -> Array:
        """Return the diagonal of K_** (Q_** for SoR), shape (P,)."""
        if self.approximation == "sor":
            variance: Array = np.square(self.features(X_query)).sum(axis=0)
            return variance
        return latent_variance(self.kernel, X_query)

    def observation_noise(self, X_query: Array) -> Array:
        """Return the noise variance of a new output, shape (P,)."""
        noise = self.noise_variance + white_noise_variance(self.kernel, X_query)
        return noise if self.scatter is None else noise * self.scatter.factor(X_query)

    def output_covariance(self, X: Array) -> LowRankCovariance:
        """Return K_y over rows, without forming it."""
        features, noise = self.features_and_noise(X)
        return LowRankCovariance(features=features, noise=noise)

    def cloaking_matrix(self, X_query: Array, X: Array) -> Array:
        r"""Return C = K_*Z Q_MM⁻¹ K_ZN Λ⁻¹ (2021 paper, section 3.2), shape (P, N).

        With V = G⁻¹ K_ZN for K_ZZ = G Gᵀ and B = I + V Λ⁻¹ Vᵀ this is V_*ᵀ B⁻¹ V Λ⁻¹, whose only
        factorisations are Cholesky's of K_ZZ and of B, whose eigenvalues are at least 1.
        """
        features, noise = self.features_and_noise(X)
        scaled = features / noise
        inner = np.eye(len(self.inducing)) + scaled @ features.T
        factor = linalg.cho_factor(inner, lower=True)
        cloaking: Array = self.features(X_query).T @ linalg.cho_solve(factor, scaled)
        return cloaking


def kmeans_centres(X: Array, *, count: int, random_state: int = 0) -> tuple[Array, Array]:
    """Return k-means centres of the rows, and the number of rows of each.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs. Distances are Euclidean in the units given, as in the papers.
    count : int
        Centres wanted; fewer come back if fewer rows are distinct.
    random_state : int
        Of the algorithm's restarts. It concerns public inputs only.

    Returns
    -------
    centres : array of shape (M, D)
    sizes : array of shape (M,)

    Raises
    ------
    ValueError
        If X is no matrix of finite numbers, or count no whole number of at least one.

    Examples
    --------
    >>> centres, sizes = kmeans_centres(np.array([[0.0], [0.0], [9.0]]), count=2)
    >>> sorted(zip(centres.ravel().tolist(), sizes.tolist()))
    [(0.0, 2.0), (9.0, 1.0)]
    """
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise ValueError(f"the number of centres must be at least 1, and whole, got {count!r}")
    rows = as_matrix(X, name="X")
    centres, places = cluster_rows(
        rows,
        most=count,
        restarts=KMEANS_RESTARTS if count <= FEW_CENTRES else 1,
        random_state=random_state,
        # They wait for each other on small tables: a hundred times slower on two cores.
        threads=1 if len(rows) * count < SMALL_TABLE else None,
    )
    sizes = np.bincount(places, minlength=len(centres)).astype(np.float64)
    occupied = sizes > 0
    return centres[occupied], sizes[occupied]
