"""The linear kernel against scikit-learn's on standardised inputs, and in sums and files."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct
from sklearn.preprocessing import StandardScaler

from cloakgp.models.kernels.linear import LinearKernel
from cloakgp.release.io.kernel_tree import kernel_from_tree, kernel_to_tree


@given(seed=st.integers(0, 2**32 - 1), inputs=st.integers(1, 4))
def test_it_is_a_dot_product_of_standardised_inputs(seed, inputs):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8, inputs)) * 10.0 ** rng.integers(-3, 4, size=inputs) + 5.0
    Y = X[:3] + rng.normal(size=(3, inputs))
    scaler = StandardScaler().fit(X)
    ours, theirs = LinearKernel(scaler.mean_, scaler.scale_), DotProduct(sigma_0=1.0)
    left, right = scaler.transform(X), scaler.transform(Y)
    np.testing.assert_allclose(ours(X), (theirs(left) - 1.0) / inputs, atol=1e-12 * inputs)
    expected = (theirs(left, right) - 1.0) / inputs
    np.testing.assert_allclose(ours(X, Y), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.diag(X), np.diag(ours(X)), atol=1e-12)
    # Over inputs of this mean and these sds its variance is 1 on average.
    assert ours.diag(X).mean() == pytest.approx(1.0)


def test_it_is_the_covariance_of_lines_through_the_centre(rng):
    """Oracle: draws of lines with slopes of variance 1/(s² D)."""
    centre, scale = np.array([2.0, -1.0]), np.array([0.5, 4.0])
    X = rng.uniform(-3, 3, size=(5, 2))
    slopes = rng.normal(size=(200_000, 2)) / (scale * np.sqrt(2))
    lines = slopes @ (X - centre).T
    kernel = LinearKernel(centre, scale)
    covariance = kernel(X)
    sizes = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.abs(lines.T @ lines / len(lines) - covariance).max() < 0.02 * sizes.max()
    np.testing.assert_array_equal(kernel(centre[None, :], X), np.zeros((1, 5)))
    assert np.linalg.eigvalsh(covariance)[0] > -1e-12 * sizes.max()
    assert not kernel.is_stationary()


def test_nothing_of_it_is_learned(rng):
    X = rng.normal(size=(4, 1))
    kernel = LinearKernel([0.0], [1.0])
    assert kernel.theta.size == 0
    assert kernel.n_dims == 0
    values, gradient = kernel(X, eval_gradient=True)
    np.testing.assert_array_equal(values, kernel(X))
    assert gradient.shape == (4, 4, 0)


def test_gradients_of_a_sum_with_it_are_finite_differences(rng):
    X = rng.normal(size=(5, 2))
    kernel = ConstantKernel(2.0) * LinearKernel([0.1, 0.2], [1.0, 3.0]) + 0.5 * RBF(1.3)
    _, gradient = kernel(X, eval_gradient=True)
    assert gradient.shape == (5, 5, 3)
    for index in range(3):
        step = np.zeros(3)
        step[index] = 1e-6
        up, down = (kernel.clone_with_theta(kernel.theta + move)(X) for move in (step, -step))
        np.testing.assert_allclose(gradient[:, :, index], (up - down) / 2e-6, atol=1e-8)


@pytest.mark.parametrize("scalars", [True, False])
def test_copies_are_equal_and_others_are_not(scalars):
    kernel = LinearKernel(*([0.5], [2.0])) if scalars else LinearKernel(np.ones(2), np.ones(2) / 3)
    for copy in (
        clone(kernel),
        pickle.loads(pickle.dumps(kernel)),
        kernel_from_tree(json.loads(json.dumps(kernel_to_tree(kernel)))),
    ):
        assert copy == kernel
        assert copy is not kernel
        X = np.linspace(0, 1, 6).reshape(-1, 1 if scalars else 2)
        assert copy(X).tobytes() == kernel(X).tobytes()
    assert kernel != LinearKernel(kernel.centre, 2 * np.asarray(kernel.scale))
    assert kernel != LinearKernel(1 + np.asarray(kernel.centre), kernel.scale)
    assert kernel != RBF()


def test_it_is_shown_with_centre_and_scale():
    assert repr(LinearKernel([0.0, 1.5], [1.0, 2.0])) == "Linear(0 ± 1, 1.5 ± 2)"


def test_one_row_may_be_a_list():
    np.testing.assert_array_equal(LinearKernel(0.0, 2.0)([[4.0]]), [[4.0]])
