"""Rows in Parquet files: only the columns wanted are read, in bounded memory."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from cloakgp.rows.files import Batch, FileRows, attempted, read_on
from cloakgp.tables import check_header

# Of each column, in bytes.
BUFFER = 2**18


class ParquetRows(FileRows):
    """Rows of one Parquet file or of several, read from the start in every pass and never kept.

    Chunks are cut from all rows one after another, whatever the row groups and files are.

    Parameters
    ----------
    path, inputs, output, chunk_rows, jobs
        As for `FileRows`.

    Raises
    ------
    FileNotFoundError, ValueError
        As for `FileRows`; and if there are no rows.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     people = Path(folder) / "people.parquet"
    ...     pd.DataFrame({"age": [30.0, 40.0], "height": [170.0, 165.0]}).to_parquet(people)
    ...     rows = ParquetRows(people, inputs=["age"], output="height")
    >>> rows
    ParquetRows(2 rows, 1 inputs)
    """

    suffixes = (".parquet",)

    def _look(self, path: Path) -> int:
        with attempted(path, partial(_opened, path)) as file:
            header = [str(name) for name in file.schema_arrow.names]
            check_header(path, header, names=[*self.input_names, self.output_name])
            return int(file.metadata.num_rows)

    def _batches(self, path: Path, names: Sequence[str]) -> Generator[Batch, None, None]:
        with (
            attempted(path, partial(_opened, path)) as file,
            closing(read_on(path, self._read(file, names))) as batches,
        ):
            for batch in batches:
                # Nobody promises in what order columns come, and one of them is private.
                yield batch.select(list(names))

    def _read(self, file: Any, names: Sequence[str]) -> Generator[Batch, None, None]:
        yield from file.iter_batches(
            batch_size=self.chunk_rows, columns=list(names), use_threads=self.jobs > 1
        )


def _opened(path: Path) -> Any:
    # Without these a whole row group is read ahead, however many rows that has.
    return pq.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False)
