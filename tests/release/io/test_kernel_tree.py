"""Kernels to plain trees and back."""

from __future__ import annotations

import json
import operator
from functools import reduce

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)

from cloakgp.models.kernels.linear import LinearKernel
from cloakgp.release.io.kernel_tree import kernel_from_tree, kernel_to_tree

KERNELS = [
    RBF(1 / 3),
    RBF([1 / 3, 2.0], length_scale_bounds=[(1e-3, 1.0), (0.1, 10.0)]),
    RBF(np.array([0.1, 0.2, 0.3])),
    RBF(np.float64(0.1)),
    RBF(1, length_scale_bounds="fixed"),
    Matern(0.9, nu=np.inf),
    Matern(0.1 + 0.2, nu=1.5),
    ExpSineSquared(1.1, periodicity=2.5),
    DotProduct(0.8) ** 2,
    DotProduct(0.8) ** np.int64(3),
    RationalQuadratic(0.9, alpha=1.7),
    PairwiseKernel(metric="rbf", gamma=0.4),
    LinearKernel([1 / 3], [0.7]),
    2.0 * LinearKernel(np.float64(1 / 3), np.float64(0.7)) + RBF(0.4),
    2.0 * RBF(0.7) * Matern([1.0, 2.0], nu=2.5) + WhiteKernel(0.3) + ConstantKernel(4),
]


class Plain(RBF):
    """A kernel that is not scikit-learn's."""


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_same_kernel_comes_back(kernel):
    tree = json.loads(json.dumps(kernel_to_tree(kernel)))
    back = kernel_from_tree(tree)
    X = np.random.default_rng(0).normal(size=(6, np.size(getattr(kernel, "length_scale", 1.0))))
    if "length_scale=[1, 2]" in str(kernel):
        X = np.random.default_rng(0).normal(size=(6, 2))
    assert back(X).tobytes() == kernel(X).tobytes()
    assert str(back) == str(kernel)
    assert json.dumps(kernel_to_tree(back)) == json.dumps(tree)
    np.testing.assert_array_equal(back.theta, kernel.theta)
    np.testing.assert_array_equal(back.bounds, kernel.bounds)


def test_bounds_come_back_as_the_tuples_that_scikit_learn_compares():
    back = kernel_from_tree(json.loads(json.dumps(kernel_to_tree(RBF(2.0)))))
    assert back.length_scale_bounds == (1e-5, 1e5)
    assert isinstance(back.length_scale_bounds, tuple)
    assert back == RBF(2.0)


def test_a_foreign_kernel_needs_its_class():
    tree = kernel_to_tree(2.0 * Plain(0.5))
    with pytest.raises(ValueError, match=r"unknown kernel 'Plain': when loading, pass its class"):
        kernel_from_tree(tree)
    back = kernel_from_tree(tree, classes=(Plain,))
    assert type(back.k2) is Plain
    assert back.k2.length_scale == 0.5


@pytest.mark.parametrize(
    "kernel",
    [
        CompoundKernel([RBF(), RBF()]),
        PairwiseKernel(metric=max),
        PairwiseKernel(pairwise_kernels_kwargs={"gamma": 1}),
        RBF(1j),
        RBF(["a", "b"]),
    ],
)
def test_what_cannot_be_written_plainly_is_refused(kernel):
    with pytest.raises(ValueError, match="cannot be written to a file"):
        kernel_to_tree(kernel)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (None, "damaged"),
        ([], "damaged"),
        ({}, "damaged"),
        ({"kernel": "RBF"}, "damaged"),
        ({"kernel": "RBF", "parameters": {}, "more": 1}, "damaged"),
        ({"kernel": "RBF", "parameters": []}, "damaged"),
        ({"kernel": 3, "parameters": {}}, "unknown kernel 3"),
        ({"kernel": "os.system", "parameters": {}}, "unknown kernel"),
        ({"kernel": "NormalizedKernelMixin", "parameters": {}}, "unknown kernel"),
        ({"kernel": "ABCMeta", "parameters": {}}, "unknown kernel"),
        ({"kernel": "RBF", "parameters": {"lengthscale": 1.0}}, "do not fit RBF"),
        ({"kernel": "Kernel", "parameters": {}}, "do not fit Kernel"),
        ({"kernel": "RBF", "parameters": {"length_scale": {"array": ["a"]}}}, "could not convert"),
        ({"kernel": "Sum", "parameters": {"k1": {}, "k2": {}}}, "damaged"),
    ],
)
def test_damaged_trees_are_refused(tree, message):
    with pytest.raises(ValueError, match=message):
        kernel_from_tree(tree)


def test_sums_are_written_as_long_as_they_can_be_read():
    longest = reduce(operator.add, [RBF()] * 100)
    assert kernel_from_tree(kernel_to_tree(longest)) == longest
    with pytest.raises(ValueError, match="nested more than 100 deep"):
        kernel_to_tree(longest + RBF())


def test_kernels_are_written_as_many_as_can_be_read():
    kernel = RBF()
    for _ in range(8):
        kernel = kernel + kernel
    assert kernel_from_tree(kernel_to_tree(kernel)) == kernel
    with pytest.raises(ValueError, match="more than 1000 kernels"):
        kernel_to_tree(kernel + kernel)
