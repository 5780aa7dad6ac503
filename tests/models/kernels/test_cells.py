"""Kernels between cells: against kernels of their rows, and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from cloakgp.models.kernels.blocks import BlockMatern
from cloakgp.models.kernels.cells import InputCells, between_cells, gaussian_mixture
from cloakgp.models.kernels.coregion import CoregionKernel
from cloakgp.models.kernels.linear import LinearKernel

LINEAR = LinearKernel([1.0, 0.0, 2.0], [1.0, 3.0, 0.5])
KERNELS = {
    "rbf": 2.0 * RBF(1.3),
    "ard": RBF([1.3, 0.6, 2.0]),
    "matern 1/2": 0.7 * Matern([1.1, 2.0, 0.5], nu=0.5),
    "matern 3/2": Matern(1.1, nu=1.5),
    "matern 5/2": Matern([1.1, 2.0, 0.5], nu=2.5) * 3.0,
    "blocks": BlockMatern([1.5, 0.8], blocks=[0, 1, 1]) + 0.3 * LINEAR,
    "default": ConstantKernel(3.0) + 0.4 * LINEAR + 2.0 * Matern([1.0, 2.0, 3.0], nu=1.5),
    "product of two": RBF(1.3) * Matern([1.1, 2.0, 0.5], nu=1.5),
    "some fixed": ConstantKernel(2.0, "fixed") * RBF([1.0, 2.0, 3.0], "fixed") + RBF(0.5),
}


def some_cells(rng, *, count=6, each=1_000, spread=0.3):
    """Cells of many rows, and these."""
    middles = rng.uniform(0, 3, size=(count, 3))
    X = middles[:, None] + rng.uniform(-spread, spread, size=(count, each, 3))
    return InputCells(means=X.mean(axis=1), variances=X.var(axis=1)), X


@pytest.mark.parametrize("name", KERNELS)
def test_rows_of_two_cells_have_in_common_what_pairs_of_rows_do_on_average(name, rng):
    """Oracle: pairs of rows, drawn apart, also of one cell."""
    kernel = KERNELS[name]
    cells, X = some_cells(rng)
    between = between_cells(kernel, cells)
    found, expected = between.matrix, np.empty_like(between.matrix)
    for one, rows in enumerate(X):
        for other, others in enumerate(X):
            pairs = zip(np.array_split(rows, 20), np.array_split(others[::-1], 20), strict=True)
            expected[one, other] = np.mean([kernel(*pair).mean() for pair in pairs])
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, atol=0.1 * scale)
    # At the means alone they are further off.
    at_means = kernel(cells.means)
    assert np.abs(found - expected).max() < 0.5 * np.abs(at_means - expected).max()
    within = np.array([kernel.diag(rows).mean() for rows in X])
    np.testing.assert_allclose(between.variances, within)


@pytest.mark.parametrize("length", [0.3, 0.6, 1.2])
@pytest.mark.parametrize("nu", [1.5, 2.5, np.inf])
def test_lengthscales_may_be_shorter_than_cells_are_wide(nu, length, rng):
    """Oracle: pairs of Gaussian rows. The kernel at their mean squared distance is next to nothing.

    Where a cell's rows have less in common than is said here, short lengthscales are learned with
    variances that are far too large.
    """
    middles, sds = rng.uniform(0, 2, size=(6, 3)), rng.uniform(0.5, 0.7, size=(6, 3))
    cells, kernel = InputCells(means=middles, variances=sds**2), Matern(length, nu=nu)
    found = between_cells(kernel, cells).matrix
    expected, at_mean = np.empty((6, 6)), np.empty((6, 6))
    for one, other in np.ndindex(6, 6):
        difference = middles[one] - middles[other]
        sd = np.hypot(sds[one], sds[other])
        draws = difference + sd * rng.normal(size=(40_000, 3))
        expected[one, other] = kernel(draws, np.zeros((1, 3))).mean()
        mean_square = np.square(difference).sum() + np.square(sd).sum()
        at_mean[one, other] = kernel([[np.sqrt(mean_square)]], [[0.0]])[0, 0]
    np.testing.assert_allclose(found, expected, rtol=0.2, atol=0.05 * expected.max())
    if length == 0.3:
        assert (np.diag(at_mean) < 0.5 * np.diag(expected)).all()


@pytest.mark.parametrize(("nu", "far"), [(0.5, 0.016), (1.5, 0.002), (2.5, 0.002), (np.inf, 0.0)])
def test_matern_kernels_are_mixtures_of_gaussian_ones(nu, far):
    distances = np.linspace(0, 20, 2_001)
    kernel = Matern(1.0, nu=nu)(distances[:, None], [[0.0]])[:, 0]
    precisions, shares = np.array(gaussian_mixture(nu)).T
    mixture = np.exp(-np.square(distances)[:, None] * precisions / 2) @ shares
    np.testing.assert_allclose(mixture, kernel, atol=far + 1e-12)
    assert shares.sum() == pytest.approx(1.0)
    assert (shares > 0).all()


@pytest.mark.parametrize("name", KERNELS)
def test_rows_that_are_alike_are_at_their_place(name, rng):
    X = rng.uniform(0, 3, size=(5, 3))
    cells = InputCells(means=X, variances=np.zeros_like(X))
    found = between_cells(KERNELS[name], cells)
    np.testing.assert_allclose(found.matrix, KERNELS[name](X))
    np.testing.assert_allclose(found.variances, KERNELS[name].diag(X))


@given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from(sorted(KERNELS)))
def test_the_matrix_is_a_covariance_and_less_than_the_variances(seed, name):
    """Whatever the cells: no row has less than nothing of its own."""
    rng = np.random.default_rng(seed)
    cells = InputCells(
        means=rng.normal(size=(12, 3)), variances=rng.exponential(rng.exponential(2.0), (12, 3))
    )
    found = between_cells(KERNELS[name], cells)
    rounding = 1e-9 * found.variances.max()
    assert np.linalg.eigvalsh(found.matrix).min() >= -rounding
    assert (np.diag(found.matrix) <= found.variances + rounding).all()


@pytest.mark.parametrize("name", KERNELS)
def test_slopes_are_those_of_finite_differences(name, rng):
    kernel = KERNELS[name]
    cells, _ = some_cells(rng, each=10)
    found, weights = between_cells(kernel, cells), rng.normal(size=(6, 6))

    def at(theta):
        return between_cells(kernel.clone_with_theta(theta), cells)

    slopes = approx_fprime(kernel.theta, lambda theta: np.vdot(weights, at(theta).matrix), 1e-7)
    np.testing.assert_allclose(found.pull_back(weights), slopes, atol=1e-4)
    own = weights[0]
    slopes = approx_fprime(kernel.theta, lambda theta: own @ at(theta).variances, 1e-7)
    np.testing.assert_allclose(found.pull_back_variances(own), slopes, atol=1e-4)


def test_outputs_of_several_are_told_apart(rng):
    """A cell holds entries of one output: of two, what both inputs and outputs have in common."""
    kernel = CoregionKernel(2.0 * RBF([1.0, 2.0]), coregion=[[1.0, 0.5], [0.5, 2.0]])
    inputs = rng.uniform(0, 2, size=(4, 2))
    entries = np.column_stack([inputs, [0.0, 1.0, 0.0, 1.0]])
    variances = np.column_stack([rng.uniform(size=(4, 2)), np.zeros(4)])
    cells = InputCells(means=entries, variances=variances)
    alone = InputCells(means=inputs, variances=variances[:, :2])
    which = np.array([0, 1, 0, 1])
    factor = np.array([[1.0, 0.5], [0.5, 2.0]])[np.ix_(which, which)]
    found, same = between_cells(kernel, cells), between_cells(kernel.kernel, alone)
    np.testing.assert_allclose(found.matrix, factor * same.matrix)
    np.testing.assert_allclose(found.variances, 2.0 * np.diag(factor))
    weights = rng.normal(size=(4, 4))
    np.testing.assert_allclose(found.pull_back(weights), same.pull_back(weights * factor))
    np.testing.assert_allclose(
        found.pull_back_variances(weights[0]),
        same.pull_back_variances(weights[0] * np.diag(factor)),
    )
