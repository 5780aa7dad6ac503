r"""Likelihood of latent quantiles: probabilities that outputs lie at or below thresholds.

The τ_k-quantile of outputs at x is a Gaussian process q_k(x), k = 1 … K. All have one kernel, and
functions of different k are correlated by ρ: with f common to all and d_k of each,

    q_k = m + s_k z_k + √ρ f + √(1 − ρ) d_k,    z_k = Φ⁻¹(τ_k),

so that quantiles rise and fall together unless answers differ. Near its τ_k-quantile, the
distribution of an output is taken to be normal with sd s_k,

    P(y ≤ t | q_k) = Φ((t − q_k)/s_k + z_k),

which at t = q_k is τ_k, whatever s_k is: answers about thresholds at predicted quantiles determine
where quantiles are, and s_k only how fast they move. For q_k ~ N(μ, v), with u = √(s_k² + v),

    e = E P = Φ((t − μ + s_k z_k)/u),    cov(q_k, P)/v = −φ((t − μ + s_k z_k)/u)/u.

Two indicators of one output have covariance min(e, e') − e e', of which slopes account for
A A' cov(q_k, q_k'). Quantiles are the same in every increasing scale: one is chosen in which
outputs scatter alike (`cloakgp.models.transforms`).

Predictions are quantiles of the predictive distribution of a new output: the uncertainty of q_k
adds to the scatter of outputs, which is u in place of s_k. Predictions
that cross are sorted, which brings them nearer to the true ones, whatever these are (Chernozhukov,
Fernández-Val and Galichon 2010). Between them, and beyond, quantiles are linear in z.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from scipy.special import ndtr, ndtri

from cloakgp.models.likelihoods.base import (
    LatentFunctions,
    LatentMarginals,
    LatentPrior,
    Likelihood,
    Linearisation,
)
from cloakgp.utils.arrays import Array

# ρ: how much of the prior variance of a quantile's curve is common to all of them.
IN_COMMON = 0.9
# Beyond these too few outputs of a table determine a quantile.
LOWEST, HIGHEST = 1e-3, 1.0 - 1e-3


@dataclass(frozen=True)
class QuantileLikelihood(Likelihood):
    """Outputs are numbers, and latent functions their quantiles.

    Attributes
    ----------
    quantiles : tuple of float
        τ_k, increasing.
    scales : tuple of float
        s_k: the sd of outputs near each.
    in_common : float
        ρ.

    Examples
    --------
    >>> likelihood = QuantileLikelihood(quantiles=(0.5, 0.9), scales=(1.0, 1.0))
    >>> at = np.zeros((1, 2))
    >>> expected, slope = likelihood.below(at, mean=at, variance=at)
    >>> expected, slope.round(3)
    (array([[0.5, 0.9]]), array([[-0.399, -0.175]]))
    """

    quantiles: tuple[float, ...]
    scales: tuple[float, ...]
    in_common: float = IN_COMMON

    name: ClassVar[str] = "latent quantiles"
    outputs: ClassVar[Literal["numbers", "classes"]] = "numbers"

    def validate(self) -> None:
        """Refuse quantiles and scales that are none.

        Raises
        ------
        ValueError
        """
        levels, scales = np.array(self.quantiles), np.array(self.scales)
        # Written so that NaN fails.
        if not (
            len(levels)
            and levels.shape == scales.shape
            and levels[0] >= LOWEST
            and levels[-1] <= HIGHEST
            and (np.diff(levels) > 0).all()
            and ((scales > 0) & (scales < np.inf)).all()
            and 0 <= self.in_common <= 1
        ):
            raise ValueError("its quantiles are damaged")

    @property
    def in_stages(self) -> bool:
        """True: thresholds are where quantiles were predicted."""
        return True

    @property
    def channels(self) -> int:
        """K."""
        return len(self.quantiles)

    @property
    def steps(self) -> Array:
        """z_k, shape (K,)."""
        return np.asarray(ndtri(self.quantiles))

    @property
    def middle(self) -> int:
        """The number of the quantile nearest to the median."""
        return int(np.abs(self.steps).argmin())

    @property
    def correlation(self) -> Array:
        """Of latent functions at one point, shape (K, K)."""
        alike = np.full((self.channels, self.channels), self.in_common)
        return np.asarray(alike + (1.0 - self.in_common) * np.eye(self.channels))

    def means(self, prior: LatentPrior) -> tuple[float, ...]:
        """Return the prior mean of every quantile."""
        return tuple((prior.mean + np.array(self.scales) * self.steps).tolist())

    def below(self, thresholds: Array, *, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return e and slopes by latent values N(mean, variance), each of shape (n, K).

        Parameters
        ----------
        thresholds, mean, variance : arrays of shape (n, K)
        """
        scales = np.array(self.scales)
        spread = np.sqrt(np.square(scales) + variance)
        standard = (thresholds - mean + scales * self.steps) / spread
        density = np.exp(-np.square(standard) / 2) / np.sqrt(2 * np.pi)
        return np.asarray(ndtr(standard)), np.asarray(-density / spread)

    def account(self, thresholds: Array, *, mean: Array, variance: Array) -> Linearisation:
        """Return the account of 1[y ≤ t] by the quantile nearest to the median, each (n,).

        Parameters
        ----------
        thresholds, mean, variance : arrays of shape (n, K)
        """
        below = self.below(thresholds, mean=mean, variance=variance)
        expected, slope = (each[:, self.middle] for each in below)
        residual = expected * (1.0 - expected) - np.square(slope) * variance[:, self.middle]
        return Linearisation(expected=expected, slope=slope, residual=np.maximum(residual, 0.0))

    def linearise(self, mean: Array, variance: Array) -> Linearisation:
        """Return the account of outputs themselves by the quantile nearest to the median."""
        scale, step = self.scales[self.middle], float(self.steps[self.middle])
        return Linearisation(
            expected=mean - scale * step,
            slope=np.ones_like(mean),
            residual=np.full_like(variance, scale**2),
        )

    def linear_prior(self, prior: LatentPrior, X: Array) -> LatentPrior:
        """Return the prior over outputs: as they scatter near the quantile next to the median."""
        del X
        return replace(prior, noise_variance=self.scales[self.middle] ** 2)

    def predict(
        self,
        functions: LatentFunctions,
        X: Array,
        *,
        return_std: bool,
        return_cov: bool,
        new_output: bool,
    ) -> Array:
        """Return the quantiles of new outputs at P points, shape (P, K), in order.

        Raises
        ------
        ValueError
            If an sd or a covariance is requested.
        """
        if return_std or return_cov or new_output:
            raise ValueError("quantiles have limits, and no sd: ask for predict_limits")
        return self.predictive(functions, X).values

    def predictive(self, functions: LatentFunctions, X: Array) -> PredictedQuantiles:
        """Return the predicted distribution of a new output at P points.

        Parameters
        ----------
        functions : LatentFunctions
        X : array of shape (P, D)
        """
        mean, variance, scales = _averaged(functions.marginals(X))
        spread = np.sqrt(np.square(scales) + variance)
        return PredictedQuantiles(
            steps=self.steps,
            values=np.sort(mean + (spread - scales) * self.steps, axis=1),
            spread=spread,
        )

    def curve_limits(
        self, functions: LatentFunctions, X: Array, *, reach: float
    ) -> tuple[Array, Array]:
        """Return limits of every quantile's curve, each of shape (P, K), in order.

        Parameters
        ----------
        functions : LatentFunctions
        X : array of shape (P, D)
        reach : float
            In sds.
        """
        mean, variance, _ = _averaged(functions.marginals(X))
        sd = np.sqrt(variance)
        return np.sort(mean - reach * sd, axis=1), np.sort(mean + reach * sd, axis=1)


