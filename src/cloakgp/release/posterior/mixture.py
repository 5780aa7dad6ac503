"""Latent functions given answers, averaged over a few priors that stand for their posterior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.likelihoods import (
    LatentJoint,
    LatentMarginals,
    Likelihood,
    QuantileLikelihood,
    Window,
)
from cloakgp.release.bands import window_of
from cloakgp.release.measurement import (
    Measurement,
    answered_measurements,
    is_in_bands,
    linear_measurements,
)
from cloakgp.release.posterior.classification import SignAnswers, label_posterior
from cloakgp.release.posterior.clipped import SWEEPS, clipped_posterior
from cloakgp.release.posterior.dense import Posterior
from cloakgp.release.posterior.laplace import NewtonState, iterate_newton
from cloakgp.release.posterior.quantiles import quantile_posteriors
from cloakgp.release.streamed_strategy import StreamedStrategy
from cloakgp.release.tables import AnsweredTable, DenseTable, SummedTable
from cloakgp.utils.arrays import Array

Inference = Literal["posterior", "iterated", "newton"]
INFERENCES: tuple[Inference, ...] = ("posterior", "iterated", "newton")


@dataclass(frozen=True, eq=False)
class WeightedPrior:
    """A prior with its likelihood, and their share in the posterior over hyperparameters.

    Attributes
    ----------
    prior : ExactPrior or SparsePrior
    likelihood : Likelihood
    weight : float
    """

    prior: ExactPrior | SparsePrior
    likelihood: Likelihood
    weight: float


def weightiest(priors: Sequence[WeightedPrior]) -> WeightedPrior:
    """Return the prior of most weight; the first of those alike.

    Parameters
    ----------
    priors : sequence of WeightedPrior
        At least one.
    """
    return max(priors, key=lambda one: one.weight)


class ChannelFunctions(Protocol):
    """Something that knows the latent functions of all channels under one prior."""

    def latent(self, X: Array) -> tuple[Array, Array, Array]:
        """Return means, variances, and their parts due to privacy noise; shapes (P, channels)."""


@dataclass(frozen=True, eq=False)
class PosteriorFunctions:
    """Latent functions given the answers, one posterior per channel."""

    posteriors: tuple[Posterior, ...]

    def latent(self, X: Array) -> tuple[Array, Array, Array]:
        """Return means, variances, and the parts of the variances due to privacy noise."""
        channels = [one.marginals(X) for one in self.posteriors]
        return (
            np.stack([one.mean for one in channels], axis=1),
            np.stack([one.variance for one in channels], axis=1),
            np.stack([one.noise_share for one in channels], axis=1),
        )


@dataclass(frozen=True, eq=False)
class NewtonFunctions:
    """The papers' latent function after their noisy Newton steps."""

    state: NewtonState

    def latent(self, X: Array) -> tuple[Array, Array, Array]:
        """Return means, variances, and the parts of the variances due to privacy noise."""
        mean, variance, share = self.state.predicted(X)
        return mean[:, None], (variance + share)[:, None], share[:, None]


def sweeps_of(inference: Inference) -> int:
    """Return the number of further linearisations of outputs in bands."""
    return SWEEPS if inference == "iterated" else 0


def condition(
    prior: ExactPrior | SparsePrior,
    likelihood: Likelihood,
    measurements: Sequence[Measurement],
    *,
    sweeps: int = 0,
) -> tuple[Posterior, ...]:
    """Condition the latent function of every channel on answers.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    likelihood : Likelihood
    measurements : sequence of Measurement
        Those that asked nothing are passed over.
    sweeps : int
        As for `clipped_posterior`.

    Returns
    -------
    tuple of Posterior
        One per channel. Exact where the likelihood is linear, and else by posterior linearisation.
    """
    if isinstance(likelihood, QuantileLikelihood):
        return quantile_posteriors(prior, likelihood, measurements)
    priors = [
        prior if mean == prior.mean else replace(prior, mean=mean)
        for mean in likelihood.means(prior)
    ]
    if likelihood.linear and is_in_bands(measurements):
        return tuple(clipped_posterior(each, measurements, sweeps=sweeps) for each in priors)
    if likelihood.linear:
        tables, values = answered_tables(prior, measurements, prior.mean)
        return tuple(
            Posterior.given(one, tables, column)
            for one, column in zip(priors, values.T, strict=True)
        )
    if any(isinstance(one.strategy, StreamedStrategy) for one in measurements):
        return _condition_sums(priors, likelihood, answered_measurements(measurements))
    tables, values = answered_tables(prior, measurements)
    kept, windows = kept_tables(tables), windows_of(likelihood, measurements)
    return tuple(
        label_posterior(one, SignAnswers(kept, column, windows), likelihood=likelihood)
        for one, column in zip(priors, values.T, strict=True)
    )


