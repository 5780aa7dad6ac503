"""Posterior means in their Hilbert space, against dense formulas and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from cloakgp.models import APPROXIMATIONS, ExactPrior, SparsePrior
from cloakgp.models.rkhs import (
    function_questions,
    function_span,
    rkhs_sensitivity,
    sensitivity_bounds,
)
from experiments.datasets import DatasetUnavailableError, load_kung

KERNELS = {
    "rbf": ConstantKernel(3.0) * RBF(0.7),
    "matern": 0.5 * Matern(0.9, nu=1.5) + ConstantKernel(0.2),
    "linear": DotProduct(0.8),
    "white": 2.0 * RBF(0.7) + WhiteKernel(0.3),
    "uneven noise": 2.0 * RBF(0.7) + WhiteKernel(0.3) * DotProduct(0.1),
}


@pytest.fixture(params=KERNELS)
def kernel(request):
    return KERNELS[request.param]


def priors(kernel, inducing):
    """The exact prior, and every sparse one."""
    settings = {"kernel": kernel, "noise_variance": 0.2, "mean": 0.4}
    return [
        ExactPrior(**settings),
        *(SparsePrior(**settings, inducing=inducing, approximation=one) for one in APPROXIMATIONS),
    ]


def norm_by_definition(prior, X, outputs):
    """The norm of the posterior mean of these outputs (prior mean 0), √(αᵀ K α), α = K_y⁻¹ y."""
    latent = prior.row_covariance(X, X.copy())
    alpha = np.linalg.solve(latent + np.diag(prior.row_noise(X)), outputs)
    return np.sqrt(alpha @ latent @ alpha)


def test_coordinates_have_the_norms_of_the_functions(kernel, rng):
    X = rng.uniform(0, 4, size=(12, 2))
    for prior in priors(kernel, X[:4] + 0.1):
        coordinates = function_span(prior, X).coordinates
        for _ in range(5):
            outputs = rng.normal(size=12)
            assert np.linalg.norm(coordinates @ outputs) == pytest.approx(
                norm_by_definition(prior, X, outputs), rel=1e-6
            )


def test_the_sensitivity_is_the_largest_move_of_one_output(kernel, rng):
    X = rng.uniform(0, 4, size=(12, 2))
    for prior in priors(kernel, X[:4] + 0.1):
        moves = [norm_by_definition(prior, X, unit) for unit in np.eye(12)]
        assert rkhs_sensitivity(prior, X) == pytest.approx(max(moves), rel=1e-6)


def test_the_answers_without_noise_are_the_posterior_mean_of_scikit_learn(rng):
    X, y, X_query = rng.uniform(0, 4, (15, 1)), rng.normal(size=15), rng.uniform(-2, 6, (40, 1))
    prior = ExactPrior(kernel=2.0 * RBF(0.7), noise_variance=0.3, mean=0.0)
    oracle = GaussianProcessRegressor(2.0 * RBF(0.7), alpha=0.3, optimizer=None).fit(X, y)
    questions = function_questions(prior, X)
    mean = prior.cross_covariance(X_query, X) @ questions.representers @ questions.strategy @ y
    assert np.abs(mean - oracle.predict(X_query)).max() < 1e-7


def test_the_answers_without_noise_are_the_cloaking_matrix(kernel, rng):
    X, X_query = rng.uniform(0, 4, size=(20, 2)), rng.uniform(-2, 6, size=(30, 2))
    X[3] = X[0]
    for prior in priors(kernel, X[5:9]):
        questions = function_questions(prior, X)
        assert np.square(questions.strategy).sum(axis=0).max() == pytest.approx(1.0)
        at_query = prior.cross_covariance(X_query, X) @ questions.representers
        C = prior.cloaking_matrix(X_query, X)
        assert at_query @ questions.strategy == pytest.approx(C, abs=1e-7)


def test_the_basis_is_orthonormal_and_spans_the_kernel_at_the_rows(kernel, rng):
    X = rng.uniform(0, 4, size=(10, 2))
    for prior in priors(kernel, X[:4] + 0.1):
        span = function_span(prior, X)
        latent = prior.row_covariance(X, X.copy())
        gram = span.representers.T @ latent @ span.representers
        assert gram == pytest.approx(np.eye(len(gram)), abs=1e-3)
        assert np.abs(span.unspanned_covariance(X)).max() < 1e-6 * latent.max()


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_mahalanobis_distances_never_exceed_the_norm(seed, points):
    """The change of f at any points, against noise with the kernel as covariance there."""
    rng = np.random.default_rng(seed)
    X, T = rng.uniform(0, 4, size=(9, 1)), rng.uniform(-1, 5, size=(points, 1))
    prior = ExactPrior(kernel=1.5 * Matern(0.8, nu=0.5), noise_variance=0.1, mean=0.0)
    move = np.eye(9)[rng.integers(9)]
    change = prior.cloaking_matrix(T, X) @ move
    distance = np.sqrt(change @ np.linalg.solve(prior.query_covariance(T), change))
    norm = norm_by_definition(prior, X, move)
    assert distance <= norm * (1 + 1e-6)
    everywhere = np.vstack([X, T])
    change = prior.cloaking_matrix(everywhere, X) @ move
    distance = np.sqrt(change @ np.linalg.solve(prior.query_covariance(everywhere), change))
    assert distance == pytest.approx(norm, rel=1e-5)


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(KERNELS)), st.floats(1e-3, 1e3))
def test_the_bounds_are_bounds_in_their_order(seed, name, noise_variance):
    X = np.random.default_rng(seed).uniform(0, 4, size=(15, 2))
    prior = ExactPrior(kernel=KERNELS[name], noise_variance=noise_variance, mean=0.0)
    bounds = sensitivity_bounds(prior, X)
    ordered = [bounds.exact, bounds.diagonal, bounds.signed, bounds.infinity]
    assert all(np.diff(ordered) >= -1e-9 * np.array(ordered[1:]))


def test_bounds_by_hand():
    """K_y⁻¹ of two rows with covariance ½ and noise 1 is [[2, −½], [−½, 2]] / 3.75."""
    X = np.array([[0.0], [np.sqrt(2 * np.log(2.0))]])
    bounds = sensitivity_bounds(ExactPrior(kernel=RBF(), noise_variance=1.0, mean=0.0), X)
    assert bounds.diagonal == pytest.approx(2 / 3.75)
    assert bounds.signed == pytest.approx(2 / 3.75)
    assert bounds.infinity == pytest.approx(2.5 / 3.75)
    assert bounds.exact == pytest.approx(np.sqrt(4 - 1 + 0.25) / 3.75)
    # In twice the unit the same function moves as far per unit, relative to its kernel's sd.
    doubled = sensitivity_bounds(ExactPrior(kernel=4.0 * RBF(), noise_variance=4.0, mean=0.0), X)
    assert doubled.signed == pytest.approx(bounds.signed / 2)
    assert doubled.exact == pytest.approx(bounds.exact / 2)


def test_without_noise_every_output_is_told():
    """C = I at the rows, and the floor of the noise keeps the questions finite."""
    X = np.linspace(0, 4, 6)[:, None]
    prior = ExactPrior(kernel=Matern(1.0, nu=0.5), noise_variance=0.0, mean=0.0)
    questions = function_questions(prior, X)
    told = prior.cross_covariance(X, X.copy()) @ questions.representers @ questions.strategy
    assert told == pytest.approx(np.eye(6), abs=1e-6)


def test_a_model_that_says_nothing_asks_nothing():
    prior = ExactPrior(kernel=DotProduct(sigma_0=1e-9), noise_variance=1.0, mean=0.0)
    questions = function_questions(
        ExactPrior(kernel=0.0 * RBF(), noise_variance=1.0, mean=0.0), np.ones((3, 1))
    )
    assert questions.strategy.shape == (0, 3)
    assert function_questions(prior, np.ones((3, 1))).strategy.shape == (1, 3)


@pytest.mark.data
def test_the_2018_papers_scale_of_the_noise():
    """Its section 2 prints 28.53 for ε = 50, δ = 0.01, d = 100 cm; ours needs 8.8 times less."""
    try:
        X = load_kung(male=False)[["age"]].to_numpy(dtype=float)
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    prior = ExactPrior(kernel=RBF(25.0), noise_variance=0.3, mean=0.0)
    bounds = sensitivity_bounds(prior, X)
    assert 100.0 * bounds.signed * np.sqrt(2 * np.log(200)) / 50 == pytest.approx(28.53, abs=0.005)
    latent = RBF(25.0)(X)
    inverse = np.linalg.inv(latent + 0.3 * np.eye(len(X)))
    exact = np.sqrt(np.diag(inverse @ latent @ inverse).max())
    assert bounds.exact == pytest.approx(exact, rel=1e-9)
    assert bounds.signed / bounds.exact == pytest.approx(8.787, abs=1e-3)
    assert len(function_questions(prior, X).strategy) == 15
