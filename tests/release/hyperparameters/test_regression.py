"""Hyperparameters from answers: gradients, what stays as it was, and what it costs (nothing)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conditioning import learn_numbers, learning_answers
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg, optimize, stats
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from cloakgp import DPGPRegressor
from cloakgp.models import APPROXIMATIONS, ExactPrior, SparsePrior
from cloakgp.privacy import OutputBounds, ask
from cloakgp.release import Hyperprior
from cloakgp.release.hyperparameters.hyperprior import LOG_SD
from cloakgp.release.hyperparameters.quadrature import EVIDENCE, posterior_maximum, posterior_points
from cloakgp.release.hyperparameters.regression import MEAN_SD_SHARE, NumbersObjective

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

ANSWERED = {
    "epsilon": 2.0,
    "delta": 1e-3,
    "noise": "gaussian",
    "stages": None,
    "learn": None,
    "insecure_seed": 0,
}
KERNELS = [
    RBF(1.3),
    ConstantKernel(2.0) * Matern(0.9, nu=1.5) + WhiteKernel(0.3),
    ConstantKernel(2.0, "fixed") * RationalQuadratic(1.2, 0.7) + DotProduct(0.5),
    ExpSineSquared(1.4, 2.2) * Matern(4.0, nu=2.5),
]


def objective_of(prior, measurements, *, hyperprior, degrees=np.inf):
    return NumbersObjective.of(
        prior,
        learning_answers(prior, measurements),
        bounds=(measurements[0].question.lo, measurements[0].question.hi),
        hyperprior=hyperprior,
        degrees=degrees,
    )


def prior_of(kernel, approximation=None, *, noise=0.3, mean=0.4):
    if approximation is None:
        return ExactPrior(kernel=kernel, noise_variance=noise, mean=mean)
    return SparsePrior(
        kernel=kernel,
        noise_variance=noise,
        mean=mean,
        inducing=np.linspace(0, 3, 4)[:, None],
        approximation=approximation,
    )


@pytest.fixture
def tables(make_release, rng):
    """Build measurements of two tables, the first asked twice."""

    def build(prior, *, noise_sds=(0.3, 1.1, 0.7)):
        X, Z = rng.uniform(0, 3, size=(9, 1)), rng.uniform(0, 3, size=(6, 1))
        Z[2] = Z[5]
        parts = [
            make_release(
                prior,
                rows,
                rng.normal(size=len(rows)),
                strategy=rng.normal(size=(count, len(rows))),
                noise_sd=sd,
                seed=seed,
                bounds=(-2.0, 5.0),
            )
            for seed, (rows, count, sd) in enumerate(
                zip((X, Z, X), (3, 2, 2), noise_sds, strict=True)
            )
        ]
        return parts[0].combine(*parts[1:]).measurements

    return build


def log_posterior(prior, declared, measurements, position, *, degrees=np.inf):
    """Log density of the answers and of t or N(0, I) at ψ, by dense matrices and scipy."""
    rows = {measurement.strategy.table: measurement.strategy.X for measurement in measurements}
    X = np.vstack([rows[0], rows[1]])
    columns = {0: slice(0, len(rows[0])), 1: slice(len(rows[0]), len(X))}
    questions = np.zeros(
        (sum(measurement.strategy.n_answers for measurement in measurements), len(X))
    )
    answers, variances, row = [], [], 0
    for one in measurements:
        k = one.strategy.n_answers
        questions[row : row + k, columns[one.strategy.table]] = one.strategy.matrix
        answers.append(one.residuals()[:, 0])
        variances += [one.answers.noise_sd**2] * k
        row += k
    noise = np.concatenate([prior.row_noise(rows[0]), prior.row_noise(rows[1])])
    K_y = prior.row_covariance(X, X.copy()) + np.diag(noise)
    assert declared.mean == 0.4
    return stats.multivariate_normal(
        questions @ np.full(len(X), prior.mean),
        questions @ K_y @ questions.T + np.diag(variances),
    ).logpdf(np.concatenate(answers)) + float(stats.t(degrees).logpdf(position).sum())


@pytest.mark.parametrize("approximation", [None, *APPROXIMATIONS])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("free", [(True, True), (False, True), (True, False), (False, False)])
def test_value_and_gradient_of_the_objective(kernel, approximation, free, tables, rng):
    prior = prior_of(kernel, approximation)
    measurements = tables(prior)
    objective = objective_of(prior, measurements, hyperprior=Hyperprior(*free))
    assert objective.size == len(kernel.theta) + sum(free)
    one, other = rng.normal(size=(2, objective.size))
    expected = [
        log_posterior(objective.prior_at(at), prior, measurements, at) for at in (one, other)
    ]
    # Up to a constant.
    assert objective(other)[0] - objective(one)[0] == pytest.approx(
        expected[0] - expected[1], rel=1e-4, abs=1e-4
    )
    gradient = objective(one)[1]
    step = 1e-5
    differences = [
        (objective(one + step * axis)[0] - objective(one - step * axis)[0]) / (2 * step)
        for axis in np.eye(objective.size)
    ]
    np.testing.assert_allclose(gradient, differences, atol=1e-5 * max(1, np.abs(gradient).max()))


def test_the_objective_with_heavy_tails(tables, rng):
    prior = prior_of(KERNELS[1])
    measurements = tables(prior)
    objective = objective_of(prior, measurements, hyperprior=Hyperprior(), degrees=3.0)
    one, other = 3.0 * rng.normal(size=(2, objective.size))
    expected = [
        log_posterior(objective.prior_at(at), prior, measurements, at, degrees=3.0)
        for at in (one, other)
    ]
    assert objective(other)[0] - objective(one)[0] == pytest.approx(expected[0] - expected[1])
    assert optimize.check_grad(lambda x: objective(x)[0], lambda x: objective(x)[1], one) < 1e-4


@given(seed=st.integers(0, 2**32 - 1))
def test_positions_are_logarithms_in_units_of_their_weak_prior(seed):
    rng = np.random.default_rng(seed)
    prior = prior_of(ConstantKernel(2.0) * RBF(1.3))
    release = DPGPRegressor(bounds=(-2, 5), epsilon=1.0, delta=1e-3, insecure_seed=0, learn=None)
    X = np.linspace(0, 3, 6)[:, None]
    measurements = release.fit(X, np.zeros(6)).release_.measurements
    objective = objective_of(prior, measurements, hyperprior=Hyperprior())
    position = rng.normal(size=4)
    moved = objective.prior_at(position)
    np.testing.assert_allclose(moved.kernel.theta, prior.kernel.theta + LOG_SD * position[:2])
    assert moved.noise_variance == pytest.approx(0.3 * np.exp(LOG_SD * position[2]))
    assert moved.mean == pytest.approx(0.4 + MEAN_SD_SHARE * 7.0 * position[3])
    np.testing.assert_allclose(objective.position_of(moved), position, atol=1e-12)


@pytest.mark.parametrize("approximation", [None, *APPROXIMATIONS])
def test_the_maximum_is_one(approximation, tables, rng):
    prior = prior_of(ConstantKernel(2.0) * RBF(1.3), approximation)
    objective = objective_of(prior, tables(prior), hyperprior=Hyperprior())
    best = posterior_maximum(objective, size=4)
    value, gradient = objective(best)
    assert np.abs(gradient).max() < 1e-2
    assert value <= min(objective(np.full(4, start))[0] for start in (0.0, 1.0, -1.0))
    assert all(objective(rng.normal(size=4))[0] >= value for _ in range(200))


@pytest.mark.parametrize("gain", [0.9, 1.1])
def test_less_than_a_nat_of_evidence_changes_nothing(gain):
    """A parabola whose top, at (2, 0), is a given number of nats above the origin."""

    def objective(position):
        away = position - np.array([2.0, 0.0])
        return gain / 4.0 * float(away @ away), gain / 2.0 * away

    [(found, weight)] = posterior_points(objective, size=2, average=False)
    assert weight == 1.0
    np.testing.assert_allclose(found, [2.0 if gain >= EVIDENCE else 0.0, 0.0], atol=1e-4)


# --- what stays ---


def same_prior(one, other):
    np.testing.assert_array_equal(one.kernel.theta, other.kernel.theta)
    assert (one.noise_variance, one.mean) == (other.noise_variance, other.mean)
    assert one.kernel == other.kernel


def test_nothing_free_leaves_the_declared_prior(tables):
    prior = prior_of(ConstantKernel(2.0, "fixed") * RBF(1.3, "fixed"))
    for average in (False, True):
        (only,) = learn_numbers(
            prior, tables(prior), hyperprior=Hyperprior(False, False), average=average
        )
        assert only.prior is prior
        assert only.weight == 1.0


def test_nothing_asked_leaves_the_declared_prior(make_release):
    prior = prior_of(RBF(1.3))
    nothing = make_release(prior, np.zeros((3, 1)), np.zeros(3), strategy=np.zeros((0, 3)))
    (only,) = learn_numbers(prior, nothing.measurements, hyperprior=Hyperprior())
    assert only.prior is prior
    assert nothing.learn().predict([[1.0]]) == pytest.approx(0.4)


@pytest.mark.usefixtures("any_evidence")
def test_what_is_fixed_or_given_stays(tables):
    prior = prior_of(ConstantKernel(2.0, "fixed") * RBF(1.3) + WhiteKernel(0.1, "fixed"))
    measurements = tables(prior)
    for noise_variance in (False, True):
        for mean in (False, True):
            (only,) = learn_numbers(
                prior, measurements, hyperprior=Hyperprior(noise_variance, mean)
            )
            learned = only.prior
            assert learned.kernel.k1.k1.constant_value == 2.0
            assert learned.kernel.k2.noise_level == 0.1
            assert learned.kernel.k1.k2.length_scale != 1.3
            assert (learned.noise_variance != 0.3) == noise_variance
            assert (learned.mean != 0.4) == mean
    assert (prior.noise_variance, prior.mean) == (0.3, 0.4)
    assert prior.kernel.k1.k2.length_scale == 1.3


def test_no_noise_stays_none(tables):
    prior = prior_of(RBF(1.3) + WhiteKernel(0.3), noise=0.0)
    (only,) = learn_numbers(prior, tables(prior), hyperprior=Hyperprior())
    assert only.prior.noise_variance == 0.0


@pytest.mark.parametrize("approximation", [None, *APPROXIMATIONS])
def test_answers_that_say_nothing_teach_nothing(approximation, tables):
    prior = prior_of(ConstantKernel(2.0) * RBF(1.3), approximation)
    (only,) = learn_numbers(prior, tables(prior, noise_sds=(1e6,) * 3), hyperprior=Hyperprior())
    np.testing.assert_allclose(only.prior.kernel.theta, prior.kernel.theta, atol=1e-4)
    assert only.prior.noise_variance == pytest.approx(0.3, rel=1e-4)
    assert only.prior.mean == pytest.approx(0.4, abs=1e-4)
    if approximation:
        np.testing.assert_array_equal(only.prior.inducing, prior.inducing)
        assert only.prior.approximation == approximation


# --- what is learned ---


def test_many_accurate_answers_teach_the_truth(make_release, rng):
    truth = ExactPrior(kernel=ConstantKernel(4.0) * RBF(0.7), noise_variance=0.25, mean=1.5)
    declared = ExactPrior(kernel=ConstantKernel(1.5) * RBF(1.4), noise_variance=0.7, mean=0.0)
    X = np.linspace(0, 30, 300)[:, None]
    covariance = truth.row_covariance(X, X.copy()) + 0.25 * np.eye(300)
    y = 1.5 + np.linalg.cholesky(covariance) @ rng.normal(size=300)
    release = make_release(declared, X, y, strategy=np.eye(300), noise_sd=0.05, bounds=(-10, 10))
    learned = release.learn().fitted_prior
    signal, scale = np.exp(learned.kernel.theta)
    assert signal == pytest.approx(4.0, rel=0.5)
    assert scale == pytest.approx(0.7, rel=0.15)
    assert learned.noise_variance == pytest.approx(0.25, rel=0.25)
    assert learned.mean == pytest.approx(1.5, abs=0.6)
    declared_error, error = (
        np.square(one.predict(X) - y).mean() for one in (release, release.learn())
    )
    assert error < declared_error


def test_more_budget_brings_learning_nearer(rng):
    X = np.linspace(0, 20, 200)[:, None]
    kernel = ConstantKernel(4.0) * RBF(1.0)
    y = np.linalg.cholesky(kernel(X) + 0.2 * np.eye(200)) @ rng.normal(size=200)
    distances = []
    for epsilon in (0.05, 200.0):
        fitted = DPGPRegressor(
            ConstantKernel(4.0, "fixed") * RBF(3.0),
            0.2,
            mean=0.0,
            bounds=(-8, 8),
            epsilon=epsilon,
            delta=1e-3,
            stages=None,
            insecure_seed=5,
        ).fit(X, y)
        distances.append(abs(fitted.release_.fitted_prior.kernel.theta[0]))
    assert distances[1] < 0.6 < 0.9 < distances[0]


def test_many_rows_learn_nearly_what_all_of_them_would(make_release, rng, monkeypatch):
    X = rng.uniform(0, 20, size=(800, 1))
    kernel = ConstantKernel(4.0) * Matern(1.0, nu=1.5)
    y = np.linalg.cholesky(kernel(X) + 0.2 * np.eye(800)) @ rng.normal(size=800)
    prior = ExactPrior(kernel=ConstantKernel(2.0) * Matern(2.0, nu=1.5), noise_variance=0.4, mean=0)
    strategy = np.cos(np.outer(np.arange(1, 12), X) / 3) / 4
    release = make_release(prior, X, y, strategy=strategy, noise_sd=0.5)
    binned = release.learn().fitted_prior
    monkeypatch.setattr("cloakgp.release.hyperparameters.covariance.LEARNING_POINTS", 10_000)
    exact = release.learn().fitted_prior
    np.testing.assert_allclose(binned.kernel.theta, exact.kernel.theta, atol=0.02)
    assert binned.noise_variance == pytest.approx(exact.noise_variance, rel=0.02)
    assert not np.allclose(binned.kernel.theta, prior.kernel.theta, atol=0.1)


# --- averaging ---


@pytest.mark.usefixtures("any_evidence")
@pytest.mark.parametrize("approximation", [None, "fitc"])
def test_averaging_gives_a_few_priors_whose_weights_sum_to_one(approximation, tables):
    prior = prior_of(ConstantKernel(2.0) * RBF(1.3), approximation)
    measurements = tables(prior)
    priors = learn_numbers(prior, measurements, hyperprior=Hyperprior(), average=True)
    assert len(priors) == 9
    assert sum(prior.weight for prior in priors) == pytest.approx(1.0, abs=1e-12)
    assert all(prior.weight >= 0 for prior in priors)
    (best,) = learn_numbers(prior, measurements, hyperprior=Hyperprior())
    same_prior(priors[0].prior, best.prior)


def average_moments(prior, measurements):
    """Mean and covariance of ψ under the averaging weights."""
    priors = learn_numbers(prior, measurements, hyperprior=Hyperprior(), average=True)
    weights = np.array([prior.weight for prior in priors])
    positions = np.array(
        [
            [
                *((one.prior.kernel.theta - prior.kernel.theta) / LOG_SD),
                np.log(one.prior.noise_variance / prior.noise_variance) / LOG_SD,
                (one.prior.mean - prior.mean) / (MEAN_SD_SHARE * 7.0),
            ]
            for one in priors
        ]
    )
    mean = weights @ positions
    return mean, (positions - mean).T @ (weights[:, None] * (positions - mean))


def test_without_information_averaging_is_over_the_weak_prior(tables):
    prior = prior_of(ConstantKernel(2.0) * RBF(1.3))
    mean, covariance = average_moments(prior, tables(prior, noise_sds=(1e6,) * 3))
    np.testing.assert_allclose(mean, 0.0, atol=1e-3)
    np.testing.assert_allclose(covariance, np.eye(4), atol=1e-2)


def test_averaging_has_about_the_moments_of_the_posterior(tables, rng):
    """Against importance sampling of the true posterior."""
    prior = prior_of(ConstantKernel(2.0) * RBF(1.3))
    measurements = tables(prior)
    objective = objective_of(prior, measurements, hyperprior=Hyperprior())
    draws = rng.normal(size=(4000, 4))
    # From the weak prior, weighted by the likelihood.
    logs = np.array([draw @ draw / 2 - objective(draw)[0] for draw in draws])
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    expected = shares @ draws
    spread = np.sqrt(shares @ np.square(draws - expected))
    mean, covariance = average_moments(prior, measurements)
    np.testing.assert_allclose(mean, expected, atol=0.25)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), spread, rtol=0.25)


# --- privacy ---


def test_learning_costs_nothing_and_keeps_the_answers(rng):
    X = rng.uniform(0, 5, size=(40, 1))
    plain = DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-3, learn=None)
    release = plain.fit(X, np.sin(X[:, 0])).release_
    for average in (False, True):
        learned = release.learn(average=average)
        assert learned.guarantee == release.guarantee
        assert learned.measurements == release.measurements
        assert learned.prior is release.prior
        assert learned.learned
        assert not release.learned


@pytest.mark.parametrize("learn_by", ["map", "average"])
def test_only_answers_teach(learn_by, rng, monkeypatch):
    """Neighbours, and any other outputs, whose answers are equal give the same doubles."""
    X, y = rng.uniform(0, 5, size=(30, 1)), rng.uniform(-1, 1, size=30)
    frozen = {}

    def the_same_answers(strategy, outputs, **settings):
        answers = ask(strategy, outputs, **settings)
        return frozen.setdefault(strategy.tobytes(), answers)

    monkeypatch.setattr("cloakgp.fitting.held.ask", the_same_answers)
    neighbour = y.copy()
    neighbour[7] = -1.0
    stages = [(0.4, None), (0.6, 1.0)]
    settings = {"bounds": (-1, 1), "epsilon": 1.0, "delta": 1e-3, "stages": stages}
    one, other, third = (
        DPGPRegressor(**settings, learn=learn_by).fit(X, outputs).release_
        for outputs in (y, neighbour, np.ones(30))
    )
    assert len(frozen) == 2
    for release in (other, third):
        for first, second in zip(one.learned, release.learned, strict=True):
            assert first.weight == second.weight
            same_prior(first.prior, second.prior)
        np.testing.assert_array_equal(one.predict(X), release.predict(X))


@pytest.mark.usefixtures("any_evidence")
def test_combining_learns_again(make_release, rng):
    prior = prior_of(ConstantKernel(2.0) * RBF(1.3))
    X, Z = rng.uniform(0, 3, size=(12, 1)), rng.uniform(0, 3, size=(8, 1))
    one, two = (
        make_release(prior, rows, np.sin(3 * rows[:, 0]), noise_sd=0.3, seed=len(rows))
        for rows in (X, Z)
    )
    for average in (False, True):
        learned = one.learn(Hyperprior(mean=False), average=average)
        both = learned.combine(two)
        expected = learn_numbers(
            prior, both.measurements, hyperprior=Hyperprior(mean=False), average=average
        )
        assert len(both.learned) == len(expected)
        for first, second in zip(both.learned, expected, strict=True):
            same_prior(first.prior, second.prior)
            assert first.weight == second.weight
        assert not np.array_equal(both.fitted_prior.kernel.theta, learned.fitted_prior.kernel.theta)
        assert both.hyperprior == Hyperprior(mean=False)
        assert both.average is average
    assert not one.combine(two).learned


def test_learning_does_not_depend_on_the_order_of_measurements(tables):
    prior = prior_of(ConstantKernel(2.0) * RBF(1.3))
    measurements = tables(prior)
    one, other = (
        learn_numbers(prior, parts, hyperprior=Hyperprior())[0].prior
        for parts in (measurements, measurements[::-1])
    )
    np.testing.assert_allclose(one.kernel.theta, other.kernel.theta, atol=1e-3)
    assert one.mean == pytest.approx(other.mean, abs=1e-3)


def test_answers_about_other_units_teach_the_same(tables):
    """All in thousandths: the same learned numbers, in other units."""
    prior = prior_of(ConstantKernel(2.0) * RBF(1.3))
    measurements = tables(prior)
    scaled = [
        replace(
            measurement,
            answers=replace(
                measurement.answers,
                values=1e3 * measurement.answers.values,
                noise_sd=1e3 * measurement.answers.noise_sd,
            ),
            question=OutputBounds(1e3 * measurement.question.lo, 1e3 * measurement.question.hi),
        )
        for measurement in measurements
    ]
    other = ExactPrior(kernel=ConstantKernel(2e6) * RBF(1.3), noise_variance=0.3e6, mean=400.0)
    (first,), (second,) = (
        learn_numbers(p, m, hyperprior=Hyperprior())
        for p, m in ((prior, measurements), (other, scaled))
    )
    np.testing.assert_allclose(
        second.prior.kernel.theta - [np.log(1e6), 0], first.prior.kernel.theta, atol=1e-3
    )
    assert second.prior.mean == pytest.approx(1e3 * first.prior.mean, rel=1e-3)


# --- kernels at the edge ---


@pytest.mark.parametrize(
    "kernel",
    [
        DotProduct(0.0) + RBF(1.0),
        RBF(1.0) + WhiteKernel(0.0),
    ],
)
def test_hyperparameters_of_zero_stay_zero(kernel, tables):
    prior = prior_of(kernel)
    (only,) = learn_numbers(prior, tables(prior), hyperprior=Hyperprior())
    assert np.isfinite(only.prior.noise_variance)


def test_learning_survives_kernels_that_are_none_elsewhere():
    """A periodic kernel of two inputs: on these rows a covariance for short lengthscales only."""
    X = np.random.default_rng(1).uniform(0, 2, size=(25, 2))
    model = DPGPRegressor(
        ExpSineSquared(0.1, 2.0), 1e-3, bounds=(-1, 1), epsilon=10.0, delta=1e-3, insecure_seed=0
    )
    release = model.set_params(learn=None).fit(X, np.tanh(X[:, 0] - 1)).release_
    for average in (False, True):
        learned = release.learn(average=average)
        assert learned.learned
        assert np.isfinite(learned.predict(X, return_std=True)).all()


# Where the covariance is known exactly at one place.


def test_an_objective_agrees_with_the_truth_where_it_is_known(rng):
    """Up to a constant it is the density of answers under M S Mᵀ, with M = L₀ L⁻¹ at ψ₀."""
    objective = a_search(rng)
    place, other = rng.normal(size=(2, objective.size))
    here, there = (objective._covariance(objective.prior_at(one))[0] for one in (place, other))
    mixing = rng.normal(size=here.shape)
    exact = linalg.cholesky(here + 0.1 * mixing @ mixing.T, lower=True)
    residuals = objective.answers.values - objective.prior_at(place).mean * objective.answers.sums
    white = linalg.solve_triangular(exact, residuals, lower=True)
    agreeing = objective.agreeing(place, white)

    moves = exact @ linalg.inv(linalg.cholesky(here, lower=True))
    truth = [
        -stats.multivariate_normal(cov=moves @ one @ moves.T).logpdf(residuals)
        + objective.weak_prior(at)
        for one, at in ((here, place), (there, other))
    ]
    assert moves @ here @ moves.T == pytest.approx(exact @ exact.T)
    found = [agreeing(at)[0] for at in (place, other)]
    assert found[1] - found[0] == pytest.approx(truth[1] - truth[0])


def test_an_objective_that_is_exact_agrees_with_itself(rng):
    objective = a_search(rng)
    place, other = rng.normal(size=(2, objective.size))
    factor = linalg.cholesky(objective._covariance(objective.prior_at(place))[0], lower=True)
    residuals = objective.answers.values - objective.prior_at(place).mean * objective.answers.sums
    agreeing = objective.agreeing(place, linalg.solve_triangular(factor, residuals, lower=True))
    for ours, theirs in zip(agreeing(other), objective(other), strict=True):
        np.testing.assert_allclose(ours, theirs)


def a_search(rng):
    """The objective of a kernel's hyperparameters; the mean stays."""
    X, outputs = rng.uniform(0, 3, size=(9, 1)), rng.uniform(-1, 1, size=9)
    model = DPGPRegressor(
        bounds=(-1, 1), kernel=KERNELS[0], noise_variance=0.3, mean=0.4, **ANSWERED
    )
    release = model.fit(X, outputs).release_
    prior = ExactPrior(kernel=KERNELS[0], noise_variance=0.3, mean=0.4)
    return objective_of(
        prior,
        release.measurements,
        hyperprior=Hyperprior(noise_variance=True, mean=False),
        degrees=4.0,
    )
