"""The Matérn kernel on blocks is scikit-learn's where every block is one input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Matern

from cloakgp.models import default_kernel
from cloakgp.models.kernels.blocks import BlockMatern
from cloakgp.release.io.kernel_tree import kernel_from_tree, kernel_to_tree

SCALES = np.array([0.5, 2.0])
BLOCKS = np.array([0, 1, 1])


@pytest.fixture
def X(rng):
    return rng.normal(size=(7, 3))


def test_lone_inputs_are_the_oracle_of_scikit_learn(X):
    mine, theirs = BlockMatern([0.5, 1.0, 2.0], blocks=[0, 1, 2]), Matern([0.5, 1.0, 2.0], nu=1.5)
    np.testing.assert_allclose(mine(X), theirs(X), rtol=1e-12)
    np.testing.assert_allclose(mine(X, X[:2]), theirs(X, X[:2]), rtol=1e-12)
    pairs = zip(mine(X, eval_gradient=True), theirs(X, eval_gradient=True), strict=True)
    for mine_part, theirs_part in pairs:
        np.testing.assert_allclose(mine_part, theirs_part, rtol=1e-10, atol=1e-14)


def test_blocks_share_a_scale(X):
    shared = BlockMatern(SCALES, blocks=BLOCKS)
    np.testing.assert_allclose(shared(X), Matern(SCALES[BLOCKS], nu=1.5)(X), rtol=1e-12)
    _, slopes = shared(X, eval_gradient=True)

    def entry(theta):
        return shared.clone_with_theta(theta)(X)[0, 3]

    np.testing.assert_allclose(slopes[0, 3], approx_fprime(shared.theta, entry), rtol=1e-4)


def test_categories_are_equal_or_not():
    corners = np.sqrt(0.5) * np.eye(4)
    K = BlockMatern([1.3], blocks=[0] * 4)(corners)
    off = K[~np.eye(4, dtype=bool)]
    np.testing.assert_allclose(off, off[0])
    assert off[0] < K[0, 0] == 1.0


def test_it_is_cloned_kept_and_told_apart(X):
    kernel = BlockMatern(SCALES, blocks=BLOCKS)
    assert clone(kernel) == kernel_from_tree(kernel_to_tree(kernel)) == kernel
    assert kernel != BlockMatern(SCALES, blocks=[0, 0, 1])
    with pytest.raises(ValueError, match="which scale"):
        kernel(X[:, :2])
    with pytest.raises(ValueError, match="positive"):
        BlockMatern([0.0, 1.0], blocks=BLOCKS)(X)
    with pytest.raises(ValueError, match="leave Y out"):
        kernel(X, X, eval_gradient=True)


def test_a_category_counts_as_one_input_however_many_levels_it_has(rng):
    """The level that was declared and never seen does not change the others' scale."""
    age, level = rng.normal(size=50), rng.integers(0, 3, size=50)
    few = np.column_stack([age, np.sqrt(0.5) * np.eye(3)[level]])
    many = np.column_stack([age, np.sqrt(0.5) * np.eye(5)[level]])
    small = default_kernel(few, width=1.0, blocks=[0, 1, 1, 1])
    large = default_kernel(many, width=1.0, blocks=[0, 1, 1, 1, 1, 1])
    np.testing.assert_allclose(small(few), large(many), rtol=1e-12)


def test_without_blocks_of_several_inputs_the_kernel_is_what_it_was(rng):
    X = rng.normal(size=(9, 2))
    assert default_kernel(X, width=2.0, blocks=[0, 1]) == default_kernel(X, width=2.0)
