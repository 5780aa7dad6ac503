"""Table formats, read column by column. One registry.

A new format is a class in a module of this folder and a line below; its suffix is in
`cloakgp.data.schema`, which imports nothing that reads files.
"""

from pathlib import Path

from cloakgp.data.formats.address import AddressFormat
from cloakgp.data.formats.base import Batch, TableFormat
from cloakgp.data.formats.columnar import ArrowFormat, ParquetFormat
from cloakgp.data.formats.delimited import CsvFormat
from cloakgp.data.formats.rows import DatabaseFormat, SpreadsheetFormat
from cloakgp.data.limits import UNLIMITED, ReadingLimits
from cloakgp.data.schema import table_suffix

__all__ = ["FORMATS", "AddressFormat", "Batch", "DatabaseFormat", "TableFormat", "format_of"]

FORMATS: tuple[TableFormat, ...] = (
    CsvFormat(),
    ParquetFormat(),
    ArrowFormat(),
    SpreadsheetFormat(),
    DatabaseFormat(),
    AddressFormat(),
)


def format_of(path: Path, *, limits: ReadingLimits = UNLIMITED) -> TableFormat:
    """Return the format that the name of a file says it has.

    Parameters
    ----------
    path : Path
    limits : ReadingLimits, optional
        Of what is read.

    Raises
    ------
    ValueError
        If it ends in something else.

    Examples
    --------
    >>> format_of(Path("people.csv.gz")).suffixes  # doctest: +ELLIPSIS
    ('.csv', '.csv.gz', '.csv.bz2', '.csv.xz', '.csv.zst', '.csv.zip', '.tsv', '.tsv.gz', ...)
    """
    suffix = table_suffix(path)
    found = next(table_format for table_format in FORMATS if suffix in table_format.suffixes)
    return found if limits is UNLIMITED else type(found)(limits=limits)
