"""Adjoint derivatives of kernels against the kernels' own derivative matrices."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from cloakgp.models.kernels.adjoint import has_adjoint
from cloakgp.models.kernels.blocks import BlockMatern
from cloakgp.models.kernels.cells import InputCells, between_cells
from cloakgp.models.kernels.coregion import CoregionKernel, as_entries
from cloakgp.models.kernels.linear import LinearKernel

KERNELS = {
    "default": ConstantKernel(2.0)
    + ConstantKernel(3.0) * LinearKernel([5.0, 5.0, 5.0], [1.0, 2.0, 1.0])
    + ConstantKernel(4.0) * Matern([1.0, 2.0, 0.5], nu=1.5),
    "default of blocks": ConstantKernel(2.0)
    + ConstantKernel(4.0) * BlockMatern([1.0, 2.0], blocks=[0, 1, 1]),
    "one block": BlockMatern([2.0], blocks=[0, 0, 0]),
    "product": Matern(1.3, nu=2.5) * RBF([1.0, 2.0, 3.0]),
    "matern 1/2": Matern(0.7, nu=0.5),
    "matern 1/2, ard": Matern([0.7, 0.5, 2.0], nu=0.5),
    "smooth": Matern([0.7, 1.0, 2.0], nu=np.inf),
    "some fixed": RBF(2.0, "fixed") + ConstantKernel(2.0, "fixed") * Matern(2.0, nu=1.5),
    "all fixed": ConstantKernel(2.0, "fixed") * RBF(1.1, "fixed"),
}


def at(X):
    """Cells whose rows are all at one point."""
    return InputCells(means=X, variances=np.zeros_like(X))


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("name", KERNELS)
def test_sums_are_those_of_derivative_matrices(name, offset, rng):
    kernel, X = KERNELS[name], rng.normal(size=(7, 3)) + offset
    X[3] = X[0]
    _, derivatives = kernel(X, eval_gradient=True)
    weights, own = rng.normal(size=(7, 7)), rng.normal(size=7)
    assert has_adjoint(kernel)
    np.testing.assert_allclose(
        between_cells(kernel, at(X), rows=slice(4)).pull_back(weights[:4]),
        np.einsum("ij,ijp->p", weights[:4], derivatives[:4]),
        rtol=1e-9,
        # Inputs so far from zero hold four digits less of their differences.
        atol=1e-12 * max(offset, 1.0) * np.abs(weights).sum(),
    )
    np.testing.assert_allclose(
        between_cells(kernel, at(X)).pull_back_variances(own),
        np.einsum("i,iip->p", own, derivatives),
        atol=1e-12,
    )


def test_sums_of_a_kernel_between_outputs_are_those_of_derivative_matrices(rng):
    kernel = CoregionKernel(KERNELS["default"], coregion=((2.0, 0.6), (0.6, 1.0)))
    X = as_entries(rng.normal(size=(4, 3)), count=2)
    _, derivatives = kernel(X, eval_gradient=True)
    weights, own = rng.normal(size=(8, 8)), rng.normal(size=8)
    assert has_adjoint(kernel)
    np.testing.assert_allclose(
        between_cells(kernel, at(X), rows=slice(5)).pull_back(weights[:5]),
        np.einsum("ij,ijp->p", weights[:5], derivatives[:5]),
        rtol=1e-9,
    )
    np.testing.assert_allclose(
        between_cells(kernel, at(X)).pull_back_variances(own),
        np.einsum("i,iip->p", own, derivatives),
        atol=1e-12,
    )


@pytest.mark.parametrize(
    "kernel",
    [
        RBF() + WhiteKernel(),
        CoregionKernel(RBF() + WhiteKernel(), coregion=((1.0,),)),
        DotProduct(),
        RationalQuadratic(),
        Matern(nu=0.7),
        2.0 * (RBF() + DotProduct()),
    ],
    ids=str,
)
def test_other_kernels_are_told_apart(kernel):
    assert not has_adjoint(kernel)
