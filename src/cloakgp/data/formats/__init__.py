"""Table formats, read column by column.

A new format is a class in a module of this folder, and its line in `cloakgp.data.schema`, which
imports nothing that reads files.
"""

from pathlib import Path
from pkgutil import resolve_name

from cloakgp.data.formats.base import Batch, TableFormat
from cloakgp.data.limits import UNLIMITED, ReadingLimits
from cloakgp.data.schema import FORMATS, table_suffix

__all__ = ["Batch", "TableFormat", "format_of"]


def format_of(
    path: str | Path, *, limits: ReadingLimits = UNLIMITED, query: str = ""
) -> TableFormat:
    """Return the format of a file, by its name.

    Parameters
    ----------
    path : str or Path
    limits : ReadingLimits, optional
        Of what is read.
    query : str
        Of a database; if empty, its only table is meant.

    Raises
    ------
    ValueError
        If it ends in something else.

    Examples
    --------
    >>> format_of("people.csv.gz").suffixes  # doctest: +ELLIPSIS
    ('.csv', '.csv.gz', '.csv.bz2', '.csv.xz', '.csv.zst', '.csv.zip', '.tsv', '.tsv.gz', ...)
    """
    suffix = table_suffix(path)
    name = next(name for name, suffixes in FORMATS.items() if suffix in suffixes)
    settings = {"query": query} if query else {}
    reader: TableFormat = resolve_name(name)(limits=limits, **settings)
    return reader
