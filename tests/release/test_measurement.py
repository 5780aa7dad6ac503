"""Raw published predictions and the recomputed price of one measurement."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from cloakgp import DPGPRegressor
from cloakgp.models import ExactPrior


@pytest.fixture
def table(rng):
    X = rng.uniform(0, 10, size=(30, 1))
    return X, np.sin(X).ravel() + 0.5


@pytest.mark.parametrize("mean", [0.0, 1.7])
def test_published_values_are_the_gp_predictions_plus_shaped_noise(mean, table, make_release):
    X, y = table
    X_query = np.linspace(0, 10, 12)[:, None]
    prior = ExactPrior(kernel=RBF(2.0), noise_variance=0.1, mean=mean)
    release = make_release(prior, X, y, X_query=X_query, noise_sd=0.3, bounds=(-1.0, 3.0), seed=11)
    (measurement,) = release.measurements
    published = release.published()
    C = prior.cloaking_matrix(X_query, X)
    noise = 0.3 * np.random.default_rng(11).normal(size=measurement.strategy.n_answers)
    expected = mean + C @ (y - mean) + measurement.strategy.reconstruction @ noise
    np.testing.assert_allclose(published.values, expected, atol=1e-6)
    np.testing.assert_array_equal(published.X, X_query)
    np.testing.assert_allclose(
        published.noise_cov,
        0.09 * measurement.strategy.reconstruction @ measurement.strategy.reconstruction.T,
        rtol=1e-12,
        atol=1e-15,
    )


def test_published_noise_has_the_covariance_that_is_stated(table):
    """Over many seeded fits: mean and covariance of what is published, by z-tests."""
    X, y = table
    X_query = np.array([[1.0], [5.0], [9.0]])
    draws = [
        DPGPRegressor(
            criterion="trace",
            learn=None,
            bounds=(-1, 3),
            epsilon=1.0,
            delta=1e-2,
            insecure_seed=seed,
        )
        .fit(X, y, X_query)
        .release_.published()
        for seed in range(200)
    ]
    values = np.array([draw.values for draw in draws])
    prior = (
        DPGPRegressor(criterion="trace", learn=None, bounds=(-1, 3), epsilon=1.0, delta=1e-2)
        .fit(X, y)
        .release_.prior
    )
    expected = prior.mean + prior.cloaking_matrix(X_query, X) @ (y - prior.mean)
    covariance = draws[0].noise_cov
    deviation = (values.mean(axis=0) - expected) / np.sqrt(np.diag(covariance) / 200)
    assert np.abs(deviation).max() < 4
    root = np.linalg.cholesky(covariance)
    whitened = np.linalg.solve(root, (values - expected).T)
    np.testing.assert_allclose(whitened @ whitened.T / 200, np.eye(3), atol=5 / np.sqrt(200))


def test_residuals_are_answers_about_the_mean(table, make_release):
    X, y = table
    prior = ExactPrior(kernel=RBF(2.0), noise_variance=0.1, mean=0.0)
    R = np.random.default_rng(0).normal(size=(4, 30))
    (one,) = make_release(prior, X, y, strategy=R, bounds=(-1.0, 5.0)).measurements
    exact = replace(one, answers=replace(one.answers, values=(R @ (y - 2.0))[:, None]))
    np.testing.assert_allclose(exact.residuals(0.7)[:, 0], R @ (y - 0.7), atol=1e-12)


def test_attained_mu_is_recomputed_from_questions_and_noise(table, make_release):
    X, y = table
    prior = ExactPrior(kernel=RBF(2.0), noise_variance=0.1, mean=0.0)
    R = np.zeros((2, 30))
    R[:, 3] = [3.0, 4.0]
    R[0, 5] = -2.0
    (one,) = make_release(prior, X, y, strategy=R, noise_sd=2.0, bounds=(0.0, 6.0)).measurements
    assert one.sensitivity_over_noise == pytest.approx(6.0 * 5.0 / 2.0)
    (nothing,) = make_release(prior, X, y, strategy=np.zeros((0, 30))).measurements
    assert nothing.sensitivity_over_noise == 0.0


def test_a_secure_release_attains_its_guarantee(table):
    X, y = table
    release = (
        DPGPRegressor(criterion="trace", learn=None, bounds=(-1, 3), epsilon=1.0, delta=1e-2)
        .fit(X, y)
        .release_
    )
    (measurement,) = release.measurements
    assert measurement.sensitivity_over_noise <= release.guarantee.mu
    assert measurement.sensitivity_over_noise == pytest.approx(release.guarantee.mu, rel=1e-6)
