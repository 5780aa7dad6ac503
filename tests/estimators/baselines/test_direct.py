"""Noise on every output and on the mean, against scikit-learn and closed forms."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp import Release, refine
from cloakgp.estimators.baselines import DPMeanRegressor, DPRowNoiseRegressor
from cloakgp.privacy.accounting import exact_noise_multiplier

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

BUDGET = {"bounds": (0.0, 10.0), "epsilon": 1.0, "delta": 1e-3}


@pytest.fixture
def table(rng):
    X = rng.uniform(0, 8, size=(40, 1))
    X[1] = X[0]
    return X, 5 + 3 * np.sin(X[:, 0]) + 0.3 * rng.normal(size=40)


def test_rows_with_noise_are_an_ordinary_regression(table):
    X, y = table
    kernel = ConstantKernel(4.0) * RBF(1.5)
    fitted = DPRowNoiseRegressor(kernel, 0.5, mean=4.0, learn=None, **BUDGET).fit(X, y)
    answers = fitted.release_.measurements[0].answers
    assert answers.noise_sd == pytest.approx(10 * exact_noise_multiplier(1.0, 1e-3), rel=1e-8)
    oracle = GaussianProcessRegressor(kernel, alpha=0.5 + answers.noise_sd**2, optimizer=None)
    oracle.fit(X, answers.values[:, 0] + 5.0 - 4.0)
    points = np.linspace(-1, 9, 11)[:, None]
    mean, sd = fitted.predict(points, return_std=True)
    expected, expected_sd = oracle.predict(points, return_std=True)
    np.testing.assert_allclose(mean, 4.0 + expected, rtol=1e-8)
    np.testing.assert_allclose(sd, expected_sd, rtol=1e-8)


def test_every_output_is_published_with_noise(table):
    X, y = table
    fitted = DPRowNoiseRegressor(learn=None, **{**BUDGET, "epsilon": 1e7}).fit(X, y)
    answers = fitted.release_.measurements[0].answers
    np.testing.assert_allclose(answers.values[:, 0] + 5.0, np.clip(y, 0, 10), atol=0.05)


def test_rows_learn(table):
    X, y = table
    settings = {**BUDGET, "epsilon": 100.0, "insecure_seed": 0}
    wrong = ConstantKernel(1e-2) * RBF(30.0)
    plain, learned = (
        DPRowNoiseRegressor(wrong, learn=learn, **settings).fit(X, y) for learn in (None, "map")
    )
    truth = 5 + 3 * np.sin(X[:, 0])
    errors = [np.mean((one.predict(X) - truth) ** 2) for one in (plain, learned)]
    assert errors[1] < errors[0]
    assert plain.guarantee_ == learned.guarantee_


def test_the_mean_is_conjugate(table):
    """A normal prior of sd d/4 about the middle, and the mean of noisy outputs."""
    X, y = table
    fitted = DPMeanRegressor(2.0, **BUDGET).fit(X, y)
    answers = fitted.release_.measurements[0].answers
    variance = 2.0 / 40 + answers.noise_sd**2 / 40**2
    share = 2.5**2 / (2.5**2 + variance)
    mean, sd = fitted.predict([[-100.0], [3.0]], return_std=True)
    np.testing.assert_allclose(mean, 5.0 + share * answers.values[0, 0] / 40, rtol=1e-9)
    np.testing.assert_allclose(sd, np.sqrt((1 - share) * 2.5**2), rtol=1e-6)
    assert fitted.release_.prior.noise_variance == 2.0


def test_the_mean_is_the_noisy_mean_but_for_shrinking(table):
    X, y = table
    fitted = DPMeanRegressor(**{**BUDGET, "epsilon": 1e7}).fit(np.tile(X, (50, 1)), np.tile(y, 50))
    assert fitted.predict([[0.0]])[0] == pytest.approx(np.clip(y, 0, 10).mean(), abs=0.01)
    # The noisy mean itself is off by about 100 here.
    noisy = DPMeanRegressor(**{**BUDGET, "epsilon": 1e-6}).fit(X, y)
    assert noisy.predict([[0.0]])[0] == pytest.approx(5.0, abs=0.4)


@pytest.mark.parametrize(
    "model", [DPRowNoiseRegressor(learn=None, **BUDGET), DPMeanRegressor(**BUDGET)]
)
def test_ordinary_releases(table, model, tmp_path):
    """They can be saved, combined and refined as any release."""
    X, y = table
    release = model.fit(X, y).release_
    release.save(tmp_path / "one.cloak")
    again = Release.load(tmp_path / "one.cloak")
    np.testing.assert_array_equal(again.predict(X), release.predict(X))
    both = release.combine(model.fit(X, y).release_)
    assert both.guarantee.mu == pytest.approx(np.sqrt(2) * release.guarantee.mu)
    refined = refine(again, y, [[2.0]], epsilon=0.5, delta=1e-3)
    assert len(refined.measurements) == 2
