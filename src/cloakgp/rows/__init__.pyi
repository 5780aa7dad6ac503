from .arrays import ArrayRows
from .dask import DaskRows
from .files import FileRows
from .inputs import InputRows
from .local import LocalRows, Watch

__all__ = [
    "ArrayRows",
    "DaskRows",
    "FileRows",
    "InputRows",
    "LocalRows",
    "Watch",
]
