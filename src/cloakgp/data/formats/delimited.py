"""Text with separators, CSV: in the dialects that people have, split in bounded memory.

Written tables hold public results. Names of columns and classes come from files that others made,
and a spreadsheet takes text in CSV that begins with one of `FORMULA_SIGNS` for a formula, which may
start programs or send away what stands beside it. An apostrophe before it makes it text again, as
everywhere in spreadsheets. Numbers stay as they are, those that are written as text too.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
import zipfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from cloakgp.columns.cells import read_bytes
from cloakgp.data.formats.base import (
    Batch,
    Rows,
    TableFormat,
    attempt,
    describe_damage,
    read_batches,
)
from cloakgp.data.limits import UNLIMITED, ReadingLimits, RefusedError
from cloakgp.privacy.entries import AROUND, NUMBER
from cloakgp.privacy.person_ids import TEXT
from cloakgp.utils.extras import extra

with extra("tables"):
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

if TYPE_CHECKING:
    import pandas as pd

# Bytes that are split into cells at a time, and that a row can have at most.
BLOCK = 2**20
# In bytes, with a mark of UTF-8 and quotes.
LONGEST_SEPARATOR_LINE = 16
# In bytes: names of columns that are not over by then are no header, whatever lines there are.
LONGEST_HEADER = 2**20
# What the last row holds that is read, in every cell. A quote that was opened and never closed
# swallows all rows below it: then this is not found.
END = "cloakgp: end of file"
# What may separate cells; the first where several would do.
SEPARATED_BY = (",", ";", "\t")
# After blanks too, which some programs take off; the last four are wide forms of the first.
FORMULA_SIGNS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
# Said of lines that end as those of old Macintoshes did, and of rows that go on behind the names.
OLD_LINES = (
    "the lines of the table end in a carriage return alone: save it as CSV (UTF-8), or with the "
    "line ends of another system"
)
LONGER_ROWS = (
    "its rows end in a separator that the line of column names lacks: write one there, too, or "
    "take those off"
)
# Excel's own first line, which names the separator.
SEPARATOR_LINE = re.compile(rb"(?:\xef\xbb\xbf)?\"?sep=[,;\t]\"?\r?\n")
# They separate cells in some programs, whatever stands behind them.
SEPARATORS = ("\t", "\r", "\n")


@dataclass(frozen=True)
class Dialect:
    """How text with separators is written.

    Attributes
    ----------
    separator : str
        Of cells.
    decimal : str
        Sign of decimals.
    encoding : str
        As Python calls it.
    """

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"


class CsvFormat(TableFormat):
    """Text with separators: CSV and its kin, compressed or not.

    Cells are separated by commas, semicolons or tabs, and the first line names the columns.
    The encoding is UTF-8, or UTF-16 where the file begins with its mark; a cell that is no UTF-8 is
    read as western Windows writes it. Columns that are not wanted may hold anything.

    Parameters
    ----------
    dialect : Dialect, optional
        In which it is written; if not given, with commas or, where the suffix says so, with tabs.
    limits : ReadingLimits, optional
        Of what is read.
    """

    certain_names = False

    def __init__(
        self, dialect: Dialect | None = None, *, limits: ReadingLimits = UNLIMITED
    ) -> None:
        super().__init__(limits=limits)
        self.dialect = dialect

    def dialect_of(self, path: Path) -> Dialect:
        """Return the separator of the cells of a file, and the encoding of its beginning.

        Raises
        ------
        ValueError
            If it cannot be read.
        """
        _, separator = attempt(path, partial(_read_header, path, limits=self.limits))
        with closing(attempt(path, partial(_open_bytes, path))) as file:
            start = attempt(path, partial(file.read, 3))
        if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return Dialect(separator, encoding="utf-16")
        return Dialect(separator, encoding="utf-8-sig" if start == codecs.BOM_UTF8 else "utf-8")

    def look(self, path: Path) -> tuple[list[str], int | None]:
        """Return the cells of the first line; the number of rows is unknown."""
        return _read_header(path, limits=self.limits)[0], None

    def kinds_of_ids(self, path: Path, name: str) -> set[str]:  # noqa: ARG002
        """Return that all cells are text: 1, 01 and 1.0 stay as written."""
        return {TEXT}

    def _batches(
        self, path: Path, names: Sequence[str], *, rows: int, threads: bool
    ) -> Generator[Batch, None, None]:
        """Read columns as the bytes of their cells, a megabyte of the file at a time."""
        del rows, threads
        header, separator = attempt(path, partial(_read_header, path, limits=self.limits))
        columns = [header.index(name) for name in names]
        whole = False
        with ExitStack() as stack:
            file = attempt(path, lambda: stack.enter_context(_open_csv(path, limits=self.limits)))
            split = _split(
                _WithEndRow(file, cells=len(header), separator=separator),
                columns=columns,
                cells=len(header),
                separator=separator,
            )
            held = None
            with closing(read_batches(path, split)) as batches:
                for batch in batches:
                    if batch.num_rows == 0:
                        continue
                    if held is not None:
                        yield held
                        held = batch
                    elif _holds(batch, 0, names):
                        held = batch.slice(1)
                    else:
                        break
            if held is not None and held.num_rows:
                last = held.num_rows - 1
                whole = _holds(held, last, [END] * len(names))
                held = held.slice(0, last)
        if held is None or not whole:
            raise ValueError(describe_damage(path))
        yield held

    def write(self, tables: Iterator[Rows], file: BinaryIO, *, suffix: str) -> None:
        """Write text without formulas, with the compression of the suffix."""
        dialect = self.dialect or Dialect("," if suffix.startswith(".csv") else "\t")
        # Of all that is written, the start alone has a mark.
        encoder = codecs.getincrementalencoder(dialect.encoding)()
        with _compressing(file, suffix=suffix) as packed:
            for number, table in enumerate(tables):
                frame = without_formulas(as_frame(table), decimal=dialect.decimal)
                text = frame.to_csv(
                    index=False,
                    header=number == 0,
                    sep=dialect.separator,
                    decimal=dialect.decimal,
                )
                packed.write(encoder.encode(text))


def as_frame(table: Rows) -> pd.DataFrame:
    """Return a table for pandas, in which every cell is written for itself.

    Whole numbers stay so where others are missing, and times keep their zones.
    """
    frame: pd.DataFrame = table.to_pandas(integer_object_nulls=True)
    for place, kind in enumerate(table.schema.types):
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            frame.isetitem(place, frame.iloc[:, place].astype(object).to_numpy())
    return frame


@contextmanager
def _compressing(file: BinaryIO, *, suffix: str) -> Iterator[Any]:
    """Open a file for writing, with the compression of its suffix."""
    ending = suffix.rpartition(".")[2]
    with ExitStack() as stack:
        if ending == "zip":
            archive = stack.enter_context(zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED))
            inside = "table" + suffix.removesuffix(".zip")
            yield stack.enter_context(archive.open(inside, "w", force_zip64=True))
        elif ending == "zst":
            kept = pa.PythonFile(_KeptOpen(file), mode="w")
            yield stack.enter_context(pa.CompressedOutputStream(kept, "zstd"))
        elif ending == "gz":
            yield stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        elif ending == "bz2":
            yield stack.enter_context(bz2.BZ2File(file, "wb"))
        elif ending == "xz":
            yield stack.enter_context(lzma.LZMAFile(file, "wb"))
        else:
            yield file


class _KeptOpen(io.RawIOBase):
    """A file that stays open when Arrow closes it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        return self._file.write(content)


