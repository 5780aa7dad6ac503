"""Posteriors from sums over rows, against those that know every row."""

from __future__ import annotations

import numpy as np
import pytest
from conditioning import posterior_of, streamed
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from cloakgp.data import ArrayRows
from cloakgp.design.streaming.rules import BallRule, LinearRule
from cloakgp.design.streaming.sums import sum_strategy
from cloakgp.models import APPROXIMATIONS, SparsePrior
from cloakgp.privacy import Answers, Guarantee, OutputBounds
from cloakgp.release import Measurement

POINTS = np.array([[0.2, 1.0], [3.0, 3.0], [1.5, 0.1], [40.0, -7.0]])
KERNELS = [
    2.0 * RBF(1.3),
    ConstantKernel(0.5) * Matern([1.0, 3.0], nu=1.5) + WhiteKernel(0.2),
]
BOUNDS = OutputBounds(-2.0, 5.0)


def prior_of(kernel=KERNELS[0], approximation="fitc", *, mean=0.7, noise=0.3):
    inducing = np.array([[0.0, 0.0], [1.0, 2.0], [3.0, 1.0], [2.5, 3.5], [0.5, 3.0]])
    return SparsePrior(
        kernel=kernel,
        noise_variance=noise,
        mean=mean,
        inducing=inducing,
        approximation=approximation,
    )


def rule_of(rng, *, ball=True, answers=4):
    matrix = rng.normal(size=(answers, 5))
    if not ball:
        return LinearRule(matrix=matrix)
    return BallRule(matrix=matrix, curvatures=rng.uniform(0.1, 3.0, size=answers))


BOUNDS = OutputBounds(-2.0, 5.0)


def summed(prior, sums, answers):
    """The posterior from sums over rows."""
    rule = LinearRule(matrix=np.zeros_like(sums.features))
    strategy = streamed(prior, rule, sums)
    return posterior_of(prior, [Measurement(strategy=strategy, question=BOUNDS, answers=answers)])


@pytest.fixture
def asked(rng, make_release):
    """Build (sums, answers, measurements) of one table, asked by a rule of a prior."""

    def build(prior, rule, *, noise_sd=0.5, chunk_rows=7):
        X = rng.uniform(0, 4, size=(30, 2))
        outputs = np.sin(2 * X[:, 0]) + X[:, 1]
        sums = sum_strategy(
            ArrayRows(X, outputs, chunk_rows=chunk_rows, jobs=1), model=prior, rule=rule
        )
        release = make_release(
            prior,
            X,
            outputs,
            strategy=rule.columns(*prior.features_and_noise(X)),
            noise_sd=noise_sd,
            bounds=(BOUNDS.lo, BOUNDS.hi),
        )
        return sums, release.measurements[0].answers, release.measurements

    return build


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("approximation", APPROXIMATIONS)
@pytest.mark.parametrize("ball", [True, False])
def test_it_is_the_posterior_that_knows_every_row(kernel, approximation, ball, asked, rng):
    prior = prior_of(kernel, approximation)
    sums, answers, measurements = asked(prior, rule_of(rng, ball=ball))
    found = summed(prior, sums, answers)
    dense = posterior_of(prior, measurements)
    np.testing.assert_allclose(found.mean(POINTS), dense.mean(POINTS), rtol=1e-9)
    for name in ("covariance", "variance"):
        expected = getattr(dense, name)(POINTS)
        np.testing.assert_allclose(getattr(found, name)(POINTS), expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.factor @ found.factor.T, dense.factor @ dense.factor.T)


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_it_is_the_conditional_of_the_joint_normal(approximation, asked, rng):
    """From the joint covariance of answers and function values, written out."""
    prior = prior_of(approximation=approximation)
    sums, answers, (measured,) = asked(prior, rule_of(rng))
    X, R = measured.strategy.X, measured.strategy.matrix
    features, noise = prior.features_and_noise(X)
    joint = R @ (features.T @ features + np.diag(noise)) @ R.T + answers.noise_sd**2 * np.eye(4)
    crossed = prior.features(POINTS).T @ features @ R.T
    centred = answers.values[:, 0] - R @ np.full(len(X), prior.mean - measured.question.middle)
    solved = np.linalg.inv(joint)
    found = summed(prior, sums, answers)
    np.testing.assert_allclose(
        found.mean(POINTS), prior.mean + crossed @ solved @ centred, rtol=1e-8
    )
    np.testing.assert_allclose(
        found.covariance(POINTS),
        prior.query_covariance(POINTS) - crossed @ solved @ crossed.T,
        rtol=1e-7,
        atol=1e-9,
    )


def test_rows_under_another_prior_than_the_one_that_asked(asked, rng):
    """What was asked stays; what it says of the function depends on who looks."""
    asking, looking = prior_of(), prior_of(KERNELS[1], mean=-1.0, noise=0.9)
    rule = rule_of(rng)
    _, answers, measurements = asked(asking, rule)
    X = measurements[0].strategy.X
    features, noise = looking.features_and_noise(X)
    R = measurements[0].strategy.matrix
    sums = sum_strategy(ArrayRows(X, np.zeros(len(X)), jobs=1), model=asking, rule=rule)
    seen = type(sums)(
        features=R @ features.T,
        noise=(R * noise) @ R.T,
        totals=sums.totals,
        count=sums.count,
        chunk_rows=sums.chunk_rows,
        longest=sums.longest,
    )
    found = summed(looking, seen, answers)
    dense = posterior_of(looking, measurements)
    np.testing.assert_allclose(found.mean(POINTS), dense.mean(POINTS), rtol=1e-9)
    np.testing.assert_allclose(found.covariance(POINTS), dense.covariance(POINTS), atol=1e-10)


@pytest.mark.parametrize("answers", [0, 4])
def test_without_answers_it_is_the_prior(answers):
    prior = prior_of()
    nothing = Answers(
        values=np.zeros((answers, 1)),
        noise_sd=0.0,
        guarantee=Guarantee(epsilon=1.0, delta=1e-3, mu=0.0),
    )
    X = np.zeros((3, 2))
    rule = LinearRule(matrix=np.zeros((answers, 5)))
    sums = sum_strategy(ArrayRows(X, np.zeros(3), jobs=1), model=prior, rule=rule)
    found = summed(prior, sums, nothing)
    np.testing.assert_array_equal(found.mean(POINTS), np.full(4, prior.mean))
    np.testing.assert_array_equal(found.variance(POINTS), prior.query_variance(POINTS))
    np.testing.assert_array_equal(found.covariance(POINTS), prior.query_covariance(POINTS))


def test_variances_are_the_diagonal_and_not_negative(asked, rng):
    prior = prior_of(noise=1e-6)
    sums, answers, _ = asked(prior, rule_of(rng, ball=False), noise_sd=1e-3)
    found = summed(prior, sums, answers)
    points = rng.uniform(0, 4, size=(40, 2))
    variance = found.variance(points)
    assert (variance >= 0).all()
    np.testing.assert_allclose(variance, np.diag(found.covariance(points)), atol=1e-9)
    assert (variance <= prior.query_variance(points) + 1e-12).all()


def test_how_rows_are_cut_does_not_matter(asked, rng):
    prior, rule = prior_of(), rule_of(rng)
    sums, answers, measurements = asked(prior, rule, chunk_rows=30)
    rows = ArrayRows(measurements[0].strategy.X, np.zeros(30), chunk_rows=4, jobs=1)
    one, other = (
        summed(prior, each, answers).mean(POINTS)
        for each in (sums, sum_strategy(rows, model=prior, rule=rule))
    )
    np.testing.assert_allclose(one, other, rtol=1e-9)
