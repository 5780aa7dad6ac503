r"""The papers' Laplace approximation with noise on every Newton step (2021 paper, section 4).

From f̂ = m, each step publishes C y + noise for C = ½(K⁻¹ + W)⁻¹ at the N training points and
sets (equation 10, in differences from the prior mean m, for the logistic link)

    f̂ − m ← 2C (W (f̂ − m) + ½ − π(f̂)) + C y + noise.

Predictions are E[f_*] = m + k_*ᵀ K⁻¹ (f̂ − m), with variance k_** − k_*ᵀ (K + W⁻¹)⁻¹ k_*. All of it
is a function of the published answers. For comparison: the answers say more than this reads off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.special import expit

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.latent import RELATIVE_JITTER
from cloakgp.models.likelihoods.base import Likelihood
from cloakgp.release.measurement import Measurement
from cloakgp.release.strategy import DenseStrategy
from cloakgp.utils.arrays import Array


@dataclass(frozen=True, eq=False)
class NewtonState:
    """Where the iteration stands.

    Attributes
    ----------
    prior : ExactPrior or SparsePrior
    prior_mean : float
        m.
    X : array of shape (N, D)
    latent : array of shape (N,)
        f̂.
    noise_root : array of shape (N, k)
        Of the privacy noise of the last step's C y, as a matrix square root; no columns at first.
    """

    prior: ExactPrior | SparsePrior
    prior_mean: float
    X: Array
    latent: Array
    noise_root: Array

    @classmethod
    def start(
        cls, prior: ExactPrior | SparsePrior, likelihood: Likelihood, X: Array
    ) -> NewtonState:
        """Begin at the prior mean."""
        [mean] = likelihood.means(prior)
        return cls(
            prior=prior,
            prior_mean=mean,
            X=X,
            latent=np.full(len(X), mean),
            noise_root=np.zeros((len(X), 0)),
        )

    def cloaking_matrix(self) -> Array:
        """Return C = ½(K⁻¹ + W)⁻¹ (2021 paper, equation 11), shape (N, N).

        As ½(K − K W^½ B⁻¹ W^½ K) with B = I + W^½ K W^½ (Rasmussen and Williams 2006, section 3.4),
        whose eigenvalues are at least 1.
        """
        covariance = _rows(self.prior, self.X)
        root = np.sqrt(self._curvature())
        scaled = root[:, None] * covariance
        inner = scaled * root
        inner[np.diag_indices(len(inner))] += 1.0
        solved = linalg.cho_solve(linalg.cho_factor(inner, lower=True), scaled)
        cloaking: Array = (covariance - scaled.T @ solved) / 2.0
        return (cloaking + cloaking.T) / 2.0

    def step(self, measurement: Measurement) -> NewtonState:
        """Take the step whose C y was published."""
        reconstruction = measurement.strategy.reconstruction
        if reconstruction is None:
            raise ValueError("these answers do not determine a step of the papers' iteration")
        mean = self.prior_mean
        pull = self._curvature() * (self.latent - mean) + 0.5 - expit(self.latent)
        published = reconstruction @ measurement.answers.values[:, 0]
        return NewtonState(
            prior=self.prior,
            prior_mean=self.prior_mean,
            X=self.X,
            latent=mean + 2.0 * self.cloaking_matrix() @ pull + published,
            noise_root=measurement.answers.noise_sd * reconstruction,
        )

    def predicted(self, X: Array) -> tuple[Array, Array, Array]:
        """Return mean and variance of the latent function, and the mean's variance due to noise.

        Parameters
        ----------
        X : array of shape (P, D)
        """
        latent, mean = self.prior, self.prior_mean
        to_query = _interpolation(latent, X, self.X)
        crossed = latent.cross_covariance(X, self.X)
        explained = np.square(
            linalg.solve_triangular(self._label_factor(), crossed.T, lower=True)
        ).sum(axis=0)
        return (
            mean + to_query @ (self.latent - mean),
            np.maximum(latent.query_variance(X) - explained, 0.0),
            np.square(to_query @ self.noise_root).sum(axis=1),
        )

    def interpolation(self) -> Array:
        """Return J with k_*ᵀ K⁻¹ = b_*ᵀ J, shape (n, N).

        With b_* the covariance with the rows, or of a sparse prior its features.
        """
        if isinstance(self.prior, SparsePrior):
            return _feature_interpolation(self.prior, self.X)
        return np.asarray(linalg.cho_solve(_row_factor(self.prior, self.X), np.eye(len(self.X))))

    def explained_root(self) -> Array:
        """Return the inverse of a root of K + W⁻¹, shape (N, N)."""
        return np.asarray(
            linalg.solve_triangular(self._label_factor(), np.eye(len(self.X)), lower=True)
        )

    def _label_factor(self) -> Array:
        """Return the lower Cholesky factor of K + W⁻¹."""
        covariance = _rows(self.prior, self.X)
        curvature = np.maximum(self._curvature(), 1e-12)
        covariance[np.diag_indices(len(covariance))] += 1.0 / curvature
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)

    def _curvature(self) -> Array:
        probability = expit(self.latent)
        curvature: Array = probability * (1.0 - probability)
        return curvature


def iterate_newton(
    prior: ExactPrior | SparsePrior, likelihood: Likelihood, measurements: Sequence[Measurement]
) -> NewtonState:
    """Return the state after the published steps.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    likelihood : Likelihood
        With one channel.
    measurements : sequence of Measurement
        All at the rows of one table.
    """
    strategy = measurements[0].strategy
    if not isinstance(strategy, DenseStrategy):
        raise ValueError("the papers' iteration is at the rows, and these are not kept")
    state = NewtonState.start(prior, likelihood, strategy.X)
    for measurement in measurements:
        state = state.step(measurement)
    return state


def _rows(prior: ExactPrior | SparsePrior, X: Array) -> Array:
    """Return K over rows; for sparse priors SoR's Q (2021 paper, section 4.1)."""
    return prior.row_covariance(X, X.copy())


def _interpolation(prior: ExactPrior | SparsePrior, X_query: Array, X: Array) -> Array:
    """Return k_*ᵀ K⁻¹, shape (P, N); by least squares where K has low rank."""
    if isinstance(prior, SparsePrior):
        solved = _feature_interpolation(prior, X)
        return np.asarray(prior.features(X_query).T @ solved, dtype=np.float64)
    crossed = prior.cross_covariance(X_query, X)
    return np.asarray(linalg.cho_solve(_row_factor(prior, X), crossed.T).T, dtype=np.float64)


def _feature_interpolation(prior: SparsePrior, X: Array) -> Array:
    """Return (V Vᵀ)⁻¹ V, shape (M, N)."""
    features = prior.features(X)
    inner = features @ features.T
    inner[np.diag_indices(len(inner))] += RELATIVE_JITTER * float(np.trace(inner))
    return np.asarray(linalg.cho_solve(linalg.cho_factor(inner, lower=True), features))


def _row_factor(prior: ExactPrior | SparsePrior, X: Array) -> tuple[Array, bool]:
    """Return the Cholesky factor of K over rows, for `scipy.linalg.cho_solve`."""
    covariance = _rows(prior, X)
    covariance[np.diag_indices(len(X))] += RELATIVE_JITTER * float(np.diag(covariance).max())
    factor: tuple[Array, bool] = linalg.cho_factor(covariance, lower=True)
    return factor