def _averaged(parts: Sequence[LatentMarginals]) -> tuple[Array, Array, Array]:
    """Return means and variances of latent quantiles, and scales, averaged over priors."""
    mean = sum(part.weight * part.mean for part in parts)
    variance = sum(part.weight * (part.variance + np.square(part.mean - mean)) for part in parts)
    scales = sum(part.weight * np.array(scales_of(part.likelihood)) for part in parts)
    return np.asarray(mean), np.asarray(variance), np.asarray(scales)


def scales_of(likelihood: Likelihood) -> tuple[float, ...]:
    """Return the scales of a likelihood of quantiles.

    Raises
    ------
    TypeError
        If it is another.

    Examples
    --------
    >>> scales_of(QuantileLikelihood(quantiles=(0.5,), scales=(2.0,)))
    (2.0,)
    """
    return quantile_likelihood(likelihood).scales


def quantile_likelihood(likelihood: Likelihood) -> QuantileLikelihood:
    """Return a likelihood of quantiles as one.

    Raises
    ------
    TypeError
        If it is another.
    """
    if not isinstance(likelihood, QuantileLikelihood):
        raise TypeError(f"the likelihood is of {likelihood.name}, and not of quantiles")
    return likelihood


@dataclass(frozen=True, eq=False)
class PredictedQuantiles:
    """Distributions of new outputs at P points, by a few of their quantiles.

    Attributes
    ----------
    steps : array of shape (K,)
        z_k, increasing.
    values : array of shape (P, K)
        Not decreasing.
    spread : array of shape (P, K)
        Sds of the normal laws that go on below the first and above the last.

    Examples
    --------
    >>> known = PredictedQuantiles(
    ...     steps=np.array([0.0, 1.0]), values=np.array([[5.0, 9.0]]), spread=np.ones((1, 2)))
    >>> known.quantile(np.array([0.5, 0.8413447460685429, 0.9772498680518208])).round(6)
    array([[ 5.,  9., 10.]])
    >>> known.above(10.0).round(4)
    array([0.0228])
    """

    steps: Array
    values: Array
    spread: Array

    def quantile(self, levels: Array) -> Array:
        """Return quantiles, shape (P, Q).

        Parameters
        ----------
        levels : array of shape (Q,)
            Strictly between 0 and 1.
        """
        asked = np.asarray(ndtri(levels))
        within = np.array([np.interp(asked, self.steps, row) for row in self.values])
        below = np.minimum(asked - self.steps[0], 0.0) * self.spread[:, :1]
        beyond = np.maximum(asked - self.steps[-1], 0.0) * self.spread[:, -1:]
        return np.asarray(within.reshape(len(self.values), -1) + below + beyond)

    def above(self, threshold: float) -> Array:
        """Return P(y > threshold), shape (P,)."""
        first, last = self.values[:, 0], self.values[:, -1]
        within = np.array([np.interp(threshold, row, self.steps) for row in self.values])
        below = np.minimum(threshold - first, 0.0) / self.spread[:, 0]
        beyond = np.maximum(threshold - last, 0.0) / self.spread[:, -1]
        return np.asarray(ndtr(-(within + below + beyond)))
