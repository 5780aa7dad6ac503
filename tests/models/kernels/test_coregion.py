"""The kernel over several outputs, against Kronecker products and finite differences."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from cloakgp.models.kernels.coregion import CoregionKernel, as_entries, checked_coregion
from cloakgp.models.latent import latent_covariance, white_noise_variance
from cloakgp.release.io.kernel_tree import kernel_from_tree, kernel_to_tree

B = np.array([[1.0, 0.4, 0.0], [0.4, 2.0, -0.3], [0.0, -0.3, 0.5]])


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(5, 2))


@pytest.fixture
def kernel():
    return CoregionKernel(ConstantKernel(2.0) * RBF([1.0, 2.0]), B)


def test_it_is_a_kronecker_product(kernel, X):
    entries = as_entries(X, count=3)
    expected = np.kron(kernel.kernel(X), B)
    np.testing.assert_allclose(kernel(entries), expected, atol=1e-15)
    np.testing.assert_allclose(kernel(entries, entries[:6]), expected[:, :6], atol=1e-15)
    np.testing.assert_allclose(kernel.diag(entries), np.diag(expected), atol=1e-15)


def test_the_gradient_is_that_of_finite_differences(kernel, X):
    entries = as_entries(X, count=3)
    _, gradient = kernel(entries, eval_gradient=True)
    assert gradient.shape == (15, 15, 3)
    for index in range(3):
        step = np.zeros(3)
        step[index] = 1e-6
        above, below = (kernel.clone_with_theta(kernel.theta + sign * step) for sign in (1, -1))
        difference = (above(entries) - below(entries)) / 2e-6
        np.testing.assert_allclose(gradient[:, :, index], difference, atol=1e-8)


def test_white_noise_stays_noise(X):
    kernel = CoregionKernel(RBF() + WhiteKernel(0.5), B)
    entries = as_entries(X, count=3)
    np.testing.assert_allclose(
        latent_covariance(kernel, entries, entries.copy()), np.kron(RBF()(X), B), atol=1e-15
    )
    expected = np.tile(0.5 * np.diag(B), len(X))
    np.testing.assert_allclose(white_noise_variance(kernel, entries), expected, atol=1e-12)


def test_it_is_cloned_and_written_to_files(kernel):
    assert clone(kernel) == kernel
    read = kernel_from_tree(kernel_to_tree(kernel))
    assert repr(read) == repr(kernel)
    np.testing.assert_array_equal(read.coregion, B)
    np.testing.assert_array_equal(read.theta, kernel.theta)
    other = kernel.clone_with_theta(kernel.theta + 0.1)
    assert other != kernel
    assert other != kernel.kernel
    np.testing.assert_allclose(other.theta, kernel.theta + 0.1)
    assert len(kernel.hyperparameters) == 2
    assert kernel.bounds.shape == (3, 2)


@pytest.mark.parametrize(
    "coregion",
    [[[1.0]], [[1, 2], [2, 1]], [[1, 0.5], [0.4, 1]], [[0, 0], [0, 0]], [[1, np.nan], [0, 1]]],
)
def test_coregion_must_be_a_covariance(coregion):
    with pytest.raises(ValueError, match="coregion"):
        checked_coregion(coregion, count=2)


def test_entries_of_no_output_are_refused(kernel, X):
    with pytest.raises(ValueError, match="last column"):
        kernel(np.column_stack([X, np.full(5, 3.0)]))
