"""Formats that give rows of Python objects: spreadsheets and databases.

Every cell is kept on its own (`cloakgp.data.mixed`), so that what a cell is read as depends on no
other.
"""

from __future__ import annotations

import zipfile
from abc import abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from cloakgp.columns.cells import write_cell
from cloakgp.data.cells import FRACTIONAL
from cloakgp.data.formats.base import Batch, Rows, TableFormat, read_batches
from cloakgp.data.formats.delimited import as_frame, without_formulas
from cloakgp.data.formats.queries import select_from_sqlite
from cloakgp.data.limits import UNLIMITED, ReadingLimits, RefusedError
from cloakgp.data.mixed import mixed_column
from cloakgp.privacy.person_ids import TEXT, WHOLE
from cloakgp.utils.extras import extra

with extra("tables"):
    import pyarrow as pa

# Of a workbook, below its names.
SHEET_ROWS = 2**20 - 1
HIDDEN_SHEET = (
    "the first sheet of the workbook is hidden, and the first one is read: show it, or put the "
    "sheet with the table first"
)


class RowFormat(TableFormat):
    """A format that gives rows.

    Attributes
    ----------
    all_fractional : bool
        Whether it knows no whole numbers but those with a point that happen to be whole.
    """

    all_fractional: ClassVar[bool] = False

    @abstractmethod
    def rows(self, path: Path) -> Iterator[Sequence[Any]]:
        """Yield the names of columns, then row after row."""

    def look(self, path: Path) -> tuple[list[str], int | None]:
        """Return the names of columns; the number of rows is unknown."""
        with closing(self._rows(path)) as rows:
            return _header(next(rows, ())), None

    def kinds_of_ids(self, path: Path, name: str) -> set[str]:
        """Return the kinds of cells of a column, each on its own."""
        with closing(self._rows(path)) as lines:
            place = _header(next(lines, ())).index(name)
            kinds: set[str] = set()
            for rows, line in enumerate(lines, start=1):
                self.limits.check_rows(rows)
                cell = _cell(line, place)
                if write_cell(cell):
                    kinds.add(self._kind_of_id(cell))
            return kinds

    def _kind_of_id(self, cell: object) -> str:
        # Its module makes numbers by chance, and so is not imported.
        if isinstance(cell, str | bytes) or type(cell).__name__ == "UUID":
            return TEXT
        if isinstance(cell, bool):
            return "truth values"
        if isinstance(cell, float) and cell.is_integer() and self.all_fractional:
            return WHOLE
        if isinstance(cell, Decimal) and cell.as_tuple().exponent == 0:
            return WHOLE
        if isinstance(cell, float | Decimal):
            return FRACTIONAL
        return WHOLE if isinstance(cell, int) else type(cell).__name__

    def _rows(self, path: Path) -> Generator[Sequence[Any], None, None]:
        yield from self.rows(path)

    def _batches(
        self, path: Path, names: Sequence[str], *, rows: int, threads: bool
    ) -> Generator[Batch, None, None]:
        """Read the named columns, a number of rows at a time."""
        del threads
        with closing(read_batches(path, self._by_cells(path, names, rows=rows))) as batches:
            yield from batches

    def _by_cells(
        self, path: Path, names: Sequence[str], *, rows: int
    ) -> Generator[Batch, None, None]:
        with closing(self._rows(path)) as lines:
            header = _header(next(lines, ()))
            places = [header.index(name) for name in names]
            while taken := list(islice(lines, rows)):
                columns = [mixed_column([_cell(line, place) for line in taken]) for place in places]
                yield pa.RecordBatch.from_arrays(columns, names=list(names))


def _header(cells: Sequence[Any]) -> list[str]:
    return [write_cell(cell) for cell in cells]


def _cell(line: Sequence[Any], place: int) -> Any:
    return line[place] if place < len(line) else None


class SpreadsheetFormat(RowFormat):
    """The first sheet of a workbook, which must not be hidden: Excel or OpenDocument."""

    certain_names = False
    all_fractional = True

    def rows(self, path: Path) -> Iterator[Sequence[Any]]:
        """Yield rows from the first that holds something.

        Raises
        ------
        RefusedError
            If the sheet is hidden: nobody who opens the workbook sees it.
        """
        with extra("excel"):
            import python_calamine
        self._check_unpacked(path)
        try:
            with python_calamine.CalamineWorkbook.from_path(str(path)) as book:
                shown = python_calamine.SheetVisibleEnum.Visible
                if any(sheet.visible != shown for sheet in book.sheets_metadata[:1]):
                    raise RefusedError(HIDDEN_SHEET)
                lines = book.get_sheet_by_index(0).to_python(skip_empty_area=True)
        except python_calamine.CalamineError:
            lines = None
        if lines is None:
            raise ValueError("it is no workbook")
        # Sheets often end in rows that are formatted, and empty. One between others is a row:
        # left out, it would tell whether the private cell of a row without public ones is empty.
        empty: list[Sequence[Any]] = []
        header = True
        for line in lines:
            if any(cell not in ("", None) for cell in line):
                yield from ([] if header else empty)
                yield line
                empty, header = [], False
            else:
                empty.append(line)

    def _check_unpacked(self, path: Path) -> None:
        """Refuse a workbook whose stated size is too large: it is unpacked in memory."""
        if self.limits.size is not None and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                self.limits.check_size(sum(each.file_size for each in archive.infolist()))

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
    """A table of an SQLite file, or the result of a query.

    Parameters
    ----------
    query : str
        One SELECT; if empty, the file's only table or view.
    limits : ReadingLimits, optional
    """

    certain_names = True

    def __init__(self, query: str = "", *, limits: ReadingLimits = UNLIMITED) -> None:
        super().__init__(limits=limits)
        self.query = query

    def rows(self, path: Path) -> Iterator[Sequence[Any]]:
        """Yield names and rows; nothing can be written."""
        yield from select_from_sqlite(path, self.query, limits=self.limits)

    def write(self, tables: Iterator[Rows], file: BinaryIO, *, suffix: str) -> None:
        """Refuse: a database is not a result."""
        del tables, file
        raise ValueError(f"tables are not written as {suffix}: take .csv or .parquet")
