"""Gaussian likelihood: outputs are latent values plus noise.

The variance of the noise is part of the prior (``noise_variance``): the sparse approximations add
to it, row by row, what inducing inputs leave out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from cloakgp.models.likelihoods.base import (
    LatentFunctions,
    LatentPrior,
    Likelihood,
    Linearisation,
)
from cloakgp.utils.arrays import Array


@dataclass(frozen=True)
class Numbers(Likelihood):
    """Outputs are numbers: latent values plus the noise that the prior gives every row.

    Examples
    --------
    >>> Numbers().linearise(np.array([2.0]), np.array([9.0])).expected
    array([2.])
    """

    name: ClassVar[str] = "numbers"
    outputs: ClassVar[Literal["numbers", "classes"]] = "numbers"
    linear: ClassVar[bool] = True

    def linearise(self, mean: Array, variance: Array) -> Linearisation:
        """Return the latent value itself: the noise of rows is the prior's."""
        return Linearisation(
            expected=mean, slope=np.ones_like(mean), residual=np.zeros_like(variance)
        )

    def linear_prior(self, prior: LatentPrior, X: Array) -> LatentPrior:
        """Return the prior itself."""
        del X
        return prior

    def predict(
        self,
        functions: LatentFunctions,
        X: Array,
        *,
        return_std: bool,
        return_cov: bool,
        new_output: bool,
    ) -> Array | tuple[Array, Array]:
        """Return the mean, and sd or covariance if asked for, in output units.

        Raises
        ------
        ValueError
            If sd and covariance are both asked for.
        """
        if return_std and return_cov:
            raise ValueError("ask for return_std or return_cov, not both")
        if return_cov:
            return _joint(functions, X, new_output=new_output)
        if return_std:
            mean, variance = _marginals(functions, X, new_output=new_output)
            return mean, np.sqrt(variance)
        return functions.mean(X)[:, 0]


NUMBERS = Numbers()


def _marginals(functions: LatentFunctions, X: Array, *, new_output: bool) -> tuple[Array, Array]:
    """Return mean and variance, by the law of total variance: within the priors, and between."""
    parts = functions.marginals(X)
    weights = np.array([part.weight for part in parts])
    means = np.array([part.mean[:, 0] for part in parts])
    # Part by part, as `LatentFunctions.mean` adds up: the same doubles, whatever is asked for.
    mean: Array = np.asarray(sum(part.weight * part.mean[:, 0] for part in parts))
    within = np.array([part.variance[:, 0] for part in parts])
    if new_output:
        within += [part.prior.observation_noise(X) for part in parts]
    return mean, np.asarray(weights @ (within + np.square(means - mean)))


def _joint(functions: LatentFunctions, X: Array, *, new_output: bool) -> tuple[Array, Array]:
    """Return mean and covariance, by the law of total covariance."""
    parts = functions.joint(X)
    mean: Array = np.asarray(sum(part.weight * part.mean for part in parts))
    covariance = np.zeros((len(X), len(X)))
    for part in parts:
        between = part.mean - mean
        covariance += part.weight * (part.covariance + np.outer(between, between))
        if new_output:
            covariance[np.diag_indices(len(X))] += part.weight * part.prior.observation_noise(X)
    return mean, covariance
