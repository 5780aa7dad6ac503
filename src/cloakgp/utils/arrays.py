"""Checks on public arrays, and the array type used throughout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def as_matrix(values: ArrayLike, *, name: str, columns: int | None = None) -> Array:
    """Return a finite float64 matrix, or raise an error that explains the fault.

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
        If it is not a matrix of finite real numbers with at least one row and one column, has
        another number of columns, or entries that are masked.

    Examples
    --------
    >>> as_matrix([[1, 2]], name="X")
    array([[1., 2.]])
    """
    check_unmasked(values, name=name)
    matrix = _as_numbers(values, name=name)
    if matrix.ndim != 2:
        raise ValueError(f"{name} must have two dimensions (rows, columns), got {matrix.ndim}")
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise ValueError(f"{name} needs at least one row and one column, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name} contains NaN or infinity: remove or impute those rows first")
    if columns is not None and matrix.shape[1] != columns:
        raise ValueError(f"{name} has {matrix.shape[1]} columns, expected {columns}")
    return matrix


def _as_numbers(values: ArrayLike, *, name: str) -> Array:
    if _holds_complex(values):
        raise ValueError(f"{name} has complex numbers: give real ones")
    try:
        return np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError):
        # The error of numpy quotes an entry, and names no remedy.
        raise ValueError(
            f"{name} has entries that are no numbers, or rows of several lengths: give numbers "
            "alone, or, where columns were of words or dates, a table with their names"
        ) from None


def _holds_complex(values: ArrayLike) -> bool:
    """Return whether there are complex numbers, of which numpy would keep the real parts."""
    columns = None if hasattr(values, "dtype") else getattr(values, "dtypes", None)
    if columns is not None:
        return any(getattr(kind, "kind", "") == "c" for kind in columns)
    try:
        return bool(np.iscomplexobj(values))
    except (ValueError, TypeError):
        # They have no shape, which is told elsewhere.
        return False


def check_unmasked(values: ArrayLike, *, name: str) -> None:
    """Check that no entry is masked: numpy would use the value behind the mask.

    Parameters
    ----------
    values : array-like
    name : str
        What the error calls them.

    Raises
    ------
    ValueError
        If one is, or a row of a list has one.

    Examples
    --------
    >>> check_unmasked(np.ma.array([1.0, 2.0], mask=[False, True]), name="X")
    Traceback (most recent call last):
    ...
    ValueError: X has masked entries: remove or impute those rows first
    """
    parts = values if isinstance(values, list | tuple) else [values]
    if any(
        isinstance(part, np.ma.MaskedArray) and np.ma.getmaskarray(part).any() for part in parts
    ):
        raise ValueError(f"{name} has masked entries: remove or impute those rows first")


def as_inputs(X: ArrayLike, *, input_names: Sequence[str], n_inputs: int, name: str = "X") -> Array:
    """Return public inputs as a matrix whose columns are in the order of their declared names.

    Columns of a table (pandas, polars, pyarrow) are found by name: they may stand in any order, and
    columns that are no input are ignored, so that whole tables may be given. Where there are no
    names, in the table or declared, columns are taken by position.

    Parameters
    ----------
    X : array-like or table of shape (n, D)
    input_names : sequence of str
        The declared names of the D inputs, in order; none if they have no names.
    n_inputs : int
        D.
    name : str
        What errors call X.

    Returns
    -------
    array of shape (n, D)

    Raises
    ------
    ValueError
        If the table lacks an input or has two columns of its name; or X is not a matrix of finite
        numbers with D columns.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"weight": [70.0], "age": [40.0], "id": ["p1"]})
    >>> as_inputs(people, input_names=("age", "weight"), n_inputs=2)
    array([[40., 70.]])
    """
    present = column_names(X)
    if len(input_names) != n_inputs or not any(isinstance(column, str) for column in present):
        return as_matrix(X, name=name, columns=n_inputs)
    missing = [column for column in input_names if column not in present]
    if missing:
        raise ValueError(
            f"{name} has no column {', '.join(missing)}: the inputs are {', '.join(input_names)}"
        )
    repeated = [column for column in input_names if present.count(column) > 1]
    if repeated:
        raise ValueError(f"{name} has more than one column {', '.join(repeated)}")
    table: Any = X
    columns = [np.asarray(table[column], dtype=np.float64) for column in input_names]
    return as_matrix(np.column_stack(columns), name=name, columns=n_inputs)


def append_column(X: Any, values: Array, *, name: str) -> Any:
    """Return a table, or a matrix, with one more column, the last.

    Parameters
    ----------
    X : array-like or table of shape (n, D)
        Of pandas, polars, pyarrow, or columns by name.
    values : array of shape (n,)
    name : str
        Of the column, where columns have names.

    Examples
    --------
    >>> append_column([[1.0], [2.0]], np.array([3.0, 4.0]), name="last")
    array([[1., 3.],
           [2., 4.]])
    >>> append_column({"first": [1.0]}, np.array([3.0]), name="last")
    {'first': [1.0], 'last': array([3.])}
    """
    if isinstance(X, Mapping):
        return {**X, name: values}
    names = column_names(X)
    if not any(isinstance(column, str) for column in names):
        return np.column_stack([np.asarray(X), values])
    if hasattr(X, "assign"):
        return X.assign(**{name: values})
    if hasattr(X, "append_column"):
        return X.append_column(name, [values])
    return type(X)({**{column: X[column] for column in names}, name: values})


def column_names(X: object) -> list[object]:
    """Return the names of a table's columns; none for other objects.

    Parameters
    ----------
    X : object
        A table of pandas, polars, Arrow or Dask, or columns by name; or anything else.

    Raises
    ------
    TypeError
        If it is a query of polars that has not been made yet: it has no cells.

    Examples
    --------
    >>> column_names(np.zeros((3, 2))), column_names({"age": [30.0]})
    ([], ['age'])
    """
    # Columns of pandas are attributes, too, but not of the type.
    if hasattr(type(X), "collect") and hasattr(type(X), "lazy"):
        raise TypeError("a lazy table has no cells yet: collect() it first")
    # A sparse matrix may be a mapping, too.
    if isinstance(X, Mapping) and not hasattr(X, "toarray"):
        return list(X)
    # pyarrow calls `columns` what they hold.
    names: Iterable[object] = getattr(X, "column_names", getattr(X, "columns", ()))
    return list(names)


def output_names(columns: object) -> tuple[str, ...]:
    """Return the names of private columns, none unless all have one.

    Raises
    ------
    ValueError
        If columns of predictions would have one name twice: of each output there are its name, and
        that with _sd, _lower and _upper, and in R with _new_sd.

    Examples
    --------
    >>> import pandas as pd
    >>> output_names(pd.DataFrame({"height": [1.0], "weight": [2.0]}))
    ('height', 'weight')
    """
    found = column_names(columns)
    names = tuple(name for name in found if isinstance(name, str))
    parts = ("", "_sd", "_new_sd", "_lower", "_upper")
    told = Counter(f"{name}{part}" for name in names for part in parts)
    twice = [name for name, count in told.items() if count > 1]
    if twice:
        raise ValueError(
            f"two columns of predictions would be named {twice[0]!r}: rename one of the outputs"
        )
    return names if len(names) == len(found) else ()


def check_writable(names: Iterable[object]) -> None:
    """Refuse names that hold half of a character, and so cannot be written to files.

    Parameters
    ----------
    names : iterable
        What is no text among them is passed over.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> check_writable(["age", 7])
    """
    for name in names:
        try:
            str(name).encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"the name {name!r} has half of a character in it (a lone surrogate), which files "
                "and tables cannot hold: write it in whole characters"
            ) from None
