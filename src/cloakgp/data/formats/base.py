"""Table formats: their common part, and the error of a damaged file.

Columns that are not wanted are never converted. What the libraries that read files say of a damaged
one may quote a cell of the private column: their errors end here, and a file is called damaged and
nothing more.
"""

from __future__ import annotations

import csv
import lzma
import sqlite3
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, TypeVar

from cloakgp.data.cells import check_kinds_of_ids
from cloakgp.data.limits import UNLIMITED, ReadingLimits, RefusedError
from cloakgp.data.schema import (
    ADDRESSES,
    DATABASES,
    FORMATS,
    TEXT,
    check_file,
    check_header,
    table_suffix,
)
from cloakgp.privacy.person_ids import WHOLE
from cloakgp.utils.extras import extra

with extra("tables"):
    import pyarrow as pa

Batch = Any
"""Of Arrow: some rows of a table, column by column."""

Rows = Any
"""Of Arrow: a table of some rows, to be written."""

Read = TypeVar("Read")

# What readers raise for files that are damaged, cut off, or something else altogether.
READ_ERRORS = (
    ValueError,
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    pa.ArrowException,
    csv.Error,
    sqlite3.Error,
)
# Said of text that cannot be split into cells.
TEXT_ADVICE = " (as many cells in a row as in the header, quotes closed)"


class TableFormat(ABC):
    """A format of tables in files: how columns are named, read and written.

    Parameters
    ----------
    limits : ReadingLimits, optional
        Of what is read; there are none if not given.

    Attributes
    ----------
    certain_names : bool
        Whether the names of columns are known to be names; the first line of a text file may hold
        a person's values instead.
    """

    certain_names: ClassVar[bool]

    def __init__(self, *, limits: ReadingLimits = UNLIMITED) -> None:
        self.limits = limits

    @property
    def suffixes(self) -> tuple[str, ...]:
        """How the names of such files end."""
        return FORMATS[f"{type(self).__module__}:{type(self).__name__}"]

    @abstractmethod
    def look(self, path: Path) -> tuple[list[str], int | None]:
        """Return the names of a file's columns, and its number of rows, if known.

        Raises
        ------
        ValueError, OSError, EOFError, zlib.error, pyarrow.ArrowException, csv.Error
            If it cannot be read; these may quote a cell, and must not reach anybody.
        """

    def batches(
        self, path: Path, names: Sequence[str], *, rows: int, threads: bool
    ) -> Generator[Batch, None, None]:
        """Read the named columns of a file, in this order and no others, within the limits.

        Parameters
        ----------
        path : Path
        names : sequence of str
        rows : int
            About how many rows to read at once, where the format allows a choice.
        threads : bool
            Whether columns may be read side by side.

        Raises
        ------
        ValueError
            If the file is damaged, or there is more of it than is read. Nothing of what is in it is
            said.
        """
        read = 0
        with closing(self._batches(path, names, rows=rows, threads=threads)) as batches:
            for batch in batches:
                read += batch.num_rows
                self.limits.check_rows(read)
                yield batch

    @abstractmethod
    def _batches(
        self, path: Path, names: Sequence[str], *, rows: int, threads: bool
    ) -> Generator[Batch, None, None]:
        """Read as `batches` does, for any number of rows."""

    @abstractmethod
    def write(self, tables: Iterator[Rows], file: BinaryIO, *, suffix: str) -> None:
        """Write a file of public columns, holding no more of it at once than the format needs.

        Parameters
        ----------
        tables : iterator of pyarrow.Table
            Rows one after another, with the same columns of the same types; at least one table.
        file : binary file
            Open; it is not closed.
        suffix : str
            One of `suffixes`.

        Raises
        ------
        ValueError
            If tables are not written in this format.
        """

    @abstractmethod
    def kinds_of_ids(self, path: Path, name: str) -> set[str]:
        """Return the kinds of cells of a column of persons, in words.

        Raises
        ------
        ValueError, OSError, EOFError, zlib.error, pyarrow.ArrowException, csv.Error
            As `look`.
        """

    def check(self, path: Path, *, names: Sequence[str]) -> int | None:
        """Check that a file exists and has columns; return its number of rows, if known.

        Raises
        ------
        FileNotFoundError, IsADirectoryError
            If there is no such file.
        ValueError
            If a column is missing, or the file cannot be read.
        """
        check_file(path)
        header, rows = attempt(path, lambda: self.look(path))
        check_header(path, header, names=names, certain=self.certain_names)
        self.limits.check_rows(rows)
        return rows


def check_ids(table_format: TableFormat, paths: Sequence[Path], name: str) -> bool:
    """Check that the ids of persons in a column can be distinguished, over all files of a table.

    Parameters
    ----------
    table_format : TableFormat
    paths : sequence of Path
        Which have the column.
    name : str

    Returns
    -------
    bool
        Whether they are whole numbers.

    Raises
    ------
    ValueError
        If they are neither all text nor all whole numbers, or a file cannot be read.
    """
    found = [attempt(path, partial(table_format.kinds_of_ids, path, name)) for path in paths]
    kinds = frozenset[str]().union(*found)
    check_kinds_of_ids(kinds, name=name)
    return WHOLE in kinds


def describe_damage(path: Path) -> str:
    """Return a message about an unreadable file, without that of its reader.

    Examples
    --------
    >>> describe_damage(Path("people.parquet"))
    'people.parquet cannot be read as .parquet: it is damaged, cut off, or in another format'
    """
    fault = f"{path} cannot be read as {table_suffix(path)}"
    if table_suffix(path) in (*DATABASES, *ADDRESSES):
        return (
            f"{fault}: look at its address and its driver, at the query, and whether it has one "
            "table if there is no query"
        )
    advice = TEXT_ADVICE if table_suffix(path).startswith(TEXT) else ""
    return f"{fault}: it is damaged, cut off, or in another format{advice}"


def attempt(path: Path, read: Callable[[], Read]) -> Read:
    """Return the content, or raise an error that names the damaged file alone.

    Raises
    ------
    ValueError
        If it cannot be read.
    RefusedError, MemoryError
        If there is more of it than is read, or than there is memory for.

    Examples
    --------
    >>> attempt(Path("people.parquet"), lambda: 3)
    3
    """
    try:
        return read()
    except (RefusedError, MemoryError):
        raise
    except READ_ERRORS:
        pass
    raise ValueError(describe_damage(path))


def read_batches(path: Path, batches: Generator[Read, None, None]) -> Generator[Read, None, None]:
    """Yield the batches of a reader, and close it; or raise an error about a damaged file.

    Raises
    ------
    ValueError
        If it cannot be read to the end.
    """
    with closing(batches):
        while (batch := attempt(path, lambda: next(batches, None))) is not None:
            yield batch
