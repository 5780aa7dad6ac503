"""Notation of text with separators, found out cell by cell, to write more of it in the same way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloakgp.columns.cells import read_bytes
from cloakgp.data.formats.delimited import Dialect
from cloakgp.data.schema import table_suffix
from cloakgp.utils.extras import extra

with extra("tables"):
    import pyarrow.compute as pc

# Numbers with decimals, in bytes. Three digits behind a sign may be thousands, unless it is 0,123.
DECIMALS = {
    sign: rf"^ *[+-]?(?:[0-9]+{mark}(?:[0-9]{{1,2}}|[0-9]{{4,}})|0{mark}[0-9]+) *$"
    for sign, mark in (("commas", ","), ("points", r"\."))
}


@dataclass
class Notation:
    """How the text of a table was written, by its cells, which are bytes.

    Attributes
    ----------
    commas, points : bool
        Whether there are numbers with decimals after a comma, or after a point.
    windows : bool
        Whether there is a cell that is no UTF-8.
    western : bool
        Whether western Windows has letters for all cells.

    Examples
    --------
    >>> import pyarrow as pa
    >>> found = Notation()
    >>> found.see(pa.array(["16,5".encode(), "Zürich".encode("cp1252")]))
    >>> found.decimal, found.windows, found.western
    (',', True, True)
    """

    commas: bool = False
    points: bool = False
    windows: bool = False
    western: bool = True

    def see(self, column: Any) -> None:
        """Take some cells into account."""
        for sign, pattern in DECIMALS.items():
            if not getattr(self, sign):
                setattr(self, sign, bool(pc.any(pc.match_substring_regex(column, pattern)).as_py()))
        for cell in column.unique().drop_null().to_pylist():
            if cell.isascii():
                continue
            self.windows = self.windows or not _decodes(cell)
            self.western = self.western and _in_windows(read_bytes(cell))

    @property
    def decimal(self) -> str:
        """The sign of decimals: a comma if there are no others."""
        return "," if self.commas and not self.points else "."

    def dialect(
        self, read: Dialect, *, name: Path, suffix: str, decimal: str, also: Iterable[str]
    ) -> Dialect:
        """Return the dialect of text beside the cells of a file, and of the cells.

        Parameters
        ----------
        read : Dialect
            Of the file, by its beginning.
        name : Path
            Of the file.
        suffix : str
            Of what is written: with tabs where it says so, and else as the file, unless that has
            them by its name.
        decimal : str
            Sign of decimals by which the file's inputs are read.
        also : iterable of str
            Text that is written beside its cells.
        """
        separator = read.separator
        if separator != "," and decimal == ".":
            decimal = self.decimal
        if suffix[:4] != table_suffix(name)[:4]:
            commas = ";" if decimal == "," else ","
            separator = commas if suffix.startswith(".csv") else "\t"
        western = self.windows and self.western and all(map(_in_windows, also))
        encoding = "cp1252" if western and read.encoding == "utf-8" else read.encoding
        return Dialect(separator, decimal, encoding)


def _decodes(cell: bytes) -> bool:
    try:
        cell.decode()
    except UnicodeDecodeError:
        return False
    return True


def _in_windows(text: str) -> bool:
    try:
        text.encode("cp1252")
    except UnicodeEncodeError:
        return False
    return True
