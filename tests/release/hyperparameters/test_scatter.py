"""Noise that varies with the inputs, learned: closed forms, simulated tables, whole releases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conditioning import weighted
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from stages import stage

from cloakgp import DPGPRegressor, Release, refine
from cloakgp.models import ExactPrior
from cloakgp.privacy.questions.scatter import ScatterQuestion
from cloakgp.privacy.questions.spread import SpreadQuestion
from cloakgp.release import Hyperprior
from cloakgp.release.hyperparameters.noise import LOG_NOISE_SD, AnswersByNoise, noise_positions
from cloakgp.release.hyperparameters.scatter import (
    LOG_SCATTER_SD,
    Bumps,
    most_probable,
    with_learned_scatter,
    with_noise_in_strata,
)
from cloakgp.release.posterior.clipped import clipped_posterior

ROWS = 400
X = np.linspace(0, 8, ROWS)[:, None]
PRIOR = ExactPrior(kernel=ConstantKernel(0.5) * RBF(2.0), noise_variance=0.25, mean=0.0)
CENTRES = np.array([[1.0], [3.0], [5.0], [7.0]])
STRATA = np.eye(4)[np.minimum((X[:, 0] / 2).astype(int), 3)].T


def asked(noise_sds, *, seed=0, noise_sd=1.0):
    """A first stage about sums, and answers of four strata, under the declared prior."""
    rng = np.random.default_rng(seed)
    y = np.sin(X[:, 0]) / 2 + noise_sds * rng.normal(size=ROWS)
    first = stage(X, np.kron(np.eye(8), np.ones((1, 50))), y, noise_sd=1.0, seed=seed)
    mean, variance = clipped_posterior(PRIOR, [first]).outputs(X, table=0)
    question = ScatterQuestion(mean=mean, sd=np.sqrt(variance), centres=CENTRES, units=np.ones(1))
    return first, stage(X, STRATA, y, question=question, noise_sd=noise_sd, seed=seed + 1)


def learned_log_sd(measurements, prior=PRIOR):
    [found] = with_learned_scatter([weighted(prior)], measurements)
    return np.log(found.prior.observation_noise(CENTRES)) / 2


def test_with_moments_that_are_lines_it_solves_least_squares():
    """Oracle: the normal equations of a Gaussian model in closed form."""
    rng = np.random.default_rng(4)
    tried, factor = noise_positions(), np.linalg.cholesky(0.3 * np.eye(3) + 0.7)
    slope, offset, variance = np.array([2.0, 3.0, 1.5]), rng.normal(size=3), 0.8
    values = rng.normal(size=3)
    known = AnswersByNoise.at_all(
        0.7 * tried,
        positions=tried,
        values=values,
        expected=offset + tried[:, None] * slope,
        variance=np.full((len(tried), 3), variance),
    )
    position, standard, covariance = most_probable(known, factor=factor)
    moved = LOG_SCATTER_SD / LOG_NOISE_SD * factor
    design = slope[:, None] * np.column_stack([np.ones(3), moved])
    normal = np.eye(4) + design.T @ design / variance
    side = design.T @ (values - offset) / variance
    side[0] += 0.7
    np.testing.assert_allclose([position, *standard], np.linalg.solve(normal, side), atol=1e-4)
    np.testing.assert_allclose(covariance, np.linalg.inv(normal), rtol=1e-6)


def test_nothing_near_what_is_most_probable_is_more_probable():
    """Oracle: the density written anew, where means and variances of answers are curved."""
    rng = np.random.default_rng(6)
    tried, factor = noise_positions(), np.linalg.cholesky(0.4 * np.eye(4) + 0.6)
    known = AnswersByNoise.at_all(
        -0.3 * np.square(tried - 0.4),
        positions=tried,
        values=np.tanh(0.5 - 0.3 * np.arange(4)) + 0.2 * rng.normal(size=4),
        expected=np.tanh(tried[:, None] - 0.3 * np.arange(4)),
        variance=0.1 + 0.05 * np.square(tried)[:, None] * np.arange(1, 5),
    )
    evidence, means, logs = known.interpolators()

    def log_density(position, standard):
        total = evidence(position) - 0.5 * position**2 - 0.5 * standard @ standard
        for number, value in enumerate(known.values):
            place = position + LOG_SCATTER_SD / LOG_NOISE_SD * factor[number] @ standard
            variance = np.exp(logs(place)[number])
            total -= 0.5 * (value - means(place)[number]) ** 2 / variance
            total -= 0.5 * np.log(variance)
        return float(total)

    position, standard, _ = most_probable(known, factor=factor)
    found = np.array([position, *standard])
    best = log_density(position, standard)
    for step in 1e-3 * np.vstack([np.eye(5), -np.eye(5)]):
        moved = found + step
        assert log_density(moved[0], moved[1:]) < best


def test_variances_are_means_of_lognormal_ones():
    """Oracle: draws of a Gaussian model's posterior, with moments that are lines."""
    tried, rng = noise_positions(), np.random.default_rng(5)
    bumps = Bumps.around([(CENTRES, np.ones(1))])
    known = AnswersByNoise.at_all(
        0.0 * tried,
        positions=tried,
        values=np.array([0.5, -0.4, 0.2, 0.9]),
        expected=np.repeat(2.0 * tried[:, None], 4, axis=1),
        variance=np.full((len(tried), 4), 0.8),
    )
    position, standard, covariance = most_probable(known, factor=bumps.factor)
    draws = rng.multivariate_normal([position, *standard], covariance, size=100_000)
    log_sds = np.log(0.5) + LOG_NOISE_SD * draws[:, :1]
    log_sds = log_sds + LOG_SCATTER_SD * draws[:, 1:] @ bumps.factor.T
    [found] = with_noise_in_strata([weighted(PRIOR)], known, bumps=bumps)
    np.testing.assert_allclose(
        found.prior.observation_noise(CENTRES), np.exp(2.0 * log_sds).mean(axis=0), rtol=0.03
    )
    level = np.exp(2.0 * (np.log(0.5) + LOG_NOISE_SD * draws[:, 0])).mean()
    assert found.prior.noise_variance == pytest.approx(level, rel=0.03)


