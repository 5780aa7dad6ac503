"""The integral-kernel process on noisy bins, against the papers' formulas written out."""

from dataclasses import replace

import numpy as np
import pytest
from conditioning import posterior_of
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp import DPGPRegressor, Release
from cloakgp.estimators.baselines import DPHistogramRegressor, DPIntegralHistogramRegressor
from cloakgp.estimators.baselines.integral_histogram import (
    default_integral_kernel,
    release_over_boxes,
)
from cloakgp.models import ExactPrior
from cloakgp.models.kernels.integral import IntegralRBF, points_as_boxes

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

BOUNDS = (0.0, 10.0)


@pytest.fixture
def table(rng):
    X = rng.uniform(0, 8, size=(80, 1))
    return X, 5 + 3 * np.sin(X[:, 0]) + 0.3 * rng.normal(size=80)


def model(**changes):
    plain = {"bins": 6, "bounds": BOUNDS, "epsilon": 1.0, "delta": 1e-3}
    return DPIntegralHistogramRegressor(**{**plain, **changes})


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_posterior_is_that_of_noisy_bin_means(table, noise):
    """Observations: bin means with noise variance s²/n² + σ²/n; latent: averages over bins."""
    X, y = table
    kernel = ConstantKernel(4.0) * IntegralRBF(1.5)
    fitted = model(noise=noise, kernel=kernel, noise_variance=0.7, mean=4.0, learn=None).fit(X, y)
    histogram = fitted.histogram_
    boxes = histogram.bins.boxes(histogram.cells)
    noises = histogram.noise_sd**2 / histogram.counts**2 + 0.7 / histogram.counts
    points = np.linspace(-1, 9, 7)[:, None]
    crossed = kernel(points_as_boxes(points), boxes)
    weights = np.linalg.solve(kernel(boxes) + np.diag(noises), crossed.T).T
    mean, covariance = fitted.predict(points, return_cov=True)
    np.testing.assert_allclose(mean, 4.0 + weights @ (histogram.means - 4.0), rtol=1e-9)
    expected = (ConstantKernel(4.0) * RBF(1.5))(points) - weights @ crossed.T
    np.testing.assert_allclose(covariance, expected, atol=1e-9)


def test_a_bin_for_every_row_is_the_ordinary_process(table):
    """Bins that shrink around the rows: noise on every output, with an RBF kernel."""
    X = np.sort(table[0][::8], axis=0)
    y = table[1][::8]
    edges = np.sort(np.concatenate([X[:, 0] - 1e-7, X[:, 0] + 1e-7]))
    fitted = model(
        bins=[edges],
        kernel=ConstantKernel(4.0) * IntegralRBF(1.5),
        noise_variance=0.7,
        learn=None,
        insecure_seed=4,
    ).fit(X, y)
    answers = fitted.release_.measurements[0]
    kernel = ConstantKernel(4.0) * RBF(1.5)
    noise = 0.7 + answers.answers.noise_sd**2
    weights = np.linalg.solve(kernel(X) + noise * np.eye(len(X)), kernel(X))
    np.testing.assert_allclose(
        fitted.predict(X), 5.0 + weights.T @ answers.answers.values[:, 0], rtol=1e-5
    )


def test_the_box_model_is_nearly_the_model_of_rows():
    """With many rows spread evenly, boxes tell what the rows' own inputs would."""
    X = np.linspace(0, 8, 1201)[:-1, None] + 8 / 2400
    y = 5 + 3 * np.sin(X[:, 0])
    fitted = model(kernel=ConstantKernel(4.0) * IntegralRBF(1.5), ranges=[(0, 8)], learn=None)
    fitted.fit(X, y)
    prior = fitted.release_.prior
    exact = posterior_of(
        ExactPrior(
            kernel=ConstantKernel(4.0) * RBF(1.5),
            noise_variance=prior.noise_variance,
            mean=prior.mean,
        ),
        [
            replace(measurement, strategy=replace(measurement.strategy, X=X, X_query=X))
            for measurement in fitted.release_.measurements
        ],
    )
    np.testing.assert_allclose(fitted.predict(X[::50]), exact.mean(X[::50]), atol=1e-4)


