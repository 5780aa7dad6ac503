"""CSV and Parquet tables: public inputs, the private column on its way to the fit, and results.

No error here shows a value of the private column, nor keeps an exception that could: parsers quote
the cell they stumbled on. Errors are therefore raised outside of ``except`` blocks, and column
names are listed only where they cannot be data (a table without a header line has a person's values
where the names should be).
"""

from __future__ import annotations

import re
import tempfile
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cloakgp.arrays import Array

Read = TypeVar("Read")

SUFFIXES = (".csv", ".csv.gz", ".parquet")
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


def read_inputs(path: str | Path, *, names: Sequence[str]) -> Array:
    """Read public inputs of a table, shape (N, D); path, names and errors as for `read_rows`.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(Path(folder) / "grid.parquet", {"age": np.array([30.0, 40.0])})
    ...     read_inputs(Path(folder) / "grid.parquet", names=["age"])
    array([[30.],
           [40.]])
    """
    frame = _read_frame(Path(path), names=names)
    return np.column_stack([_public_column(frame, name) for name in names])


def write_table(path: str | Path, columns: Mapping[str, Array], *, overwrite: bool = False) -> None:
    """Write public columns to a table, in one step: readers see all of it or nothing.

    Parameters
    ----------
    path : str or Path
        Ending in .csv, .csv.gz or .parquet.
    columns : mapping of str to arrays of shape (n,)
    overwrite : bool
        Replace a file that exists.

    Raises
    ------
    FileExistsError
        If it exists and overwrite is False.
    FileNotFoundError
        If its folder does not exist.
    ValueError
        If the name ends in something else.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(Path(folder) / "out.csv", {"mean": np.array([1.5])})
    ...     print((Path(folder) / "out.csv").read_text().splitlines())
    ['mean', '1.5']
    """
    target = Path(path)
    suffix = table_suffix(target)
    check_target(target, overwrite=overwrite)
    frame = pd.DataFrame(dict(columns))
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".cloakgp-") as folder:
        unfinished = Path(folder) / f"table{suffix}"
        if suffix == ".parquet":
            frame.to_parquet(unfinished, index=False)
        else:
            frame.to_csv(unfinished, index=False)
        unfinished.replace(target)


def check_target(path: str | Path, *, overwrite: bool) -> None:
    """Raise unless a file may be written there, so that nobody waits, or spends, in vain.

    Raises
    ------
    FileExistsError
        If it exists and overwrite is False.
    FileNotFoundError
        If its folder does not exist.
    IsADirectoryError
        If it is a folder itself.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder: name a file")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent}: create it first")
    if target.exists() and not overwrite:
        raise FileExistsError(
            f"{target} exists: choose another name, or replace it with --overwrite"
        )


def table_suffix(path: str | Path) -> str:
    """Return the suffix that tells a table's format, or say which ones do.

    Examples
    --------
    >>> table_suffix("people.CSV.gz")
    '.csv.gz'
    """
    name = Path(path).name.lower()
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return suffix
    raise ValueError(f"{path}: the name of a table must end in {', '.join(SUFFIXES)}")


def _read_frame(path: Path, *, names: Sequence[str]) -> pd.DataFrame:
    """Return the named columns of a table that has rows, as they stand."""
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
    damaged = f"{path} cannot be read as {suffix}: it is damaged, cut off, or in another format"
    if suffix != ".parquet":
        damaged += " (UTF-8, commas or semicolons, as many cells in a row as in the header)"
    header = _attempted(lambda: _header(path, suffix=suffix))
    if header is None:
        raise ValueError(damaged)
    _check_header(path, header, names=names)
    frame = _attempted(lambda: _load(path, names=names, suffix=suffix))
    if frame is None:
        raise ValueError(damaged)
    if len(frame) == 0:
        raise ValueError(f"{path} has column names but no rows")
    return frame


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


def _load(path: Path, *, names: Sequence[str], suffix: str) -> pd.DataFrame:
    if suffix == ".parquet":
        frame: pd.DataFrame = pq.ParquetFile(path).read(columns=list(names)).to_pandas()
        return frame
    # All columns are parsed, not the named ones only: with fewer, pandas would not notice rows
    # whose cells have shifted.
    everything: pd.DataFrame = pd.read_csv(
        path, sep=_separator(path), index_col=False, low_memory=False, **CSV
    )
    return everything[list(names)]


def _check_header(path: Path, header: Sequence[str], *, names: Sequence[str]) -> None:
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
    faults = {
        "is empty": missing,
        "is not a number": ~missing & np.isnan(values),
        "is infinite": np.isinf(values),
    }
    for fault, rows in faults.items():
        if rows.any():
            raise ValueError(
                f"column {name!r} {fault} in row {int(np.argmax(rows)) + 1} below the header: "
                "correct that cell, or leave the row out"
            )
    return values


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
