"""Row noises against simulation, a convex solver, finite differences and a grid."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.gaussian_process.kernels import RBF

from cloakgp.design import design_bayes, design_strategy
from cloakgp.design import row_noise as module
from cloakgp.design.row_noise import (
    DESIGN_GAP,
    PublicCovariances,
    design_row_noise,
    expected_error,
)
from cloakgp.models.covariance import DenseCovariance


def of(X, X_query, *, noise=0.1, lengthscale=1.0):
    kernel = RBF(lengthscale)
    return PublicCovariances(
        latent=kernel(X),
        noise=np.full(len(X), noise),
        crossed=kernel(X_query, X),
        prior_variance=float(len(X_query)),
    )


@pytest.fixture
def crowd_and_outlier(rng):
    """Twenty rows near zero, one at three, and query points from one to the other."""
    X = np.concatenate([rng.normal(scale=0.5, size=20), [3.0]])[:, None]
    return of(X, np.linspace(-1.0, 3.5, 8)[:, None])


def cloaking(covariances, variance):
    return covariances.crossed @ np.linalg.inv(covariances.latent + np.diag(variance))


def test_the_expected_error_is_what_simulation_finds(crowd_and_outlier, rng):
    one, noise_sd = crowd_and_outlier, 1.7
    variance = rng.uniform(0.1, 2.0, size=21)
    C = cloaking(one, variance)
    queries = len(C)
    X = np.vstack([np.hstack([one.latent, one.crossed.T]), np.zeros((queries, 21 + queries))])
    X[21:, :21] = one.crossed
    X[21:, 21:] = RBF(1.0)(np.linspace(-1.0, 3.5, 8)[:, None])
    root = np.linalg.cholesky(X + 1e-9 * np.eye(len(X)))
    latent = root @ rng.normal(size=(len(X), 40_000))
    outputs = latent[:21] + np.sqrt(0.1) * rng.normal(size=(21, 40_000))
    design = design_strategy(C)
    answers = design.strategy @ outputs + noise_sd * rng.normal(size=(len(design.strategy), 40_000))
    squares = np.square(design.reconstruction @ answers - latent[21:]).sum(axis=0)
    expected = expected_error(one, variance, noise_sd=noise_sd).total
    error = squares.std() / np.sqrt(len(squares))
    assert abs(squares.mean() - expected) < 4 * error + 2e-3 * expected
    assert error < 0.01 * expected


def test_the_privacy_noise_is_the_least_a_convex_solver_finds(crowd_and_outlier, rng):
    one = crowd_and_outlier
    variance = rng.uniform(0.5, 2.0, size=21)
    C = cloaking(one, variance)
    left, scales, right = np.linalg.svd(C, full_matrices=False)
    columns = (scales[:, None] * right)[:4]
    # The fifth direction and on are too small for the solver, and add little.
    M = cp.Variable((4, 4), symmetric=True)
    fits = [
        cp.bmat([[M, column[:, None]], [column[None], np.ones((1, 1))]]) >> 0
        for column in columns.T
    ]
    problem = cp.Problem(cp.Minimize(cp.trace(M)), fits)
    problem.solve(solver=cp.CLARABEL)
    found = expected_error(
        PublicCovariances(
            latent=one.latent,
            noise=one.noise,
            crossed=left[:, :4] @ left[:, :4].T @ one.crossed,
            prior_variance=one.prior_variance,
        ),
        variance,
        noise_sd=1.0,
    ).privacy
    assert found == pytest.approx(problem.value, rel=2 * DESIGN_GAP)


def test_the_gradient_is_that_of_finite_differences(crowd_and_outlier, rng, monkeypatch):
    monkeypatch.setattr(module, "DESIGN_GAP", 1e-9)
    variance = rng.uniform(0.5, 2.0, size=21)

    def total(values):
        return expected_error(crowd_and_outlier, values, noise_sd=1.7).total

    _, gradient = module._error_and_gradient(crowd_and_outlier, variance, noise_sd=1.7)
    numeric = approx_fprime(variance, total, 1e-4)
    scale = np.abs(numeric).max()
    np.testing.assert_allclose(gradient, numeric, atol=2e-3 * scale)
    assert scale > 1e-3


def test_of_one_row_it_is_the_textbook_shrinkage():
    """C = 1/(1 + ν) is best at the signal's share of signal, noise and privacy noise."""
    one = of(np.zeros((1, 1)), np.zeros((1, 1)), noise=0.3)
    for noise_sd in (0.5, 1.0, 4.0):
        found = design_row_noise(one, noise_sd=noise_sd)
        assert found.variance[0] == pytest.approx(0.3 + noise_sd**2, rel=1e-2)