@pytest.mark.parametrize("learn", ["map", "average"])
def test_learning_costs_nothing_and_helps(table, learn):
    X, y = table
    wrong = ConstantKernel(1e-2) * IntegralRBF(30.0)
    seeded = {"kernel": wrong, "epsilon": 5.0, "insecure_seed": 0}
    plain, learned = model(**seeded, learn=None).fit(X, y), model(**seeded, learn=learn).fit(X, y)
    assert plain.guarantee_ == learned.guarantee_
    truth = 5 + 3 * np.sin(X[:, 0])
    errors = [np.sqrt(np.mean((one.predict(X) - truth) ** 2)) for one in (plain, learned)]
    assert errors[1] < errors[0]
    assert len(learned.release_.learned) >= 1


def test_it_beats_the_histogram_where_bins_are_noisy(table):
    X, y = table
    truth = 5 + 3 * np.sin(X[:, 0])
    errors = {
        kind: np.mean(
            [np.mean((one(seed).fit(X, y).predict(X) - truth) ** 2) for seed in range(20)]
        )
        for kind, one in {
            "integral": lambda seed: model(bins=20, learn=None, insecure_seed=seed),
            "histogram": lambda seed: DPHistogramRegressor(
                20, bounds=BOUNDS, epsilon=1.0, delta=1e-3, insecure_seed=seed
            ),
        }.items()
    }
    assert errors["integral"] < errors["histogram"] / 2


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_its_release_can_be_saved_and_read(table, noise, tmp_path):
    X, y = table
    fitted = model(noise=noise, learn=None).fit(X, y)
    fitted.release_.save(tmp_path / "one.cloak")
    again = Release.load(tmp_path / "one.cloak", kernels=(IntegralRBF,))
    boxes = points_as_boxes(X[:5])
    np.testing.assert_array_equal(again.predict(boxes), fitted.predict(X[:5]))
    assert again.guarantee == fitted.release_.guarantee


def test_laplace_noise_is_stated_as_it_is_and_adds_up(table):
    X, y = table
    fitted = model(noise="laplace", learn=None).fit(X, y)
    stated = fitted.release_.guarantee
    assert stated == fitted.guarantee_
    assert (stated.epsilon, stated.delta, stated.laplace) == (1.0, 0.0, (1.0,))
    other = model(noise="gaussian", learn=None).fit(X, y)
    total = fitted.release_.combine(other.release_).guarantee
    assert total.laplace == (1.0,)
    assert total.mu == pytest.approx(other.guarantee_.mu, rel=1e-15)
    assert total.delta == other.guarantee_.delta
    # At most basic composition, and less.
    assert total.epsilon < 1.0 + other.guarantee_.epsilon


def test_other_rows_are_refused(table):
    X, y = table
    histogram = model(learn=None).fit(X, y).histogram_
    prior = model(learn=None).fit(X, y).release_.prior
    with pytest.raises(ValueError, match="counts differ"):
        release_over_boxes(histogram, X[:-1], prior=prior)


def test_an_input_that_never_varies_does_no_harm(table):
    X, y = table
    wide = np.column_stack([X, np.full(len(X), 3.0)])
    kernel = default_integral_kernel(wide, width=10.0)
    assert kernel.k2.length_scale.tolist() == [np.ptp(X) / 4, 1.0]
    narrow, wider = (
        model(learn=None, insecure_seed=0).fit(inputs, y).predict(inputs) for inputs in (X, wide)
    )
    np.testing.assert_allclose(narrow, wider)


@pytest.mark.parametrize("dimensions", [1, 2])
def test_beside_the_package_itself(rng, dimensions):
    """The design for predicting is sharper than bins, by its own posterior variance."""
    X = rng.uniform(0, 8, size=(60, dimensions))
    y = 5 + 3 * np.sin(X[:, 0])
    budget = {"bounds": BOUNDS, "epsilon": 1.0, "delta": 1e-3, "learn": None}
    ours = DPGPRegressor(ConstantKernel(4.0) * RBF(1.5), 1.0, **budget).fit(X, y)
    bins = model(kernel=ConstantKernel(4.0) * IntegralRBF(1.5), noise_variance=1.0, learn=None)
    sds = [one.predict(X, return_std=True)[1] for one in (ours, bins.fit(X, y))]
    assert np.mean(sds[0] ** 2) < np.mean(sds[1] ** 2)
