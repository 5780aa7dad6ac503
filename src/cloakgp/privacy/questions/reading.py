"""Reading private outputs: numbers, one for each row.

Errors here name shapes, never a value of y.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import DataConversionWarning

from cloakgp.privacy.entries import Entries, as_entries, read_entries
from cloakgp.utils.arrays import Array

AnyArray = NDArray[Any]

MISSING = "y contains NaN, or cells that are empty or no numbers: remove those rows, or impute them"
INFINITE = "y contains infinity, or a value too large for float64: remove those rows first"


def number_faults(entries: Array) -> tuple[bool, ...]:
    """Return whether numbers are missing, and whether any is infinite: `MISSING`, `INFINITE`.

    Parameters
    ----------
    entries : array of shape (n,)
        Private.
    """
    return bool(np.isnan(entries).any()), bool(np.isinf(entries).any())


def read_outputs(y: ArrayLike, *, rows: int) -> Array:
    """Return y as finite float64 numbers, one per row.

    Parameters
    ----------
    y : array-like of shape (N,) or (N, 1)
        Private.
    rows : int
        N, the number of rows of X.

    Raises
    ------
    ValueError
        If y is missing, of another length, not numeric, or holds NaN, infinity, or entries that are
        masked or missing. No message shows a value, and no exception that could is kept as its
        cause.
    """
    entries = read_entries(_passed(y))
    outputs = one_column(entries.values, rows=rows)
    check_numbers(entries)
    return outputs


def check_numbers(entries: Entries) -> None:
    """Check that outputs are finite numbers.

    Raises
    ------
    ValueError
        If not. No message shows a value, or tells which.
    """
    if entries.unreadable:
        raise ValueError("y must be numeric: encode or remove the other values first")
    if entries.missing.any():
        raise ValueError(
            "Input y contains NaN, or entries that are masked or missing: remove those rows, or "
            "impute them, first"
        )
    if np.isinf(entries.values).any():
        raise ValueError(
            "Input y contains infinity or a value too large for dtype('float64'): "
            "remove those rows first"
        )


def as_column(y: ArrayLike, *, rows: int) -> AnyArray:
    """Return y as one column of its own type, one entry per row.

    Parameters
    ----------
    y : array-like of shape (N,) or (N, 1)
        Private. Entries that are masked become None.
    rows : int
        N, the number of rows of X.

    Raises
    ------
    ValueError
        If y is missing, ragged, or of another length. No message shows a value.
    """
    return one_column(as_entries(_passed(y)), rows=rows)


def _passed(y: ArrayLike) -> ArrayLike:
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    return y


def one_column(outputs: AnyArray, *, rows: int) -> AnyArray:
    """Return an array without a second dimension of one, after checking its length.

    Raises
    ------
    ValueError
        If it has more dimensions, or another length.
    """
    if outputs.ndim == 2 and outputs.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of "
            "y to (n_samples,), for example using ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        outputs = outputs[:, 0]
    if outputs.ndim != 1:
        raise ValueError(f"y must have one dimension, got {outputs.ndim} dimensions")
    if len(outputs) != rows:
        raise ValueError(f"X has {rows} rows and y has {len(outputs)}: they must agree")
    return outputs
