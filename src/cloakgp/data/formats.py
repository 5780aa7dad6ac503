"""The formats of tables, and which a file has."""

from __future__ import annotations

from pathlib import Path

from cloakgp.data.csv import CsvFormat
from cloakgp.data.parquet import ParquetFormat
from cloakgp.data.table_files import table_suffix
from cloakgp.data.table_format import TableFormat

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
    return next(one for one in FORMATS if suffix in one.suffixes)
