"""Parquet files: only the columns wanted are read, in bounded memory.

The index of a pandas table is a column like any other, under its name, or as ``__index_level_0__``.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from cloakgp.data.cells import attempted, read_on
from cloakgp.data.table_format import Batch, TableFormat
from cloakgp.utils.extras import extra

with extra("tables"):
    import pyarrow.parquet as pq

# Of each column, in bytes.
BUFFER = 2**18


class ParquetFormat(TableFormat):
    """Parquet, whose files say what their columns are called and how many rows they have."""

    suffixes = (".parquet",)
    certain_names = True

    def look(self, path: Path) -> tuple[list[str], int | None]:
        """Return the names of columns, and the number of rows."""
        with opened(path) as file:
            return column_names(file), int(file.metadata.num_rows)

    def batches(
        self, path: Path, names: Sequence[str], *, rows: int, threads: bool
    ) -> Generator[Batch, None, None]:
        """Read columns, the given number of rows at a time."""
        with attempted(path, partial(opened, path)) as file:
            read = file.iter_batches(batch_size=rows, columns=list(names), use_threads=threads)
            with closing(read_on(path, (batch for batch in read))) as batches:
                for batch in batches:
                    # Nobody promises in what order columns come, and one of them is private.
                    yield batch.select(list(names))


def opened(path: Path) -> Any:
    """Open a file so that columns are read bit by bit, else a whole row group is read ahead."""
    return pq.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False)


def column_names(file: Any) -> list[str]:
    """Return the names of an open file's columns."""
    return [str(name) for name in file.schema_arrow.names]
