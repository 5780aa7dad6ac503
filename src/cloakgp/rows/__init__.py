"""Tables that need not fit in memory: rows that are gone through in passes, chunk by chunk.

Rows do the same work on every chunk and merge what comes of it in the order of the table, so that
designing needs their public inputs only (`cloakgp.passes`), and measuring sees the private outputs
of one chunk at a time. Nothing here keeps, shows or logs outputs.
"""

from cloakgp.rows.arrays import ArrayRows
from cloakgp.rows.csv import CsvRows
from cloakgp.rows.dask import DaskRows
from cloakgp.rows.files import FileRows
from cloakgp.rows.local import LocalRows, Watch
from cloakgp.rows.opening import open_rows
from cloakgp.rows.parquet import ParquetRows

__all__ = [
    "ArrayRows",
    "CsvRows",
    "DaskRows",
    "FileRows",
    "LocalRows",
    "ParquetRows",
    "Watch",
    "open_rows",
]