def test_no_point_of_a_grid_is_better_for_two_rows():
    one = of(np.array([[0.0], [1.2]]), np.array([[0.2], [2.0]]))
    found = design_row_noise(one, noise_sd=0.8)
    grid = np.geomspace(0.02, 20.0, 25)
    best = min(
        expected_error(one, np.array([first, second]), noise_sd=0.8).total
        for first in grid
        for second in grid
    )
    assert found.expected.total <= best * (1 + 2 * DESIGN_GAP)


def test_without_privacy_noise_the_model_s_noise_is_best(crowd_and_outlier):
    found = design_row_noise(crowd_and_outlier, noise_sd=1e-6)
    assert found.expected.total == pytest.approx(found.before.total, rel=1e-6)
    np.testing.assert_allclose(found.variance, crowd_and_outlier.noise, rtol=0.05)


def test_telling_rows_apart_helps_where_there_is_an_outlier(crowd_and_outlier):
    shared, by_row = (
        design_row_noise(crowd_and_outlier, noise_sd=1.0, shared=one) for one in (True, False)
    )
    assert np.ptp(shared.variance) == 0.0
    assert shared.before.total == by_row.before.total
    assert by_row.expected.total < 0.98 * shared.expected.total < 0.98 * shared.before.total
    # The outlier, the last row, is believed least.
    assert by_row.variance.argmax() == 20


def test_no_row_noises_beat_the_bayes_design(crowd_and_outlier):
    one = crowd_and_outlier
    bayes = design_bayes(
        DenseCovariance(latent=one.latent, noise=one.noise),
        one.crossed.T,
        prior_variance=one.prior_variance,
        noise_sd=1.0,
    )
    assert design_row_noise(one, noise_sd=1.0).expected.total >= bayes.unexplained * (1 - 1e-6)


@given(st.integers(0, 1000), st.floats(0.05, 5.0), st.booleans())
def test_it_is_never_worse_than_the_model_s_noise(seed, noise_sd, shared):
    rng = np.random.default_rng(seed)
    one = of(rng.normal(size=(6, 2)), rng.normal(size=(3, 2)))
    found = design_row_noise(one, noise_sd=noise_sd, shared=shared, steps=2)
    assert found.expected.total <= found.before.total
    checked = expected_error(one, found.variance, noise_sd=noise_sd)
    assert checked.total == pytest.approx(found.expected.total)
    assert (found.variance > 0).all()


def test_rows_that_reach_no_query_point_change_nothing():
    X, X_query = np.array([[0.0], [1.0], [1e3]]), np.array([[0.5], [2.0]])
    with_far, without = of(X, X_query), of(X[:2], X_query)
    variance = np.array([0.3, 0.7, 0.1])
    found, gradient = module._error_and_gradient(with_far, variance, noise_sd=1.0)
    expected, kept = module._error_and_gradient(without, variance[:2], noise_sd=1.0)
    assert found.total == pytest.approx(expected.total, rel=DESIGN_GAP)
    np.testing.assert_allclose(gradient[:2], kept, rtol=0.05)
    assert gradient[2] == 0.0


def test_query_points_that_no_row_reaches_ask_for_nothing():
    one = of(np.zeros((3, 1)), np.full((2, 1), 1e3))
    found = design_row_noise(one, noise_sd=1.0)
    assert found.expected.privacy == 0.0
    assert found.expected.predictor == 2.0
    np.testing.assert_array_equal(found.variance, one.noise)
