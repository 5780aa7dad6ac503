"""The forgetting kernel beside draws, scikit-learn's kernels, finite differences and files."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from cloakgp.models.kernels.adjoint import has_adjoint
from cloakgp.models.kernels.cells import InputCells, between_cells
from cloakgp.models.kernels.forgetting import ForgettingKernel
from cloakgp.release.io.kernel_tree import kernel_from_tree, kernel_to_tree

INNER = ConstantKernel(4.0) * Matern([2.0, 3.0], nu=1.5)


@given(
    seed=st.integers(0, 2**32 - 1),
    place=st.integers(0, 2),
    length=st.floats(0.1, 100.0),
    lasting=st.floats(0.0, 1.0),
)
def test_it_is_a_lasting_part_and_one_that_fades(seed, place, length, lasting):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(6, 3)) * 3, rng.normal(size=(4, 3)) * 3
    kernel = ForgettingKernel(INNER, place, length, lasting)
    (rows, times), (others, later) = ((np.delete(T, place, 1), T[:, [place]]) for T in (X, Z))
    fading = Matern(length, nu=0.5)
    expected = INNER(rows, others) * (lasting + (1 - lasting) * fading(times, later))
    np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel(X), kernel(X, X.copy()), rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)), rtol=1e-12)
    assert np.linalg.eigvalsh(kernel(X))[0] > -1e-10


def test_it_is_the_covariance_of_what_it_says(rng):
    """Oracle: draws of a function that lasts, and of one that is an autoregression in time."""
    lasting, length, steps = 0.3, 5.0, np.array([0.0, 1.0, 4.0, 12.0])
    X = np.column_stack([np.repeat([0.0, 1.0], 4), np.tile(steps, 2)])
    root = np.linalg.cholesky(RBF()(np.array([[0.0], [1.0]])))
    draws = 100_000
    drifting = [root @ rng.normal(size=(2, draws))]
    for gap in np.diff(steps):
        kept = np.exp(-gap / length)
        fresh = root @ rng.normal(size=(2, draws))
        drifting.append(kept * drifting[-1] + np.sqrt(1 - kept**2) * fresh)
    constant = root @ rng.normal(size=(2, draws))
    values = np.array(
        [
            np.sqrt(lasting) * constant[place] + np.sqrt(1 - lasting) * each[place]
            for place in (0, 1)
            for each in drifting
        ]
    )
    kernel = ForgettingKernel(RBF(), place=1, length=length, lasting=lasting)
    assert np.abs(values @ values.T / draws - kernel(X)).max() < 0.02


def test_gradients_are_finite_differences(rng):
    X, Z = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    kernel = ForgettingKernel(INNER, 2, 1.5, 0.4)
    weights, own = rng.normal(size=(5, 4)), rng.normal(size=5)
    _, gradient = kernel(X, eval_gradient=True)
    assert has_adjoint(kernel)
    both = np.vstack([X, Z])
    cells = InputCells(means=both, variances=np.zeros_like(both))
    between = between_cells(kernel, cells, rows=slice(5), columns=slice(5, None))
    found, diagonal = between.pull_back(weights), between.pull_back_variances(own)
    for place in range(kernel.n_dims):
        step = np.zeros(kernel.n_dims)
        step[place] = 1e-6
        up, down = (kernel.clone_with_theta(kernel.theta + sign * step) for sign in (1, -1))
        np.testing.assert_allclose(gradient[:, :, place], (up(X) - down(X)) / 2e-6, atol=1e-7)
        assert found[place] == pytest.approx(
            np.sum(weights * (up(X, Z) - down(X, Z))) / 2e-6, abs=1e-6
        )
        assert diagonal[place] == pytest.approx(
            np.sum(own * (up.diag(X) - down.diag(X))) / 2e-6, abs=1e-6
        )
    with pytest.raises(ValueError, match="one set of inputs"):
        kernel(X, Z, eval_gradient=True)


def test_its_hyperparameters_are_those_over_inputs():
    kernel = ForgettingKernel(INNER, 2, 1.5, 0.4)
    np.testing.assert_array_equal(kernel.theta, INNER.theta)
    np.testing.assert_array_equal(kernel.bounds, INNER.bounds)
    assert [each.name for each in kernel.hyperparameters] == [
        f"kernel__{each.name}" for each in INNER.hyperparameters
    ]
    assert kernel.is_stationary()
    assert repr(kernel) == f"Forgetting({INNER!r}, length=1.5, lasting=0.4)"


@pytest.mark.parametrize("copy", [clone, lambda k: pickle.loads(pickle.dumps(k))])
def test_copies_are_equal(copy):
    kernel = ForgettingKernel(INNER, 2, 1.5, 0.4)
    assert copy(kernel) == kernel
    for other in (
        ForgettingKernel(RBF(), 2, 1.5, 0.4),
        ForgettingKernel(INNER, 1, 1.5, 0.4),
        ForgettingKernel(INNER, 2, 2.5, 0.4),
        ForgettingKernel(INNER, 2, 1.5, 0.5),
        INNER,
    ):
        assert kernel != other


def test_files_hold_it(rng):
    kernel = ForgettingKernel(INNER, 2, 1.5, 0.4)
    again = kernel_from_tree(json.loads(json.dumps(kernel_to_tree(kernel))))
    X = rng.normal(size=(4, 3))
    np.testing.assert_array_equal(again(X), kernel(X))


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"length": 0.0}, "length"),
        ({"length": float("nan")}, "length"),
        ({"lasting": 1.5}, "lasting"),
        ({"place": 3}, "no column 3"),
    ],
)
def test_parameters_that_make_no_covariance_are_refused(settings, match):
    kernel = ForgettingKernel(INNER, **{"place": 2, "length": 1.0, **settings})
    with pytest.raises(ValueError, match=match):
        kernel(np.zeros((2, 3)))
