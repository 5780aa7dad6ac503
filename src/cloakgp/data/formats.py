"""Table formats: CSV and Parquet, read column by column in bounded memory.

`TableFormat` is what both have in common, and `format_of` tells which a file has. Columns that are
not wanted are never converted. What the libraries that read files say of a damaged one may quote a
cell of the private column: their errors end here, and a file is called damaged and nothing more.

Written tables hold public results. Names of columns and classes come from files that others made,
and a spreadsheet takes text in CSV that begins with one of `FORMULA_SIGNS` for a formula, which may
start programs or send away what stands beside it. An apostrophe before it makes it text again, as
everywhere in spreadsheets. Numbers stay as they are, those that are written as text too.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from cloakgp.data.schema import check_file, check_header, table_suffix
from cloakgp.privacy.entries import AROUND, NUMBER
from cloakgp.utils.extras import extra

with extra("tables"):
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv as arrow_csv

if TYPE_CHECKING:
    import pandas as pd

Batch = Any
"""Of Arrow: some rows of a table, column by column."""

Read = TypeVar("Read")

# Bytes that are split into cells at a time, and that a row can have at most.
BLOCK = 2**20
# In bytes: a first line that is longer is no header.
LONGEST_HEADER = 2**20
# What the last row holds that is read, in every cell. A quote that was opened and never closed
# swallows all rows below it: then this is not found.
END = "cloakgp: end of file"
# After blanks too, which some programs take off; the last four are wide forms of the first.
FORMULA_SIGNS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
# They separate cells in some programs, whatever stands behind them.
SEPARATORS = ("\t", "\r", "\n")
# Bytes of each column of Parquet that are read at a time.
BUFFER = 2**18

# What readers raise for files that are damaged, cut off, or something else altogether.
READ_ERRORS = (ValueError, OSError, EOFError, zlib.error, pa.ArrowException, csv.Error)


class TableFormat(ABC):
    """A format of tables in files: how columns are named, read and written.

    Attributes
    ----------
    suffixes : tuple of str
        How the names of such files end.
    certain_names : bool
        Whether the names of columns are known to be names; the first line of a text file may hold
        a person's values instead.
    advice : str
        What the message about a damaged file says of the format, with a blank before it.
    """

    suffixes: ClassVar[tuple[str, ...]]
    certain_names: ClassVar[bool]
    advice: ClassVar[str] = ""

    @abstractmethod
    def look(self, path: Path) -> tuple[list[str], int | None]:
        """Return the names of a file's columns, and how many rows it has, if that is known.

        Raises
        ------
        ValueError, OSError, EOFError, zlib.error, pyarrow.ArrowException, csv.Error
            If it cannot be read; these may quote a cell, and must not reach anybody.
        """

    @abstractmethod
    def batches(
        self, path: Path, names: Sequence[str], *, rows: int, threads: bool
    ) -> Generator[Batch, None, None]:
        """Read the named columns of a file, in this order and no others.

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
            If the file is damaged. Nothing of what is in it is said.
        """

    @abstractmethod
    def encode(self, frame: pd.DataFrame, *, suffix: str) -> bytes:
        """Return the content of a file that holds a table of public columns.

        Parameters
        ----------
        frame : pandas.DataFrame
        suffix : str
            One of `suffixes`.
        """

    def check(self, path: Path, *, names: Sequence[str]) -> int | None:
        """Check that a file is there and has columns; return how many rows it has, if known.

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
        return rows


class CsvFormat(TableFormat):
    """CSV, gzipped or not.

    Separators are commas or semicolons, the encoding is UTF-8, with a byte-order mark or without,
    and the first line names the columns. Columns that are not wanted may hold anything.
    """

    suffixes = (".csv", ".csv.gz")
    certain_names = False
    advice = " (UTF-8, commas or semicolons, as many cells in a row as in the header)"

    def look(self, path: Path) -> tuple[list[str], int | None]:
        """Return the cells of the first line; how many rows there are is not known."""
        return _read_header(path)[0], None

    def batches(
        self, path: Path, names: Sequence[str], *, rows: int, threads: bool
    ) -> Generator[Batch, None, None]:
        """Read columns as the bytes of their cells, a megabyte of the file at a time."""
        del rows, threads
        header, separator = attempt(path, partial(_read_header, path))
        columns = [header.index(name) for name in names]
        whole = False
        with attempt(path, partial(_open_csv, path)) as file:
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

    def encode(self, frame: pd.DataFrame, *, suffix: str) -> bytes:
        """Return CSV in which nothing looks like a formula, gzipped if the suffix says so."""
        compression: Literal["gzip"] | None = "gzip" if suffix.endswith(".gz") else None
        content = io.BytesIO()
        without_formulas(frame).to_csv(content, index=False, compression=compression)
        return content.getvalue()


def _open_csv(path: Path) -> IO[bytes] | gzip.GzipFile:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rb")
    return path.open("rb")


def _read_header(path: Path) -> tuple[list[str], str]:
    """Return the names of the columns, and what separates cells.

    That is a semicolon if there are some and no comma, as spreadsheets of many countries write.

    Raises
    ------
    ValueError, OSError, EOFError, csv.Error
        If there is no header; these may quote it, and must not reach anybody.
    """
    read: list[str] = []
    with _open_csv(path) as file:
        names = next(filter(None, csv.reader(_read_lines(file, read), skipinitialspace=True)))
    if len(names) == 1 and ";" in names[0]:
        names = next(filter(None, csv.reader(read, delimiter=";", skipinitialspace=True)))
        return names, ";"
    return names, ","


