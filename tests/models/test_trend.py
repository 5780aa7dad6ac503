"""Trends: the mean function of a public column."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.trend import Trend

X = np.column_stack([np.linspace(0, 5, 12), np.linspace(3, -2, 12)])
TREND = Trend(column=1, centre=1.0)


def test_a_trend_moves_the_mean_of_an_exact_prior() -> None:
    prior = ExactPrior(kernel=RBF(), noise_variance=1.0, mean=10.0, trend=TREND)
    np.testing.assert_allclose(prior.means(X), 9.0 + X[:, 1])


def test_the_mean_of_a_sparse_prior_interpolates_the_trend_between_inducing_inputs() -> None:
    prior = SparsePrior(
        kernel=RBF(3.0), noise_variance=1.0, mean=10.0, inducing=X[::3], trend=TREND
    )
    np.testing.assert_allclose(prior.means(X[::3]), 9.0 + X[::3, 1], atol=1e-3)
    # Nyström: K_XZ K_ZZ⁻¹ t(Z).
    kernel = RBF(3.0)
    expected = kernel(X, X[::3]) @ np.linalg.solve(kernel(X[::3]), X[::3, 1] - 1.0)
    np.testing.assert_allclose(prior.means(X), 10.0 + expected, atol=1e-3)
    np.testing.assert_allclose(prior.means_of(prior.features(X)), prior.means(X))


def test_without_a_trend_the_mean_is_one_number() -> None:
    for prior in (
        ExactPrior(kernel=RBF(), noise_variance=1.0, mean=10.0),
        SparsePrior(kernel=RBF(), noise_variance=1.0, mean=10.0, inducing=X),
    ):
        np.testing.assert_array_equal(prior.means(X), np.full(12, 10.0))
