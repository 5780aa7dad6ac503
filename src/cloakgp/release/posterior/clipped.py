r"""Posterior linearisation: the posterior given answers about outputs that were clipped to bands.

Stage by stage, every output is y_j ~ N(m_j, v_j) given the answers so far. What was asked of it,
t_j = clip(y_j; l_j, u_j), is replaced by its best linear account under that law
(`cloakgp.models.clipping`), t ≈ h + A (y − m) + e, and the Gaussian process is conditioned on

    R t + noise ≈ R (h + A (y − m) + e + o β) + noise.

β ~ N(0, τ²) is one number per table, in predictive sds: how far clipped residuals are off centre,
because outputs are skewed. First stages, which clip at the declared bounds alone, tell; o is zero
there. Since each stage is linear given its account, all of them together are one linear Gaussian
measurement of the outputs: questions R A, noise I + R diag(var e) Rᵀ + τ² (R o)(R o)ᵀ. That is what
the `Posterior` holds which comes back, and conditioning stage by stage or at once is the same.

Once through (assumed-density filtering), m_j and v_j are those before a stage: where outputs lay
far outside of their bands, the account says so only in part. Sweeps repeat the whole with m_j and
v_j given all answers of the sweep before (iterated posterior linearisation: García-Fernández,
Tronarp and Särkkä 2019, "Gaussian process classification using posterior linearization").

Answers about the spread of outputs carry nothing about where the process is high, to first order,
and are left out; they tell how noisy outputs are (`log_evidence`). Counts of outputs are left out
as well: they chose the interval that outputs are clipped to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import linalg, special

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.clipping import OFFSET_SD, offset_per_sd
from cloakgp.models.covariance import DenseCovariance, RowCovariance
from cloakgp.privacy.questions.bands import Bands
from cloakgp.privacy.questions.spread import SpreadQuestion
from cloakgp.release.bands import account_in_bands
from cloakgp.release.measurement import (
    Measurement,
    answered_measurements,
    check_kept_where_in_bands,
    is_in_bands,
)
from cloakgp.release.posterior.dense import Posterior
from cloakgp.release.strategy import DenseStrategy
from cloakgp.release.tables import DenseTable
from cloakgp.utils.arrays import Array

# Of the variance of an output: what is left of it is not taken for less, whatever rounding says.
SMALLEST_VARIANCE = 1e-9
# Sweeps of iterated linearisation. More moved predictions by a few hundredths of their sds.
SWEEPS = 3
# Quantiles over which distances from predicted means are averaged, and the degrees of freedom of
# the law (Student's) whose quantiles these are.
QUANTILES, FREEDOM = 201, 8


def clipped_posterior(
    prior: ExactPrior | SparsePrior, measurements: Sequence[Measurement], *, sweeps: int = 0
) -> Posterior:
    """Condition a prior on answers, some of which are about outputs in bands.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    measurements : sequence of Measurement
        Of each table in the order in which they were made; their rows are kept.
    sweeps : int
        How often outputs in bands are linearised again, at what all answers predict.

    Returns
    -------
    Posterior
        Its questions are R A: what the answers ask of the outputs.

    Raises
    ------
    ValueError
        If the rows of a table are not kept.
    """
    if not answered_measurements(measurements):
        return Posterior.given(prior, (), np.zeros(0))
    return _Filter.after(prior, measurements, sweeps=sweeps).posterior()


@dataclass(frozen=True, eq=False)
class _Stage:
    """One measurement, linearised: in units of its noise."""

    table: int
    questions: Array
    residual: Array
    offset: Array


@dataclass(eq=False)
class _Filter:
    """The posterior of all rows of all tables, while answers come in.

    With S = L Lᵀ the covariance of the answers so far, ``known`` is A = cov(y, a) L⁻ᵀ over all
    rows, ``whitened`` is L⁻¹ (a − E a), and ``offsets`` is L⁻¹ o of every table.
    """

    prior: ExactPrior | SparsePrior
    strategies: dict[int, DenseStrategy]
    spans: dict[int, slice]
    covariance: RowCovariance
    variance: Array
    known: Array
    factor: Array
    whitened: Array
    offsets: dict[int, Array]
    linearised_at: Mapping[int, tuple[Array, Array]] | None = None
    stages: list[_Stage] = field(default_factory=list)

    @classmethod
    def after(
        cls,
        prior: ExactPrior | SparsePrior,
        measurements: Sequence[Measurement],
        *,
        sweeps: int = 0,
    ) -> _Filter:
        """Return the state after these measurements."""
        check_kept_where_in_bands(measurements)
        answered = answered_measurements(measurements)
        start = cls._before(prior, answered)
        filtered = start._through(answered, linearised_at=None)
        for _ in range(sweeps if is_in_bands(measurements) else 0):
            predicted = {table: filtered.marginals(table) for table in filtered.spans}
            filtered = start._through(answered, linearised_at=predicted)
        return filtered

    @classmethod
    def _before(cls, prior: ExactPrior | SparsePrior, answered: Sequence[Measurement]) -> _Filter:
        """Return the state before any answer, the start of all sweeps."""
        strategies: dict[int, DenseStrategy] = {}
        for each in answered:
            assert isinstance(each.strategy, DenseStrategy)
            strategies.setdefault(each.strategy.table, each.strategy)
        spans, rows = {}, 0
        for table, strategy in strategies.items():
            spans[table] = slice(rows, rows + strategy.n_rows)
            rows += strategy.n_rows
        covariance = _row_covariance(prior, [each.X for each in strategies.values()])
        return cls(
            prior=prior,
            strategies=strategies,
            spans=spans,
            covariance=covariance,
            variance=covariance.variance,
            known=np.zeros((rows, 0)),
            factor=np.zeros((0, 0)),
            whitened=np.zeros(0),
            offsets={table: np.zeros(0) for table in strategies},
        )

    def _through(
        self,
        answered: Sequence[Measurement],
        *,
        linearised_at: Mapping[int, tuple[Array, Array]] | None,
    ) -> _Filter:
        """Return the state after all answers, and leave this one unchanged."""
        filtered = replace(self, offsets=dict(self.offsets), stages=[], linearised_at=linearised_at)
        for each in answered:
            if each.question.locates:
                filtered.add(each)
        return filtered

    def marginals(self, table: int) -> tuple[Array, Array]:
        """Return means and variances of the outputs of one table."""
        known = self.known[self.spans[table]]
        prior = self.variance[self.spans[table]]
        variance = prior - np.square(known).sum(axis=1)
        mean = self.prior.means(self.strategies[table].X) + known @ self.whitened
        return mean, np.maximum(variance, SMALLEST_VARIANCE * prior)

    def add(self, measurement: Measurement) -> None:
        """Condition on one more measurement."""
        strategy, noise_sd = measurement.strategy, measurement.noise_sd
        assert isinstance(strategy, DenseStrategy)
        table = strategy.table
        mean, variance = self.marginals(table)
        matrix = strategy.matrix / noise_sd
        bands = measurement.question
        if isinstance(bands, Bands):
            centre = mean
            if self.linearised_at is not None:
                centre, variance = self.linearised_at[table]
            account = account_in_bands(centre, variance, bands=bands)
            questions = matrix * account.slope
            left_out = matrix * np.sqrt(account.residual)
            residual = left_out @ left_out.T
            # The probability of not being clipped is the slope in output units.
            unclipped = account.slope * bands.width
            offset = matrix @ (offset_per_sd(unclipped, variance) / bands.width)
            expected = account.expected + account.slope * (mean - centre)
            surprise = measurement.answers.values[:, 0] / noise_sd - matrix @ expected
        else:
            questions, residual = matrix, np.zeros((len(matrix), len(matrix)))
            offset = np.zeros(len(matrix))
            surprise = measurement.residuals()[:, 0] / noise_sd - matrix @ mean
        self.stages.append(_Stage(table, questions, residual, offset))
        self._condition(table, questions, residual=residual, offset=offset, surprise=surprise)

    def _condition(
        self, table: int, questions: Array, *, residual: Array, offset: Array, surprise: Array
    ) -> None:
        """Add rows to L and to all that is divided by it."""
        span, whitened_offset = self.spans[table], self.offsets[table]
        wide = np.zeros((len(self.variance), len(questions)))
        wide[span] = questions.T
        crossed = self.covariance.times(wide)
        # L₂₁ = S₂₁ L₁₁⁻ᵀ, and L₂₂ L₂₂ᵀ is what is left of S₂₂.
        shared = questions @ self.known[span] + OFFSET_SD**2 * np.outer(offset, whitened_offset)
        own = questions @ crossed[span] + residual + OFFSET_SD**2 * np.outer(offset, offset)
        left = (own + own.T) / 2 - shared @ shared.T
        left[np.diag_indices(len(left))] += 1.0
        corner = np.asarray(np.linalg.cholesky((left + left.T) / 2), dtype=np.float64)
        # `surprise` is about the mean of the outputs given all answers; β has a mean, too.
        expected_offset = OFFSET_SD**2 * offset * float(whitened_offset @ self.whitened)
        solved = linalg.solve_triangular(corner, surprise - expected_offset, lower=True)
        gained = linalg.solve_triangular(corner, (crossed - self.known @ shared.T).T, lower=True)
        for other, before in self.offsets.items():
            own_offset = offset if other == table else np.zeros_like(offset)
            added = linalg.solve_triangular(corner, own_offset - shared @ before, lower=True)
            self.offsets[other] = np.concatenate([before, added])
        answers = len(self.factor)
        self.factor = np.block([[self.factor, np.zeros((answers, len(corner)))], [shared, corner]])
        self.whitened = np.concatenate([self.whitened, solved])
        self.known = np.hstack([self.known, gained.T])

    def posterior(self) -> Posterior:
        """Return all of it as one linear Gaussian measurement."""
        tables = []
        for number, strategy in self.strategies.items():
            stages = [stage for stage in self.stages if stage.table == number]
            if not stages:
                continue
            offset = np.concatenate([stage.offset for stage in stages])
            residual = linalg.block_diag(*(stage.residual for stage in stages))
            tables.append(
                DenseTable(
                    number=number,
                    X=strategy.X,
                    questions=np.vstack([stage.questions for stage in stages]),
                    residual=residual + OFFSET_SD**2 * np.outer(offset, offset),
                )
            )
        weights = self.whitened
        if len(weights):
            weights = linalg.solve_triangular(self.factor, weights, lower=True, trans="T")
        return Posterior(
            prior=self.prior, tables=tuple(tables), factor=self.factor, weights=weights
        )


def _row_covariance(prior: ExactPrior | SparsePrior, tables: Sequence[Array]) -> RowCovariance:
    """Return K_y over the rows of all tables.

    Unlike `ExactPrior.output_covariance`, whatever the kernel: one that was learned need be a
    covariance function for what was asked alone.
    """
    X = np.vstack(tables)
    if isinstance(prior, SparsePrior):
        return prior.output_covariance(X)
    noise = np.concatenate([prior.row_noise(each) for each in tables])
    return DenseCovariance(latent=prior.row_covariance(X, X.copy()), noise=noise)


@dataclass(frozen=True, eq=False)
class SpreadMoments:
    """What answers about the spread of outputs are expected to be, given all other answers.

    Attributes
    ----------
    evidence : float
        The log density of the other answers, in nats, up to a constant.
    expected, variance : arrays of shape (k,)
        Mean and variance of each answer about spread, with its noise. No two answers of one
        measurement are about the same row: they count as independent.
    """

    evidence: float
    expected: Array
    variance: Array

    @classmethod
    def impossible(cls, count: int) -> SpreadMoments:
        """Return those of a prior under which answers have no covariance."""
        return cls(evidence=-np.inf, expected=np.zeros(count), variance=np.ones(count))


def expected_spread(
    prior: ExactPrior | SparsePrior, measurements: Sequence[Measurement], *, sweeps: int = 0
) -> SpreadMoments:
    """Return what is expected under a prior of the answers about spread, in their order.

    Rows count as independent given the process: their noise is most of what they scatter by.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    measurements : sequence of Measurement
        As for `clipped_posterior`.
    sweeps : int

    Raises
    ------
    numpy.linalg.LinAlgError
        If the answers have no covariance under the prior.
    """
    filtered = _Filter.after(prior, measurements, sweeps=sweeps)
    density = -0.5 * float(filtered.whitened @ filtered.whitened)
    density -= float(np.log(np.diag(filtered.factor)).sum())
    means, variances = [np.zeros(0)], [np.zeros(0)]
    for each in answered_measurements(measurements):
        if not each.about_spread:
            continue
        question, strategy = each.question, each.strategy
        assert isinstance(question, SpreadQuestion)
        assert isinstance(strategy, DenseStrategy)
        mean, variance = filtered.marginals(strategy.table)
        expected, scatter = moments_of_spread(question, mean=mean, variance=variance)
        weights = strategy.matrix
        means.append(np.array([float(row @ expected) for row in weights]))
        noise_variance = each.answers.noise_sd**2
        variances.append(
            np.array([float(np.square(row) @ scatter) + noise_variance for row in weights])
        )
    return SpreadMoments(
        evidence=density, expected=np.concatenate(means), variance=np.concatenate(variances)
    )


def log_evidence(
    prior: ExactPrior | SparsePrior, measurements: Sequence[Measurement], *, sweeps: int = 0
) -> float:
    """Return the log density of all answers under a prior, in nats, up to a constant.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    measurements : sequence of Measurement
        As for `clipped_posterior`; answers about the spread of outputs count, too.
    sweeps : int
    """
    known = expected_spread(prior, measurements, sweeps=sweeps)
    values = [one.answers.values[:, 0] for one in measurements if one.about_spread]
    density = known.evidence
    for value, expected, scatter in zip(
        np.concatenate([np.zeros(0), *values]), known.expected, known.variance, strict=True
    ):
        density += spread_log_density(
            float(value), expected=float(expected), scatter=float(scatter)
        )
    return density


def moments_of_spread(
    question: SpreadQuestion, *, mean: Array, variance: Array
) -> tuple[Array, Array]:
    """Return mean and variance of what outputs count for by their distances, shapes (n,).

    Outputs count as Student's with `FREEDOM` degrees of freedom, of the given variance: residuals
    of most tables have longer tails than normal ones, and by a normal law their distances would let
    the variance seem smaller than it is.

    Parameters
    ----------
    question : SpreadQuestion
    mean, variance : arrays of shape (n,)
        Of the outputs.
    """
    steps = special.stdtrit(FREEDOM, (np.arange(QUANTILES) + 0.5) / QUANTILES)
    steps *= np.sqrt((FREEDOM - 2) / FREEDOM)
    distances = (mean - question.mean)[:, None] + np.sqrt(variance)[:, None] * steps
    shares = question.share_of(np.abs(distances) / question.sd[:, None]) - 0.5
    return shares.mean(axis=1), shares.var(axis=1)


def spread_log_density(value: float, *, expected: float, scatter: float) -> float:
    """Return the log density of an answer about spread, up to a constant.

    Parameters
    ----------
    value : float
    expected, scatter : float
        Its mean, and its variance with noise.
    """
    return -0.5 * (value - expected) ** 2 / scatter - 0.5 * float(np.log(scatter))