def test_noise_that_grows_is_found_where_it_grows():
    truth = np.exp(np.linspace(-1.8, -0.4, ROWS))
    found = np.mean([learned_log_sd(asked(truth, seed=seed)) for seed in range(4)], axis=0)
    np.testing.assert_allclose(found, np.interp(CENTRES[:, 0], X[:, 0], np.log(truth)), atol=0.2)


def test_noise_that_is_the_same_everywhere_is_left_so():
    found = np.mean([learned_log_sd(asked(0.3, seed=seed)) for seed in range(4)], axis=0)
    np.testing.assert_allclose(found, np.log(0.3), atol=0.15)


def test_answers_that_are_all_noise_leave_what_was_expected_before():
    first, strata = asked(0.3)
    blurred = replace(strata, answers=replace(strata.answers, noise_sd=1e5))
    first = replace(first, answers=replace(first.answers, noise_sd=1e4))
    expected = np.log(0.5) + LOG_NOISE_SD**2 + LOG_SCATTER_SD**2
    np.testing.assert_allclose(learned_log_sd([first, blurred]), expected, atol=0.02)


def test_it_stays_within_reach():
    first, strata = asked(0.3)
    far = replace(strata, answers=replace(strata.answers, values=np.array([[1e4], [-1e4]] * 2)))
    assert np.isfinite(learned_log_sd([first, far])).all()


def test_strata_of_two_tables_are_one_function():
    """And an answer about all rows of a third alike tells what they have in common."""
    truth = np.exp(np.linspace(-1.8, -0.4, ROWS))
    measurements = []
    for table in range(3):
        first, strata = asked(truth, seed=10 * table)
        if table == 2:
            question = SpreadQuestion(mean=strata.question.mean, sd=strata.question.sd)
            y = np.sin(X[:, 0]) / 2 + truth * np.random.default_rng(9).normal(size=ROWS)
            strata = stage(X, np.ones((1, ROWS)), y, question=question, noise_sd=1.0)
        for one in (first, strata):
            strategy = replace(one.strategy, table=table)
            measurements.append(replace(one, strategy=strategy))
    found = learned_log_sd(measurements)
    np.testing.assert_allclose(found, np.interp(CENTRES[:, 0], X[:, 0], np.log(truth)), atol=0.25)


def test_bumps_have_the_covariance_of_their_centres():
    bumps = Bumps.around([(CENTRES, np.ones(1))])
    at_centres = [bumps.scatter(one).log_factor(CENTRES) for one in np.eye(4)]
    covariance = np.transpose(at_centres) @ at_centres
    expected = np.exp(-0.5 * np.square(CENTRES - CENTRES.T) / 3.0**2)
    np.testing.assert_allclose(covariance, LOG_SCATTER_SD**2 * expected, atol=1e-5)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(2)
    places = rng.uniform(0, 8, size=(250, 1))
    return places, np.sin(places[:, 0]) + 0.1 * np.exp(places[:, 0] / 5) * rng.normal(size=250)


@pytest.fixture(scope="module")
def release(table):
    model = DPGPRegressor(
        bounds=(-3, 3), epsilon=20.0, delta=1e-3, inducing=8, calibrate=False, insecure_seed=1
    )
    with pytest.warns(UserWarning, match="epsilon"):
        return model.fit(*table).release_


def test_a_release_knows_where_outputs_scatter(release):
    noise = np.sqrt(release.fitted_prior.observation_noise(np.array([[0.5], [7.5]])))
    assert noise[1] / noise[0] > 1.8
    mean, sd = release.predict(np.array([[0.5], [7.5]]), return_std=True, new_output=True)
    assert sd[1] > 1.6 * sd[0]
    assert np.isfinite(mean).all()


def test_files_keep_it(release, tmp_path):
    release.save(tmp_path / "a")
    read = Release.load(tmp_path / "a")
    for predicted, expected in zip(
        read.predict(X, return_std=True, new_output=True),
        release.predict(X, return_std=True, new_output=True),
        strict=True,
    ):
        np.testing.assert_array_equal(predicted, expected)


def test_learning_anew_finds_the_same_and_without_it_none_is_left(release):
    again = release.learn(Hyperprior()).fitted_prior
    np.testing.assert_allclose(
        again.observation_noise(X), release.fitted_prior.observation_noise(X), rtol=1e-9
    )
    assert np.ptp(release.without_learning().fitted_prior.observation_noise(X)) == 0.0


def test_later_bands_are_narrow_where_outputs_scatter_less(release, table):
    refined = refine(release, table[1], X[::50], epsilon=2.0, delta=1e-3, insecure_seed=9)
    bands, places = refined.measurements[-1].question, table[0][:, 0]
    assert bands.width[places > 6].mean() > 1.5 * bands.width[places < 2].mean()
    assert np.ptp(refined.fitted_prior.observation_noise(X)) > 0.0
