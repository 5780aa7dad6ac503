"""Kernels with other hyperparameters, against scikit-learn's own way to them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from cloakgp.models.kernels.blocks import BlockMatern
from cloakgp.models.kernels.linear import LinearKernel
from cloakgp.models.kernels.rebuilding import at_theta, count_free


class Longer(RBF):
    """A kernel of somebody's own."""

    def __call__(self, X, Y=None, eval_gradient=False):
        return super().__call__(X / 2.0, None if Y is None else Y / 2.0, eval_gradient)


KERNELS = {
    "alone": RBF(0.7),
    "of several": 4.0
    + 9.0 * LinearKernel([0.0, 1.0], [1.0, 2.0])
    + 2.0 * Matern([1.0, 2.0], nu=1.5),
    "fixed": ConstantKernel(2.0, "fixed") * Matern(1.5, nu=2.5),
    "all fixed": RBF(0.7, "fixed"),
    "one lengthscale of an array": RBF([0.7]),
    "blocks": 2.0 * BlockMatern([1.0, 3.0], blocks=[0, 1]),
    "noise": RBF(0.7) + WhiteKernel(0.1),
    "power": 3.0 * RBF(0.7) ** 2 + RationalQuadratic(),
    "of somebody's own": 3.0 * Longer(0.7),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_those_of_scikit_learn(name, rng):
    kernel, X = KERNELS[name], rng.normal(size=(5, 2))
    declared, at = kernel.theta.copy(), at_theta(kernel)
    for _ in range(2):
        theta = declared + rng.normal(size=len(declared))
        found, expected = at(theta), kernel.clone_with_theta(theta)
        assert found == expected
        np.testing.assert_array_equal(found.theta, expected.theta)
        np.testing.assert_array_equal(found(X), expected(X))
    np.testing.assert_array_equal(kernel.theta, declared)
    assert count_free(kernel) == kernel.n_dims
