r"""Hyperparameters of classification from the answers, at no cost in privacy.

Under the prior, labels have the exact first two moments of `cloakgp.models.likelihoods.classes`,
and each answer is a sum over many rows, so the answers of channel c are nearly Gaussian:

    a_c ~ N(R h_c, R cov(v) Rᵀ + I),    h = E v,

once divided by their noise sd. The channels' log densities are added up, together with weak priors:
log-normal around the declared value of every free hyperparameter of the kernel, normal around the
declared mean of each latent function. Where classes' rates were declared, no mean is free: each is
such that the class is as probable on average over the points as under the declared kernel, so that
rates stay what they are when the kernel is learned. Sparse priors are learned through their full
kernel.

Kernels are evaluated at few points where there are many rows; see
`cloakgp.release.hyperparameters.covariance`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.likelihoods.classes import (
    LATENT_NUGGET,
    ClassLikelihood,
    label_covariance,
    mean_latent_variance,
)
from cloakgp.release.hyperparameters.covariance import LearningQuestions
from cloakgp.release.hyperparameters.evidence import Evidence
from cloakgp.release.hyperparameters.gradients import KernelAtPoints
from cloakgp.release.hyperparameters.hyperprior import LOG_SD, weak_prior
from cloakgp.release.posterior.mixture import WeightedPrior
from cloakgp.utils.arrays import Array

# Sd of a latent mean around its declared value, in units of √(τ² + v).
MEAN_SD = 0.5
# Label covariances cost more per pair of points than kernels do. Cells cost no more than that, and
# were gathered once already.
LEARNING_POINTS, LEARNING_CELLS = 300, 500


@dataclass(frozen=True, eq=False)
class LabelObjective:
    """Minus the log posterior of standardised hyperparameters ψ, and its gradient.

    ψ = (log kernel hyperparameters, latent means), each less its declared value and divided by its
    prior sd.

    Attributes
    ----------
    prior : ExactPrior or SparsePrior
        Of the latent functions, as declared.
    likelihood : ClassLikelihood
    questions : LearningQuestions
    values : array of shape (channels, k)
    means : bool
        Whether the latent means are free; if not, the classes' rates are held.
    """

    prior: ExactPrior | SparsePrior
    likelihood: ClassLikelihood
    questions: LearningQuestions
    values: Array
    means: bool

    @property
    def size(self) -> int:
        """The number of free hyperparameters."""
        return len(self.free) + self.means * self.likelihood.channels

    @cached_property
    def declared(self) -> Array:
        """The declared logarithms of the kernel's hyperparameters; −∞ for those of zero."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.prior.kernel.theta, dtype=np.float64)

    @cached_property
    def free(self) -> NDArray[np.intp]:
        """Which of them are learned: a hyperparameter of zero has no logarithm, and stays."""
        return np.flatnonzero(np.isfinite(self.declared))

    @cached_property
    def mean_sd(self) -> float:
        """Prior sd of each latent mean."""
        variance = mean_latent_variance(self.prior, self.questions.points)
        return MEAN_SD * float(np.sqrt(self.likelihood.link.probit_variance + variance))

    @cached_property
    def held(self) -> Array:
        """How probable each channel's class is, on average over the points, as declared."""
        variances = self._variances(self.prior.kernel)
        points = np.broadcast_arrays(np.array(self.likelihood.latent_means)[:, None], variances)
        return np.asarray(self.likelihood.link.moments(*points)[0].mean(axis=1))

    def _variances(self, kernel: Kernel) -> Array:
        """Return the variances of latent values at the points, shape (points,)."""
        return np.asarray(kernel.diag(self.questions.points), dtype=np.float64)

    def _means_by_variance(self, means: Sequence[float], variances: Array) -> Array:
        """Return ∂m/∂v_i of means that hold the rates, shape (channels, points).

        The average of p(m, v_i) over the points is held.
        """
        link, points = (
            self.likelihood.link,
            np.broadcast_arrays(np.array(means)[:, None], variances),
        )
        slopes = link.moments(*points)[1]
        return np.asarray(-link.by_variance(*points) / slopes.sum(axis=1, keepdims=True))

    def at(self, position: Array, *, weight: float = 1.0) -> WeightedPrior:
        """Return prior and likelihood with hyperparameters at ψ, as a part of a mixture.

        At the origin they are as declared.
        """
        if not position.any():
            return WeightedPrior(prior=self.prior, likelihood=self.likelihood, weight=weight)
        theta = self.declared.copy()
        theta[self.free] += LOG_SD * position[: len(self.free)]
        with np.errstate(divide="ignore"):
            kernel = self.prior.kernel.clone_with_theta(theta)
        latent = replace(self.prior, kernel=kernel)
        variance = float(latent.query_variance(self.questions.points).mean())
        means = np.array(self.likelihood.latent_means)
        if self.means:
            means = means + self.mean_sd * position[len(self.free) :]
        else:
            variances, link = self._variances(kernel), self.likelihood.link
            means = np.array([link.latent_mean(rate, variance=variances) for rate in self.held])
        return WeightedPrior(
            prior=replace(latent, noise_variance=LATENT_NUGGET * variance),
            likelihood=replace(self.likelihood, latent_means=tuple(float(mean) for mean in means)),
            weight=weight,
        )

    def __call__(self, position: Array) -> tuple[float, Array]:
        """Return minus the log posterior, up to a constant, and its gradient.

        Raises
        ------
        numpy.linalg.LinAlgError
            Where the kernel is no covariance, or not finite.
        """
        candidate = self.at(position)
        likelihood = candidate.likelihood
        kernel = KernelAtPoints.of(candidate.prior.kernel, self.questions.points)
        variance = np.diag(kernel.latent) + kernel.white
        if not np.isfinite(kernel.latent).all():
            raise np.linalg.LinAlgError("the kernel is not finite")
        spread = np.sqrt(self.likelihood.link.probit_variance + variance)
        scales = np.outer(spread, spread)
        correlation = kernel.latent / scales
        value, by_correlation, by_variance = 0.0, np.zeros_like(scales), np.zeros_like(spread)
        means = likelihood.means(candidate.prior)
        moved = None if self.means else self._means_by_variance(means, variance)
        mean_slopes = []
        for channel, (mean, values) in enumerate(zip(means, self.values, strict=True)):
            thresholds = mean / spread
            part = self._channel(correlation, thresholds, values)
            value += part.value
            by_correlation += part.by_correlation
            by_variance -= part.by_threshold * thresholds / (2.0 * spread**2)
            by_mean = float((part.by_threshold / spread).sum())
            mean_slopes.append(self.mean_sd * by_mean)
            by_variance += 0.0 if moved is None else by_mean * moved[channel]
        # ρ_ij = k_ij / (s_i s_j) with s² = τ² + v.
        by_variance -= (by_correlation * correlation).sum(axis=1) / spread**2
        by_kernel = by_correlation / scales
        by_kernel[np.diag_indices(len(by_kernel))] += by_variance
        gradient = (LOG_SD * kernel.pull_back(by_kernel, by_variance)[self.free]).tolist()
        gradient += mean_slopes if self.means else []
        away, towards = weak_prior(position)
        return value + away, np.array(gradient) + towards

    def _channel(self, correlation: Array, thresholds: Array, values: Array) -> _Channel:
        """Return one channel's part of the value and of its derivatives."""
        asked = self.questions.questions
        expected = 2.0 * ndtr(thresholds) - 1.0
        shared = label_covariance(correlation, thresholds)
        own = 1.0 - expected**2 - np.diag(shared.values)
        covariance = asked @ shared.values @ asked.T + self.questions.row_products(own)
        covariance[np.diag_indices(len(covariance))] += 1.0
        evidence = Evidence.of(values - asked @ expected, covariance)
        pulled = asked.T @ evidence.sensitivity @ asked
        own_pull = self.questions.row_forms(evidence.sensitivity)
        by_correlation = 0.5 * pulled * shared.by_correlation
        by_correlation[np.diag_indices(len(pulled))] -= (
            0.5 * own_pull * np.diag(shared.by_correlation)
        )
        density = np.exp(-(thresholds**2) / 2.0) / np.sqrt(2.0 * np.pi)
        by_threshold = (
            (pulled * shared.by_threshold).sum(axis=1)
            - own_pull * np.diag(shared.by_threshold)
            - 2.0 * density * (own_pull * expected + asked.T @ evidence.solved)
        )
        return _Channel(
            value=evidence.value,
            by_correlation=by_correlation,
            by_threshold=by_threshold,
        )


@dataclass(frozen=True, eq=False)
class _Channel:
    """One channel's minus log density, and its derivatives in ρ and in the thresholds."""

    value: float
    by_correlation: Array
    by_threshold: Array
