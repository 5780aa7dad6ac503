r"""Hyperparameters from the answers, at no cost in privacy.

The answers a are public, and under the prior with hyperparameters θ they are Gaussian,
a ~ N(R m, S(θ)) with S = I + R K_y(θ) Rᵀ once each is divided by its noise sd. So

    log p(a | θ) = −½ (a − R m)ᵀ S⁻¹ (a − R m) − ½ log det S + const

(Rasmussen and Williams 2006, equation 5.8, with answers for outputs) is post-processing. A few
noisy answers leave it nearly flat, so it is maximised together with weak priors: log-normal around
the declared value of every free hyperparameter, normal around the declared mean; of several stages
of a table in passes, with the tails of Student's t. Where the answers do not make the maximum more
probable than the declared values by a nat, these stay.

Kernels are evaluated at few points where there are many rows; see
`cloakgp.release.hyperparameters.covariance`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.kernels.rebuilding import AtTheta, at_theta
from cloakgp.models.likelihoods import Numbers
from cloakgp.release.hyperparameters.covariance import LearningAnswers
from cloakgp.release.hyperparameters.evidence import Evidence
from cloakgp.release.hyperparameters.gradients import latent_covariance_of
from cloakgp.release.hyperparameters.hyperprior import LOG_SD, Hyperprior, weak_prior
from cloakgp.release.posterior.mixture import WeightedPrior
from cloakgp.utils.arrays import Array

# Sd of the mean around its declared value, as a share of the bounds' width.
MEAN_SD_SHARE = 1 / 8


@dataclass(frozen=True, eq=False)
class NumbersObjective:
    """Minus the log posterior of standardised hyperparameters ψ.

    ψ = (log kernel hyperparameters, log noise variance, mean), each less its declared value and
    divided by its prior sd, so that its prior is N(0, I), or Student's t of each.

    Attributes
    ----------
    prior : ExactPrior or SparsePrior
        As declared.
    answers : LearningAnswers
    hyperprior : Hyperprior
    mean_sd : float
        Prior sd of the mean, in output units.
    degrees : float
        Of freedom of the priors; infinitely many for normal ones.
    """

    prior: ExactPrior | SparsePrior
    answers: LearningAnswers
    hyperprior: Hyperprior
    mean_sd: float
    degrees: float = np.inf

    @classmethod
    def of(
        cls,
        prior: ExactPrior | SparsePrior,
        answers: LearningAnswers,
        *,
        bounds: tuple[float, float],
        hyperprior: Hyperprior,
        degrees: float = np.inf,
    ) -> NumbersObjective:
        """Return the objective of learning from answers.

        Parameters
        ----------
        prior : ExactPrior or SparsePrior
        answers : LearningAnswers
        bounds : (float, float)
            Of one output.
        hyperprior : Hyperprior
        degrees : float
        """
        return cls(
            prior=prior,
            answers=answers,
            hyperprior=replace(
                hyperprior,
                noise_variance=hyperprior.noise_variance and prior.noise_variance > 0,
            ),
            mean_sd=MEAN_SD_SHARE * (bounds[1] - bounds[0]),
            degrees=degrees,
        )

    @property
    def size(self) -> int:
        """The number of free hyperparameters."""
        return len(self.free) + self.hyperprior.noise_variance + self.hyperprior.mean

    @cached_property
    def declared(self) -> Array:
        """The declared logarithms of the kernel's hyperparameters; −∞ for those of zero."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.prior.kernel.theta, dtype=np.float64)

    @cached_property
    def _kernel_at(self) -> AtTheta:
        return at_theta(self.prior.kernel)

    @cached_property
    def free(self) -> NDArray[np.intp]:
        """Which of them are learned: a hyperparameter of zero has no logarithm, and stays."""
        return np.flatnonzero(np.isfinite(self.declared))

    @cached_property
    def _row_gram(self) -> Array:
        """R Rᵀ, shape (k, k)."""
        return self.answers.row_products()

    def at(self, position: Array, *, weight: float) -> WeightedPrior:
        """Return the prior with hyperparameters at ψ, as a part of a mixture."""
        return WeightedPrior(prior=self.prior_at(position), likelihood=Numbers(), weight=weight)

    def prior_at(self, position: Array) -> ExactPrior | SparsePrior:
        """Return the prior with hyperparameters at ψ; at the origin, as it was declared."""
        if not position.any():
            return self.prior
        theta = self.declared.copy()
        theta[self.free] += LOG_SD * position[: len(self.free)]
        with np.errstate(divide="ignore"):
            kernel = self._kernel_at(theta)
        rest = list(position[len(self.free) :])
        noise_variance = self.prior.noise_variance
        if self.hyperprior.noise_variance:
            noise_variance *= float(np.exp(LOG_SD * rest.pop(0)))
        mean = self.prior.mean
        if self.hyperprior.mean:
            mean += self.mean_sd * float(rest.pop(0))
        return replace(self.prior, kernel=kernel, noise_variance=noise_variance, mean=mean)

    def position_of(self, prior: ExactPrior | SparsePrior) -> Array:
        """Return ψ of the hyperparameters of a prior whose kernel has the same form."""
        rest = []
        if self.hyperprior.noise_variance:
            rest.append(np.log(prior.noise_variance / self.prior.noise_variance) / LOG_SD)
        if self.hyperprior.mean:
            rest.append((prior.mean - self.prior.mean) / self.mean_sd)
        moved = (np.asarray(prior.kernel.theta)[self.free] - self.declared[self.free]) / LOG_SD
        return np.concatenate([moved, rest])

    def __call__(self, position: Array) -> tuple[float, Array]:
        """Return minus the log posterior, up to a constant, and its gradient.

        Raises
        ------
        numpy.linalg.LinAlgError
            Where the kernel is no covariance, or not finite.
        """
        candidate = self.prior_at(position)
        covariance, noise, pull_back = self._covariance(candidate)
        evidence = Evidence.of(self.answers.values - candidate.mean * self.answers.sums, covariance)
        slopes = (0.5 * LOG_SD * pull_back(evidence.sensitivity)[self.free]).tolist()
        if self.hyperprior.noise_variance:
            slopes.append(0.5 * LOG_SD * float(np.vdot(evidence.sensitivity, noise)))
        if self.hyperprior.mean:
            slopes.append(-self.mean_sd * float(self.answers.sums @ evidence.solved))
        away, towards = weak_prior(position, degrees=self.degrees)
        return evidence.value + away, np.array(slopes) + towards

    def _covariance(
        self, candidate: ExactPrior | SparsePrior
    ) -> tuple[Array, Array, Callable[[Array], Array]]:
        """Return S, what of it is noise of outputs, and what takes a derivative in S back to θ."""
        latent, pull_back = latent_covariance_of(candidate, self.answers)
        noise = candidate.noise_variance * self._row_gram
        covariance = latent + noise
        if not np.isfinite(covariance).all():
            raise np.linalg.LinAlgError("the kernel is not finite")
        covariance[np.diag_indices(len(covariance))] += 1.0
        if self.answers.residual is not None:
            covariance += self.answers.residual
        return covariance, noise, pull_back

    def weak_prior(self, position: Array) -> float:
        """Return minus the log density of the weak priors at ψ, up to a constant."""
        return weak_prior(position, degrees=self.degrees)[0]

    def agreeing(self, position: Array, white: Array) -> NumbersObjective:
        """Return an objective that agrees at ψ₀ with a covariance that is not approximate.

        At points that stand for many rows each, S(θ) = L Lᵀ is off by what rows differ within them.
        Let S₀ = L₀ L₀ᵀ be what it is at ψ₀ with every row at its place. Then M S(θ) Mᵀ, with
        M = L₀ L⁻¹ at ψ₀, is S₀ there, and positive definite everywhere. Answers a are as probable
        under it, up to a constant, as R m + M⁻¹ (a − R m) are under S(θ).

        Parameters
        ----------
        position : array of shape (size,)
            ψ₀.
        white : array of shape (k,)
            L₀⁻¹ (a − R m), of these answers in this order.

        Raises
        ------
        numpy.linalg.LinAlgError
            If S is no covariance there.
        """
        candidate = self.prior_at(position)
        covariance, _, _ = self._covariance(candidate)
        values = (
            candidate.mean * self.answers.sums + linalg.cholesky(covariance, lower=True) @ white
        )
        return replace(self, answers=replace(self.answers, values=values))