@contextmanager
def _open_csv(path: Path, *, limits: ReadingLimits) -> Iterator[Any]:
    """Open a file as bytes of UTF-8, or of no encoding, decompressed while it is read."""
    with ExitStack() as stack:
        file = stack.enter_context(_open_bytes(path))
        start = file.read(2)
        file = stack.enter_context(_open_bytes(path))
        if limits.size is not None:
            file = stack.enter_context(io.BufferedReader(_Limited(file, limits=limits), BLOCK))
        if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            # What cannot be decoded is no reason to stop: it matches nothing, and is no number.
            file = codecs.EncodedFile(file, "utf-8", "utf-16", errors="replace")
        yield _AfterSeparatorLine(file)


class _AfterSeparatorLine:
    """A file without the line of Excel's that names the separator, if that is its first."""

    def __init__(self, file: Any) -> None:
        self._file = file
        first = bytes(file.readline(LONGEST_SEPARATOR_LINE))
        self._held = b"" if SEPARATOR_LINE.fullmatch(first) else first

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def close(self) -> None:
        self._file.close()

    def read(self, size: int = -1) -> bytes:
        if not self._held:
            return bytes(self._file.read(size))
        held = self._held if size < 0 else self._held[:size]
        self._held = self._held[len(held) :]
        return held

    def readline(self, size: int) -> bytes:
        held, self._held = self._held[:size], self._held[size:]
        if held.endswith(b"\n") or len(held) == size:
            return held
        return held + bytes(self._file.readline(size - len(held)))


