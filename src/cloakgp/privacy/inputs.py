"""Private inputs: their shape, and how they are checked without quoting them.

Where inputs are private, no message shows one, nor how many rows there are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.arrays import Array
from cloakgp.privacy.outputs import as_floats, checked_outputs


def checked_private_inputs(X: ArrayLike, *, columns: int | None = None) -> Array:
    """Return X as a finite float64 matrix, without quoting a value or the number of rows.

    Parameters
    ----------
    X : array-like of shape (N, D)
        Private.
    columns : int, optional
        The number of columns that it must have.

    Raises
    ------
    ValueError, TypeError
        If it is not a matrix of finite numbers with at least one row and `columns` columns. No
        exception that could quote a value is kept as its cause.
    """
    matrix = _numbers(X)
    if matrix.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {matrix.ndim}D array instead. Reshape your data: one row per "
            "person, one column per input"
        )
    if matrix.shape[0] == 0:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    if matrix.shape[1] == 0:
        raise ValueError("0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    if not np.isfinite(matrix).all():
        raise ValueError("Input X contains NaN or infinity: remove or impute those rows first")
    if columns is not None and matrix.shape[1] != columns:
        raise ValueError(f"X has {matrix.shape[1]} columns, and input_bounds are for {columns}")
    return matrix


def _numbers(X: ArrayLike) -> Array:
    if hasattr(X, "toarray"):
        raise TypeError("sparse input is not supported: X must be a dense array")
    try:
        raw = np.asarray(X)
    except Exception:
        raw = None
    if raw is None:
        raise ValueError("X must be a table of numbers")
    if np.iscomplexobj(raw):
        raise ValueError("Complex data not supported")
    try:
        # From X itself: what numpy made of a list depends on all of it.
        matrix: Array | None = as_floats(X)
    except Exception:
        matrix = None
    if matrix is None:
        # The conversion's own error would quote the value that it stumbled on.
        raise TypeError("X must be numeric: each argument must be a string of a real number")
    return matrix


def checked_paired_outputs(y: ArrayLike, *, rows: int) -> Array:
    """Check outputs without saying how many rows there are."""
    # Ragged outputs have no shape; what is said of them is said by `checked_outputs`.
    if y is not None and _length(y) not in (None, rows):
        raise ValueError("X and y have different numbers of rows: they must agree")
    return checked_outputs(y, rows=rows)


def _length(values: ArrayLike) -> int | None:
    try:
        shape = np.shape(np.asarray(values))
    except Exception:
        return None
    return shape[0] if shape else None
