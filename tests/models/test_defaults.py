"""The prior of somebody who has seen no output."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern, Product

from cloakgp.models import default_kernel, default_noise_variance


def test_the_rule_in_one_dimension():
    X = np.array([[3.0], [43.0], [10.0]])
    kernel = default_kernel(X, width=100.0)
    assert isinstance(kernel, Product)
    assert isinstance(kernel.k2, Matern)
    assert kernel.k2.nu == 1.5
    assert kernel.k1.constant_value == pytest.approx(30.0**2)
    assert kernel.k2.length_scale == pytest.approx(0.5 * 40.0)
    assert kernel.diag(X) == pytest.approx(900.0)


def test_one_lengthscale_for_each_input():
    X = np.array([[0.0, 5.0, -1.0], [8.0, 6.0, 1.0]])
    np.testing.assert_allclose(
        default_kernel(X, width=1.0).k2.length_scale, 0.5 * np.sqrt(3) * np.array([8.0, 1.0, 2.0])
    )


def test_it_sees_ranges_alone(rng):
    X = rng.uniform(size=(50, 2))
    assert default_kernel(X, width=2.0) == default_kernel(X[rng.permutation(50)], width=2.0)


def test_noise_is_a_tenth_of_the_width():
    assert default_noise_variance(width=30.0) == 9.0


@pytest.mark.parametrize(
    ("X", "columns"),
    [
        (np.ones((4, 1)), r"\[0\]"),
        (np.array([[0.0, 1.0], [1.0, 1.0]]), r"\[1\]"),
        (np.ones((1, 2)), r"\[0, 1\]"),
    ],
)
def test_constant_inputs_are_named(X, columns):
    with pytest.raises(ValueError, match=f"input columns {columns} are constant"):
        default_kernel(X, width=1.0)
