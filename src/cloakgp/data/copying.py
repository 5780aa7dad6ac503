"""Tables that are copied with new columns behind theirs, in two passes and constant memory.

What becomes of a column can depend on all of its cells: text that is numbers throughout becomes
numbers where they are asked for, and times are written as finely as the finest of them. The first
pass finds that out, and the second writes. Columns that are left out are never read.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cloakgp.columns.cells import read_bytes
from cloakgp.data.files import Paths, describe_change, file_state, table_paths
from cloakgp.data.formats import Batch, format_of
from cloakgp.data.formats.base import Rows, attempt
from cloakgp.data.formats.delimited import Dialect
from cloakgp.data.limits import UNLIMITED, ReadingLimits
from cloakgp.data.mixed import texts_of
from cloakgp.data.raw import ArrowCells, RawTable
from cloakgp.data.schema import check_file, table_suffix
from cloakgp.utils.extras import extra

with extra("tables"):
    import pyarrow as pa
    import pyarrow.compute as pc

# Numbers with decimals, in bytes. Three digits behind a sign may be thousands, unless it is 0,123.
DECIMALS = {
    sign: rf"^ *[+-]?(?:[0-9]+{mark}(?:[0-9]{{1,2}}|[0-9]{{4,}})|0{mark}[0-9]+) *$"
    for sign, mark in (("commas", ","), ("points", r"\."))
}
Unit = Literal["D", "s", "ms", "us", "ns"]
# Times are written with days alone, or with so many decimals of a second.
UNITS: tuple[Unit, ...] = ("D", "s", "ms", "us", "ns")


@dataclass(frozen=True, eq=False, repr=False)
class TableChunk:
    """Some rows of a public table.

    Attributes
    ----------
    table : pyarrow.Table
    first_row : int
        How many rows of the file come before.
    place : str
        Said of the file in messages; empty if there is one file.
    """

    table: Rows
    first_row: int
    place: str

    @property
    def cells(self) -> RawTable:
        """The columns, cell by cell."""
        return RawTable.of(self.table, self.table.column_names)


class PublicTable:
    """The public columns of a table in a file, or in several, read in chunks as often as need be.

    Parameters
    ----------
    path : path, folder, or sequence of paths
        As for `FileRows`. All files must have the columns of the first, of the same types.
    needed : sequence of str
        Columns that there must be.
    left_out : collection of str
        Columns that are not read if they are there, such as the private one.
    chunk_rows : int
        The most rows of a chunk.
    limits : ReadingLimits, optional
        Of each file.

    Attributes
    ----------
    names : tuple of str
        Of the columns that are read, as they stand in the first file.
    left_out : tuple of str
        Of the columns that are there and not read.
    table_format : TableFormat
    count : int or None
        How many rows there are, if that is known; after a pass, it is.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a column is missing, is there several times, or a file is damaged.
    """

    def __init__(
        self,
        path: Paths,
        *,
        needed: Sequence[str],
        left_out: Sequence[str],
        chunk_rows: int,
        limits: ReadingLimits = UNLIMITED,
    ) -> None:
        self.paths = table_paths(path)
        for file in self.paths:
            check_file(file)
        self._states = [file_state(file) for file in self.paths]
        self.table_format = format_of(self.paths[0], limits=limits)
        self._chunk_rows = chunk_rows
        first = self.paths[0]
        header = list(dict.fromkeys(attempt(first, lambda: self.table_format.look(first))[0]))
        self.names = tuple(name for name in header if name not in left_out)
        self.left_out = tuple(name for name in header if name in left_out)
        counts = []
        for file in self.paths:
            if not file.name.lower().endswith(self.table_format.suffixes):
                raise ValueError(
                    f"{file}: names must end in {' or '.join(self.table_format.suffixes)}, as that "
                    f"of {first} does"
                )
            self.table_format.check(file, names=needed)
            counts.append(self.table_format.check(file, names=self.names))
        known = [count for count in counts if count is not None]
        self.count = sum(known) if len(known) == len(counts) else None

    def chunks(self) -> Generator[TableChunk, None, None]:
        """Yield all rows, in chunks that no file's own divisions show in; an empty one of none.

        Raises
        ------
        ValueError
            If a file is damaged, has changed, or has columns of other types than the first.
        """
        self._check_unchanged()
        total, types = 0, None
        for path in self.paths:
            rows = 0
            place = f" of {path}" if len(self.paths) > 1 else ""
            read = self.table_format.batches(path, self.names, rows=self._chunk_rows, threads=False)
            with closing(_cut(read, self._chunk_rows)) as tables:
                for table in tables:
                    table = table.rename_columns(list(self.names))
                    types = types or table.schema.types
                    if table.schema.types != types:
                        raise ValueError(
                            f"the columns of {path} have other types than those of {self.paths[0]}"
                        )
                    yield TableChunk(table=table, first_row=rows, place=place)
                    rows += table.num_rows
            total += rows
        if not total:
            nothing = pa.table({name: pa.array([], pa.string()) for name in self.names})
            yield TableChunk(table=nothing, first_row=0, place="")
        self._check_unchanged()
        self.count = total

    def _check_unchanged(self) -> None:
        for path, state in zip(self.paths, self._states, strict=True):
            if file_state(path) != state:
                raise ValueError(describe_change(path))


def _cut(batches: Generator[Batch, None, None], rows: int) -> Generator[Rows, None, None]:
    """Cut batches into tables of a fixed number of rows, except for the last."""
    held: list[Batch] = []
    room = rows
    with closing(batches):
        for batch in batches:
            first = 0
            while first < batch.num_rows:
                held.append(batch.slice(first, room))
                first, room = first + held[-1].num_rows, room - held[-1].num_rows
                if room == 0:
                    yield pa.Table.from_batches(held)
                    held, room = [], rows
    if held:
        yield pa.Table.from_batches(held)


@dataclass
class Notation:
    """How the text of a table was written, by its cells, which are bytes.

    Attributes
    ----------
    commas, points : bool
        Whether there are numbers with decimals after a comma, or after a point.
    windows : bool
        Whether there is a cell that is no UTF-8.
    western : bool
        Whether western Windows has letters for all cells.

    Examples
    --------
    >>> import pyarrow as pa
    >>> found = Notation()
    >>> found.see(pa.array(["16,5".encode(), "Zürich".encode("cp1252")]))
    >>> found.decimal, found.windows, found.western
    (',', True, True)
    """

    commas: bool = False
    points: bool = False
    windows: bool = False
    western: bool = True

    def see(self, column: Any) -> None:
        """Take some cells into account."""
        for sign, pattern in DECIMALS.items():
            if not getattr(self, sign):
                setattr(self, sign, bool(pc.any(pc.match_substring_regex(column, pattern)).as_py()))
        for cell in column.unique().drop_null().to_pylist():
            if cell.isascii():
                continue
            self.windows = self.windows or not _decodes(cell)
            self.western = self.western and _in_windows(read_bytes(cell))

    @property
    def decimal(self) -> str:
        """The sign of decimals: a comma if there are no others."""
        return "," if self.commas and not self.points else "."

    def dialect(
        self, read: Dialect, *, name: Path, suffix: str, decimal: str, also: Iterable[str]
    ) -> Dialect:
        """Return the dialect of text beside the cells of a file, and of the cells.

        Parameters
        ----------
        read : Dialect
            Of the file, by its beginning.
        name : Path
            Of the file.
        suffix : str
            Of what is written: with tabs where it says so, and else as the file, unless that has
            them by its name.
        decimal : str
            Sign of decimals by which the file's inputs are read.
        also : iterable of str
            Text that is written beside its cells.
        """
        separator = read.separator
        if separator != "," and decimal == ".":
            decimal = self.decimal
        if suffix[:4] != table_suffix(name)[:4]:
            commas = ";" if decimal == "," else ","
            separator = commas if suffix.startswith(".csv") else "\t"
        western = self.windows and self.western and all(map(_in_windows, also))
        encoding = "cp1252" if western and read.encoding == "utf-8" else read.encoding
        return Dialect(separator, decimal, encoding)


def _decodes(cell: bytes) -> bool:
    try:
        cell.decode()
    except UnicodeDecodeError:
        return False
    return True


def _in_windows(text: str) -> bool:
    try:
        text.encode("cp1252")
    except UnicodeEncodeError:
        return False
    return True


@dataclass
class CopiedColumns:
    """How the columns of a table are copied, found out in a first pass.

    Attributes
    ----------
    text : bool
        Whether they are copied as text, as they were written; else text that is numbers
        throughout becomes numbers.
    notation : Notation
        How the cells were written, where they are copied as text and were bytes.

    Examples
    --------
    >>> copied = CopiedColumns(text=False)
    >>> table = pa.table({"age": ["30", ""], "job": ["cook", " nurse"]})
    >>> copied.see(table)
    >>> [column.to_pylist() for column in copied.copy(table).values()]
    [[30.0, None], ['cook', 'nurse']]
    """

    text: bool
    notation: Notation = field(default_factory=Notation)
    _wordy: set[str] = field(default_factory=set)
    _filled: set[str] = field(default_factory=set)
    _units: dict[str, int] = field(default_factory=dict)

    def see(self, table: Rows) -> None:
        """Take some rows into account."""
        for name, column in zip(table.column_names, table.columns, strict=True):
            column = texts_of(column)
            if self.text and pa.types.is_binary(column.type):
                self.notation.see(column)
            cells = ArrowCells(column)
            if cells.typed == "text" and not self.text and name not in self._wordy:
                found = cells.numbers()
                if found.unreadable:
                    self._wordy.add(name)
                if not found.missing.all():
                    self._filled.add(name)
            elif self.text and _is_local_time(column.type):
                self._units[name] = max(self._units.get(name, 0), _finest(column))

    def copy(self, table: Rows) -> dict[str, Any]:
        """Return the columns of some rows as they are to be written; all must have been seen."""
        return {
            name: self._copied(name, column)
            for name, column in zip(table.column_names, table.columns, strict=True)
        }

    def _copied(self, name: str, column: Any) -> Any:
        column = texts_of(column)
        cells = ArrowCells(column)
        if cells.typed == "text":
            if not self.text and name in self._filled and name not in self._wordy:
                return pa.array(cells.numbers().values, from_pandas=True)
            texts = cells.texts()
            return pa.array(texts, pa.string(), mask=texts == "")
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if name not in self._units:
            return column
        times = column.to_numpy()
        written = np.datetime_as_string(times, unit=UNITS[self._units[name]])
        return pa.array(np.char.replace(written, "T", " "), pa.string(), mask=np.isnat(times))


def _is_local_time(kind: Any) -> bool:
    return bool(pa.types.is_timestamp(kind)) and kind.tz is None


def _finest(column: Any) -> int:
    """Return the place among `UNITS` of the coarsest unit that represents all times."""
    times = column.drop_null().to_numpy()
    whole = (np.array_equal(times.astype(f"M8[{unit}]"), times) for unit in UNITS)
    return next(place for place, exact in enumerate(whole) if exact)
