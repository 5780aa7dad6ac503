"""What every Gaussian process given noisy answers can say, however its rows are known."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy import linalg

from cloakgp.arrays import Array
from cloakgp.models import Prior


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
        mean: Array = self.prior.mean + self.answer_cross(X) @ self.weights
        return mean

    def covariance(self, X: Array) -> Array:
        """Return cov[f_* | a], shape (P, P)."""
        explained = self.explained_root(X)
        covariance = self.prior.query_covariance(X) - explained.T @ explained
        return (covariance + covariance.T) / 2

    def variance(self, X: Array) -> Array:
        """Return var[f_* | a], shape (P,); never below zero."""
        explained = self.explained_root(X)
        variance: Array = self.prior.query_variance(X) - np.square(explained).sum(axis=0)
        return np.maximum(variance, 0.0)

    def explained_root(self, X: Array) -> Array:
        """Return G⁻¹ R K_f* for S = G Gᵀ, shape (k, P)."""
        crossed = self.answer_cross(X).T
        if len(crossed) == 0:
            return crossed
        root: Array = linalg.solve_triangular(self.factor, crossed, lower=True)
        return root
