"""Tables that fit in memory: columns read for a fit, and public results written.

Every private cell is read on its own, whatever the others are. No error here shows a value of the
private column, or keeps an exception that could.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.data.cells import as_numbers, as_texts, check_cells
from cloakgp.data.formats import format_of
from cloakgp.data.schema import checked_names
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

with extra("tables"):
    import pyarrow as pa

# Rows that are read at once, where the format allows a choice.
BATCH_ROWS = 2**16


def read_rows(path: str | Path, *, inputs: Sequence[str], output: str) -> tuple[Array, Array]:
    r"""Read public inputs and the private output of a table.

    Parameters
    ----------
    path : str or Path
        Ending in .csv, .csv.gz or .parquet.
    inputs : sequence of str
        Names of the public columns, in the order wanted.
    output : str
        Name of the private column.

    Returns
    -------
    X : array of shape (N, D)
    y : array of shape (N,)
        Private: hand it to a fit and to nothing else.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a column is missing, or holds empty, infinite or non-numeric cells, or the file has no
        rows or cannot be read. Names the first bad row of an input; of the output, the column only.

    Notes
    -----
    Cells of text are numbers if they are written in decimal digits, with a point and an exponent if
    need be; ``true`` is 1 and ``false`` is 0. Columns that are not named may hold anything.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     people = Path(folder) / "people.csv"
    ...     _ = people.write_text("age,height\n30,170\n40,165\n")
    ...     X, y = read_rows(people, inputs=["age"], output="height")
    >>> X.shape, y.shape
    ((2, 1), (2,))
    """
    names = checked_names(inputs, output=output)
    table = _read_columns(Path(path), names=[*names, output])
    return _public_columns(table, names), _private_column(table, output)


def read_labelled_rows(
    path: str | Path, *, inputs: Sequence[str], output: str, classes: Sequence[str]
) -> tuple[Array, NDArray[np.object_]]:
    r"""Read public inputs of a table, and private labels as text.

    A cell is matched with the declared classes letter by letter, but for blanks around it: 1 is not
    1.0, and Yes is not yes. In Parquet, numbers and truth values are first written as Python writes
    them, and whole numbers without a point.

    Parameters
    ----------
    path, inputs, output
        As for `read_rows`.
    classes : sequence of str
        Every class that can occur: public, and declared without the data.

    Returns
    -------
    X : array of shape (N, D)
    y : array of str, shape (N,)
        Private: hand it to a fit and to nothing else.

    Raises
    ------
    FileNotFoundError, ValueError
        As for `read_rows`; and if a cell of the output is none of the classes. No message tells
        which, nor what it holds.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     people = Path(folder) / "people.csv"
    ...     _ = people.write_text("age,ill\n30,0\n40,1\n")
    ...     X, y = read_labelled_rows(people, inputs=["age"], output="ill", classes=["0", "1"])
    >>> X.shape, y.shape
    ((2, 1), (2,))
    """
    names = checked_names(inputs, output=output)
    table = _read_columns(Path(path), names=[*names, output])
    return _public_columns(table, names), _label_column(table, output, classes=classes)


def read_inputs(path: str | Path, *, names: Sequence[str]) -> Array:
    r"""Read public inputs of a table, shape (N, D); path, names and errors as for `read_rows`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "grid.csv").write_text("age\n30\n40\n")
    ...     read_inputs(Path(folder) / "grid.csv", names=["age"])
    array([[30.],
           [40.]])
    """
    table = _read_columns(Path(path), names=checked_names(names))
    return _public_columns(table, names)


def _read_columns(path: Path, *, names: Sequence[str]) -> Any:
    """Return the named columns of a table that has rows, as Arrow has them."""
    table_format = format_of(path)
    table_format.check(path, names=names)
    reading = table_format.batches(path, names, rows=BATCH_ROWS, threads=True)
    with closing(reading):
        batches = list(reading)
    if not any(batch.num_rows for batch in batches):
        raise ValueError(f"{path} has column names but no rows")
    return pa.Table.from_batches(batches).rename_columns(list(names))


def _public_columns(table: Any, names: Sequence[str]) -> Array:
    X = np.empty((table.num_rows, len(names)))
    for column, name in enumerate(names):
        missing, X[:, column] = as_numbers(table.column(name))
        check_cells(name, missing, X[:, column])
    return X


def _private_column(table: Any, name: str) -> Array:
    """Check like public columns, without telling where."""
    missing, values = as_numbers(table.column(name))
    advice = "correct those cells, or leave the rows out (which they are is private, and not shown)"
    if missing.any():
        raise ValueError(f"column {name!r} has empty cells: {advice}")
    if np.isnan(values).any():
        raise ValueError(f"column {name!r} has cells that are not numbers: {advice}")
    if np.isinf(values).any():
        raise ValueError(f"column {name!r} has infinite cells: {advice}")
    return values


def _label_column(table: Any, name: str, *, classes: Sequence[str]) -> NDArray[np.object_]:
    """Return cells as text if every one is a declared class, without telling which is not."""
    cells = as_texts(table.column(name), name=name)
    hidden = "which they are is private, and not shown"
    if not all(cells):
        raise ValueError(
            f"column {name!r} has empty cells: fill them, declare a class for what is not known, "
            f"or leave the rows out ({hidden})"
        )
    if not set(cells) <= set(classes):
        raise ValueError(
            f"column {name!r} has labels that are not among the declared classes "
            f"{', '.join(classes)} ({hidden}). Cells are matched letter by letter: 1 is not 1.0, "
            "Yes is not yes. Declare every class that can occur, or correct those cells"
        )
    return np.array(cells, dtype=object)


def table_bytes(columns: Mapping[str, NDArray[Any]], *, suffix: str) -> bytes:
    """Return the file of a table of public columns.

    In CSV, names and text that a spreadsheet would take for formulas have an apostrophe before
    them.

    Parameters
    ----------
    columns : mapping of str to arrays of shape (n,)
    suffix : str
        .csv, .csv.gz or .parquet.

    Examples
    --------
    >>> table_bytes({"mean": np.array([1.5])}, suffix=".csv").split()
    [b'mean', b'1.5']
    """
    with extra("tables"):
        import pandas as pd
    return format_of(Path(suffix)).encode(pd.DataFrame(dict(columns)), suffix=suffix)
