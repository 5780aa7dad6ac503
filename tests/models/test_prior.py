"""Both kinds of prior say everything that the protocol asks, consistently."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from cloakgp.models import APPROXIMATIONS, ExactPrior, Prior, SparsePrior


def priors():
    kernel = 2.0 * RBF(0.8) + WhiteKernel(0.1)
    yield ExactPrior(kernel=kernel, noise_variance=0.2, mean=1.5)
    for approximation in APPROXIMATIONS:
        yield SparsePrior(
            kernel=kernel,
            noise_variance=0.2,
            mean=1.5,
            inducing=np.linspace(-1, 1, 4)[:, None],
            approximation=approximation,
        )


@pytest.fixture(params=list(priors()), ids=["exact", *APPROXIMATIONS])
def prior(request):
    return request.param


def test_every_member_of_the_protocol_is_there(prior):
    members = {name for name in vars(Prior) if not name.startswith("_")}
    assert len(members) >= 8
    for name in members:
        assert hasattr(prior, name)
        if callable(getattr(Prior, name)):
            ours = inspect.signature(getattr(type(prior), name))
            assert (
                ours.parameters.keys() == inspect.signature(getattr(Prior, name)).parameters.keys()
            )


def test_shapes_and_symmetry(prior, rng):
    X, X_query = rng.uniform(size=(7, 1)), rng.uniform(size=(3, 1))
    assert prior.mean == 1.5
    assert prior.cross_covariance(X_query, X).shape == (3, 7)
    assert prior.row_noise(X).shape == (7,)
    assert prior.observation_noise(X_query).shape == (3,)
    assert prior.cloaking_matrix(X_query, X).shape == (3, 7)
    np.testing.assert_allclose(prior.row_covariance(X, X), prior.row_covariance(X, X).T)
    whole = prior.query_covariance(X_query)
    np.testing.assert_allclose(whole, whole.T)
    np.testing.assert_allclose(np.diag(whole), prior.query_variance(X_query))


def test_the_cloaking_matrix_solves_its_equation(prior, rng):
    X, X_query = rng.uniform(-1, 1, size=(9, 1)), rng.uniform(-1, 1, size=(4, 1))
    rows = prior.row_covariance(X, X.copy()) + np.diag(prior.row_noise(X))
    np.testing.assert_allclose(
        prior.cloaking_matrix(X_query, X) @ rows, prior.cross_covariance(X_query, X), atol=1e-9
    )


def test_the_joint_covariance_is_one(prior, rng):
    """K_**, K_*f and K_y fit together: the posterior covariance has no negative direction."""
    X, X_query = rng.uniform(-1, 1, size=(9, 1)), rng.uniform(-1, 1, size=(4, 1))
    rows = prior.row_covariance(X, X.copy()) + np.diag(prior.row_noise(X))
    crossed = prior.cross_covariance(X_query, X)
    joint = np.block([[prior.query_covariance(X_query), crossed], [crossed.T, rows]])
    assert np.linalg.eigvalsh(joint)[0] >= -1e-8
