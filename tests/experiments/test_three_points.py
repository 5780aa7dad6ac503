"""Section 6.3 of the 2021 paper: Gibbs's kernel, a sum of two processes, and what any can do."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

from cloakgp.models.kernels.gibbs import GibbsKernel
from experiments import kung, three_points
from experiments.cross_validation import Protocol
from experiments.three_points import HerlandsKernel


@pytest.fixture
def kernel():
    return HerlandsKernel(RBF(1.0), 4.0 * RBF(10.0), change=2.0, width=0.7)


def test_the_sum_is_the_covariance_of_two_weighted_processes(kernel, rng):
    """Draws of w f + (1 − w) g from draws of f and g."""
    X = np.array([[-3.0], [1.0], [2.5], [6.0]])
    weight = kernel.weight(X)
    g, f = (
        rng.multivariate_normal(np.zeros(4), one(X), size=200_000)
        for one in (RBF(1.0), 4.0 * RBF(10.0))
    )
    draws = weight * f + (1 - weight) * g
    np.testing.assert_allclose(np.cov(draws.T), kernel(X), atol=0.06)


def test_the_sum_is_positive_definite_and_normalises(kernel, rng):
    X = rng.uniform(-10.0, 10.0, size=(30, 2))
    covariance = kernel(X)
    assert np.linalg.eigvalsh(covariance).min() > -1e-10
    np.testing.assert_allclose(np.diag(covariance), kernel.diag(X))
    np.testing.assert_allclose(kernel(X, X[:5]), covariance[:, :5])
    normalised = clone(kernel).set_params(normalised=True)
    np.testing.assert_allclose(normalised(X), three_points.correlations(covariance))
    np.testing.assert_array_equal(normalised.diag(X), np.ones(30))
    assert not kernel.is_stationary()
    with pytest.raises(ValueError, match="no free hyperparameters"):
        kernel(X, eval_gradient=True)


def test_gibbs_is_the_packages_for_its_lengthscale(rng):
    X = rng.uniform(0.0, 10.0, size=(12, 1))
    ours = GibbsKernel(X[:4], bandwidth=1.0, longest=5.0, crowd=0.5)
    found = three_points.gibbs_covariance(X, lengthscale=ours.lengthscale)
    np.testing.assert_allclose(found, ours(X))


@pytest.mark.parametrize("ratio", [1.0, 2.0, 30.0])
def test_gibbs_is_bounded_by_the_ratio_of_lengthscales_however_near(ratio):
    def lengthscale(X):
        return np.where(X[:, 0] < 0, 1.0, ratio)

    near = three_points.gibbs_covariance(np.array([[-1e-9], [1e-9]]), lengthscale=lengthscale)
    assert near[0, 1] == pytest.approx(three_points.largest_gibbs(ratio))


def test_no_kernel_ties_two_points_to_a_third_beyond_the_bound(rng):
    for _ in range(50):
        root = rng.normal(size=(3, 3))
        related = three_points.correlations(root @ root.T)
        both = min(related[0, 2], related[1, 2])
        assert both <= three_points.largest_with_a_third(related[0, 1]) + 1e-12
    for between in (-0.3, 0.0, 0.6):
        most = three_points.largest_with_a_third(between)
        matrix = np.array([[1, between, most], [between, 1, most], [most, most, 1]])
        assert np.linalg.eigvalsh(matrix).min() == pytest.approx(0.0, abs=1e-12)


def test_across_the_regimes_little_is_left():
    found = {(one.ratio, one.kernel): one.by_pair for one in three_points.compare()}
    assert found[30.0, "sum of two"]["B, C"] < 0.01
    gibbs = [found[ratio, "Gibbs"]["B, C"] for ratio in three_points.RATIOS[1:]]
    assert gibbs == sorted(gibbs, reverse=True)
    assert found[1.0, "Gibbs"] == pytest.approx(found[1.0, "one long lengthscale"])


def test_errors_have_every_kernel_and_the_sum_is_asked(rng):
    age = rng.uniform(0.0, 85.0, size=30)
    women = pd.DataFrame({"age": age, "weight": age, "height": 120.0 + age / 4, "male": 0})
    found = three_points.kung_errors(women, protocol=Protocol(folds=2))
    assert next(iter(found)) == "standard"
    prior = partial(three_points.sum_prior, normalised=False)(age)
    assert prior.kernel(np.array([[0.0]]))[0, 0] == pytest.approx(kung.SIGNAL_VARIANCE, rel=1e-3)
    errors = [one["no privacy"].mean for one in found.values()]
    assert len(set(errors)) == 5
