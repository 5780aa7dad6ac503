r"""The latent functions behind labels, given noisy linear answers about the labels.

Labels v = ±1 have E[v|f] = 2π(f) − 1 and are independent given the latent function, so answers
a = R v + z, z ~ N(0, I) after division by the noise sd, are sums over many rows. The posterior of f
is found by posterior linearisation (García-Fernández, Svensson, Morelande and Särkkä 2015, in the
form of Tronarp, García-Fernández and Särkkä 2018): under the current f_j ~ N(μ_j, v_j) every label
is replaced by its best linear account

    v_j ≈ h_j + A_j (f_j − μ_j) + e_j,    h = 2E[π] − 1,  A = 2E[π'],  var e = 1 − h² − A² v,

which has the label's exact first two moments, the Gaussian process is conditioned on the answers,
and μ, v are read off again, until they stay. Every step works on published numbers: it is free, and
there can be as many as convergence takes.

What is left out: with C > 2 classes every channel is conditioned on its own answers, as if those of
the others said nothing about it. But a row is of one class: its signs in two channels have
covariance −4 p_a p_b given their probabilities, which is −4/9 for three classes that are as likely,
and where the noise that is common to all channels is taken off
(`cloakgp.privacy.questions.classes`), what is left of it is correlated, −1/(C − 1). The moments of
each channel's own signs, and the variance of its noise, are right, so each latent function is what
its own answers say of it; what the answers of the other channels would add is not used. That is a
matter of how sharp predictions are, not of privacy.

Counts go the same way (`cloakgp.models.likelihoods.counts`), with an offset of every row, its log
exposure, and with stages that clip them differently: each has an account of its own, and what these
leave out of one row is correlated between stages. Where rows are gathered in cells
(`cloakgp.release.gathered_strategy`), a row here stands for the mean of n outputs with one latent
value: its account has the same h and A, and 1/n of the variance of e, as if the row had been
there n times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np
from scipy import linalg

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.covariance import RowCovariance
from cloakgp.models.likelihoods import Likelihood, Window
from cloakgp.release.posterior.dense import Posterior
from cloakgp.release.tables import DenseTable
from cloakgp.utils.arrays import Array

STEPS = 100
# Latent values have sds of order one; predictions do not show what is smaller.
TOLERANCE = 1e-6
# Full steps at first; halved whenever they grow, as they do where they overshoot.
SMALLEST_STEP = 1 / 16
# How many of the last steps decide the next, and what share of their turns is rounding.
MEMORY, RANK_TOLERANCE = 5, 1e-10


@dataclass(frozen=True, eq=False)
class SignAnswers:
    """Answers of one channel about signs ±1 of the rows of some tables.

    Attributes
    ----------
    tables : tuple of DenseTable
        With questions divided by the noise sd.
    values : array of shape (k,)
        R v + z of unit variance, in the order of the tables.
    windows : tuple of tuples of (int, Window or None)
        Of each table, how many answers each stage gave, and where outputs were clipped for it; if
        empty, all stages asked the same.
    """

    tables: tuple[DenseTable, ...]
    values: Array
    windows: tuple[tuple[tuple[int, Window | None], ...], ...] = ()

    def stages(self, place: int) -> tuple[tuple[int, Window | None], ...]:
        """Return the stages of one table."""
        return self.windows[place] if self.windows else ((self.tables[place].n_answers, None),)


def label_posterior(
    prior: ExactPrior | SparsePrior, answers: SignAnswers, *, likelihood: Likelihood
) -> Posterior:
    """Return the Gaussian approximation of a latent function given answers.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
        Of the latent function, with its mean.
    answers : SignAnswers
    likelihood : Likelihood

    Returns
    -------
    Posterior
        Its questions are R A: what the answers ask of the latent function.
    """
    if not answers.tables:
        return Posterior.given(prior, (), np.zeros(0))
    rows = _Rows.of(prior, answers)
    conditioned = iterate_linearisation(
        lambda mean, variance: rows.condition(
            mean, variance, values=answers.values, likelihood=likelihood
        ),
        mean=np.full(len(rows.variance), prior.mean),
        variance=rows.variance,
        # What was saved predicts what it did, also where a hundred steps were too few.
        accelerate=False,
    )
    asked, k, n = [], 0, 0
    for table in answers.tables:
        answered, count = table.questions.shape
        own = slice(k, k + answered)
        part, residual = conditioned.questions[own, n : n + count], conditioned.residual[own, own]
        asked.append(replace(table, questions=part, residual=residual))
        k, n = k + answered, n + count
    return Posterior(
        prior=prior,
        tables=tuple(asked),
        factor=conditioned.factor,
        weights=conditioned.weights,
    )


class Linearised(Protocol):
    """The posterior of labels linearised at some marginals, and the marginals after it."""

    @property
    def mean(self) -> Array:
        """Of the latent values, shape (n,)."""

    @property
    def variance(self) -> Array:
        """Of the latent values, shape (n,)."""


LinearisedAt = TypeVar("LinearisedAt", bound=Linearised)


def iterate_linearisation(
    linearised: Callable[[Array, Array], LinearisedAt],
    *,
    mean: Array,
    variance: Array,
    accelerate: bool = True,
    plain: int | None = None,
) -> LinearisedAt:
    """Iterate the linearisation of labels at their marginals until these converge.

    Parameters
    ----------
    linearised : callable
        Of means and variances.
    mean, variance : arrays of shape (n,)
        To begin with.
    accelerate : bool
        Whether to go on by other means where plain steps are too few.
    plain : int, optional
        How many of those; a hundred if not given.
    """
    step, last = 1.0, np.inf
    for _ in range(STEPS if plain is None else plain):
        found = linearised(mean, variance)
        moves = found.mean - mean, found.variance - variance
        size = max(float(np.abs(move).max()) for move in moves)
        if size <= TOLERANCE:
            return found
        if size > last:
            step = max(step / 2, SMALLEST_STEP)
        last = size
        mean, variance = mean + step * moves[0], variance + step * moves[1]
    if not accelerate:
        return found
    return _accelerated(linearised, np.concatenate([mean, variance]), count=len(mean))


def _accelerated(
    linearised: Callable[[Array, Array], LinearisedAt], position: Array, *, count: int
) -> LinearisedAt:
    """Go on where steps grow smaller and smaller, as some do for many hundreds.

    Each step is to where the last few say that marginals would stay, if moves were linear in the
    marginals (Anderson 1965; Walker and Ni 2011).
    """
    steps: list[Array] = []
    turns: list[Array] = []
    before: tuple[Array, Array] | None = None
    for _ in range(STEPS):
        found = linearised(position[:count], np.maximum(position[count:], 0.0))
        move = np.concatenate([found.mean, found.variance]) - position
        if float(np.abs(move).max()) <= TOLERANCE:
            break
        if before is not None:
            steps, turns = [*steps, position - before[0]], [*turns, move - before[1]]
        before = position, move
        position = position + move
        if steps:
            turned = np.stack(turns[-MEMORY:], axis=1)
            weights = np.linalg.lstsq(turned, move, rcond=RANK_TOLERANCE)[0]
            position = position - (np.stack(steps[-MEMORY:], axis=1) + turned) @ weights
    return found


@dataclass(frozen=True, eq=False)
class _Conditioned:
    """One linearised conditioning, and the rows' marginals after it."""

    questions: Array
    residual: Array
    factor: Array
    weights: Array
    mean: Array
    variance: Array


