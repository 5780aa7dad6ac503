r"""Hyperparameters from the answers, at no cost in privacy.

The answers a are public, and under the prior with hyperparameters θ they are Gaussian,
a ~ N(R m, S(θ)) with S = I + R K_y(θ) Rᵀ once each is divided by its noise sd. So

    log p(a | θ) = −½ (a − R m)ᵀ S⁻¹ (a − R m) − ½ log det S + const

(Rasmussen and Williams 2006, equation 5.8, with answers for outputs) is post-processing. A few
noisy answers leave it nearly flat, so it is maximised together with weak priors: log-normal around
the declared value of every free hyperparameter, normal around the declared mean. Where the answers
do not make the maximum more probable than the declared values by a nat, these stay.

Kernels are evaluated at few points where there are many rows; see `answer_covariance`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.release.hyperparameters.covariance import (
    LearningAnswers,
    gather,
    latent_covariance_and_slopes,
)
from cloakgp.release.hyperparameters.quadrature import posterior_points
from cloakgp.release.measurement import Measurement
from cloakgp.utils.arrays import Array

# Sd of log hyperparameters around their declared values: a factor of 1.4 either way is ordinary.
LOG_SD = 0.35
# Sd of the mean around its declared value, as a share of the bounds' width.
MEAN_SD_SHARE = 1 / 8


@dataclass(frozen=True)
class Hyperprior:
    """Which hyperparameters are free.

    Attributes
    ----------
    noise_variance, mean : bool
        Whether these are learned; the kernel's own are where they are not marked "fixed".
    """

    noise_variance: bool = True
    mean: bool = True


@dataclass(frozen=True, eq=False)
class WeightedPrior:
    """A prior and its share in the posterior over hyperparameters."""

    prior: ExactPrior | SparsePrior
    weight: float


def learn(
    prior: ExactPrior | SparsePrior,
    measurements: Sequence[Measurement],
    *,
    hyperprior: Hyperprior,
    average: bool = False,
) -> tuple[WeightedPrior, ...]:
    """Fit the free hyperparameters of a declared prior to published answers.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
        As declared; its values are the centres of the weak priors.
    measurements : sequence of Measurement
    hyperprior : Hyperprior
    average : bool
        Return a few priors that stand for the posterior over hyperparameters, instead of the
        maximum a posteriori alone.

    Returns
    -------
    tuple of WeightedPrior
        Weights sum to 1. The declared prior if nothing is free or nothing was asked.
    """
    asked = [one for one in measurements if one.answers.noise_sd > 0]
    if not asked:
        return (WeightedPrior(prior=prior, weight=1.0),)
    return learn_from(
        prior,
        gather(asked),
        bounds=asked[0].answers.bounds,
        hyperprior=hyperprior,
        average=average,
    )


def learn_from(
    prior: ExactPrior | SparsePrior,
    answers: LearningAnswers,
    *,
    bounds: tuple[float, float],
    hyperprior: Hyperprior,
    average: bool = False,
) -> tuple[WeightedPrior, ...]:
    """As `learn`, from answers in the form that learning needs.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    answers : LearningAnswers
    bounds : (float, float)
        Of one output.
    hyperprior : Hyperprior
    average : bool
    """
    objective = _Objective.of(prior, answers, bounds=bounds, hyperprior=hyperprior)
    if objective.size == 0:
        return (WeightedPrior(prior=prior, weight=1.0),)
    return tuple(
        WeightedPrior(prior=objective.prior_at(position), weight=weight)
        for position, weight in posterior_points(objective, size=objective.size, average=average)
    )


@dataclass(frozen=True, eq=False)
class _Objective:
    """Minus the log posterior of standardised hyperparameters ψ.

    ψ = (log kernel hyperparameters, log noise variance, mean), each less its declared value and
    divided by its prior sd, so that its prior is N(0, I).
    """

    prior: ExactPrior | SparsePrior
    answers: LearningAnswers
    hyperprior: Hyperprior
    mean_sd: float

    @classmethod
    def of(
        cls,
        prior: ExactPrior | SparsePrior,
        answers: LearningAnswers,
        *,
        bounds: tuple[float, float],
        hyperprior: Hyperprior,
    ) -> _Objective:
        return cls(
            prior=prior,
            answers=answers,
            hyperprior=Hyperprior(
                noise_variance=hyperprior.noise_variance and prior.noise_variance > 0,
                mean=hyperprior.mean,
            ),
            mean_sd=MEAN_SD_SHARE * (bounds[1] - bounds[0]),
        )

    @property
    def size(self) -> int:
        return len(self.free) + self.hyperprior.noise_variance + self.hyperprior.mean

    @cached_property
    def declared(self) -> Array:
        """The declared logarithms of the kernel's hyperparameters; −∞ for those of zero."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.prior.kernel.theta, dtype=np.float64)

    @cached_property
    def free(self) -> NDArray[np.intp]:
        """Which of them are learned: a hyperparameter of zero has no logarithm, and stays."""
        return np.flatnonzero(np.isfinite(self.declared))

    def prior_at(self, position: Array) -> ExactPrior | SparsePrior:
        """Return the prior with hyperparameters at ψ; at the origin, as it was declared."""
        if not position.any():
            return self.prior
        theta = self.declared.copy()
        theta[self.free] += LOG_SD * position[: len(self.free)]
        with np.errstate(divide="ignore"):
            kernel = self.prior.kernel.clone_with_theta(theta)
        rest = list(position[len(self.free) :])
        noise_variance = self.prior.noise_variance
        if self.hyperprior.noise_variance:
            noise_variance *= float(np.exp(LOG_SD * rest.pop(0)))
        mean = self.prior.mean
        if self.hyperprior.mean:
            mean += self.mean_sd * float(rest.pop(0))
        return replace(self.prior, kernel=kernel, noise_variance=noise_variance, mean=mean)

    def __call__(self, position: Array) -> tuple[float, Array]:
        """Return minus the log posterior, up to a constant, and its gradient.

        Raises
        ------
        numpy.linalg.LinAlgError
            Where the kernel is no covariance, or not finite.
        """
        candidate = self.prior_at(position)
        latent, latent_slopes = latent_covariance_and_slopes(candidate, self.answers)
        noise = candidate.noise_variance * self.answers.row_products()
        covariance = latent + noise
        if not np.isfinite(covariance).all():
            raise np.linalg.LinAlgError("the kernel is not finite")
        covariance[np.diag_indices(len(covariance))] += 1.0
        factor = linalg.cho_factor(covariance, lower=True)
        residuals = self.answers.values - candidate.mean * self.answers.sums
        solved = linalg.cho_solve(factor, residuals)
        # ∂(−log p)/∂θ = ½ tr[(S⁻¹ − S⁻¹ r rᵀ S⁻¹) ∂S/∂θ] (Rasmussen and Williams, 5.9).
        sensitivity = linalg.cho_solve(factor, np.eye(len(covariance))) - np.outer(solved, solved)
        slopes = [
            0.5 * LOG_SD * float(np.vdot(sensitivity, latent_slopes[index])) for index in self.free
        ]
        if self.hyperprior.noise_variance:
            slopes.append(0.5 * LOG_SD * float(np.vdot(sensitivity, noise)))
        if self.hyperprior.mean:
            slopes.append(-self.mean_sd * float(self.answers.sums @ solved))
        value = 0.5 * float(residuals @ solved) + float(np.log(np.diag(factor[0])).sum())
        return value + 0.5 * float(position @ position), np.array(slopes) + position
