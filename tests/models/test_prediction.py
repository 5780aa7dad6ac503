"""Priors with a public prediction: mean function, slope, and the alternatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct

from cloakgp.fitting.defaults import choose_prior
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.prediction import (
    REST_SHARE,
    SLOPE_SD,
    alternatives,
    unpredicted,
    with_prediction,
)
from cloakgp.models.trend import Trend
from cloakgp.privacy import OutputBounds
from cloakgp.release.posterior.dense import Posterior
from cloakgp.release.tables import DenseTable

RNG = np.random.default_rng(3)
X = np.column_stack([RNG.uniform(0, 10, 40), RNG.normal(50, 8, 40)])
BOUNDS = OutputBounds(0.0, 100.0)


def helped(*, inducing: int | None = None) -> ExactPrior | SparsePrior:
    return choose_prior(X, bounds=BOUNDS, inducing=inducing, prediction=1)


def given_outputs(prior: ExactPrior | SparsePrior, y: np.ndarray) -> Posterior:
    """Condition on outputs themselves, with noise of sd 3 on each."""
    table = DenseTable(number=0, X=X, questions=np.eye(len(X)) / 3.0)
    return Posterior.given(prior, (table,), (y - prior.means(X)) / 3.0)


def test_the_posterior_is_that_of_a_process_on_what_the_prediction_leaves() -> None:
    y = RNG.normal(50, 10, 40)
    rest = 100.0 * RBF(2.0)
    # g goes by the first input alone: the second is as good as constant.
    kernel = 100.0 * RBF([2.0, 1e9])
    prior = with_prediction(ExactPrior(kernel=kernel, noise_variance=4.0, mean=50.0), X, column=1)
    known = given_outputs(prior, y)
    centred = X[:, 1] - X[:, 1].mean()
    slope = SLOPE_SD**2 * np.outer(centred, centred)
    covariance = REST_SHARE**2 * rest(X[:, :1]) + slope + 13.0 * np.eye(40)
    crossed = REST_SHARE**2 * rest(X[:, :1]) + slope
    expected = X[:, 1] + crossed @ np.linalg.solve(covariance, y - X[:, 1])
    np.testing.assert_allclose(known.mean(X), expected, rtol=1e-6)
    left = crossed - crossed @ np.linalg.solve(covariance, crossed)
    np.testing.assert_allclose(known.variance(X), np.diag(left), rtol=1e-5)


def test_scikit_learn_agrees_where_its_kernels_can_say_the_same() -> None:
    y = RNG.normal(50, 10, 40)
    prior = with_prediction(
        ExactPrior(kernel=ConstantKernel(25.0), noise_variance=4.0, mean=50.0), X, column=1
    )
    centred = X[:, 1:] - X[:, 1:].mean()
    kernel = ConstantKernel(25.0 * REST_SHARE**2) + SLOPE_SD**2 * DotProduct(sigma_0=1e-9)
    oracle = GaussianProcessRegressor(kernel, alpha=13.0, optimizer=None)
    oracle.fit(centred, y - X[:, 1])
    mean, sd = oracle.predict(centred, return_std=True)
    known = given_outputs(prior, y)
    np.testing.assert_allclose(known.mean(X), X[:, 1] + mean, rtol=1e-8)
    np.testing.assert_allclose(np.sqrt(known.variance(X)), sd, rtol=1e-6)


def test_the_prior_mean_is_the_prediction() -> None:
    np.testing.assert_allclose(helped().means(X), X[:, 1], rtol=1e-12)


def test_a_sparse_prior_has_the_same_mean_and_slope_wherever_predictions_go() -> None:
    sparse, exact = helped(inducing=8), helped()
    assert isinstance(sparse, SparsePrior)
    assert len(sparse.inducing) == 9
    new = np.column_stack([RNG.uniform(0, 10, 200), RNG.normal(50, 30, 200)])
    np.testing.assert_allclose(sparse.means(new), exact.means(new), atol=0.01 * np.ptp(new[:, 1]))
    # Two people alike but for their prediction differ by the slope alone.
    twins = new[:20].copy()
    twins[:, 1] += 30.0
    features = sparse.features(twins) - sparse.features(new[:20])
    np.testing.assert_allclose(np.square(features).sum(axis=0), (SLOPE_SD * 30) ** 2, rtol=0.01)


def test_the_rest_does_not_go_by_the_prediction() -> None:
    whole = alternatives(helped())[2]
    moved = X.copy()
    moved[:, 1] = RNG.normal(50, 8, 40)
    np.testing.assert_allclose(
        whole.row_covariance(X, X), whole.row_covariance(moved, moved), rtol=1e-6
    )
    without = choose_prior(X[:, :1], bounds=BOUNDS)
    np.testing.assert_allclose(
        whole.row_covariance(X, X), without.row_covariance(X[:, :1], X[:, :1]), rtol=1e-6
    )


def test_alternatives_are_all_of_the_rest_and_no_prediction() -> None:
    prior = helped()
    first, all_of_it, without = alternatives(prior)
    assert first is prior
    assert without.trend is None
    assert without.mean == BOUNDS.middle
    variance = without.query_variance(X)
    slope = SLOPE_SD**2 * np.square(X[:, 1] - X[:, 1].mean())
    np.testing.assert_allclose(all_of_it.query_variance(X), variance + slope, rtol=1e-9)
    shared = REST_SHARE**2 * variance + slope
    np.testing.assert_allclose(prior.query_variance(X), shared, rtol=1e-9)
    assert alternatives(without) == (without,)


def test_units_of_outputs_are_of_no_matter() -> None:
    scaled = X * [1.0, 7.0]
    prior, other = (
        choose_prior(each, bounds=OutputBounds(0.0, width), prediction=1)
        for each, width in ((X, 100.0), (scaled, 700.0))
    )
    np.testing.assert_allclose(
        other.row_covariance(scaled, scaled), 49.0 * prior.row_covariance(X, X), rtol=1e-6
    )
    np.testing.assert_allclose(other.means(scaled), 7.0 * prior.means(X))


def test_a_constant_prediction_is_a_mean() -> None:
    flat = X.copy()
    flat[:, 1] = 20.0
    prior = choose_prior(flat, bounds=BOUNDS, inducing=5, prediction=1)
    np.testing.assert_allclose(prior.means(flat), 20.0, atol=0.5)


def test_a_damaged_trend_or_kernel_is_refused() -> None:
    for column, centre in ((-1, 0.0), (0, np.nan)):
        with pytest.raises(ValueError, match="public prediction is damaged"):
            Trend(column=column, centre=centre).validate()
    with pytest.raises(ValueError, match="public prediction is damaged"):
        alternatives(replace(helped(), kernel=RBF()))


def test_inputs_without_their_prediction_keep_the_others() -> None:
    rest = unpredicted(X, column=1)
    np.testing.assert_array_equal(rest[:, 0], X[:, 0])
    assert np.ptp(rest[:, 1]) == 0
    assert np.ptp(X[:, 1]) > 0
