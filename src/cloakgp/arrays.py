"""Checks on public arrays, and the array type used throughout."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def as_matrix(values: ArrayLike, *, name: str, columns: int | None = None) -> Array:
    """Return a finite float64 matrix, or say what is wrong with it.

    Only for public values: the errors name shapes, and never the private column.

    Parameters
    ----------
    values : array-like of shape (n, m)
    name : str
        What the error calls it.
    columns : int, optional
        The number of columns that it must have.

    Raises
    ------
    ValueError
        If it is not a matrix of finite numbers with at least one row and one column, or has
        another number of columns.

    Examples
    --------
    >>> as_matrix([[1, 2]], name="X")
    array([[1., 2.]])
    """
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"{name} must have two dimensions (rows, columns), got {matrix.ndim}")
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise ValueError(f"{name} needs at least one row and one column, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name} contains NaN or infinity: remove or impute those rows first")
    if columns is not None and matrix.shape[1] != columns:
        raise ValueError(f"{name} has {matrix.shape[1]} columns, expected {columns}")
    return matrix
