"""Kernels evaluated in place: scikit-learn's numbers, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Kernel,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from cloakgp.models.defaults import default_kernel
from cloakgp.models.evaluation import KernelBlocks
from cloakgp.models.kernels.blocks import BlockMatern
from cloakgp.models.latent import latent_covariance

SCALES = [0.5, 2.0, 1.0]
KERNELS: dict[str, Kernel] = {
    "constant": ConstantKernel(3.0),
    "rbf": RBF(0.7),
    "rbf, a lengthscale each": RBF(SCALES),
    "matern 1/2": Matern(SCALES, nu=0.5),
    "matern 3/2": Matern(SCALES, nu=1.5),
    "matern 5/2": Matern(0.7, nu=2.5),
    "one lengthscale in a list": Matern([0.7], nu=1.5),
    "sum": 2.0 + 3.0 * RBF(0.5),
    "constant last": RBF(0.5) * 3.0 + 2.0,
    "products": (Matern(0.5) + RBF(2.0)) * (DotProduct() + 0.1) * Matern(SCALES),
    "sums of sums": (RBF(1.0) + Matern(2.0)) + (RBF(0.3) + Matern(0.4) * Matern(0.9)),
    "others": RationalQuadratic() + WhiteKernel() * 2.0,
    "power": RBF(0.5) ** 2,
    "blocks": 2.0 * BlockMatern([0.5, 2.0], blocks=[0, 1, 1]) + 0.3,
    "default": default_kernel(np.random.default_rng(1).uniform(size=(50, 3)), width=10.0),
}


@pytest.fixture
def inputs():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 3)), rng.normal(size=(7, 3))


@pytest.mark.parametrize("name", KERNELS)
def test_bits_are_those_of_scikit_learn(name, inputs):
    X, Z = inputs
    blocks = KernelBlocks(KERNELS[name], Z)
    # A longer block after a shorter one, and a shorter one after that.
    for rows in (X[:3], X, X[5:9]):
        np.testing.assert_array_equal(blocks(rows), KERNELS[name](rows, Z))


@pytest.mark.parametrize("name", KERNELS)
def test_matrices_that_are_made_in_blocks_have_the_same_bits(name, inputs, monkeypatch):
    X, Z = inputs
    whole = latent_covariance(KERNELS[name], X, Z)
    monkeypatch.setattr("cloakgp.models.latent.BLOCK_ENTRIES", 30)
    np.testing.assert_array_equal(latent_covariance(KERNELS[name], X, Z), whole)


def test_a_subclass_is_asked_itself(inputs):
    class Doubled(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            return 2.0 * super().__call__(X, Y, eval_gradient)

    X, Z = inputs
    np.testing.assert_array_equal(KernelBlocks(Doubled(0.5), Z)(X), 2.0 * RBF(0.5)(X, Z))


@pytest.mark.parametrize("kernel", [RBF([1.0, 2.0]), Matern([1.0, 2.0])])
@pytest.mark.parametrize("width", [1, 3])
def test_lengthscales_that_do_not_fit_are_refused(kernel, width):
    """One column would broadcast to as many as there are lengthscales."""
    with pytest.raises(ValueError, match="same number of dimensions"):
        KernelBlocks(kernel, np.zeros((4, width)))(np.zeros((5, width)))


def test_infinite_covariances_are_refused():
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="NaN or infinite"):
        KernelBlocks(DotProduct(), np.full((1, 1), 1e200))(np.full((2, 1), 1e200))
