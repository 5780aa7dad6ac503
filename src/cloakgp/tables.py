"""CSV and Parquet tables: public inputs, and the private column on its way to the fit.

No error here shows a value of the private column, nor keeps an exception that could: parsers quote
the cell they stumbled on. Errors are therefore raised outside of ``except`` blocks, and column
names are listed only where they cannot be data (a table without a header line has a person's values
where the names should be).
"""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cloakgp.arrays import Array
from cloakgp.table_files import table_suffix

Read = TypeVar("Read")

CSV: dict[str, Any] = {"skipinitialspace": True, "encoding": "utf-8-sig"}
# Cells with a number in them that does not belong to a word: x1 and log2_income are names, 12.5,
# "70;123.4" and £30 are not.
LIKE_A_VALUE = re.compile(r"(?<!\w)\d|\d[.,]\d")
# What the parsers raise for files that are damaged, cut off, or something else altogether.
READ_ERRORS = (ValueError, OSError, EOFError, zlib.error, pd.errors.ParserWarning)


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
    if output in inputs:
        raise ValueError(f"column {output!r} is named as input and as output: inputs are public")
    frame = _read_frame(Path(path), names=[*inputs, output])
    X = np.column_stack([_public_column(frame, name) for name in inputs])
    return X, _private_column(frame, output)


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
    if output in inputs:
        raise ValueError(f"column {output!r} is named as input and as output: inputs are public")
    frame = _read_frame(Path(path), names=[*inputs, output], text=output)
    X = np.column_stack([_public_column(frame, name) for name in inputs])
    return X, _label_column(frame, output, classes=classes)


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
    frame = _read_frame(Path(path), names=names)
    return np.column_stack([_public_column(frame, name) for name in names])


def _read_frame(path: Path, *, names: Sequence[str], text: str | None = None) -> pd.DataFrame:
    """Return the named columns of a table that has rows, as they stand.

    Of a CSV table one column can be had as text, its cells as they are written.
    """
    suffix = check_table(path, names=names)
    header = _attempted(lambda: _header(path, suffix=suffix))
    if header is None:
        raise ValueError(damage(path))
    check_header(path, header, names=names)
    frame = _attempted(lambda: _load(path, names=names, suffix=suffix, text=text))
    if frame is None:
        raise ValueError(damage(path))
    if len(frame) == 0:
        raise ValueError(f"{path} has column names but no rows")
    return frame


def check_table(path: Path, *, names: Sequence[str]) -> str:
    """Return the suffix of a file that is there, if columns could be read from it.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        If there is no such file.
    ValueError
        If it is empty, or its name ends in something else, or no column or one twice is asked for.
    """
    suffix = table_suffix(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}: check its name and folder")
    if not names:
        raise ValueError("name at least one input column")
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if repeated:
        raise ValueError(f"column {repeated[0]!r} is named twice: name every column once")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty: it needs a line of column names, then rows")
    return suffix


def damage(path: Path) -> str:
    """Say that a file cannot be read, without what the parser says of it.

    Examples
    --------
    >>> damage(Path("people.parquet"))
    'people.parquet cannot be read as .parquet: it is damaged, cut off, or in another format'
    """
    suffix = table_suffix(path)
    said = f"{path} cannot be read as {suffix}: it is damaged, cut off, or in another format"
    if suffix != ".parquet":
        said += " (UTF-8, commas or semicolons, as many cells in a row as in the header)"
    return said


def _attempted(read: Callable[[], Read]) -> Read | None:
    """Return what was read, or None: the error itself may quote a cell and must not live on."""
    try:
        with warnings.catch_warnings():
            # pandas only warns when it drops cells of rows that are too long.
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", category=pd.errors.ParserWarning)
            return read()
    except READ_ERRORS:
        return None


def _header(path: Path, *, suffix: str) -> list[str]:
    if suffix == ".parquet":
        return [str(name) for name in pq.ParquetFile(path).schema_arrow.names]
    first = pd.read_csv(
        path, sep=_separator(path), header=None, nrows=1, dtype=str, keep_default_na=False, **CSV
    )
    return [str(name) for name in first.iloc[0]]


def _separator(path: Path) -> str:
    """Return ";" for a header that has some and no comma, as spreadsheets of many countries do."""
    first = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, **CSV)
    return ";" if first.shape[1] == 1 and ";" in first.iloc[0, 0] else ","


