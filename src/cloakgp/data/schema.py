"""The columns of a table: which there must be, and what the public ones may hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cloakgp.data.table_files import table_suffix
from cloakgp.utils.arrays import Array


def checked_names(inputs: Sequence[str], *, output: str | None = None) -> tuple[str, ...]:
    """Return the names of inputs, if they are some, each once, and none is the output's.

    Raises
    ------
    ValueError
        If not.

    Examples
    --------
    >>> checked_names(["age", "weight"], output="height")
    ('age', 'weight')
    """
    names = tuple(inputs)
    if isinstance(inputs, str) or not names:
        raise ValueError("name at least one input column, in a list")
    if output in names:
        raise ValueError(f"column {output!r} is named as input and as output: inputs are public")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"column {repeated[0]!r} is named twice: name every column once")
    return names


def check_file(path: Path) -> None:
    """Check that there is a file, that it holds something, and that its name tells its format.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        If there is no such file.
    ValueError
        If it is empty, or its name ends in something else.
    """
    table_suffix(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}: check its name and folder")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty: it needs a line of column names, then rows")


def check_header(path: Path, header: Sequence[str], *, names: Sequence[str], certain: bool) -> None:
    """Check that every column asked for is there, once.

    Parameters
    ----------
    path : Path
    header : sequence of str
    names : sequence of str
        The columns asked for.
    certain : bool
        Whether the header is known to hold names. The first line of a text file may be somebody's
        row instead, and is known to hold names only if one of them was asked for.

    Raises
    ------
    ValueError
        If not. Tells what columns there are, unless the header may be somebody's row.

    Examples
    --------
    >>> people = Path("people.csv")
    >>> check_header(people, ["age", "size"], names=["age", "height"], certain=False)
    Traceback (most recent call last):
    ...
    ValueError: people.csv has no column height; its columns are: age, size
    """
    missing = [name for name in names if name not in header]
    if missing:
        wanted = ", ".join(missing)
        if not certain and len(missing) == len(names):
            raise ValueError(
                f"{path} has no column {wanted}. Its first line has {len(header)} cells, none of "
                "which is a name that was asked for. It may be a person's row, and is not shown: "
                "the first line must name the columns"
            )
        existing = ", ".join(name for name in header if name)
        raise ValueError(f"{path} has no column {wanted}; its columns are: {existing}")
    for name in names:
        if list(header).count(name) > 1:
            raise ValueError(f"{path} has several columns called {name!r}: rename all but one")


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
