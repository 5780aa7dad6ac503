r"""Posterior of latent quantiles, given noisy answers about thresholds.

Answers are about sums of indicators, a_k = R 1[y ≤ t_k] + noise, for k = 1 … K, one threshold of
each for every row and stage. As for labels (`cloakgp.release.posterior.classification`), every
indicator is replaced by its best linear account by the latent quantile at its row, the Gaussian
process is conditioned on the answers, and marginals are read off again, until they stay. Here all
K quantiles are conditioned on all answers: with B their correlation,

    cov(a_k, a_l) = B_kl R A_k K A_l Rᵀ + R Λ_kl Rᵀ + N_kl,

where Λ is what accounts leave out of two indicators of one row, of one stage or of two, and N the
covariance of the noise, which the quantiles of one stage share
(`cloakgp.privacy.questions.quantiles`).

The inverse of a factor of N makes the noise of answers independent, with unit variance. The
posterior of one quantile is then one of `cloakgp.release.posterior.dense`, whose questions are
those about it, and those about the others times their correlation with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.covariance import RowCovariance
from cloakgp.models.likelihoods import QuantileLikelihood
from cloakgp.privacy.questions.quantiles import (
    QuantileQuestion,
    indicator_noise,
    indicator_units,
)
from cloakgp.release.gathered_strategy import GatheredStrategy
from cloakgp.release.measurement import Measurement, linear_measurements
from cloakgp.release.posterior.classification import iterate_linearisation
from cloakgp.release.posterior.dense import Posterior, factor_covariance
from cloakgp.release.strategy import DenseStrategy
from cloakgp.release.tables import DenseTable
from cloakgp.utils.arrays import Array

# How often indicators are linearised before steps are taken from several.
PLAIN_STEPS = 15


def quantile_posteriors(
    prior: ExactPrior | SparsePrior,
    likelihood: QuantileLikelihood,
    measurements: Sequence[Measurement],
) -> tuple[Posterior, ...]:
    """Return the posterior of every latent quantile, given all answers.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    likelihood : QuantileLikelihood
    measurements : sequence of Measurement
        Those without questions, or about no thresholds, are passed over.
    """
    if not linear_measurements(measurements):
        return tuple(
            Posterior.given(replace(prior, mean=mean), (), np.zeros(0))
            for mean in likelihood.means(prior)
        )
    return ThresholdAnswers.of(prior, measurements).iterate(likelihood).posteriors(likelihood)


@dataclass(frozen=True, eq=False)
class _Block:
    """The questions, thresholds and answers about one quantile in one measurement.

    Attributes
    ----------
    rows : slice
        Of the table, among all rows.
    questions : array of shape (k, N)
        Divided by the noise sd, in units in which noise is alike.
    thresholds : array of shape (N,)
    channel : int
        The number of the quantile.
    values : array of shape (k,)
    """

    rows: slice
    questions: Array
    thresholds: Array
    channel: int
    values: Array


@dataclass(frozen=True, eq=False)
class ThresholdAnswers:
    """Answers about thresholds of rows of some tables, under a prior of the latent quantiles.

    Attributes
    ----------
    prior : ExactPrior or SparsePrior
    tables : tuple of (int, array of shape (N, D))
        Numbers of the tables, and their rows.
    blocks : tuple
        By table, measurement, and quantile.
    whitening : array of shape (k, k)
        The inverse of a lower factor of the noise's covariance.
    covariance : RowCovariance
        Of one latent quantile at all rows.
    sizes : array of shape (n,)
        Of how many outputs there the mean is asked; more than one in cells of rows that are not
        kept.
    """

    prior: ExactPrior | SparsePrior
    tables: tuple[tuple[int, Array], ...]
    blocks: tuple[_Block, ...]
    whitening: Array
    covariance: RowCovariance
    sizes: Array

    @classmethod
    def of(
        cls, prior: ExactPrior | SparsePrior, measurements: Sequence[Measurement]
    ) -> ThresholdAnswers:
        """Gather answers.

        Parameters
        ----------
        prior : ExactPrior or SparsePrior
        measurements : sequence of Measurement
            At least one that locates outputs.

        Raises
        ------
        TypeError
            If one that locates outputs is not about thresholds of rows that are kept.
        """
        tables: dict[int, tuple[slice, Array, Array]] = {}
        blocks, factors, start = [], [], 0
        for one in linear_measurements(measurements):
            question, strategy = one.question, one.strategy
            if not isinstance(question, QuantileQuestion) or not isinstance(
                strategy, DenseStrategy | GatheredStrategy
            ):
                raise TypeError("these are no answers about thresholds")
            if strategy.table not in tables:
                count = len(strategy.X)
                own = np.ones(count)
                if isinstance(strategy, GatheredStrategy):
                    own = strategy.effective_sizes
                tables[strategy.table] = slice(start, start + count), strategy.X, own
                start += count
            rows = tables[strategy.table][0]
            asked = strategy.matrix
            if isinstance(strategy, GatheredStrategy):
                # About the mean of the outputs at a place.
                asked = asked * strategy.cell_weights
            units, values = indicator_units(question.quantiles), one.residuals()
            for channel in range(question.quantiles):
                blocks.append(
                    _Block(
                        rows=rows,
                        questions=asked * (units[channel] / one.noise_sd),
                        thresholds=question.thresholds[:, channel],
                        channel=channel,
                        values=values[:, channel] / one.noise_sd,
                    )
                )
            factor = np.linalg.cholesky(indicator_noise(question.quantiles))
            factors.append(np.kron(np.linalg.inv(factor), np.eye(strategy.n_answers)))
        return cls(
            prior=prior,
            tables=tuple((number, X) for number, (_, X, _) in tables.items()),
            blocks=tuple(blocks),
            whitening=np.asarray(linalg.block_diag(*factors), dtype=np.float64),
            covariance=prior.output_covariance(np.vstack([X for _, X, _ in tables.values()])),
            sizes=np.concatenate([sizes for _, _, sizes in tables.values()]),
        )

    def iterate(
        self,
        likelihood: QuantileLikelihood,
        *,
        near: LinearisedThresholds | None = None,
        steps: int | None = None,
    ) -> LinearisedThresholds:
        """Linearise indicators at the resulting marginals, until these stay.

        Parameters
        ----------
        likelihood : QuantileLikelihood
        near : LinearisedThresholds, optional
            Where to begin; at the prior if not given.
        steps : int, optional
            The most steps; until marginals stay if not given.
        """
        # Latent values are brought to sds of order one.
        unit = float(np.mean(likelihood.scales))
        if near is None:
            mean = np.tile(likelihood.means(self.prior), (len(self.covariance.variance), 1))
            covariance = self.covariance.variance[:, None, None] * likelihood.correlation
        else:
            mean, covariance = near.mean, near.covariance
        begun = _packed(mean / unit, covariance / unit**2)

        def step(packed: Array, variance: Array) -> _Step:
            mean, covariance = _unpacked(packed, variance, count=likelihood.channels)
            found = self.linearise(likelihood, mean=mean * unit, covariance=covariance * unit**2)
            return _Step(found, *_packed(found.mean / unit, found.covariance / unit**2))

        return iterate_linearisation(
            step,
            mean=begun[0],
            variance=begun[1],
            accelerate=steps is None,
            plain=PLAIN_STEPS if steps is None else steps,
        ).found

    def linearise(
        self, likelihood: QuantileLikelihood, *, mean: Array, covariance: Array
    ) -> LinearisedThresholds:
        """Condition on the answers, with indicators linearised at given marginals.

        Parameters
        ----------
        likelihood : QuantileLikelihood
        mean : array of shape (n, K)
            Of the latent quantiles at all rows.
        covariance : array of shape (n, K, K)
        """
        variance = np.einsum("nkk->nk", covariance)
        means = np.array(likelihood.means(self.prior))
        accounts = [self._account(block, likelihood, mean, variance) for block in self.blocks]
        asked, shifts = [], []
        for block, (expected, slope) in zip(self.blocks, accounts, strict=True):
            padded = np.zeros((len(block.questions), len(mean)))
            padded[:, block.rows] = block.questions * slope
            asked.append(padded)
            away = mean[block.rows, block.channel] - means[block.channel]
            shifts.append(block.questions @ (expected - slope * away))
        questions = np.vstack(asked)
        channels = np.repeat(
            [block.channel for block in self.blocks], [len(one.questions) for one in self.blocks]
        )
        whitening = self.whitening
        residual = whitening @ self._left_out(accounts, covariance) @ whitening.T
        values = np.concatenate([block.values for block in self.blocks]) - np.concatenate(shifts)
        crossed, alike = self.covariance.times(questions.T), likelihood.correlation
        shared = (questions @ crossed) * alike[np.ix_(channels, channels)]
        answered = whitening @ shared @ whitening.T + residual
        answered = (answered + answered.T) / 2
        answered[np.diag_indices(len(answered))] += 1.0
        factor = factor_covariance(answered)
        whitened = whitening @ values
        weights = np.asarray(linalg.cho_solve((factor, True), whitened))
        projected = whitening.T @ weights
        of_channel = [crossed * alike[channel, channels] for channel in range(len(means))]
        explained = [
            linalg.solve_triangular(factor, whitening @ one.T, lower=True) for one in of_channel
        ]
        left = self.covariance.variance[:, None, None] * alike
        for one, root in enumerate(explained):
            for other, others in enumerate(explained):
                left[:, one, other] -= (root * others).sum(axis=0)
        diagonal = np.arange(len(means))
        left[:, diagonal, diagonal] = np.maximum(left[:, diagonal, diagonal], 0.0)
        moved = means + np.stack([one @ projected for one in of_channel], axis=1)
        return LinearisedThresholds(
            answers=self,
            questions=questions,
            channels=channels,
            residual=residual,
            values=whitened,
            factor=factor,
            weights=weights,
            mean=moved,
            covariance=left,
        )

    def _account(
        self, block: _Block, likelihood: QuantileLikelihood, mean: Array, variance: Array
    ) -> tuple[Array, Array]:
        """Return e and slopes of the indicators of a block, each of shape (N,)."""
        rows, channel = block.rows, block.channel
        thresholds = np.broadcast_to(block.thresholds[:, None], mean[rows].shape)
        below = likelihood.below(thresholds, mean=mean[rows], variance=variance[rows])
        return below[0][:, channel], below[1][:, channel]

    def _left_out(self, accounts: Sequence[tuple[Array, Array]], covariance: Array) -> Array:
        """Return R Λ Rᵀ between all answers: rows of one table have one output in every stage."""
        size = sum(len(block.questions) for block in self.blocks)
        total = np.zeros((size, size))
        starts = np.cumsum([0, *(len(block.questions) for block in self.blocks)])
        for rows in dict.fromkeys((each.rows.start, each.rows.stop) for each in self.blocks):
            own = [
                place
                for place, block in enumerate(self.blocks)
                if (block.rows.start, block.rows.stop) == rows
            ]
            left = _left_of_rows(
                np.stack([accounts[place][0] for place in own], axis=1),
                np.stack([accounts[place][1] for place in own], axis=1),
                covariance[slice(*rows)],
                channels=[self.blocks[place].channel for place in own],
            )
            left = left / self.sizes[slice(*rows), None, None]
            for one, place in enumerate(own):
                for other, another in enumerate(own):
                    weighted = self.blocks[place].questions * left[:, one, other]
                    span = slice(starts[place], starts[place + 1])
                    total[span, starts[another] : starts[another + 1]] = (
                        weighted @ self.blocks[another].questions.T
                    )
        return total


def _left_of_rows(
    expected: Array, slope: Array, covariance: Array, *, channels: Sequence[int]
) -> Array:
    """Return Λ of every row, shape (n, b, b), for b indicators of each.

    Each quantile has a law of outputs of its own, and these laws may contradict each other: Λ is
    the nearest covariance.

    Parameters
    ----------
    expected, slope : arrays of shape (n, b)
    covariance : array of shape (n, K, K)
        Of the latent quantiles.
    channels : sequence of b int
    """
    e, other = expected[:, :, None], expected[:, None, :]
    explained = slope[:, :, None] * slope[:, None, :] * covariance[:, channels][:, :, channels]
    values, vectors = np.linalg.eigh(np.minimum(e, other) - e * other - explained)
    return np.asarray((vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1))


@dataclass(frozen=True, eq=False)
class LinearisedThresholds:
    """One linearised conditioning of all latent quantiles.

    Attributes
    ----------
    answers : ThresholdAnswers
    questions : array of shape (k, n)
        R A of all answers, over all rows.
    channels : array of shape (k,)
        The number of the quantile of each.
    residual : array of shape (k, k)
        What accounts leave out; in units of independent noise of unit variance, as all below.
    values : array of shape (k,)
        Answers, less their values at the prior means.
    factor : array of shape (k, k)
        Lower Cholesky factor of the answers' covariance.
    weights : array of shape (k,)
    mean, covariance : arrays of shape (n, K) and (n, K, K)
        Of the latent quantiles at all rows.
    """

    answers: ThresholdAnswers
    questions: Array
    channels: np.ndarray[tuple[int], np.dtype[np.intp]]
    residual: Array
    values: Array
    factor: Array
    weights: Array
    mean: Array
    covariance: Array

    @property
    def log_evidence(self) -> float:
        """The log density of the answers, but for a constant."""
        misfit = 0.5 * float(self.values @ self.weights)
        return -misfit - float(np.log(np.diag(self.factor)).sum())

    def posteriors(self, likelihood: QuantileLikelihood) -> tuple[Posterior, ...]:
        """Return the posterior of each latent quantile.

        Parameters
        ----------
        likelihood : QuantileLikelihood
        """
        prior, alike = self.answers.prior, likelihood.correlation
        return tuple(
            Posterior(
                prior=replace(prior, mean=mean),
                tables=self.tables(alike[channel, self.channels]),
                factor=self.factor,
                weights=self.weights,
            )
            for channel, mean in enumerate(likelihood.means(prior))
        )

    def tables(self, shares: Array) -> tuple[DenseTable, ...]:
        """Return the questions about the rows of each table, as questions about one function.

        Parameters
        ----------
        shares : array of shape (k,)
            The correlation with it of the function that each answer is about.
        """
        asked = self.answers.whitening @ (self.questions * shares[:, None])
        made, answered, rows = [], 0, 0
        for number, X in self.answers.tables:
            own = slice(rows, rows + len(X))
            count = sum(len(block.questions) for block in self.answers.blocks if block.rows == own)
            span = slice(answered, answered + count)
            made.append(
                DenseTable(
                    number=number,
                    X=X,
                    questions=asked[span, own],
                    residual=self.residual[span, span],
                )
            )
            answered, rows = span.stop, own.stop
        return tuple(made)


@dataclass(frozen=True, eq=False)
class _Step:
    """A linearised conditioning, with marginals as `iterate_linearisation` compares them."""

    found: LinearisedThresholds
    mean: Array
    variance: Array


def _packed(mean: Array, covariance: Array) -> tuple[Array, Array]:
    """Return means and covariances between quantiles in one array, and variances in another."""
    above = covariance[(slice(None), *np.triu_indices(mean.shape[1], 1))]
    return np.hstack([mean, above]).ravel(), np.einsum("nkk->nk", covariance).ravel()


def _unpacked(packed: Array, variance: Array, *, count: int) -> tuple[Array, Array]:
    """Return means, shape (n, K), and covariances, shape (n, K, K)."""
    variances = variance.reshape(-1, count)
    both = packed.reshape(len(variances), -1)
    first, second = np.triu_indices(count, 1)
    covariance = variances[:, :, None] * np.eye(count)
    covariance[:, first, second] = covariance[:, second, first] = both[:, count:]
    return both[:, :count], covariance
