"""What every Gaussian process given noisy answers can say, however its rows are known."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from cloakgp.arrays import Array
from cloakgp.models import Prior


@dataclass(frozen=True, eq=False)
class Marginals:
    """What is known of the latent function at every one of P points.

    Attributes
    ----------
    mean : array of shape (P,)
    variance : array of shape (P,)
        In all; never below zero.
    noise_share : array of shape (P,)
        The variance of the mean that is due to the noise on the answers.
    """

    mean: Array
    variance: Array
    noise_share: Array


class ConditionedProcess(ABC):
    """A Gaussian process conditioned on answers a with covariance S, in units of their noise.

    Attributes
    ----------
    prior : Prior
    factor : array of shape (k, k)
        Lower Cholesky factor of S.
    weights : array of shape (k,)
        S⁻¹ (a − R m).
    """

    prior: Prior
    factor: Array
    weights: Array

    @abstractmethod
    def answer_cross(self, X: Array) -> Array:
        """Return the covariance of f_* with the answers, shape (P, k)."""

    def mean(self, X: Array) -> Array:
        """Return E[f_* | a], shape (P,)."""
        return self._mean(self.answer_cross(X))

    def marginals(self, X: Array) -> Marginals:
        """Return mean and variances, going over the rows once."""
        crossed = self.answer_cross(X)
        explained = self._root(crossed)
        variance: Array = self.prior.query_variance(X) - np.square(explained).sum(axis=0)
        gain = explained
        if len(gain):
            gain = linalg.solve_triangular(self.factor, explained, lower=True, trans="T")
        return Marginals(
            mean=self._mean(crossed),
            variance=np.maximum(variance, 0.0),
            noise_share=np.square(gain).sum(axis=0),
        )

    def variance(self, X: Array) -> Array:
        """Return var[f_* | a], shape (P,); never below zero."""
        return self.marginals(X).variance

    def noise_share(self, X: Array) -> Array:
        """Return the variance of the mean that is due to the noise on the answers, shape (P,)."""
        return self.marginals(X).noise_share

    def joint(self, X: Array) -> tuple[Array, Array]:
        """Return E[f_* | a] and cov[f_* | a], shapes (P,) and (P, P), going over the rows once."""
        crossed = self.answer_cross(X)
        explained = self._root(crossed)
        covariance = self.prior.query_covariance(X) - explained.T @ explained
        return self._mean(crossed), (covariance + covariance.T) / 2

    def covariance(self, X: Array) -> Array:
        """Return cov[f_* | a], shape (P, P)."""
        return self.joint(X)[1]

    def explained_root(self, X: Array) -> Array:
        """Return G⁻¹ R K_f* for S = G Gᵀ, shape (k, P)."""
        return self._root(self.answer_cross(X))

    def _mean(self, crossed: Array) -> Array:
        mean: Array = self.prior.mean + crossed @ self.weights
        return mean

    def _root(self, crossed: Array) -> Array:
        if crossed.shape[1] == 0:
            return crossed.T
        root: Array = linalg.solve_triangular(self.factor, crossed.T, lower=True)
        return root
