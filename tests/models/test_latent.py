"""Latent covariances, white noise, and what counts as a covariance."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Product,
    Sum,
    WhiteKernel,
)

from cloakgp.models.latent import (
    DEFINITENESS_TOLERANCE,
    DIAGONAL_BLOCK,
    NotPositiveDefiniteError,
    check_positive_definite,
    components,
    latent_covariance,
    latent_variance,
    white_noise_variance,
)

NOISY = {
    "alone": (WhiteKernel(0.3), 0.0, 0.3),
    "sum": (2.0 * RBF() + WhiteKernel(0.3), 2.0, 0.3),
    "product": (2.0 * RBF() * WhiteKernel(0.3), 0.0, 0.6),
    "scaled sum": (4.0 * (RBF() + WhiteKernel(0.3)), 4.0, 1.2),
    "square": ((RBF() + WhiteKernel(0.3)) ** 2, 1.0, 1.3**2 - 1),
    "none": (2.0 * RBF(), 2.0, 0.0),
}


@pytest.mark.parametrize("name", NOISY)
@pytest.mark.parametrize("count", [1, DIAGONAL_BLOCK, DIAGONAL_BLOCK + 1, 3 * DIAGONAL_BLOCK])
def test_variance_is_latent_plus_noise(name, count):
    kernel, latent, noise = NOISY[name]
    X = np.linspace(-1, 1, count)[:, None]
    np.testing.assert_allclose(latent_variance(kernel, X), np.full(count, latent), rtol=1e-12)
    np.testing.assert_allclose(
        white_noise_variance(kernel, X), np.full(count, noise), rtol=1e-12, atol=1e-15
    )


def test_variances_that_differ_between_inputs():
    X = np.arange(600.0)[:, None] / 100
    kernel = DotProduct(0.5) + WhiteKernel(0.3)
    np.testing.assert_allclose(latent_variance(kernel, X), 0.25 + X.ravel() ** 2, rtol=1e-12)
    np.testing.assert_allclose(white_noise_variance(kernel, X), np.full(600, 0.3), rtol=1e-9)


def test_white_noise_is_no_latent_covariance_even_between_the_same_array():
    X = np.zeros((2, 1))
    np.testing.assert_array_equal(latent_covariance(RBF() + WhiteKernel(), X, X), np.ones((2, 2)))


def test_components_are_found_at_any_depth():
    kernel = (RBF(1.0) + WhiteKernel(0.1)) ** 2 * ConstantKernel(3.0) + DotProduct()
    kinds = [type(part) for part in components(kernel)]
    expected = [Sum, Product, Exponentiation, Sum, RBF, WhiteKernel, ConstantKernel, DotProduct]
    assert sorted(map(str, kinds)) == sorted(map(str, expected))


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize(("share", "accepted"), [(0.0, True), (0.5, True), (3.0, False)])
def test_definiteness_is_judged_up_to_rounding(scale, share, accepted):
    covariance = scale * np.diag([1.0, 0.5, -share * DEFINITENESS_TOLERANCE])
    if accepted:
        check_positive_definite(RBF(), covariance)
    else:
        with pytest.raises(NotPositiveDefiniteError, match=r"RBF\(length_scale=1\)"):
            check_positive_definite(RBF(), covariance)


@pytest.mark.parametrize(
    "covariance",
    [
        np.array([[1.0, 2.0], [2.0, 1.0]]),
        np.array([[1.0, 0.5], [0.4, 1.0]]),
        -np.eye(2),
        np.array([[0.0, 1.0], [1.0, 0.0]]),
        np.array([[-1.0, 0.0], [0.0, 1.0]]),
        np.array([[0.0, 1.0], [-1.0, 0.0]]),
    ],
)
def test_no_covariances(covariance):
    with pytest.raises(NotPositiveDefiniteError):
        check_positive_definite(RBF(), covariance)


@pytest.mark.parametrize("covariance", [np.zeros((3, 3)), np.ones((3, 3)), np.eye(3)])
def test_covariances_at_the_edge(covariance):
    check_positive_definite(RBF(), covariance)
    np.testing.assert_array_equal(covariance, covariance.T)


def test_rounding_in_a_smooth_kernel_is_forgiven():
    X = np.linspace(0, 1, 300)[:, None]
    covariance = 1e6 * RBF(5.0)(X)
    assert np.linalg.eigvalsh(covariance)[0] < 0
    check_positive_definite(RBF(5.0), covariance)