def windows_of(
    likelihood: Likelihood, measurements: Sequence[Measurement]
) -> tuple[tuple[tuple[int, Window | None], ...], ...]:
    """Return where the stages of each table clipped outputs; empty if the likelihood knows none.

    Parameters
    ----------
    likelihood : Likelihood
    measurements : sequence of Measurement
    """
    if not likelihood.windowed:
        return ()
    asked: dict[int, list[tuple[int, Window | None]]] = {}
    for one in linear_measurements(measurements):
        stage = one.strategy.n_answers, window_of(one.question)
        asked.setdefault(one.strategy.table, []).append(stage)
    return tuple(map(tuple, asked.values()))


def _condition_sums(
    priors: Sequence[ExactPrior | SparsePrior],
    likelihood: Likelihood,
    answered: Sequence[Measurement],
) -> tuple[Posterior, ...]:
    """Condition every channel on answers whose outputs were linearised during their pass."""
    if len({one.strategy.table for one in answered}) < len(answered):
        raise ValueError("classes of many rows that were asked twice cannot be combined: fit anew")
    tables: list[list[AnsweredTable]] = [[] for _ in priors]
    residuals: list[list[Array]] = [[np.zeros(0)] for _ in priors]
    for one in answered:
        if not isinstance(one.strategy, StreamedStrategy):
            raise ValueError("classes of rows that are kept, and of others, cannot be combined")
        values, scale = one.residuals().T / one.noise_sd, 1.0 / one.noise_sd
        channels = one.strategy.sums_under(priors[0], likelihood).channels
        for place, (column, sums) in enumerate(zip(values, channels, strict=True)):
            offset = np.zeros_like(column) if sums.offset is None else sums.offset
            tables[place].append(
                SummedTable(
                    number=one.strategy.table,
                    features=sums.features * scale,
                    noise=sums.noise * scale**2,
                )
            )
            residuals[place].append(column - offset * scale)
    return tuple(
        Posterior.given(prior, parts, np.concatenate(left))
        for prior, parts, left in zip(priors, tables, residuals, strict=True)
    )


def answered_tables(
    prior: ExactPrior | SparsePrior, measurements: Sequence[Measurement], *means: float
) -> tuple[tuple[AnsweredTable, ...], Array]:
    """Return the questions of each table, and the answers, all in units of their noise.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    measurements : sequence of Measurement
    *means : float
        What answers are about is less this, and less the prior's trend; see
        `Measurement.residuals`.

    Returns
    -------
    tuple of AnsweredTable
    array of shape (k, channels)
        In the order of the tables.
    """
    answered = linear_measurements(measurements)
    tables = []
    for number in dict.fromkeys(one.strategy.table for one in answered):
        first, *others = [one for one in answered if one.strategy.table == number]
        tables.append(
            first.strategy.merge(
                [one.strategy for one in others],
                noise_sds=[one.noise_sd for one in (first, *others)],
                prior=prior,
            )
        )
    values = [_residuals(one, prior, *means) / one.noise_sd for one in answered]
    nothing = np.zeros((0, measurements[0].residuals().shape[1]))
    return tuple(tables), np.vstack([nothing, *values])


def _residuals(measurement: Measurement, prior: ExactPrior | SparsePrior, *means: float) -> Array:
    """Return answers less their values at the prior mean, shape (k, channels)."""
    strategy = measurement.strategy
    expected = strategy.expected(prior) if isinstance(strategy, StreamedStrategy) else None
    if expected is None:
        left = measurement.residuals(*means)
        if not means or prior.trend is None:
            return left
        return np.asarray(left - strategy.trend_answers(prior)[:, None])
    return np.asarray(measurement.answers.values - expected[:, None])


def kept_tables(tables: Sequence[AnsweredTable]) -> tuple[DenseTable, ...]:
    """Return tables with kept rows, or refuse them.

    Raises
    ------
    ValueError
        If the rows of one are not.
    """
    kept = tuple(one for one in tables if isinstance(one, DenseTable))
    if len(kept) < len(tables):
        raise ValueError("the questions about every row of a table are not kept: fit it anew")
    return kept


