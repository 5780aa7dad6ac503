"""One visit to the private data: what was asked, and the noisy answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloakgp.arrays import Array
from cloakgp.design import Certificate
from cloakgp.privacy import Answers


@dataclass(frozen=True, eq=False)
class Published:
    """Raw predictions at the queried points: C y plus noise, nothing shrunk.

    Attributes
    ----------
    X : array of shape (P, D)
    values : array of shape (P,)
        Unbiased for the non-private predictions of clipped outputs, in output units.
    noise_cov : array of shape (P, P)
        Of the privacy noise alone, in squared output units.
    """

    X: Array
    values: Array
    noise_cov: Array


@dataclass(frozen=True, eq=False)
class Measurement:
    """Questions about one table, and their noisy answers.

    Attributes
    ----------
    X : array of shape (N, D)
        The table's public inputs.
    strategy : array of shape (k, N)
        R, in the order of the rows of X.
    answers : Answers
    X_query : array of shape (P, D)
        Where predictions were asked for.
    reconstruction : array of shape (P, k)
        L, with L R the cloaking matrix at X_query.
    certificate : Certificate
    table : int
        Measurements with the same number are about the same rows of the same table.
    """

    X: Array
    strategy: Array
    answers: Answers
    X_query: Array
    reconstruction: Array
    certificate: Certificate
    table: int = 0

    def residuals(self, mean: float) -> Array:
        """Return the answers about a prior mean, R (y − mean) + noise, shape (k,)."""
        shift = self.answers.centre - mean
        residuals: Array = self.answers.values + shift * self.strategy.sum(axis=1)
        return residuals

    def published(self, mean: float) -> Published:
        """Return the raw predictions mean + C (y − mean) + noise at the queried points."""
        values = mean + self.reconstruction @ self.residuals(mean)
        noise_root = self.answers.noise_sd * self.reconstruction
        return Published(X=self.X_query, values=values, noise_cov=noise_root @ noise_root.T)

    @property
    def attained_mu(self) -> float:
        """Width of the bounds times the longest column over the noise sd, recomputed."""
        if self.answers.noise_sd == 0:
            return 0.0
        width = self.answers.bounds[1] - self.answers.bounds[0]
        longest = float(np.sqrt(np.square(self.strategy).sum(axis=0).max()))
        return width * longest / self.answers.noise_sd
