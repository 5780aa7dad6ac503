"""Files that cannot be read: what is said of them, in place of what their readers say.

Errors of the libraries that read files may quote a cell. They are dropped where they are caught,
and what is said instead is raised outside of ``except`` blocks.
"""

from __future__ import annotations

import csv
import zlib
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from cloakgp.extras import extra
from cloakgp.table_files import table_suffix

with extra("tables"):
    import pyarrow as pa

Read = TypeVar("Read")

# What readers raise for files that are damaged, cut off, or something else altogether.
READ_ERRORS = (ValueError, OSError, EOFError, zlib.error, pa.ArrowException, csv.Error)


def damage(path: Path) -> str:
    """Say that a file cannot be read, without what its reader says of it.

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


def attempted(path: Path, read: Callable[[], Read]) -> Read:
    """Return what was read, or say that the file is damaged and nothing else.

    Raises
    ------
    ValueError
        If it cannot be read.

    Examples
    --------
    >>> attempted(Path("people.parquet"), lambda: 3)
    3
    """
    try:
        return read()
    except READ_ERRORS:
        pass
    raise ValueError(damage(path))


def read_on(path: Path, batches: Generator[Read, None, None]) -> Generator[Read, None, None]:
    """Yield what a reader yields, and close it; or say that the file is damaged.

    Raises
    ------
    ValueError
        If it cannot be read to the end.
    """
    with closing(batches):
        while (batch := attempted(path, lambda: next(batches, None))) is not None:
            yield batch