@dataclass(frozen=True, eq=False)
class _Part:
    """One table among all: its rows, and its stages' answers and windows."""

    rows: slice
    offset: Array | float
    sizes: Array | float
    stages: tuple[tuple[slice, Window | None], ...]


@dataclass(frozen=True, eq=False)
class _Account:
    """The best linear account of all answers: questions R A, shift, and residual covariance."""

    questions: Array
    shift: Array
    residual: Array


@dataclass(frozen=True, eq=False)
class _Rows:
    """All rows of all tables under the prior, and the questions put to them."""

    prior_mean: float
    covariance: RowCovariance
    variance: Array
    questions: Array
    parts: tuple[_Part, ...]

    @classmethod
    def of(cls, prior: ExactPrior | SparsePrior, answers: SignAnswers) -> _Rows:
        covariance = prior.output_covariance(np.vstack([table.X for table in answers.tables]))
        return cls(
            prior_mean=prior.mean,
            covariance=covariance,
            variance=covariance.variance,
            questions=linalg.block_diag(*(table.questions for table in answers.tables)),
            parts=_parts(answers),
        )

    def _account(self, mean: Array, variance: Array, likelihood: Likelihood) -> _Account:
        """Linearise outputs, or signs, at given marginals."""
        asked = np.zeros_like(self.questions)
        shift = np.zeros(len(asked))
        residual = np.zeros((len(asked), len(asked)))
        for part in self.parts:
            rows = part.rows
            accounts = likelihood.accounts(
                mean[rows] + part.offset, variance[rows], [window for _, window in part.stages]
            )
            away = mean[rows] - self.prior_mean
            for stage, (span, _) in enumerate(part.stages):
                questions, slope = self.questions[span, rows], accounts.slope[stage]
                asked[span, rows] = questions * slope
                shift[span] = questions @ (accounts.expected[stage] - slope * away)
                for other, (others, _) in enumerate(part.stages):
                    # What accounts leave out of outputs of one row is independent.
                    left_out = questions * (accounts.residual[stage, other] / part.sizes)
                    residual[span, others] = left_out @ self.questions[others, rows].T
        return _Account(questions=asked, shift=shift, residual=residual)

    def condition(
        self, mean: Array, variance: Array, *, values: Array, likelihood: Likelihood
    ) -> _Conditioned:
        """Condition on the answers, with labels linearised at given marginals."""
        account = self._account(mean, variance, likelihood)
        questions = account.questions
        crossed = self.covariance.times(questions.T)
        answered = questions @ crossed + account.residual
        answered = (answered + answered.T) / 2
        answered[np.diag_indices(len(answered))] += 1.0
        factor = np.asarray(np.linalg.cholesky(answered), dtype=np.float64)
        weights = linalg.cho_solve((factor, True), values - account.shift)
        explained = linalg.solve_triangular(factor, crossed.T, lower=True)
        return _Conditioned(
            questions=questions,
            residual=account.residual,
            factor=factor,
            weights=weights,
            mean=self.prior_mean + crossed @ weights,
            variance=np.maximum(self.variance - np.square(explained).sum(axis=0), 0.0),
        )


def _parts(answers: SignAnswers) -> tuple[_Part, ...]:
    """Return which rows and answers are those of each table, and of each of its stages."""
    parts, rows, first = [], 0, 0
    for place, table in enumerate(answers.tables):
        stages = []
        for count, window in answers.stages(place):
            stages.append((slice(first, first + count), window))
            first += count
        own = slice(rows, rows + len(table.X))
        parts.append(
            _Part(
                rows=own,
                offset=0.0 if table.offset is None else table.offset,
                sizes=1.0 if table.sizes is None else table.sizes,
                stages=tuple(stages),
            )
        )
        rows = own.stop
    return tuple(parts)
