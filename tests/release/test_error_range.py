"""The range of the error for one person: against draws, and truths from the prior."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import DPGPRegressor
from cloakgp.models import default_kernel
from cloakgp.release.accuracy import LIKELY
from cloakgp.release.error_range import LOG_LAW_SD, error_range, known_noise
from cloakgp.release.hyperparameters.noise import LOG_NOISE_SD


@pytest.mark.parametrize("lengthscale", [0.01, 0.2, 10.0])
@pytest.mark.parametrize("log_noise_sd", [0.05, 0.4])
def test_the_law_is_that_of_draws(lengthscale, log_noise_sd, rng):
    """Of one direction, of a few and of many; of noise that is known well or not."""
    points = np.linspace(0, 1, 60)
    covariance = np.exp(-(((points[:, None] - points) / lengthscale) ** 2))
    known = {"noise_variance": 0.5, "log_noise_sd": log_noise_sd}
    low, high = error_range(covariance, probability=0.8, **known)
    values, vectors = np.linalg.eigh(covariance)
    curves = rng.normal(size=(20_000, 60)) @ (vectors * np.sqrt(np.maximum(values, 0))).T
    log_sds = 0.5 * np.log(0.5) - log_noise_sd**2 + log_noise_sd * rng.normal(size=20_000)
    noise = np.exp(2 * log_sds)
    assert noise.mean() == pytest.approx(0.5, rel=0.03)
    errors = np.sqrt(np.mean(curves**2, axis=1) + noise)
    np.testing.assert_allclose((low, high), np.quantile(errors, (0.1, 0.9)), rtol=0.06)


def test_without_a_curve_it_is_that_of_the_noise():
    known = {"noise_variance": 4.0 * np.exp(2 * 0.3**2), "log_noise_sd": 0.3}
    low, high = error_range(np.zeros((3, 3)), probability=0.8, **known)
    np.testing.assert_allclose(
        (low, high), 2.0 * np.exp(0.3 * 1.2816 * np.array([-1, 1])), rtol=0.01
    )


def released(*, rows, epsilon, seed, noise=None):
    """Outputs of a curve that is drawn from the prior; bounds are three times as wide as it is."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(rows + 300, 2))
    kernel = default_kernel(X, width=1.0)
    root = np.linalg.cholesky(kernel(X) + 1e-9 * np.eye(len(X)))
    y = root @ rng.normal(size=len(X))
    y += 0.3 * rng.normal(size=len(X)) if noise is None else noise
    model = DPGPRegressor(
        bounds=(-1.5, 1.5),
        epsilon=epsilon,
        kernel=kernel,
        gap=0.1,
        interval=False,
        insecure_seed=seed,
    )
    return model.fit(X[:rows], y[:rows]).release_, X[rows:], y[rows:]


def test_more_rows_and_budget_tell_the_noise_better():
    unsure = []
    for rows, epsilon in ((60, 0.3), (100, 1.0), (100, 10.0)):
        release, *_ = released(rows=rows, epsilon=epsilon, seed=0)
        unsure.append(known_noise(release.measurements, noise_variance=1.0)[1])
    assert unsure[0] == LOG_NOISE_SD
    assert unsure == sorted(unsure, reverse=True)
    # 100 rows alone leave the logarithm of their sd unsure by about .1, and the law is not known.
    assert 0.07**2 < unsure[-1] ** 2 - LOG_LAW_SD**2 < 0.15**2


def residuals(law, rng, size):
    """Draw numbers of mean square 1: of short tails, normal, and of long ones."""
    if law == "uniform":
        return rng.uniform(-np.sqrt(3), np.sqrt(3), size=size)
    if law == "normal":
        return rng.normal(size=size)
    return rng.standard_t(4, size=size) / np.sqrt(2.0)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "epsilon"), [(60, 0.5), (120, 3.0)])
def test_truths_from_the_prior_lie_in_the_range_as_often_as_it_says(rows, epsilon):
    """Whatever the law of residuals is, which nobody asked."""
    held = []
    for seed in range(60):
        rng = np.random.default_rng((seed, 1))
        noise_sd = 0.3 * np.exp(LOG_NOISE_SD * rng.normal())
        law = ("uniform", "normal", "long tails")[seed % 3]
        noise = noise_sd * residuals(law, rng, rows + 300)
        release, X, y = released(rows=rows, epsilon=epsilon, seed=seed, noise=noise)
        error = np.sqrt(np.mean(np.square(release.predict(X) - y)))
        low, high = release.accuracy().between
        held.append(low <= error <= high)
    assert np.mean(held) > LIKELY - 0.12
