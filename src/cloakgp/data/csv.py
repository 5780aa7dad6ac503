"""CSV files, split into cells in bounded memory; unwanted columns are never converted."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import IO

from cloakgp.data.cells import attempted, damage, read_on
from cloakgp.data.table_format import Batch, TableFormat
from cloakgp.privacy.entries import AROUND
from cloakgp.utils.extras import extra

with extra("tables"):
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

# Bytes that are split into cells at a time, and that a row can have at most.
BLOCK = 2**20
# In bytes: a first line that is longer is no header.
LONGEST_HEADER = 2**20
# What the last row holds that is read, in every cell. A quote that was opened and never closed
# swallows all rows below it: then this is not found.
END = "cloakgp: end of file"


class CsvFormat(TableFormat):
    """CSV, gzipped or not.

    Separators are commas or semicolons, the encoding is UTF-8, with a byte-order mark or without,
    and the first line names the columns. Columns that are not wanted may hold anything.
    """

    suffixes = (".csv", ".csv.gz")
    certain_names = False

    def look(self, path: Path) -> tuple[list[str], int | None]:
        """Return the cells of the first line; how many rows there are is not known."""
        return _header(path)[0], None

    def batches(
        self, path: Path, names: Sequence[str], *, rows: int, threads: bool
    ) -> Generator[Batch, None, None]:
        """Read columns as the bytes of their cells, a megabyte of the file at a time."""
        del rows, threads
        header, separator = attempted(path, partial(_header, path))
        columns = [header.index(name) for name in names]
        whole = False
        with attempted(path, partial(_opened, path)) as file:
            split = _split(
                _Ended(file, cells=len(header), separator=separator),
                columns=columns,
                cells=len(header),
                separator=separator,
            )
            held = None
            with closing(read_on(path, split)) as batches:
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
            raise ValueError(damage(path))
        yield held


def _opened(path: Path) -> IO[bytes] | gzip.GzipFile:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rb")
    return path.open("rb")


def _header(path: Path) -> tuple[list[str], str]:
    """Return the names of the columns, and what separates cells.

    That is a semicolon if there are some and no comma, as spreadsheets of many countries write.

    Raises
    ------
    ValueError, OSError, EOFError, csv.Error
        If there is no header; these may quote it, and must not reach anybody.
    """
    read: list[str] = []
    with _opened(path) as file:
        names = next(filter(None, csv.reader(_lines(file, read), skipinitialspace=True)))
    if len(names) == 1 and ";" in names[0]:
        names = next(filter(None, csv.reader(read, delimiter=";", skipinitialspace=True)))
        return names, ";"
    return names, ","


def _lines(file: IO[bytes] | gzip.GzipFile, read: list[str]) -> Iterator[str]:
    encoding = "utf-8-sig"
    while line := file.readline(LONGEST_HEADER):
        read.append(line.decode(encoding))
        encoding = "utf-8"
        yield read[-1]
    raise ValueError("there is no line of column names")


class _Ended:
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
    file: _Ended, *, columns: Sequence[int], cells: int, separator: str
) -> Generator[Batch, None, None]:
    """Split a file into cells, header and all, and yield the columns wanted as bytes."""
    wanted = [str(column) for column in columns]
    with arrow_csv.open_csv(
        pa.PythonFile(file, mode="r"),
        read_options=arrow_csv.ReadOptions(
            column_names=[str(column) for column in range(cells)],
            block_size=BLOCK,
            use_threads=False,
        ),
        parse_options=arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=wanted, column_types=dict.fromkeys(wanted, pa.binary())
        ),
    ) as reader:
        yield from reader


def _holds(batch: Batch, row: int, texts: Sequence[str]) -> bool:
    """Return whether these are the cells of a row."""
    found = [column[row].as_py().strip(AROUND.encode()) for column in batch.columns]
    return found == [text.encode().strip(AROUND.encode()) for text in texts]
