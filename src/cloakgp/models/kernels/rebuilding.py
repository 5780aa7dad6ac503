"""Kernels of one form with other hyperparameters, many times: what does not change is read once.

scikit-learn's ``clone_with_theta`` looks for hyperparameters among all attributes of every part, in
more time than small matrices take.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, Product, Sum

from cloakgp.models.kernels.blocks import BlockMatern
from cloakgp.models.kernels.linear import LinearKernel
from cloakgp.utils.arrays import Array

AtTheta = Callable[[Array], Kernel]
"""From the logarithms of free hyperparameters to the kernel that has these."""

_WITHOUT_PARTS = (ConstantKernel, LinearKernel, RBF, Matern, BlockMatern)


def at_theta(kernel: Kernel) -> AtTheta:
    """Return what `clone_with_theta` of a kernel returns, faster of the usual ones.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel

    Examples
    --------
    >>> at_theta(2.0 * RBF())(np.log([9.0, 3.0]))
    3**2 * RBF(length_scale=3)
    """
    # Subclasses may be made otherwise.
    kind = type(kernel)
    if kind in (Sum, Product):
        parts = at_theta(kernel.k1), at_theta(kernel.k2)
        return partial(_joined, kind, *parts, first=count_free(kernel.k1))
    if kind in _WITHOUT_PARTS:
        free = [one for one in kernel.hyperparameters if not one.fixed]
        sizes = [(one.name, one.n_elements) for one in free]
        return partial(_alone, kind, kernel.get_params(deep=False), sizes)
    with_theta: AtTheta = kernel.clone_with_theta
    return with_theta


def count_free(kernel: Kernel) -> int:
    """Return how many hyperparameters are not fixed, as ``n_dims`` does, of the usual ones faster.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel

    Examples
    --------
    >>> count_free(2.0 * RBF([1.0, 2.0]) + ConstantKernel(1.0, "fixed"))
    3
    """
    kind = type(kernel)
    if kind in (Sum, Product):
        return count_free(kernel.k1) + count_free(kernel.k2)
    if kind is LinearKernel:
        return 0
    if kind not in _WITHOUT_PARTS:
        # Those of zero have no logarithm to count.
        return sum(one.n_elements for one in kernel.hyperparameters if not one.fixed)
    constant = kind is ConstantKernel
    one = kernel.hyperparameter_constant_value if constant else kernel.hyperparameter_length_scale
    return 0 if one.fixed else int(one.n_elements)


def _joined(
    kind: type[Sum | Product], one: AtTheta, other: AtTheta, theta: Array, *, first: int
) -> Kernel:
    return kind(one(theta[:first]), other(theta[first:]))


def _alone(
    kind: type[Kernel], settings: dict[str, object], sizes: list[tuple[str, int]], theta: Array
) -> Kernel:
    found, start = {}, 0
    for name, count in sizes:
        values = np.exp(theta[start : start + count])
        found[name] = values if count > 1 else values[0]
        start += count
    return kind(**{**settings, **found})
