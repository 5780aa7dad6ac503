"""The exact prior against scikit-learn's Gaussian-process regression."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)

from cloakgp.models import ExactPrior, NotPositiveDefiniteError
from cloakgp.models.latent import RELATIVE_JITTER

KERNELS = {
    "rbf": RBF(0.7),
    "ard": RBF([0.7, 2.0]),
    "matern 1/2": Matern(0.9, nu=0.5),
    "matern 3/2": Matern(0.9, nu=1.5),
    "matern 5/2": Matern([0.9, 1.4], nu=2.5),
    "matern 0.8": Matern(0.9, nu=0.8),
    "matern inf": Matern(0.9, nu=np.inf),
    "periodic": ExpSineSquared(1.1, periodicity=30.0),
    "linear": DotProduct(0.8),
    "rational quadratic": RationalQuadratic(0.9, alpha=1.7),
    "pairwise": PairwiseKernel(metric="rbf", gamma=0.4),
    "sum": RBF(0.7) + DotProduct(0.3),
    "product": ConstantKernel(4.0) * RBF(0.7) * Matern(2.0, nu=1.5),
    "power": DotProduct(0.8) ** 2,
    "white in a sum": 2.0 * RBF(0.7) + WhiteKernel(0.3),
    "white in a product": RBF(0.7) * WhiteKernel(0.3) + RBF(1.0),
    "white deep inside": (RBF(0.7) + WhiteKernel(0.2)) * ConstantKernel(3.0) + DotProduct(0.1),
    "white under a power": (RBF(0.7) + WhiteKernel(0.2)) ** 2,
}


@pytest.fixture(params=KERNELS)
def kernel(request):
    return KERNELS[request.param]


@pytest.fixture
def tables(rng):
    X, X_query = rng.uniform(-2, 2, size=(25, 2)), rng.uniform(-3, 3, size=(9, 2))
    # Some query points on rows: white noise must not leak into the latent function there.
    return X, np.vstack([X_query, X[:3]]), rng.normal(size=25)


def oracle(kernel, X, y, noise=0.1):
    return GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(X, y)


def test_means_are_scikit_learns(kernel, tables):
    X, X_query, y = tables
    prior = ExactPrior(kernel=kernel, noise_variance=0.1, mean=0.0)
    expected = oracle(kernel, X, y).predict(X_query)
    np.testing.assert_allclose(prior.cloaking_matrix(X_query, X) @ y, expected, atol=1e-9)


def test_covariances_are_scikit_learns(kernel, tables):
    X, X_query, y = tables
    X_query = X_query[:9]
    prior = ExactPrior(kernel=kernel, noise_variance=0.1, mean=0.0)
    _, expected = oracle(kernel, X, y).predict(X_query, return_cov=True)
    cross = prior.cross_covariance(X_query, X)
    latent = prior.query_covariance(X_query) - prior.cloaking_matrix(X_query, X) @ cross.T
    # scikit-learn counts the kernel's own white noise as part of what it predicts.
    white = np.diag(prior.observation_noise(X_query) - 0.1)
    np.testing.assert_allclose(latent + white, expected, atol=1e-9)


def test_rows_and_noise_make_scikit_learns_covariance(kernel, tables):
    X, _, _ = tables
    prior = ExactPrior(kernel=kernel, noise_variance=0.1, mean=0.0)
    covariance = prior.row_covariance(X, X.copy()) + np.diag(prior.row_noise(X))
    np.testing.assert_allclose(covariance, kernel(X) + 0.1 * np.eye(len(X)), atol=1e-12)


def test_the_diagonal_is_that_of_the_matrix(kernel, tables):
    _, X_query, _ = tables
    prior = ExactPrior(kernel=kernel, noise_variance=0.1, mean=0.0)
    np.testing.assert_allclose(
        prior.query_variance(X_query), np.diag(prior.query_covariance(X_query)), atol=1e-12
    )


@given(
    seed=st.integers(0, 2**32 - 1),
    lengthscale=st.floats(0.05, 20.0),
    noise=st.floats(1e-3, 1e3),
    variance=st.floats(1e-3, 1e3),
)
def test_against_the_dense_formula(seed, lengthscale, noise, variance):
    rng = np.random.default_rng(seed)
    X, X_query = rng.normal(size=(12, 1)), rng.normal(size=(5, 1))
    prior = ExactPrior(
        kernel=ConstantKernel(variance) * RBF(lengthscale), noise_variance=noise, mean=3.0
    )

    def covariance(A, B):
        return variance * np.exp(-np.square(A - B.T) / (2 * lengthscale**2))

    expected = covariance(X_query, X) @ np.linalg.inv(covariance(X, X) + noise * np.eye(12))
    np.testing.assert_allclose(
        prior.cloaking_matrix(X_query, X), expected, atol=1e-8 * max(1, variance / noise)
    )


def test_tiny_noise_is_raised_to_the_floor_and_stays_part_of_the_model(rng):
    X = np.sort(rng.uniform(size=(30, 1)), axis=0)
    prior = ExactPrior(kernel=ConstantKernel(4.0) * RBF(3.0), noise_variance=0.0, mean=0.0)
    np.testing.assert_array_equal(prior.row_noise(X), np.full(30, 4 * RELATIVE_JITTER))
    np.testing.assert_array_equal(prior.observation_noise(X), np.zeros(30))
    assert np.isfinite(prior.cloaking_matrix(X, X)).all()


def test_noise_above_the_floor_is_left_alone():
    prior = ExactPrior(kernel=RBF(), noise_variance=1e-6, mean=0.0)
    np.testing.assert_array_equal(prior.row_noise(np.zeros((3, 1))), np.full(3, 1e-6))


def test_without_noise_it_interpolates(rng):
    X, y = rng.uniform(size=(6, 1)), rng.normal(size=6)
    prior = ExactPrior(kernel=Matern(0.3, nu=0.5), noise_variance=0.0, mean=0.0)
    np.testing.assert_allclose(prior.cloaking_matrix(X, X) @ y, y, atol=1e-6)


def test_equal_inputs_without_noise_are_refused():
    X = np.array([[0.0], [1.0], [0.0]])
    prior = ExactPrior(kernel=RBF(), noise_variance=0.0, mean=0.0)
    with pytest.raises(ValueError, match="set a noise_variance above zero"):
        prior.cloaking_matrix(X, X)


@pytest.mark.parametrize("noisy", [(RBF(), 0.1), (RBF() + WhiteKernel(0.1), 0.0)])
def test_equal_inputs_with_noise_share_their_weight(noisy):
    kernel, noise = noisy
    X = np.array([[0.0], [1.0], [0.0]])
    C = ExactPrior(kernel=kernel, noise_variance=noise, mean=0.0).cloaking_matrix(X, X)
    np.testing.assert_allclose(C[:, 0], C[:, 2], rtol=1e-12)


class Negative(RBF):
    """No covariance: its matrix is negative definite."""

    def __call__(self, X, Y=None, eval_gradient=False):
        assert not eval_gradient
        return -super().__call__(X, Y)

    def diag(self, X):
        return -super().diag(X)


class Lopsided(RBF):
    """No covariance: not symmetric."""

    def __call__(self, X, Y=None, eval_gradient=False):
        assert not eval_gradient
        return super().__call__(X, Y) + 0.1 * (X[:, :1] - (X if Y is None else Y)[:, :1].T)


class Cosh(RBF):
    """No covariance: symmetric with a positive diagonal, and indefinite."""

    def __call__(self, X, Y=None, eval_gradient=False):
        assert not eval_gradient
        return np.square(X[:, :1] - (X if Y is None else Y)[:, :1].T) + 0.1


class Hole(RBF):
    """Not finite."""

    def __call__(self, X, Y=None, eval_gradient=False):
        assert not eval_gradient
        return super().__call__(X, Y) * np.nan


@pytest.mark.parametrize("kernel", [Negative(), Lopsided(), Cosh(), RBF() + 5.0 * Negative()])
def test_what_is_no_covariance_is_refused(kernel, rng):
    X = rng.uniform(size=(8, 1))
    prior = ExactPrior(kernel=kernel, noise_variance=10.0, mean=0.0)
    with pytest.raises(NotPositiveDefiniteError, match="is not positive definite on these inputs"):
        prior.cloaking_matrix(X, X)


def test_a_periodic_kernel_in_the_plane_is_refused(rng):
    # scikit-learn's own kernel: a covariance on a line, and none in two dimensions.
    X = rng.uniform(-2, 2, size=(25, 2))
    prior = ExactPrior(kernel=ExpSineSquared(1.1, periodicity=2.5), noise_variance=9.0, mean=0.0)
    with pytest.raises(NotPositiveDefiniteError, match="ExpSineSquared"):
        prior.cloaking_matrix(X, X)
    line = prior.cloaking_matrix(X[:, :1], X[:, :1])
    assert np.isfinite(line).all()


def test_not_positive_definite_is_a_value_error():
    assert issubclass(NotPositiveDefiniteError, ValueError)


def test_kernels_that_are_not_finite_are_refused(rng):
    X = rng.uniform(size=(8, 1))
    prior = ExactPrior(kernel=Hole(), noise_variance=1.0, mean=0.0)
    with pytest.raises(ValueError, match="gives NaN or infinite covariances"):
        prior.cloaking_matrix(X, X)
    with pytest.raises(ValueError, match="gives NaN or infinite covariances"):
        prior.query_covariance(X)


def test_a_latent_function_that_never_varies_predicts_its_mean(rng):
    X = rng.uniform(size=(8, 1))
    for kernel in (WhiteKernel(2.0), ConstantKernel(0.0)):
        prior = ExactPrior(kernel=kernel, noise_variance=1.0, mean=0.0)
        np.testing.assert_array_equal(prior.cloaking_matrix(X, X), np.zeros((8, 8)))


def test_arguments_are_not_changed(rng):
    X, X_query = rng.uniform(size=(8, 1)), rng.uniform(size=(4, 1))
    before = X.copy(), X_query.copy()
    ExactPrior(kernel=RBF(), noise_variance=0.1, mean=0.0).cloaking_matrix(X_query, X)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(X_query, before[1])
