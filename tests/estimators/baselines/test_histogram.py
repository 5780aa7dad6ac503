"""The histogram: its means and sds, empty bins, and what clipping does."""

import math

import numpy as np
import pytest

from cloakgp.estimators.baselines import Bins, DPHistogramRegressor
from cloakgp.estimators.baselines.histogram import release_histogram
from cloakgp.privacy.accounting import exact_noise_multiplier

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

BOUNDS = (0.0, 10.0)
EPSILON, DELTA = 1.0, 1e-3


@pytest.fixture
def table(rng):
    X = rng.uniform(0, 8, size=(60, 1))
    X[X[:, 0] < 2] += 2.0
    return X, np.clip(X[:, 0] + rng.normal(size=60), *BOUNDS)


def model(**changes):
    plain = {"bins": 4, "ranges": [(0.0, 8.0)], "bounds": BOUNDS, "epsilon": EPSILON}
    return DPHistogramRegressor(**{**plain, "delta": DELTA, **changes})


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_without_noise_to_speak_of_it_is_the_mean_of_every_bin(table, noise):
    X, y = table
    fitted = model(epsilon=1e6, noise=noise).fit(X, y)
    for low in (2.0, 4.0, 6.0):
        inside = (low <= X[:, 0]) & (X[:, 0] < low + 2)
        assert fitted.predict([[low + 1]])[0] == pytest.approx(y[inside].mean(), abs=0.01)
    # Nobody is below 2.
    assert fitted.predict([[1.0], [-50.0]]).tolist() == [5.0, 5.0]
    assert fitted.predict([[8.0], [99.0]])[0] == fitted.predict([[7.9]])[0]


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_stated_sds_are_those_of_the_errors(table, noise):
    X, y = table
    exact = model(epsilon=1e6, noise=noise).fit(X, y).predict([[3.0], [5.0]])
    draws = []
    for seed in range(400):
        histogram = release_histogram(
            X,
            y,
            bins=Bins.over(X, bins=4, ranges=[(0.0, 8.0)]),
            noise=noise,
            bounds=BOUNDS,
            epsilon=EPSILON,
            delta=DELTA,
            insecure_seed=seed,
        )
        draws.append(histogram.predict([[3.0], [5.0]], clip=False))
    _, sd = histogram.predict([[3.0], [5.0]], return_std=True)
    counts = [np.sum((low <= X) & (low + 2 > X)) for low in (2, 4)]
    multiplier = math.sqrt(2) / EPSILON
    if noise == "gaussian":
        multiplier = exact_noise_multiplier(EPSILON, DELTA)
    np.testing.assert_allclose(sd, 10 * multiplier / np.array(counts), rtol=1e-8)
    # The relative sd of a sample sd is √((kurtosis − 1)/4n): 0.056 for Laplace.
    np.testing.assert_allclose(np.std(draws, axis=0), sd, rtol=5.5 * 0.056)
    np.testing.assert_allclose(np.mean(draws, axis=0) - exact, 0, atol=5.5 * sd.max() / 20)


def test_laplace_beats_gaussian_for_one_answer_a_row_at_small_delta(table):
    """One change moves one bin: ℓ1 and ℓ2 sensitivities agree, and √2/ε is below σ."""
    X, y = table
    sds = [
        model(noise=noise).fit(X, y).predict([[3.0]], return_std=True)[1]
        for noise in ("laplace", "gaussian")
    ]
    assert sds[0] < 0.6 * sds[1]


def test_empty_bins_say_how_little_they_know(table):
    X, y = table
    mean, sd = model().fit(X, y).predict([[0.5]], return_std=True)
    assert mean[0] == 5.0
    assert sd[0] == pytest.approx(10 / math.sqrt(12))


def test_clipping_is_a_choice(table):
    X, y = table
    settings = {"epsilon": 1e-3, "noise": "laplace", "insecure_seed": 1}
    clipped = model(**settings).fit(X, y).predict([[3.0], [5.0], [7.0]])
    raw = model(**settings, clip=False).fit(X, y).predict([[3.0], [5.0], [7.0]])
    assert ((clipped >= 0) & (clipped <= 10)).all()
    assert (np.abs(raw) > 10).any()
    np.testing.assert_array_equal(clipped, np.clip(raw, *BOUNDS))


def test_edges_and_several_inputs(rng):
    X = rng.uniform(0, 1, size=(500, 2))
    y = np.where(X[:, 0] > 0.3, 8.0, 1.0)
    fitted = DPHistogramRegressor([[0, 0.3, 1], 1], bounds=BOUNDS, epsilon=50, delta=0.1).fit(X, y)
    np.testing.assert_allclose(fitted.predict([[0.1, 0.5], [0.9, 0.5]]), [1, 8], atol=0.1)
    assert fitted.release_.bins.shape == (2, 1)


def test_laplace_noise_needs_no_delta(table):
    X, y = table
    with_delta = model(noise="laplace", insecure_seed=0).fit(X, y)
    without = model(noise="laplace", delta=None, insecure_seed=0).fit(X, y)
    np.testing.assert_array_equal(with_delta.predict(X), without.predict(X))
    assert with_delta.guarantee_ == without.guarantee_
    assert without.guarantee_.delta == 0.0