@dataclass(frozen=True, eq=False)
class LatentPrediction:
    """The posterior of the latent functions at some inputs.

    Arrays have shape (P,) where there is one latent function, and (P, C) for more than two classes.

    Attributes
    ----------
    mean : array
    sd : array
        In all: what the prior and the answers leave open.
    privacy_sd : array
        The part of it that the privacy noise makes: the sd of the mean over draws of that noise.
    """

    mean: Array
    sd: Array
    privacy_sd: Array


@dataclass(frozen=True, eq=False)
class Mixture:
    """Latent functions under a few priors; with one of them, simply under that.

    Attributes
    ----------
    priors : tuple of WeightedPrior
        Weights sum to 1.
    functions : tuple
        The latent functions under each.
    """

    priors: tuple[WeightedPrior, ...]
    functions: tuple[ChannelFunctions, ...]

    @classmethod
    def given(
        cls,
        priors: Sequence[WeightedPrior],
        measurements: Sequence[Measurement],
        *,
        inference: Inference = "posterior",
    ) -> Mixture:
        """Condition every prior on the measurements.

        Parameters
        ----------
        priors : sequence of WeightedPrior
        measurements : sequence of Measurement
        inference : {"posterior", "iterated", "newton"}
            By the posterior, with outputs in bands linearised once or repeatedly; or by the papers'
            iteration.
        """
        functions: list[ChannelFunctions] = []
        for one in priors:
            if inference == "newton":
                functions.append(
                    NewtonFunctions(iterate_newton(one.prior, one.likelihood, measurements))
                )
            else:
                sweeps = sweeps_of(inference)
                found = condition(one.prior, one.likelihood, measurements, sweeps=sweeps)
                functions.append(PosteriorFunctions(found))
        return cls(priors=tuple(priors), functions=tuple(functions))

    @property
    def main(self) -> WeightedPrior:
        """The prior of most weight."""
        return weightiest(self.priors)

    @property
    def posteriors(self) -> tuple[Posterior, ...]:
        """The posterior of every channel, under the prior of most weight.

        Raises
        ------
        ValueError
            If predictions are by the papers' iteration.
        """
        functions = self.functions[self.priors.index(self.main)]
        if not isinstance(functions, PosteriorFunctions):
            raise ValueError("the papers' iteration has no posterior")
        return functions.posteriors

    def mean(self, X: Array) -> Array:
        """Return the mean at P points, shape (P, channels)."""
        means = []
        for one, functions in zip(self.priors, self.functions, strict=True):
            if isinstance(functions, PosteriorFunctions):
                mean = np.stack([each.mean(X) for each in functions.posteriors], axis=1)
            else:
                mean = functions.latent(X)[0]
            means.append(one.weight * mean)
        return np.asarray(sum(means), dtype=np.float64)

    def marginals(self, X: Array) -> list[LatentMarginals]:
        """Return means and variances at P points, under each prior."""
        found = []
        for one, functions in zip(self.priors, self.functions, strict=True):
            mean, variance, share = functions.latent(X)
            found.append(
                LatentMarginals(
                    weight=one.weight,
                    prior=one.prior,
                    likelihood=one.likelihood,
                    mean=mean,
                    variance=variance,
                    noise_share=share,
                )
            )
        return found

    def latent(self, X: Array) -> LatentPrediction:
        """Return the posterior of the latent functions at P points, under all priors."""
        parts = self.marginals(X)
        weights = np.array([part.weight for part in parts])
        means = np.stack([part.mean for part in parts])
        variances = np.stack([part.variance for part in parts])
        mean = np.tensordot(weights, means, axes=1)
        # The law of total variance: within the priors, and between them.
        variance = np.tensordot(weights, variances + np.square(means - mean), axes=1)
        share = np.tensordot(weights, np.stack([part.noise_share for part in parts]), axes=1)
        shape = (len(X),) if mean.shape[1] == 1 else mean.shape
        return LatentPrediction(
            mean=mean.reshape(shape),
            sd=np.sqrt(variance).reshape(shape),
            privacy_sd=np.sqrt(share).reshape(shape),
        )

    def joint(self, X: Array) -> list[LatentJoint]:
        """Return means and covariances at P points, under each prior; of one channel."""
        found = []
        for one, functions in zip(self.priors, self.functions, strict=True):
            if not isinstance(functions, PosteriorFunctions):
                raise ValueError("the papers' iteration has no covariance")
            mean, covariance = functions.posteriors[0].joint(X)
            found.append(LatentJoint(one.weight, one.prior, mean, covariance))
        return found
