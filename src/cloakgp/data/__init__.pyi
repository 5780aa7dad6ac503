from .arrays import ArrayRows, InputRows
from .dask.rows import DaskRows
from .files import FileRows
from .formats import format_of
from .local import LocalRows, Watch
from .table_format import TableFormat

__all__ = [
    "ArrayRows",
    "DaskRows",
    "FileRows",
    "InputRows",
    "LocalRows",
    "TableFormat",
    "Watch",
    "format_of",
]
