"""Noise that varies with the inputs: what the function is, and what priors make of it."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.scatter import LARGEST_LOG, Scatter, length_between

SCATTER = Scatter(
    centres=np.array([[0.0, 0.0], [2.0, 30.0]]),
    units=np.array([1.0, 10.0]),
    length=2.0,
    weights=np.array([0.5, -0.25]),
)
X = np.array([[0.0, 0.0], [1.0, 10.0], [900.0, 0.0]])


def test_it_is_a_sum_of_bumps():
    squares = [[0.0, 4.0 + 9.0], [1.0 + 1.0, 1.0 + 4.0], [np.inf, np.inf]]
    expected = np.exp(-np.array(squares) / 8.0) @ SCATTER.weights
    np.testing.assert_allclose(SCATTER.log_factor(X), expected)
    np.testing.assert_allclose(SCATTER.factor(X), np.exp(expected) ** 2)
    # Sizes of groups, or what follows the inputs, are passed over.
    np.testing.assert_array_equal(SCATTER.factor(np.column_stack([X, X])), SCATTER.factor(X))


def test_it_is_bounded():
    far = replace(SCATTER, weights=np.array([900.0, 0.0]))
    assert far.log_factor(X[:1]) == [LARGEST_LOG]


@pytest.mark.parametrize("kind", ["exact", "sparse"])
def test_priors_multiply_their_noise_by_it(kind):
    kernel = RBF(2.0) + WhiteKernel(0.3)
    prior = ExactPrior(kernel=kernel, noise_variance=0.2, mean=0.0)
    if kind == "sparse":
        prior = SparsePrior(kernel=kernel, noise_variance=0.2, mean=0.0, inducing=X)
    varied = replace(prior, scatter=SCATTER)
    np.testing.assert_allclose(varied.observation_noise(X), 0.5 * SCATTER.factor(X))
    # What inducing inputs leave out is no noise of the outputs.
    more = varied.observation_noise(X) - prior.observation_noise(X)
    np.testing.assert_allclose(varied.row_noise(X) - prior.row_noise(X), more, atol=1e-12)
    np.testing.assert_array_equal(varied.query_variance(X), prior.query_variance(X))


def test_centres_are_as_far_apart_as_they_are_to_the_nearest():
    centres = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 20.0]])
    # In units: 1, 1, 2.
    assert length_between(centres, units=np.array([1.0, 10.0])) == 1.5


@pytest.mark.parametrize(
    "damaged",
    [
        {"centres": np.zeros((0, 2)), "weights": np.zeros(0)},
        {"centres": np.zeros(2)},
        {"units": np.ones(1)},
        {"units": np.array([1.0, 0.0])},
        {"length": 0.0},
        {"length": np.nan},
        {"weights": np.array([0.0, np.nan])},
        {"weights": np.zeros(3)},
    ],
    ids=str,
)
def test_functions_that_are_none_are_refused(damaged):
    SCATTER.validate()
    with pytest.raises(ValueError, match="damaged"):
        replace(SCATTER, **damaged).validate()
