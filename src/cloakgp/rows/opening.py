"""Rows in files, whatever their format."""

from __future__ import annotations

from collections.abc import Sequence

from cloakgp.rows.csv import CsvRows
from cloakgp.rows.files import FileRows, Paths, table_paths
from cloakgp.rows.local import CHUNK_ROWS
from cloakgp.rows.parquet import ParquetRows
from cloakgp.table_files import table_suffix


def open_rows(
    path: Paths,
    *,
    inputs: Sequence[str],
    output: str,
    chunk_rows: int = CHUNK_ROWS,
    jobs: int | None = None,
) -> FileRows:
    r"""Return the rows of a table that is read in passes, chunk by chunk.

    Parameters
    ----------
    path : path, folder, or sequence of paths
        Ending in .csv, .csv.gz or .parquet. Several files must have the same format; they are read
        in the order given, those of a folder sorted by name.
    inputs : sequence of str
        Names of the public columns, in the order wanted.
    output : str
        Name of the private column.
    chunk_rows : int
        The most rows that are worked on at once.
    jobs : int, optional
        How many threads; if not given, as many as there are processors to be used.

    Raises
    ------
    FileNotFoundError
        If there is no such file, or none in the folder.
    ValueError
        If a column is missing, a file is damaged, or its name ends in something else.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     people = Path(folder) / "people.csv"
    ...     _ = people.write_text("age,height\n30,170\n40,165\n")
    ...     rows = open_rows(people, inputs=["age"], output="height")
    >>> rows.input_names, rows.output_name
    (('age',), 'height')
    """
    paths = table_paths(path)
    kind = ParquetRows if table_suffix(paths[0]) == ".parquet" else CsvRows
    return kind(paths, inputs=inputs, output=output, chunk_rows=chunk_rows, jobs=jobs)
