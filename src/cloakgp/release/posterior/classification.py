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
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.covariance import DenseCovariance, LowRankCovariance
from cloakgp.models.likelihoods.classes import Link
from cloakgp.release.posterior.dense import AskedTable, Posterior
from cloakgp.utils.arrays import Array

STEPS = 100
# Latent values have sds of order one; predictions do not show what is smaller.
TOLERANCE = 1e-6
# Full steps at first; halved whenever they grow, as they do where they overshoot.
SMALLEST_STEP = 1 / 16


@dataclass(frozen=True, eq=False)
class SignAnswers:
    """Answers of one channel about signs ±1 of the rows of some tables.

    Attributes
    ----------
    tables : tuple of AskedTable
        With questions divided by the noise sd.
    values : array of shape (k,)
        R v + z of unit variance, in the order of the tables.
    """

    tables: tuple[AskedTable, ...]
    values: Array


def label_posterior(
    prior: ExactPrior | SparsePrior, answers: SignAnswers, *, link: Link
) -> Posterior:
    """Return the Gaussian approximation of a latent function given answers.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
        Of the latent function, with its mean.
    answers : SignAnswers
    link : Link

    Returns
    -------
    Posterior
        Its questions are R A: what the answers ask of the latent function.
    """
    if not answers.tables:
        return Posterior.given(prior, (), np.zeros(0))
    rows = _Rows.of(prior, answers)
    mean, variance = np.full(len(rows.variance), prior.mean), rows.variance
    step, last = 1.0, np.inf
    for _ in range(STEPS):
        conditioned = rows.conditioned(mean, variance, values=answers.values, link=link)
        moves = conditioned.mean - mean, conditioned.variance - variance
        size = max(float(np.abs(move).max()) for move in moves)
        if size <= TOLERANCE:
            break
        if size > last:
            step = max(step / 2, SMALLEST_STEP)
        last = size
        mean, variance = mean + step * moves[0], variance + step * moves[1]
    asked, k, n = [], 0, 0
    for table in answers.tables:
        answered, count = table.questions.shape
        part = conditioned.questions[k : k + answered, n : n + count]
        asked.append(replace(table, questions=part))
        k, n = k + answered, n + count
    return Posterior(
        prior=prior,
        tables=tuple(asked),
        factor=conditioned.factor,
        weights=conditioned.weights,
    )


@dataclass(frozen=True, eq=False)
class _Conditioned:
    """One linearised conditioning, and the rows' marginals after it."""

    questions: Array
    factor: Array
    weights: Array
    mean: Array
    variance: Array


@dataclass(frozen=True, eq=False)
class _Rows:
    """All rows of all tables under the prior, and the questions put to them."""

    prior_mean: float
    covariance: DenseCovariance | LowRankCovariance
    variance: Array
    questions: Array

    @classmethod
    def of(cls, prior: ExactPrior | SparsePrior, answers: SignAnswers) -> _Rows:
        covariance = prior.output_covariance(np.vstack([table.X for table in answers.tables]))
        if isinstance(covariance, LowRankCovariance):
            latent = np.square(covariance.features).sum(axis=0)
        else:
            latent = np.diag(covariance.latent)
        return cls(
            prior_mean=prior.mean,
            covariance=covariance,
            variance=latent + covariance.noise,
            questions=linalg.block_diag(*(table.questions for table in answers.tables)),
        )

    def conditioned(
        self, mean: Array, variance: Array, *, values: Array, link: Link
    ) -> _Conditioned:
        """Condition on the answers, with labels linearised at given marginals."""
        probability, half_slope = link.moments(mean, variance)
        expected, slope = 2.0 * probability - 1.0, 2.0 * half_slope
        left = np.maximum(1.0 - expected**2 - slope**2 * variance, 0.0)
        questions = self.questions * slope
        crossed = self.covariance.times(questions.T)
        answered = questions @ crossed + (self.questions * left) @ self.questions.T
        answered = (answered + answered.T) / 2
        answered[np.diag_indices(len(answered))] += 1.0
        factor = np.asarray(np.linalg.cholesky(answered), dtype=np.float64)
        shift = self.questions @ (expected - slope * (mean - self.prior_mean))
        weights = linalg.cho_solve((factor, True), values - shift)
        explained = linalg.solve_triangular(factor, crossed.T, lower=True)
        return _Conditioned(
            questions=questions,
            factor=factor,
            weights=weights,
            mean=self.prior_mean + crossed @ weights,
            variance=np.maximum(self.variance - np.square(explained).sum(axis=0), 0.0),
        )
