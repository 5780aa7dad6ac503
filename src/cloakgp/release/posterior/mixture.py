"""Predictions averaged over a few priors that stand for a posterior over hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from cloakgp.release.hyperparameters.regression import WeightedPrior
from cloakgp.release.measurement import Measurement
from cloakgp.release.posterior.dense import ConditionedProcess, Posterior
from cloakgp.release.predicting import check_spread
from cloakgp.utils.arrays import Array

PosteriorOf = TypeVar("PosteriorOf", bound=ConditionedProcess)


@dataclass(frozen=True, eq=False)
class Mixture(Generic[PosteriorOf]):
    """Posteriors and their weights; with one of them, simply that posterior.

    Attributes
    ----------
    posteriors : tuple of Posterior
    weights : array of shape (m,)
        Sum to 1.
    """

    posteriors: tuple[PosteriorOf, ...]
    weights: Array

    @property
    def main(self) -> PosteriorOf:
        """The posterior of most weight."""
        return self.posteriors[int(self.weights.argmax())]

    def predict(
        self, X: Array, *, return_std: bool, return_cov: bool, new_output: bool
    ) -> Array | tuple[Array, Array]:
        """Return the mean at points of shape (P, D), with sd or covariance if asked for.

        Raises
        ------
        ValueError
            If both are.
        """
        check_spread(return_std=return_std, return_cov=return_cov)
        if return_cov:
            return self._joint(X, new_output=new_output)
        if return_std:
            mean, variance = self._marginals(X, new_output=new_output)
            return mean, np.sqrt(variance)
        return self.mean(X)

    def mean(self, X: Array) -> Array:
        """Return the mean of the latent function, shape (P,)."""
        means: Array = self.weights @ np.array([one.mean(X) for one in self.posteriors])
        return means

    def variance(self, X: Array, *, new_output: bool) -> Array:
        """Return the variance of the latent function, or of a new output, shape (P,)."""
        return self._marginals(X, new_output=new_output)[1]

    def covariance(self, X: Array, *, new_output: bool) -> Array:
        """Return the covariance of the latent function, or of new outputs, shape (P, P)."""
        return self._joint(X, new_output=new_output)[1]

    def _marginals(self, X: Array, *, new_output: bool) -> tuple[Array, Array]:
        """Return mean and variance, by the law of total variance: within, and between."""
        found = [one.marginals(X) for one in self.posteriors]
        means = np.array([one.mean for one in found])
        within = np.array([one.variance for one in found])
        if new_output:
            within += [one.prior.observation_noise(X) for one in self.posteriors]
        mean: Array = self.weights @ means
        return mean, np.asarray(self.weights @ (within + np.square(means - mean)))

    def _joint(self, X: Array, *, new_output: bool) -> tuple[Array, Array]:
        """Return mean and covariance."""
        found = [one.joint(X) for one in self.posteriors]
        middle: Array = self.weights @ np.array([mean for mean, _ in found])
        total = np.zeros((len(X), len(X)))
        for one, (mean, covariance), weight in zip(
            self.posteriors, found, self.weights, strict=True
        ):
            between = mean - middle
            total += weight * (covariance + np.outer(between, between))
            if new_output:
                total[np.diag_indices(len(X))] += weight * one.prior.observation_noise(X)
        return middle, total


def mixture_given(
    priors: Sequence[WeightedPrior], measurements: Sequence[Measurement]
) -> Mixture[Posterior]:
    """Condition every prior on the measurements."""
    return Mixture(
        posteriors=tuple(Posterior.given(one.prior, measurements) for one in priors),
        weights=np.array([one.weight for one in priors]),
    )