def _load(path: Path, *, names: Sequence[str], suffix: str, text: str | None) -> pd.DataFrame:
    if suffix == ".parquet":
        frame: pd.DataFrame = pq.ParquetFile(path).read(columns=list(names)).to_pandas()
        return frame
    # All columns are parsed, not the named ones only: with fewer, pandas would not notice rows
    # whose cells have shifted.
    separator = _separator(path)
    everything: pd.DataFrame = pd.read_csv(
        path, sep=separator, index_col=False, low_memory=False, **CSV
    )
    if text is not None:
        # Read again: pandas would take 01 for 1, and a class called None for an empty cell.
        written = pd.read_csv(
            path, sep=separator, index_col=False, dtype=str, keep_default_na=False, **CSV
        )
        everything[text] = written[text]
    return everything[list(names)]


def check_header(path: Path, header: Sequence[str], *, names: Sequence[str]) -> None:
    """Check that every column asked for is there, once.

    Raises
    ------
    ValueError
        If not. Tells what columns there are, unless the header may be somebody's row.
    """
    missing = [name for name in names if name not in header]
    if missing:
        wanted = ", ".join(missing)
        if any(LIKE_A_VALUE.search(name) for name in header):
            raise ValueError(
                f"{path} has no column {wanted}. Its first line holds numbers, so it may be a "
                "person's row and is not shown: the first line must name the columns"
            )
        existing = ", ".join(name for name in header if name)
        raise ValueError(f"{path} has no column {wanted}; its columns are: {existing}")
    for name in names:
        if list(header).count(name) > 1:
            raise ValueError(f"{path} has several columns called {name!r}: rename all but one")


def _public_column(frame: pd.DataFrame, name: str) -> Array:
    missing, values = _as_floats(frame[name])
    check_cells(name, missing, values)
    return values


def check_cells(
    name: str, missing: NDArray[np.bool_], values: Array, *, first_row: int = 0, place: str = ""
) -> None:
    """Check that public cells of a column are finite numbers.

    Parameters
    ----------
    name : str
    missing : array of bool, shape (n,)
        Which cells are empty.
    values : array of shape (n,)
        NaN where a cell is no number.
    first_row : int
        How many rows of the table come before these.
    place : str
        Said after the row's number, if there are several files.

    Raises
    ------
    ValueError
        If not. Names the first such row.

    Examples
    --------
    >>> check_cells("age", np.array([False, False]), np.array([30.0, 40.0]))
    """
    faults = {
        "is empty": missing,
        "is not a number": ~missing & np.isnan(values),
        "is infinite": np.isinf(values),
    }
    for fault, rows in faults.items():
        if rows.any():
            raise ValueError(
                f"column {name!r} {fault} in row {first_row + int(np.argmax(rows)) + 1} below the "
                f"header{place}: correct that cell, or leave the row out"
            )


def _private_column(frame: pd.DataFrame, name: str) -> Array:
    """Check like `_public_column`, without telling where."""
    missing, values = _as_floats(frame[name])
    advice = "correct those cells, or leave the rows out (which they are is private, and not shown)"
    if missing.any():
        raise ValueError(f"column {name!r} has empty cells: {advice}")
    if np.isnan(values).any():
        raise ValueError(f"column {name!r} has cells that are not numbers: {advice}")
    if np.isinf(values).any():
        raise ValueError(f"column {name!r} has infinite cells: {advice}")
    return values


def _label_column(frame: pd.DataFrame, name: str, *, classes: Sequence[str]) -> NDArray[np.object_]:
    """Return cells as text if every one is a declared class, without telling which is not."""
    column = frame[name].astype(object)
    cells = [_written(cell) for cell in column]
    hidden = "which they are is private, and not shown"
    if column.isna().any() or not all(cells):
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


def _written(cell: object) -> str:
    """Return a cell as text, without blanks around it, and whole numbers without a point."""
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def _as_floats(column: pd.Series) -> tuple[NDArray[np.bool_], Array]:
    """Return which cells are empty, and all as float64 with NaN for what is no number."""
    missing = column.isna().to_numpy(dtype=bool)
    kind = column.dtype.kind if isinstance(column.dtype, np.dtype) else "O"
    if kind in "biuf":
        return missing, column.to_numpy(dtype=np.float64)
    if kind != "O":
        # Dates and durations are numbers to pandas, in units that nobody named.
        return missing, np.full(len(column), np.nan)
    numbers = pd.to_numeric(column.astype(object), errors="coerce")
    return missing, numbers.to_numpy(dtype=np.float64)
