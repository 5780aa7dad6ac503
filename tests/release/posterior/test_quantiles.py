"""Latent quantiles given answers about thresholds: against the joint Gaussian, and many rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conditioning import measured
from scipy import stats
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp.design.streaming.binning import Partition
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.kernels.coregion import CoregionKernel, as_entries
from cloakgp.models.likelihoods import QuantileLikelihood
from cloakgp.privacy import Answers, Guarantee
from cloakgp.privacy.questions.quantiles import (
    QuantileQuestion,
    indicator_noise,
    indicator_units,
)
from cloakgp.release.gathered_strategy import GatheredStrategy
from cloakgp.release.posterior.quantiles import ThresholdAnswers, quantile_posteriors

KERNEL = ConstantKernel(1.5) * RBF(1.3)
PRIOR = ExactPrior(kernel=KERNEL, noise_variance=1e-3, mean=0.4)
SPARSE = SparsePrior(
    kernel=KERNEL,
    noise_variance=1e-3,
    mean=0.4,
    inducing=np.array([[0.5], [2.0], [3.5]]),
    approximation="fitc",
)
X, Z = np.array([[0.1], [0.9], [2.2], [3.0]]), np.array([[1.5], [2.5]])
POINTS = np.array([[0.0], [1.7], [5.0]])


def likelihood_of(count, *, in_common=0.6):
    levels = (0.1, 0.5, 0.8)[:count] if count > 1 else (0.3,)
    return QuantileLikelihood(levels, (0.8, 1.0, 1.5)[:count], in_common=in_common)


def asked_of(rows, *, count, seed, table=0, noise_sd=0.3, questions=2):
    """Answers about thresholds: any numbers, as an oracle conditions on any."""
    rng = np.random.default_rng(seed)
    channels = 1 if count == 1 else count + 1
    answers = Answers(
        values=rng.normal(size=(questions, channels)),
        noise_sd=noise_sd,
        guarantee=Guarantee(epsilon=1.0, delta=1e-3, mu=1.0, answers=questions * channels),
    )
    question = QuantileQuestion(
        np.sort(rng.normal(size=(len(rows), count)), axis=1), bounds=(-9.0, 9.0)
    )
    matrix = rng.normal(size=(questions, len(rows)))
    return measured(rows, matrix, answers, question=question, table=table)


def joint_oracle(prior, likelihood, measurements, *, mean, covariance, starts):
    """Means and variances at POINTS by the dense joint Gaussian of all entries and answers."""
    count = likelihood.channels
    rows = np.vstack([X, Z])
    entries, queried = as_entries(rows, count=count), as_entries(POINTS, count=count)
    kernel = CoregionKernel(KERNEL, likelihood.correlation)
    own = np.kron(PRIOR.row_noise(rows), np.ones(1))
    latent = kernel(entries, entries.copy())
    latent += np.kron(np.diag(own), likelihood.correlation)
    crossed = kernel(queried, entries)
    means = np.array(likelihood.means(prior))
    maps, values, blocks, thresholds = [], [], [], []
    for one in measurements:
        first = starts[one.strategy.table]
        units, asked = indicator_units(count), one.residuals()
        for channel in range(count):
            questions = one.strategy.matrix * units[channel]
            spread = np.zeros((len(questions), len(entries)))
            places = (first + np.arange(len(one.strategy.X))) * count + channel
            spread[:, places] = questions
            maps.append(spread)
            values.append(asked[:, channel])
            thresholds.append((places, one.question.thresholds[:, channel], channel))
        blocks.append(
            np.kron(indicator_noise(count), np.eye(len(one.strategy.matrix))) * one.noise_sd**2
        )
    # One indicator for each row, measurement and quantile, with its account.
    slopes, expected = np.zeros_like(np.vstack(maps)), []
    left = np.zeros((sum(map(len, values)),) * 2)
    accounts = []
    for places, at, channel in thresholds:
        rows_ = (places - channel) // count
        m, v = mean[rows_, channel], covariance[rows_, channel, channel]
        spread = np.sqrt(likelihood.scales[channel] ** 2 + v)
        standard = (at - m) / spread + likelihood.scales[channel] * (
            stats.norm.ppf(likelihood.quantiles[channel]) / spread
        )
        accounts.append(
            (rows_, channel, stats.norm.cdf(standard), -stats.norm.pdf(standard) / spread)
        )
    ends = np.concatenate([[0], np.cumsum([len(each) for each in values])])
    for one, (rows_, channel, e, a) in enumerate(accounts):
        span = slice(ends[one], ends[one + 1])
        places = thresholds[one][0]
        slopes[span, places] = maps[one][:, places] * a
        expected.append(maps[one][:, places] @ (e - a * (mean[rows_, channel] - means[channel])))
    # Row by row: what accounts leave out of all indicators of its output, brought to a covariance.
    for row in range(len(rows)):
        own = [one for one, each in enumerate(accounts) if row in each[0]]
        which = [list(accounts[one][0]).index(row) for one in own]
        e = np.array([accounts[one][2][at] for one, at in zip(own, which, strict=True)])
        a = np.array([accounts[one][3][at] for one, at in zip(own, which, strict=True)])
        channels = [accounts[one][1] for one in own]
        shared = np.minimum.outer(e, e) - np.outer(e, e)
        shared -= np.outer(a, a) * covariance[row][np.ix_(channels, channels)]
        values_, vectors = np.linalg.eigh(shared)
        shared = vectors @ np.diag(np.maximum(values_, 0.0)) @ vectors.T
        columns = np.zeros((len(left), len(own)))
        for place, one in enumerate(own):
            span = slice(ends[one], ends[one + 1])
            columns[span, place] = maps[one][:, row * count + accounts[one][1]]
        left += columns @ shared @ columns.T
    noise = np.zeros_like(left)
    start = 0
    for block in blocks:
        noise[start : start + len(block), start : start + len(block)] = block
        start += len(block)
    answered = slopes @ latent @ slopes.T + left + noise
    gain = crossed @ slopes.T @ np.linalg.inv(answered)
    moved = np.tile(means, len(POINTS)) + gain @ (np.concatenate(values) - np.concatenate(expected))
    variance = kernel.diag(queried) - np.einsum("ij,ji->i", gain, slopes @ crossed.T)
    share = np.einsum("ij,jk,ik->i", gain, noise, gain)
    shape = (len(POINTS), count)
    return moved.reshape(shape), variance.reshape(shape), share.reshape(shape)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_all_quantiles_are_conditioned_on_all_answers(count):
    """Oracle: one joint Gaussian over entries, with the same accounts; two tables, one twice."""
    likelihood = likelihood_of(count)
    measurements = [
        asked_of(X, count=count, seed=0),
        asked_of(X, count=count, seed=1, noise_sd=0.7, questions=3),
        asked_of(Z, count=count, seed=2, table=1),
    ]
    answers = ThresholdAnswers.of(PRIOR, measurements)
    rng = np.random.default_rng(3)
    mean = rng.normal(size=(6, count))
    root = rng.normal(size=(6, count, count)) / 3
    covariance = root @ root.transpose(0, 2, 1)
    found = answers.linearise(likelihood, mean=mean, covariance=covariance)
    theirs = joint_oracle(
        PRIOR, likelihood, measurements, mean=mean, covariance=covariance, starts={0: 0, 1: 4}
    )
    for channel, posterior in enumerate(found.posteriors(likelihood)):
        marginals = posterior.marginals(POINTS)
        np.testing.assert_allclose(marginals.mean, theirs[0][:, channel], atol=1e-9)
        np.testing.assert_allclose(marginals.variance, theirs[1][:, channel], atol=1e-9)
        np.testing.assert_allclose(marginals.noise_share, theirs[2][:, channel], atol=1e-9)


@pytest.mark.parametrize("prior", [PRIOR, SPARSE], ids=["exact", "sparse"])
def test_marginals_of_rows_are_those_at_which_indicators_are_linearised(prior):
    likelihood = likelihood_of(2)
    answers = ThresholdAnswers.of(prior, [asked_of(X, count=2, seed=4)])
    found = answers.iterate(likelihood)
    for channel, posterior in enumerate(found.posteriors(likelihood)):
        mean, variance = posterior.outputs(X, table=0)
        np.testing.assert_allclose(mean, found.mean[:, channel], atol=1e-6)
        np.testing.assert_allclose(variance, found.covariance[:, channel, channel], atol=1e-6)


def test_without_answers_quantiles_are_those_of_the_prior():
    likelihood = likelihood_of(3)
    posteriors = quantile_posteriors(PRIOR, likelihood, [])
    np.testing.assert_allclose([one.mean(POINTS)[0] for one in posteriors], likelihood.means(PRIOR))


def test_many_rows_tell_their_quantiles_whatever_outputs_are_like():
    """Oracle: the quantiles of skewed outputs, where thresholds are near them."""
    rows, count, rng = 20_000, 3, np.random.default_rng(0)
    y = rng.exponential(size=rows)
    truth = np.quantile(y, (0.1, 0.5, 0.8))
    one_place = np.zeros((rows, 1))
    prior = SparsePrior(
        kernel=ConstantKernel(4.0) * RBF(1.0),
        noise_variance=1e-4,
        mean=0.7,
        inducing=np.zeros((1, 1)),
        approximation="fitc",
    )
    likelihood = QuantileLikelihood((0.1, 0.5, 0.8), (0.3, 0.8, 1.2))
    question = QuantileQuestion(np.tile(truth + 0.01, (rows, 1)), bounds=(0.0, 9.0))
    matrix = np.ones((1, rows))
    answers = Answers(
        values=matrix @ question.encode(y),
        noise_sd=1.0,
        guarantee=Guarantee(epsilon=1.0, delta=1e-3, mu=1.0, answers=count + 1),
    )
    asked = measured(one_place, matrix, answers, question=question, X_query=one_place[:1])
    posteriors = quantile_posteriors(prior, likelihood, [asked])
    predicted = [float(one.mean(one_place[:1])[0]) for one in posteriors]
    np.testing.assert_allclose(predicted, truth, atol=0.01)


def test_other_questions_are_refused():
    asked = asked_of(X, count=1, seed=0)
    from cloakgp.privacy import OutputBounds

    other = measured(X, asked.strategy.matrix, asked.answers, question=OutputBounds(0.0, 1.0))
    with pytest.raises(TypeError, match="no answers about thresholds"):
        ThresholdAnswers.of(PRIOR, [other])


def test_cells_of_rows_at_one_place_are_as_their_rows():
    """Oracle: the same columns of the same rows, each of its own."""
    sizes = np.array([1.0, 3.0, 2.0, 5.0])
    likelihood, exact = likelihood_of(3), replace(PRIOR, noise_variance=1e-9)
    of_cells = asked_of(X, count=3, seed=4)
    cells = Partition(centres=X, units=np.ones(1))
    strategy = of_cells.strategy
    gathered = GatheredStrategy(
        cells=cells,
        sizes=sizes,
        matrix=strategy.matrix,
        input_ranges=strategy.ranges,
        X_query=strategy.X_query,
        reconstruction=None,
        certificate=strategy.certificate,
    )
    places = np.repeat(np.arange(4), sizes.astype(int))
    rows = replace(
        of_cells,
        strategy=replace(strategy, X=X[places], matrix=strategy.matrix[:, places]),
        question=replace(of_cells.question, thresholds=of_cells.question.thresholds[places]),
    )
    np.testing.assert_allclose(gathered.totals, rows.strategy.totals)
    found = quantile_posteriors(exact, likelihood, [replace(of_cells, strategy=gathered)])
    expected = quantile_posteriors(exact, likelihood, [rows])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.mean(POINTS), other.mean(POINTS), rtol=1e-5)
        np.testing.assert_allclose(one.variance(POINTS), other.variance(POINTS), rtol=1e-5)
