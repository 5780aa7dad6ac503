"""Sparse priors against direct formulas with dense inverses, and against the exact prior."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from cloakgp.models import APPROXIMATIONS, ExactPrior, NotPositiveDefiniteError, SparsePrior
from cloakgp.models.latent import RELATIVE_JITTER

KERNELS = {
    "rbf": ConstantKernel(3.0) * RBF(0.7),
    "ard": RBF([0.7, 2.0]),
    "matern": Matern(0.9, nu=1.5) + ConstantKernel(0.5),
    "linear": DotProduct(0.8) + RBF(1.0),
    "white": 2.0 * RBF(0.7) + WhiteKernel(0.3),
}


@pytest.fixture(params=KERNELS)
def kernel(request):
    return KERNELS[request.param]


@pytest.fixture(params=APPROXIMATIONS)
def approximation(request):
    return request.param


def sparse(kernel, inducing, approximation="fitc", noise=0.2):
    return SparsePrior(
        kernel=kernel,
        noise_variance=noise,
        mean=0.0,
        inducing=inducing,
        approximation=approximation,
    )


class Dense:
    """Quiñonero-Candela and Rasmussen (2005), section 5 and 6, word by word."""

    def __init__(self, kernel, inducing, approximation, noise):
        self.kernel, self.inducing = kernel, inducing
        self.approximation, self.noise = approximation, noise
        middle = self.latent(inducing, inducing)
        jitter = RELATIVE_JITTER * np.diag(middle).max()
        self.middle = np.linalg.inv(middle + jitter * np.eye(len(inducing)))

    def latent(self, A, B):
        return self.kernel(A, B.copy())

    def Q(self, A, B):
        return self.latent(A, self.inducing) @ self.middle @ self.latent(self.inducing, B)

    def rows(self, X):
        observed = self.noise + np.diag(self.kernel(X)) - np.diag(self.latent(X, X))
        if self.approximation == "fitc":
            observed = observed + np.diag(self.latent(X, X) - self.Q(X, X))
        return self.Q(X, X) + np.diag(observed)

    def query(self, X):
        return self.Q(X, X) if self.approximation == "sor" else self.latent(X, X)


@pytest.fixture
def tables(rng):
    return tuple(rng.uniform(-2, 2, size=(count, 2)) for count in (30, 8, 5))


def test_against_dense_inverses(kernel, approximation, tables):
    X, X_query, inducing = tables
    prior, dense = (
        sparse(kernel, inducing, approximation),
        Dense(kernel, inducing, approximation, 0.2),
    )
    expected = dense.Q(X_query, X) @ np.linalg.inv(dense.rows(X))
    np.testing.assert_allclose(prior.cloaking_matrix(X_query, X), expected, atol=1e-7)
    np.testing.assert_allclose(prior.cross_covariance(X_query, X), dense.Q(X_query, X), atol=1e-7)
    rows = prior.row_covariance(X, X) + np.diag(prior.row_noise(X))
    np.testing.assert_allclose(rows, dense.rows(X), atol=1e-7)
    np.testing.assert_allclose(prior.query_covariance(X_query), dense.query(X_query), atol=1e-7)
    np.testing.assert_allclose(
        prior.query_variance(X_query), np.diag(dense.query(X_query)), atol=1e-7
    )


def test_with_a_inducing_input_on_every_row_it_is_the_exact_prior(kernel, approximation, rng):
    X, X_query = rng.uniform(-2, 2, size=(15, 2)), rng.uniform(-2, 2, size=(6, 2))
    exact = ExactPrior(kernel=kernel, noise_variance=0.2, mean=0.0)
    prior = sparse(kernel, X, approximation)
    np.testing.assert_allclose(
        prior.cloaking_matrix(X_query, X), exact.cloaking_matrix(X_query, X), atol=1e-5
    )
    np.testing.assert_allclose(prior.row_noise(X), exact.row_noise(X), atol=1e-6)


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 8))
def test_the_explained_covariance_is_below_the_whole(seed, count):
    rng = np.random.default_rng(seed)
    X, inducing = rng.uniform(-2, 2, size=(10, 2)), rng.uniform(-2, 2, size=(count, 2))
    kernel = ConstantKernel(2.0) * Matern(1.0, nu=1.5)
    unexplained = kernel(X) - sparse(kernel, inducing).row_covariance(X, X)
    assert np.linalg.eigvalsh(unexplained)[0] >= -1e-8
    # FITC keeps each row's own variance.
    total = sparse(kernel, inducing).row_noise(X) + np.diag(
        sparse(kernel, inducing).row_covariance(X, X)
    )
    np.testing.assert_allclose(total, 2.2, rtol=1e-9)


def test_rows_noise_differs_between_the_approximations(tables):
    X, _, inducing = tables
    kernel = KERNELS["white"]
    for name in ("dtc", "sor"):
        np.testing.assert_allclose(sparse(kernel, inducing, name).row_noise(X), 0.5, rtol=1e-12)
    assert (sparse(kernel, inducing, "fitc").row_noise(X) > 0.5).all()
    np.testing.assert_allclose(sparse(kernel, inducing).observation_noise(X), 0.5, rtol=1e-12)


def test_features_factorise_the_explained_covariance(tables):
    X, X_query, inducing = tables
    prior = sparse(KERNELS["rbf"], inducing)
    assert prior.features(X).shape == (5, 30)
    np.testing.assert_allclose(
        prior.features(X_query).T @ prior.features(X), prior.cross_covariance(X_query, X)
    )


@pytest.mark.parametrize("name", ["dtc", "sor"])
def test_no_noise_is_refused(name, tables):
    X, X_query, inducing = tables
    with pytest.raises(ValueError, match="a sparse model needs noise"):
        sparse(RBF(), inducing, name, noise=0.0).cloaking_matrix(X_query, X)


def test_fitc_without_noise_is_fine_where_the_inducing_inputs_explain_too_little(tables):
    X, X_query, inducing = tables
    prior = sparse(Matern(0.5, nu=0.5), inducing, "fitc", noise=0.0)
    assert np.isfinite(prior.cloaking_matrix(X_query, X)).all()


class Negative(RBF):
    """No covariance."""

    def __call__(self, X, Y=None, eval_gradient=False):
        assert not eval_gradient
        return -super().__call__(X, Y)


def test_what_is_no_covariance_is_refused(approximation, tables):
    X, X_query, inducing = tables
    for kernel in (Negative(), ConstantKernel(0.0), WhiteKernel(1.0)):
        with pytest.raises(NotPositiveDefiniteError):
            sparse(kernel, inducing, approximation).cloaking_matrix(X_query, X)


def test_repeated_inducing_inputs_change_nothing(approximation, tables):
    X, X_query, inducing = tables
    once = sparse(KERNELS["rbf"], inducing, approximation)
    twice = sparse(KERNELS["rbf"], np.vstack([inducing, inducing]), approximation)
    np.testing.assert_allclose(
        twice.cloaking_matrix(X_query, X), once.cloaking_matrix(X_query, X), atol=1e-6
    )


def test_repeated_rows_are_welcome(approximation, tables):
    X, X_query, inducing = tables
    cloaking = sparse(KERNELS["rbf"], inducing, approximation).cloaking_matrix(
        X_query, np.vstack([X, X])
    )
    np.testing.assert_allclose(cloaking[:, :30], cloaking[:, 30:], rtol=1e-9)


@pytest.mark.parametrize("noise", [0.2, 1e-8])
def test_features_and_noise_are_features_and_the_rows_noise(kernel, approximation, noise, tables):
    X, _, inducing = tables
    prior = sparse(kernel, inducing, approximation, noise=noise)
    features, variances = prior.features_and_noise(X)
    np.testing.assert_array_equal(features, prior.features(X))
    np.testing.assert_array_equal(variances, prior.row_noise(X))
    # Together they are all that the model says of rows.
    dense = Dense(kernel, inducing, approximation, noise).rows(X)
    np.testing.assert_allclose(features.T @ features + np.diag(variances), dense, atol=1e-7)


def test_features_and_noise_of_a_row_do_not_depend_on_the_others(kernel, approximation, tables):
    X, _, inducing = tables
    prior = sparse(kernel, inducing, approximation)
    features, noise = prior.features_and_noise(X)
    for row in range(0, 30, 7):
        alone = prior.features_and_noise(X[row : row + 1])
        np.testing.assert_allclose(alone[0][:, 0], features[:, row], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(alone[1][0], noise[row], rtol=1e-9)


def test_features_without_noise_are_refused(tables):
    X, _, inducing = tables
    for name in ("dtc", "sor"):
        with pytest.raises(ValueError, match="a sparse model needs noise"):
            sparse(RBF(), inducing, name, noise=0.0).features_and_noise(X)
