"""Columnar files: Parquet, and Arrow's own (Feather)."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from cloakgp.data.cells import kind_of_ids
from cloakgp.data.formats.base import Batch, Rows, TableFormat, attempt, read_batches
from cloakgp.utils.extras import extra

with extra("tables"):
    import pyarrow as pa
    import pyarrow.parquet as pq

# Bytes of each column of Parquet that are read at a time.
BUFFER = 2**18
# Bytes in memory of a row group that is written, about.
GROUP_BYTES = 2**24


class ParquetFormat(TableFormat):
    """Parquet, whose files hold names of columns and numbers of rows.

    The index of a pandas table is a column like any other, under its name, or as
    ``__index_level_0__``.
    """

    certain_names = True

    def look(self, path: Path) -> tuple[list[str], int | None]:
        """Return the names of columns, and the number of rows."""
        with open_parquet(path) as file:
            groups = (file.metadata.row_group(k) for k in range(file.metadata.num_row_groups))
            self.limits.check_size(sum(group.total_byte_size for group in groups))
            return parquet_columns(file), int(file.metadata.num_rows)

    def kinds_of_ids(self, path: Path, name: str) -> set[str]:
        """Return the kinds of cells by the type of a column."""
        with open_parquet(path) as file:
            return {kind_of_ids(file.schema_arrow.field(name).type)}

    def _batches(
        self, path: Path, names: Sequence[str], *, rows: int, threads: bool
    ) -> Generator[Batch, None, None]:
        """Read columns, the given number of rows at a time."""
        with attempt(path, partial(open_parquet, path)) as file:
            read = file.iter_batches(batch_size=rows, columns=list(names), use_threads=threads)
            with closing(read_batches(path, (batch for batch in read))) as batches:
                for batch in batches:
                    # Nobody promises in what order columns come, and one of them is private.
                    yield batch.select(list(names))

    def write(self, tables: Iterator[Rows], file: BinaryIO, *, suffix: str) -> None:  # noqa: ARG002
        """Write Parquet, a row group at a time; there text is text, and is left as it is."""
        first = next(tables)
        with pq.ParquetWriter(file, first.schema) as writer:
            for table in _groups(chain([first], tables)):
                writer.write_table(table, row_group_size=max(table.num_rows, 1))


def _groups(tables: Iterator[Rows]) -> Iterator[Rows]:
    """Put rows together until they fill a row group."""
    held: list[Rows] = []
    size = 0
    for table in tables:
        held.append(table)
        size += table.nbytes
        if size >= GROUP_BYTES:
            yield pa.concat_tables(held)
            held, size = [], 0
    if held:
        yield pa.concat_tables(held)


def open_parquet(path: Path) -> Any:
    """Open a file so that columns are read bit by bit, else a whole row group is read ahead."""
    return pq.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False)


def parquet_columns(file: Any) -> list[str]:
    """Return the names of an open file's columns."""
    return [str(name) for name in file.schema_arrow.names]


class ArrowFormat(TableFormat):
    """Arrow files, of which Feather is another name."""

    certain_names = True

    def look(self, path: Path) -> tuple[list[str], int | None]:
        """Return the names of columns, and the number of rows."""
        with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as file:
            rows = sum(file.get_batch(place).num_rows for place in range(file.num_record_batches))
            return [str(name) for name in file.schema.names], rows

    def kinds_of_ids(self, path: Path, name: str) -> set[str]:
        """Return the kinds of cells by the type of a column."""
        with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as file:
            return {kind_of_ids(file.schema.field(name).type)}

    def _batches(
        self, path: Path, names: Sequence[str], *, rows: int, threads: bool
    ) -> Generator[Batch, None, None]:
        """Read batches of the file, cut to a number of rows."""
        del threads
        with closing(read_batches(path, _arrow_batches(path, names, rows=rows))) as batches:
            yield from batches

    def write(self, tables: Iterator[Rows], file: BinaryIO, *, suffix: str) -> None:  # noqa: ARG002
        """Write an Arrow file, batch by batch, compressed as Feather is."""
        first = next(tables)
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_file(file, first.schema, options=options) as writer:
            for table in _groups(chain([first], tables)):
                writer.write_table(table)


def _arrow_batches(path: Path, names: Sequence[str], *, rows: int) -> Generator[Batch, None, None]:
    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as file:
        for place in range(file.num_record_batches):
            batch = file.get_batch(place).select(list(names))
            for first in range(0, batch.num_rows, rows):
                yield batch.slice(first, rows)
