"""Formats that give rows of Python objects: spreadsheets and databases.

Every cell becomes text on its own, as CSV would have it, so that what a cell is read as depends on
no other.
"""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from cloakgp.columns.cells import write_cell
from cloakgp.data.formats.base import Batch, Rows, TableFormat, read_batches
from cloakgp.data.formats.delimited import as_frame, without_formulas
from cloakgp.data.schema import DATABASES, SPREADSHEETS
from cloakgp.utils.extras import extra

with extra("tables"):
    import pyarrow as pa

# Of a workbook, below its names.
SHEET_ROWS = 2**20 - 1


class RowFormat(TableFormat):
    """A format that gives rows."""

    @abstractmethod
    def rows(self, path: Path) -> Iterator[Sequence[Any]]:
        """Yield the names of columns, then row after row."""

    def look(self, path: Path) -> tuple[list[str], int | None]:
        """Return the names of columns; how many rows there are is not known."""
        with closing(self._rows(path)) as rows:
            return _header(next(rows, ())), None

    def _rows(self, path: Path) -> Generator[Sequence[Any], None, None]:
        yield from self.rows(path)

    def batches(
        self, path: Path, names: Sequence[str], *, rows: int, threads: bool
    ) -> Generator[Batch, None, None]:
        """Read the named columns as text, so many rows at a time."""
        del threads
        with closing(read_batches(path, self._batches(path, names, rows=rows))) as batches:
            yield from batches

    def _batches(
        self, path: Path, names: Sequence[str], *, rows: int
    ) -> Generator[Batch, None, None]:
        with closing(self._rows(path)) as lines:
            header = _header(next(lines, ()))
            places = [header.index(name) for name in names]
            while taken := list(islice(lines, rows)):
                columns = [
                    pa.array([_text(line, place) for line in taken], pa.string())
                    for place in places
                ]
                yield pa.RecordBatch.from_arrays(columns, names=list(names))


def _header(cells: Sequence[Any]) -> list[str]:
    return [write_cell(cell) for cell in cells]


def _text(line: Sequence[Any], place: int) -> str | None:
    return (write_cell(line[place]) or None) if place < len(line) else None


class SpreadsheetFormat(RowFormat):
    """The first sheet of a workbook: Excel or OpenDocument."""

    suffixes = SPREADSHEETS
    certain_names = False

    def rows(self, path: Path) -> Iterator[Sequence[Any]]:
        """Yield rows from the first that holds something."""
        with extra("excel"):
            import python_calamine
        try:
            with python_calamine.CalamineWorkbook.from_path(str(path)) as book:
                lines = book.get_sheet_by_index(0).to_python(skip_empty_area=True)
        except python_calamine.CalamineError:
            lines = None
        if lines is None:
            raise ValueError("it is no workbook")
        # Sheets often end in rows that are formatted, and empty.
        yield from (line for line in lines if any(cell not in ("", None) for cell in line))

    def write(self, tables: Iterator[Rows], file: BinaryIO, *, suffix: str) -> None:
        """Write a workbook of one sheet, made in memory, with nothing that is taken for a formula.

        Raises
        ------
        ValueError
            If it is another kind of workbook than .xlsx, or has more rows than a sheet can hold.
        """
        if suffix != ".xlsx":
            raise ValueError(f"tables are not written as {suffix}: take .xlsx or .csv")
        with extra("excel"):
            import openpyxl  # noqa: F401
        held, rows = [], 0
        for table in tables:
            held.append(table)
            rows += table.num_rows
            if rows > SHEET_ROWS:
                raise ValueError(f"a sheet holds {SHEET_ROWS:,} rows: take .csv or .parquet")
        without_formulas(as_frame(pa.concat_tables(held))).to_excel(file, index=False)


class DatabaseFormat(RowFormat):
    """A table of an SQLite file, or what a query gives.

    Parameters
    ----------
    query : str
        If empty, the file's only table or view.
    """

    suffixes = DATABASES
    certain_names = True

    def __init__(self, query: str = "") -> None:
        self.query = query

    def rows(self, path: Path) -> Iterator[Sequence[Any]]:
        """Yield names and rows; nothing can be written."""
        address = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as database:
            database.text_factory = bytes
            found = database.execute(self.query or _only_table(database))
            yield [each[0] for each in found.description]
            yield from found

    def write(self, tables: Iterator[Rows], file: BinaryIO, *, suffix: str) -> None:
        """Refuse: a database is not a result."""
        del tables, file
        raise ValueError(f"tables are not written as {suffix}: take .csv or .parquet")


def _only_table(database: sqlite3.Connection) -> str:
    listed = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
    found = [row[0].decode() for row in database.execute(listed)]
    names = [name for name in found if not name.startswith("sqlite_")]
    if len(names) != 1:
        raise ValueError("there are several tables in it")
    quoted = names[0].replace('"', '""')
    return f'SELECT * FROM "{quoted}"'