def _read_lines(file: IO[bytes] | gzip.GzipFile, read: list[str]) -> Iterator[str]:
    encoding = "utf-8-sig"
    while line := file.readline(LONGEST_HEADER):
        read.append(line.decode(encoding))
        encoding = "utf-8"
        yield read[-1]
    raise ValueError("there is no line of column names")


class _WithEndRow:
    """A file with one more row below its last, every cell of which is `END`."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile, *, cells: int, separator: str) -> None:
        self._file = file
        # Lines that are empty are no rows.
        self._rest = f"\n{separator.join([END] * cells)}\n".encode()

    @property
    def closed(self) -> bool:
        return self._file.closed

    def close(self) -> None:
        self._file.close()

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def read(self, size: int = -1) -> bytes:
        read = self._file.read(size)
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
    cells = [column[row].as_py().strip(AROUND.encode()) for column in batch.columns]
    return cells == [text.encode().strip(AROUND.encode()) for text in texts]


def without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which no name and no text begins like a formula.

    Parameters
    ----------
    frame : pandas.DataFrame

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

    safe = frame.copy()
    for position in range(frame.shape[1]):
        column = frame.iloc[:, position]
        if not pd.api.types.is_numeric_dtype(column.dtype):
            safe.isetitem(position, column.map(_escape).to_numpy())
    safe.columns = pd.Index([_escape(name) for name in frame.columns])
    return safe


def _escape(cell: object) -> object:
    if not isinstance(cell, str) or re.fullmatch(NUMBER, cell):
        return cell
    return (
        f"'{cell}"
        if cell.startswith(SEPARATORS) or cell.lstrip().startswith(FORMULA_SIGNS)
        else cell
    )


class ParquetFormat(TableFormat):
    """Parquet, whose files say what their columns are called and how many rows they have.

    The index of a pandas table is a column like any other, under its name, or as
    ``__index_level_0__``.
    """

    suffixes = (".parquet",)
    certain_names = True

    def look(self, path: Path) -> tuple[list[str], int | None]:
        """Return the names of columns, and the number of rows."""
        with open_parquet(path) as file:
            return parquet_columns(file), int(file.metadata.num_rows)

    def batches(
        self, path: Path, names: Sequence[str], *, rows: int, threads: bool
    ) -> Generator[Batch, None, None]:
        """Read columns, the given number of rows at a time."""
        with attempt(path, partial(open_parquet, path)) as file:
            read = file.iter_batches(batch_size=rows, columns=list(names), use_threads=threads)
            with closing(read_batches(path, (batch for batch in read))) as batches:
                for batch in batches:
                    # Nobody promises in what order columns come, and one of them is private.
                    yield batch.select(list(names))

    def encode(self, frame: pd.DataFrame, *, suffix: str) -> bytes:  # noqa: ARG002
        """Return Parquet without an index; there text is text, and is left as it is."""
        content = io.BytesIO()
        frame.to_parquet(content, index=False)
        return content.getvalue()


def open_parquet(path: Path) -> Any:
    """Open a file so that columns are read bit by bit, else a whole row group is read ahead."""
    return pq.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False)


def parquet_columns(file: Any) -> list[str]:
    """Return the names of an open file's columns."""
    return [str(name) for name in file.schema_arrow.names]


FORMATS: tuple[TableFormat, ...] = (CsvFormat(), ParquetFormat())


def format_of(path: Path) -> TableFormat:
    """Return the format that the name of a file says it has.

    Raises
    ------
    ValueError
        If it ends in something else.

    Examples
    --------
    >>> format_of(Path("people.csv.gz")).suffixes
    ('.csv', '.csv.gz')
    """
    suffix = table_suffix(path)
    return next(table_format for table_format in FORMATS if suffix in table_format.suffixes)


def describe_damage(path: Path) -> str:
    """Say that a file cannot be read, without what its reader says of it.

    Examples
    --------
    >>> describe_damage(Path("people.parquet"))
    'people.parquet cannot be read as .parquet: it is damaged, cut off, or in another format'
    """
    fault = f"{path} cannot be read as {table_suffix(path)}"
    return f"{fault}: it is damaged, cut off, or in another format{format_of(path).advice}"


def attempt(path: Path, read: Callable[[], Read]) -> Read:
    """Return what was read, or say that the file is damaged and nothing else.

    Raises
    ------
    ValueError
        If it cannot be read.

    Examples
    --------
    >>> attempt(Path("people.parquet"), lambda: 3)
    3
    """
    try:
        return read()
    except READ_ERRORS:
        pass
    raise ValueError(describe_damage(path))


def read_batches(path: Path, batches: Generator[Read, None, None]) -> Generator[Read, None, None]:
    """Yield what a reader yields, and close it; or say that the file is damaged.

    Raises
    ------
    ValueError
        If it cannot be read to the end.
    """
    with closing(batches):
        while (batch := attempt(path, lambda: next(batches, None))) is not None:
            yield batch
