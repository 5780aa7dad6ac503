"""Products with K_y against the matrix itself, and the bound on its eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, DotProduct, WhiteKernel

from cloakgp.models import APPROXIMATIONS, ExactPrior, SparsePrior
from cloakgp.models.covariance import (
    ConditionedCovariance,
    DenseCovariance,
    LinearisedCovariance,
    LowRankCovariance,
)

ROWS = 7


def drawn(kind, rng):
    """Return a covariance and the same as a matrix."""
    noise = rng.uniform(0.1, 2.0, size=ROWS)
    features = rng.normal(size=(3, ROWS))
    matrix = features.T @ features + np.diag(noise)
    if kind == "dense":
        return DenseCovariance(latent=features.T @ features, noise=noise), matrix
    low_rank = LowRankCovariance(features=features, noise=noise)
    if kind == "low rank":
        return low_rank, matrix
    if kind == "linearised":
        # One row that was clipped to a point, one that was not clipped.
        slope, residual = rng.uniform(0, 1, size=ROWS), rng.uniform(0.01, 1.0, size=ROWS)
        slope[:2], residual[1] = (0.0, 1.0), 1e-12
        scaled = np.diag(slope) @ matrix @ np.diag(slope)
        return LinearisedCovariance(low_rank, slope, residual), scaled + np.diag(residual)
    # Answers R y + z with z ~ N(0, I).
    questions = rng.normal(size=(4, ROWS))
    answers = questions @ matrix @ questions.T + np.eye(4)
    root = np.linalg.solve(np.linalg.cholesky(answers), questions @ matrix).T
    floor = 1 / (1 / noise.min() + np.linalg.norm(questions, 2) ** 2)
    return (
        ConditionedCovariance(prior=low_rank, known=root, least_noise=floor),
        matrix - matrix @ questions.T @ np.linalg.inv(answers) @ questions @ matrix,
    )


KINDS = ["dense", "low rank", "linearised", "conditioned"]


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32 - 1), columns=st.integers(0, 5))
def test_products_are_those_with_the_matrix(kind, seed, columns):
    rng = np.random.default_rng(seed)
    covariance, matrix = drawn(kind, rng)
    multiplied = rng.normal(size=(ROWS, columns))
    before = multiplied.copy()
    np.testing.assert_allclose(
        covariance.times(multiplied), matrix @ multiplied, atol=1e-10 * np.linalg.norm(matrix)
    )
    np.testing.assert_array_equal(multiplied, before)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_eigenvalue_is_below_the_least_noise(kind, seed):
    covariance, matrix = drawn(kind, np.random.default_rng(seed))
    assert covariance.least_noise > 0
    smallest = np.linalg.eigvalsh(matrix)[0]
    assert covariance.least_noise <= smallest + 1e-12 * np.linalg.norm(matrix)


@pytest.mark.parametrize("approximation", [None, *APPROXIMATIONS])
def test_priors_give_their_rows_covariance(approximation, rng):
    X = rng.uniform(0, 3, size=(ROWS, 2))
    settings = {"kernel": RBF(1.3) + DotProduct() + WhiteKernel(0.2), "noise_variance": 0.3}
    if approximation is None:
        prior = ExactPrior(**settings, mean=1.0)
    else:
        prior = SparsePrior(
            **settings,
            mean=1.0,
            inducing=rng.uniform(0, 3, size=(4, 2)),
            approximation=approximation,
        )
    covariance = prior.output_covariance(X)
    matrix = prior.row_covariance(X, X.copy()) + np.diag(prior.row_noise(X))
    np.testing.assert_allclose(covariance.times(np.eye(ROWS)), matrix, atol=1e-10)
    assert covariance.least_noise == prior.row_noise(X).min()
    assert isinstance(covariance, DenseCovariance if approximation is None else LowRankCovariance)