def _open_bytes(path: Path) -> Any:
    name = path.name.lower()
    if name.endswith(".zip"):
        archive = zipfile.ZipFile(path)
        inside = [each for each in archive.namelist() if not each.endswith("/")]
        if len(inside) != 1:
            raise ValueError("there must be one file in it")
        opened = None
        # It may have a password, or be packed in a way that is not known here.
        with suppress(RuntimeError):
            opened = archive.open(inside[0])
        if opened is None:
            raise ValueError("it cannot be unpacked")
        return opened
    if name.endswith(".zst"):
        return io.BufferedReader(pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"))
    ways: dict[str, Callable[[Path], Any]] = {
        ".gz": gzip.open,
        ".bz2": bz2.open,
        ".xz": lzma.open,
    }
    return ways.get(path.suffix.lower(), Path.open)(path, "rb")


class _Limited(io.RawIOBase):
    """A file of which no more is read than is allowed."""

    def __init__(self, file: Any, *, limits: ReadingLimits) -> None:
        self._file, self._limits = file, limits
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._file.read(len(buffer))
        self._read += len(piece)
        self._limits.check_size(self._read)
        buffer[: len(piece)] = piece
        return len(piece)


def _read_header(path: Path, *, limits: ReadingLimits) -> tuple[list[str], str]:
    """Return the names of the columns without blanks around them, and the separator of cells.

    That is whatever makes the most cells of the first line, of those that make as many of the next
    if there are some: names may have commas. It is of commas, where that is open.

    Raises
    ------
    RefusedError
        If lines are not ended, or rows are longer by nothing, so that cells cannot be told apart.
    ValueError, OSError, EOFError, csv.Error
        If there is no header; these may quote it, and must not reach anybody.
    """
    read: list[str] = []
    with _open_csv(path, limits=limits) as file:
        lines = _read_lines(file, read)
        next(filter(None, csv.reader(lines, skipinitialspace=True)))
        below = _count_cells(read_bytes(bytes(file.readline(LONGEST_HEADER))))
    found = []
    for separator in SEPARATED_BY:
        # A tab is a blank, and would be taken off.
        rows = csv.reader(read, delimiter=separator, skipinitialspace=separator != "\t")
        found.append((next(filter(None, rows), []), separator))
    found.sort(key=lambda each: -len(each[0]))
    fitting = [each for each in found if len(each[0]) == below[each[1]].count > 1]
    names, separator = (*fitting, *found)[0]
    first = below[separator]
    if first.count == len(names) + 1 > 2 and first.last_empty:
        raise RefusedError(f"{path}: {LONGER_ROWS}")
    return [name.strip(" \t") for name in names], separator


@dataclass(frozen=True)
class _Counted:
    """How many cells a row has, and whether there is nothing in its last one."""

    count: int
    last_empty: bool


def _count_cells(row: str) -> dict[str, _Counted]:
    """Return what is known of a row by each separator; of what is in it, nothing else is kept."""
    counted = {}
    for separator in SEPARATED_BY:
        cells: list[str] = []
        with suppress(csv.Error):
            cells = next(csv.reader([row], delimiter=separator, skipinitialspace=True), [])
        counted[separator] = _Counted(len(cells), bool(cells) and not cells[-1].strip())
    return counted


def _read_lines(file: Any, read: list[str]) -> Iterator[str]:
    left = LONGEST_HEADER
    while line := bytes(file.readline(left)):
        if not read:
            line = line.removeprefix(codecs.BOM_UTF8)
            if b"\r" in line.rstrip(b"\r") and not line.endswith(b"\n"):
                # It may be the whole file.
                line = b""
                raise RefusedError(OLD_LINES)
        left -= len(line)
        read.append(read_bytes(line))
        yield read[-1]
    raise ValueError("there is no line of column names")


class _WithEndRow:
    """A file with one more row below its last, every cell of which is `END`."""

    def __init__(self, file: Any, *, cells: int, separator: str) -> None:
        self._file = file
        # Lines that are empty are no rows.
        self._rest = f"\n{separator.join([END] * cells)}\n".encode()

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def close(self) -> None:
        self._file.close()

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def read(self, size: int = -1) -> bytes:
        read = bytes(self._file.read(size))
        if not read:
            read, self._rest = self._rest[:size], self._rest[size:]
        return read


def _split(
    file: _WithEndRow, *, columns: Sequence[int], cells: int, separator: str
) -> Generator[Batch, None, None]:
    """Split a file into cells, header and all, and yield the columns wanted as bytes."""
    included = [str(column) for column in columns]
    with arrow_csv.open_csv(
        pa.PythonFile(file, mode="r"),
        read_options=arrow_csv.ReadOptions(
            column_names=[str(column) for column in range(cells)],
            block_size=BLOCK,
            use_threads=False,
        ),
        parse_options=arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=included, column_types=dict.fromkeys(included, pa.binary())
        ),
    ) as reader:
        yield from reader


