"""Private inputs: their shape, and how they are checked without quoting them.

Where inputs are private, no message shows one, nor how many rows there are.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.privacy.entries import as_entries, read_entries, read_outputs
from cloakgp.privacy.questions.classes import Classes
from cloakgp.utils.arrays import Array


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
    if hasattr(X, "toarray"):
        raise TypeError("sparse input is not supported: X must be a dense array")
    entries = read_entries(X)
    matrix = entries.values
    if entries.unreadable:
        _complain(X, table=matrix.ndim == 2)
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
        raise ValueError(
            "Input X contains NaN, infinity, or entries that are masked or missing: remove or "
            "impute those rows first"
        )
    if columns is not None and matrix.shape[1] != columns:
        raise ValueError(f"X has {matrix.shape[1]} columns, and input_bounds are for {columns}")
    return matrix


def _complain(X: ArrayLike, *, table: bool) -> NoReturn:
    """Raise an error about entries that are no numbers, in words that scikit-learn asks for."""
    if any(isinstance(entry, complex | np.complexfloating) for entry in as_entries(X).flat):
        raise ValueError("Complex data not supported")
    if not table:
        raise ValueError("X must be a table of numbers")
    raise TypeError(
        "X has entries that are no numbers: declare a schema for columns of words or dates. "
        "Without one, each argument must be a number, or a string of a number"
    )


def checked_paired_outputs(y: ArrayLike, *, rows: int) -> Array:
    """Check outputs without revealing the number of rows."""
    _check_paired(y, rows=rows)
    return read_outputs(y, rows=rows)


def places_of_labels(y: ArrayLike, classes: Classes, *, rows: int) -> Array:
    """Return places of labels among the classes, from 0, without quoting a label.

    A label decides its own place alone.

    Parameters
    ----------
    y : array-like of shape (N,)
        Private.
    classes : Classes
    rows : int
        N.

    Examples
    --------
    >>> places_of_labels(["well", "ill"], Classes(("ill", "well")), rows=2).tolist()
    [1.0, 0.0]
    """
    _check_paired(y, rows=rows)
    return np.asarray(classes.read(y, rows=rows), dtype=np.float64)


def _check_paired(y: ArrayLike, *, rows: int) -> None:
    # Ragged outputs have no shape; what is said of them is said where they are read.
    if y is not None and _length(y) not in (None, rows):
        raise ValueError("X and y have different numbers of rows: they must agree")


def _length(values: ArrayLike) -> int | None:
    try:
        shape = np.shape(np.asarray(values))
    except Exception:
        return None
    return shape[0] if shape else None
