from .arrays import ArrayRows, InputRows
from .chunks import LocalRows, Watch
from .dask.rows import DaskRows
from .entries import ExposedRows
from .files import FileRows
from .formats import TableFormat, format_of

__all__ = [
    "ArrayRows",
    "DaskRows",
    "ExposedRows",
    "FileRows",
    "InputRows",
    "LocalRows",
    "TableFormat",
    "Watch",
    "format_of",
]
