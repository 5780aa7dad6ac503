r"""Coregionalisation kernel: several outputs of one person as entries of one Gaussian process.

Entry (x, t) is output t at input x, and the prior covariance between entries is

    cov[f_t(x), f_u(z)] = k(x, z) B_tu,

the intrinsic coregionalisation model (Bonilla, Chai and Williams 2008; Álvarez, Rosasco and
Lawrence 2012, section 4.2), with B public and positive semidefinite.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.models.kernels.factored import FactoredKernel
from cloakgp.utils.arrays import Array, as_matrix

DEFINITENESS_TOLERANCE = 1e-10

Outputs = np.ndarray[tuple[int], np.dtype[np.intp]]
"""Which output each entry is, from 0."""


class CoregionKernel(FactoredKernel):
    """Covariance of entries: a kernel over inputs, times a matrix over outputs.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Over all columns but the last; its hyperparameters are the only ones.
    coregion : array-like of shape (T, T)
        B. The last column of the inputs, rounded, says which output an entry is.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> CoregionKernel(RBF(), [[4.0, 1.0], [1.0, 9.0]])([[0.0, 0.0], [0.0, 1.0]])
    array([[4., 1.],
           [1., 9.]])
    """

    declared: ClassVar[tuple[str, ...]] = ("coregion",)

    def __init__(self, kernel: Kernel, coregion: ArrayLike) -> None:
        self.kernel = kernel
        self.coregion = coregion

    def is_stationary(self) -> bool:
        """Return False: variances may differ between outputs."""
        return False

    def split(self, X: ArrayLike) -> tuple[Array, Outputs]:
        """Return inputs of entries, shape (n, D), and of which output each is, shape (n,)."""
        entries = as_matrix(X, name="X")
        which = np.rint(entries[:, -1]).astype(np.intp)
        if which.min() < 0 or which.max() >= len(np.asarray(self.coregion)):
            raise ValueError("the last column must say which output an entry is, from 0")
        return np.ascontiguousarray(entries[:, :-1]), which

    def factor(self, column: Outputs, other: Outputs) -> Array:
        """Return the covariances between the outputs of entries, shape (n, m)."""
        return self.matrix()[np.ix_(column, other)]

    def own_factor(self, column: Outputs) -> Array:
        """Return the variances of the outputs of entries, shape (n,)."""
        variances: Array = np.diag(self.matrix())[column]
        return variances

    def matrix(self) -> Array:
        """Return the covariances between outputs, shape (T, T)."""
        return checked_coregion(self.coregion, count=len(np.asarray(self.coregion)))

    def __eq__(self, other: object) -> bool:
        """Return whether the other is of this class and has the same parameters."""
        if not isinstance(other, CoregionKernel):
            return False
        return bool(self.kernel == other.kernel) and np.array_equal(
            np.asarray(self.coregion), np.asarray(other.coregion)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{self.kernel!r} between {len(np.asarray(self.coregion))} outputs"


def as_entries(X: Array, *, count: int) -> Array:
    """Return the entries of several outputs at each input, those of one row next to each other.

    Parameters
    ----------
    X : array of shape (N, D)
    count : int
        T, the number of outputs.

    Returns
    -------
    array of shape (N T, D + 1)
        The last column says which output.

    Examples
    --------
    >>> as_entries(np.array([[5.0], [7.0]]), count=2).tolist()
    [[5.0, 0.0], [5.0, 1.0], [7.0, 0.0], [7.0, 1.0]]
    """
    which = np.tile(np.arange(count, dtype=np.float64), len(X))
    return np.column_stack([np.repeat(X, count, axis=0), which])


def checked_coregion(coregion: ArrayLike, *, count: int) -> Array:
    """Return a valid B, or raise an error that explains the fault.

    Parameters
    ----------
    coregion : array-like of shape (T, T)
        In units of the outputs' widths.
    count : int
        T.

    Raises
    ------
    ValueError
        Unless it is symmetric and positive semidefinite.

    Examples
    --------
    >>> checked_coregion([[1, 0.5], [0.5, 1]], count=2)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    matrix = as_matrix(coregion, name="coregion", columns=count)
    scale = float(np.abs(matrix).max())
    if matrix.shape != (count, count) or not np.allclose(matrix, matrix.T, rtol=0, atol=0):
        raise ValueError(f"coregion must be a symmetric matrix of shape ({count}, {count})")
    if float(np.linalg.eigvalsh(matrix)[0]) < -DEFINITENESS_TOLERANCE * scale or scale == 0:
        raise ValueError("coregion must be positive semidefinite, and not zero")
    return matrix
