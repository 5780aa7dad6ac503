"""Kernels evaluated where the result lies: scikit-learn's numbers, without its arrays in between.

Every operator of a kernel such as 4 + 9 · Matern() makes new arrays, each the size of the result.
To get that memory costs several times what is computed in it. Here they are few, and used again for
block after block. The same operations are made in the same order, so that every bit is the same.
"""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    Kernel,
    Matern,
    Product,
    Sum,
)

from cloakgp.utils.arrays import Array


@runtime_checkable
class FillingKernel(Protocol):
    """A kernel that can be evaluated in place."""

    def fill(self, X: Array, Z: Array, *, out: Array, spare: Array) -> None:
        """Put covariances where the result lies.

        Parameters
        ----------
        X : array of shape (n, D)
        Z : array of shape (m, D)
        out : array of shape (n, m)
            Written over.
        spare : array of shape (n, m)
            Memory that nothing else uses.
        """


def fill_matern(left: Array, right: Array, *, out: Array, spare: Array) -> None:
    """Put Matérn 3/2 covariances of inputs in lengthscales, (1 + √3 r) exp(−√3 r), into an array.

    Parameters
    ----------
    left : array of shape (n, D)
    right : array of shape (m, D)
    out, spare : arrays of shape (n, m)
        As for `FillingKernel.fill`.
    """
    cdist(left, right, metric="euclidean", out=out)
    out *= math.sqrt(3)
    np.exp(np.negative(out, out=spare), out=spare)
    out += 1.0
    out *= spare


class KernelBlocks:
    """Covariances of blocks of inputs with the same others, one block after another.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    Z : array of shape (m, D)

    Examples
    --------
    >>> blocks = KernelBlocks(2.0 * RBF(), np.zeros((1, 1)))
    >>> blocks(np.zeros((2, 1)))
    array([[2.],
           [2.]])
    """

    def __init__(self, kernel: Kernel, Z: Array) -> None:
        self._kernel, self._others = kernel, Z
        self._memory: list[Array] = []

    def __call__(self, X: Array) -> Array:
        """Return the covariances of some inputs with the others.

        Parameters
        ----------
        X : array of shape (n, D)

        Returns
        -------
        array of shape (n, m)
            Written over by the next call.

        Raises
        ------
        ValueError
            If the kernel gives NaN or infinite values.
        """
        covariance = self._array(len(X), 0)
        self._fill(self._kernel, X, covariance, depth=1)
        return check_finite(self._kernel, covariance)

    def _array(self, rows: int, depth: int) -> Array:
        """Return an array that nothing else uses at this depth."""
        while len(self._memory) <= depth:
            self._memory.append(np.empty((0, len(self._others))))
        if len(self._memory[depth]) < rows:
            self._memory[depth] = np.empty((rows, len(self._others)))
        return self._memory[depth][:rows]

    def _fill(self, kernel: Kernel, X: Array, out: Array, *, depth: int) -> None:
        # Subclasses may evaluate otherwise.
        kind = type(kernel)
        if kind in (Sum, Product):
            combine = np.add if kind is Sum else np.multiply
            constant, other = _parted(kernel)
            self._fill(other, X, out, depth=depth)
            if type(constant) is ConstantKernel:
                combine(out, constant.constant_value, out=out)
            else:
                spare = self._array(len(X), depth)
                self._fill(constant, X, spare, depth=depth + 1)
                combine(out, spare, out=out)
        elif kind is RBF and _fits(kernel, X):
            cdist(*self._scaled(kernel, X), metric="sqeuclidean", out=out)
            out *= -0.5
            np.exp(out, out=out)
        elif kind is Matern and kernel.nu == 1.5 and _fits(kernel, X):
            fill_matern(*self._scaled(kernel, X), out=out, spare=self._array(len(X), depth))
        elif isinstance(kernel, FillingKernel):
            kernel.fill(X, self._others, out=out, spare=self._array(len(X), depth))
        else:
            out[:] = kernel(X, self._others)

    def _scaled(self, kernel: RBF, X: Array) -> tuple[Array, Array]:
        """Return inputs, and the others, in lengthscales."""
        scale = np.squeeze(kernel.length_scale).astype(float)
        return X / scale, self._others / scale


def check_finite(kernel: Kernel, covariance: Array) -> Array:
    """Return covariances if they are finite.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        For the message.
    covariance : array of shape (n, m)

    Raises
    ------
    ValueError
        If one is NaN or infinite.
    """
    if not np.isfinite(covariance).all():
        raise ValueError(f"the kernel {kernel!r} gives NaN or infinite covariances on these inputs")
    return covariance


def _parted(kernel: Sum | Product) -> tuple[Kernel, Kernel]:
    """Return the two that a kernel is made of, a constant first: the bits are the same."""
    if type(kernel.k2) is ConstantKernel:
        return kernel.k2, kernel.k1
    return kernel.k1, kernel.k2


def _fits(kernel: RBF, X: Array) -> bool:
    """Return whether the lengthscales fit these inputs; the kernel itself raises otherwise."""
    return np.ndim(np.squeeze(kernel.length_scale)) == 0 or np.shape(kernel.length_scale) == (
        X.shape[1],
    )