def _holds(batch: Batch, row: int, texts: Sequence[str]) -> bool:
    """Return whether these are the cells of a row."""
    mark = "\ufeff"
    cells = [read_bytes(column[row].as_py()).removeprefix(mark) for column in batch.columns]
    return [cell.strip(AROUND) for cell in cells] == [text.strip(AROUND) for text in texts]


def without_formulas(frame: pd.DataFrame, *, decimal: str = ".") -> pd.DataFrame:
    """Return a table in which no name and no text begins like a formula.

    Parameters
    ----------
    frame : pandas.DataFrame
    decimal : str
        Sign of decimals of numbers that are written as text.

    Examples
    --------
    >>> import pandas as pd
    >>> odd = pd.DataFrame({"=cmd": ["@risk", "-1", "no"], "x": [-1.0, 2.0, 3.0]})
    >>> print(without_formulas(odd).to_csv(index=False))
    '=cmd,x
    '@risk,-1.0
    -1,2.0
    no,3.0
    <BLANKLINE>
    """
    import pandas as pd
    from pandas.api.types import is_datetime64_any_dtype, is_numeric_dtype

    safe = frame.copy()
    for position in range(frame.shape[1]):
        column = frame.iloc[:, position]
        kind = column.dtype
        if not (is_numeric_dtype(kind) or is_datetime64_any_dtype(kind)):
            # Objects stay what they are: whole numbers among gaps, too.
            cells = np.empty(len(column), dtype=object)
            cells[:] = [_escape(cell, decimal=decimal) for cell in column.tolist()]
            safe.isetitem(position, cells)
    safe.columns = pd.Index([_escape(name) for name in frame.columns])
    return safe


def _escape(cell: object, *, decimal: str = ".") -> object:
    if not isinstance(cell, str):
        return cell
    obeyed = cell.startswith(SEPARATORS) or cell.lstrip().startswith(FORMULA_SIGNS)
    if obeyed and not re.fullmatch(NUMBER, cell.replace(decimal, ".")):
        return f"'{cell}"
    return cell
