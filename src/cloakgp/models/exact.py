"""Exact Gaussian process: covariances at rows and query points, and the cloaking matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.models.covariance import DenseCovariance
from cloakgp.models.latent import (
    RELATIVE_JITTER,
    check_positive_definite,
    latent_covariance,
    latent_variance,
    white_noise_variance,
)
from cloakgp.models.prior import check_numbers
from cloakgp.models.scatter import Scatter
from cloakgp.models.trend import Trend
from cloakgp.utils.arrays import Array


@dataclass(frozen=True)
class ExactPrior:
    """A Gaussian-process prior without approximation.

    Attributes
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        In squared output units.
    noise_variance : float
        Of each output, in squared output units; at least zero.
    mean : float
        In output units.
    scatter : Scatter or None
        By how much the noise is larger here than there; None if it is the same everywhere.
    trend : Trend or None
        A public prediction of outputs, beside the mean.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> prior = ExactPrior(kernel=RBF(), noise_variance=1.0, mean=0.0)
    >>> prior.cloaking_matrix(np.zeros((1, 1)), np.zeros((1, 1)))
    array([[0.5]])
    """

    kernel: Kernel
    noise_variance: float
    mean: float
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

    def means(self, X: Array) -> Array:
        """Return the prior mean of the latent function at P points, shape (P,)."""
        level = np.full(len(X), self.mean)
        return level if self.trend is None else level + self.trend(X)

    def cross_covariance(self, X_query: Array, X: Array) -> Array:
        """Return K_*f, shape (P, N)."""
        return latent_covariance(self.kernel, X_query, X)

    def row_covariance(self, X: Array, Z: Array) -> Array:
        """Return the latent covariance between rows, shape (N, M)."""
        return latent_covariance(self.kernel, X, Z)

    def row_noise(self, X: Array) -> Array:
        """Return the noise variance of each output, shape (N,).

        It is raised to 1e-8 of the largest latent variance where it would be smaller, so that K_y
        has a Cholesky factor; that is the model from then on, in C and in predictions.
        """
        floor = RELATIVE_JITTER * float(latent_variance(self.kernel, X).max())
        noise: Array = np.maximum(self.observation_noise(X), floor)
        return noise

    def query_covariance(self, X_query: Array) -> Array:
        """Return K_**, shape (P, P)."""
        return latent_covariance(self.kernel, X_query, X_query.copy())

    def query_variance(self, X_query: Array) -> Array:
        """Return the diagonal of K_**, shape (P,)."""
        return latent_variance(self.kernel, X_query)

    def observation_noise(self, X_query: Array) -> Array:
        """Return the noise variance of a new output, shape (P,)."""
        noise = self.noise_variance + white_noise_variance(self.kernel, X_query)
        return noise if self.scatter is None else noise * self.scatter.factor(X_query)

    def output_covariance(self, X: Array) -> DenseCovariance:
        """Return K_y over rows.

        Raises
        ------
        NotPositiveDefiniteError
            If the kernel is no covariance function on these rows.
        ValueError
            If rows share their inputs and there is no noise to tell their outputs apart.
        """
        latent = self.row_covariance(X, X.copy())
        check_positive_definite(self.kernel, latent)
        if self.observation_noise(X).min() <= 0 and len(np.unique(X, axis=0)) < len(X):
            raise ValueError(
                "some rows have the same inputs, and a model without noise cannot give them "
                "different outputs: set a noise_variance above zero"
            )
        return DenseCovariance(latent=latent, noise=self.row_noise(X))

    def cloaking_matrix(self, X_query: Array, X: Array) -> Array:
        """Return C = K_*f (K_ff + noise)⁻¹ (2018 paper, equation 7; 2021 paper, equation 1).

        Raises
        ------
        ValueError
            As `output_covariance`.
        """
        prior = self.output_covariance(X)
        covariance = prior.latent
        covariance[np.diag_indices(len(X))] += prior.noise
        factor = linalg.cho_factor(covariance, lower=True, overwrite_a=True)
        solved: Array = linalg.cho_solve(factor, self.cross_covariance(X_query, X).T)
        return solved.T
