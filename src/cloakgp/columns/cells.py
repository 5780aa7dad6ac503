"""Cells of a public column, as numbers, text or times, every cell read on its own."""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from numbers import Number
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cloakgp.privacy.entries import Entries, read_entries
from cloakgp.utils.arrays import Array

Typed = Literal["numbers", "truths", "times", "text"]

DAY = np.timedelta64(1, "D")
EPOCH = dt.datetime(1970, 1, 1)
# Python reads a date and a time of this form alone, with or without a time and its parts.
ISO = "default"


class Cells(ABC):
    """Cells of one column of any table."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Their number."""

    @property
    @abstractmethod
    def typed(self) -> Typed:
        """The kind of cells by the column's type: text may hold anything."""

    def of_kind(self, kind: Typed) -> NDArray[np.bool_]:
        """Return which cells are of a kind by their type, shape (n,); text may hold anything."""
        return np.full(self.count, self.typed == kind)

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels in their order, where the column's type names them and orders them."""
        return ()

    @abstractmethod
    def numbers(self) -> Entries:
        """Return cells as numbers, NaN where one is missing or none."""

    @abstractmethod
    def texts(self) -> NDArray[np.object_]:
        """Return cells as text without blanks around it, empty where one is missing."""

    def times(self, form: str) -> tuple[Array, NDArray[np.bool_]]:
        """Return days since the start of 1970, NaN where a cell is no time, and the missing ones.

        Parameters
        ----------
        form : str
            "default" for ISO 8601, or a pattern of `datetime.strptime`: of text. Times by type are
            what they are.
        """
        texts = self.texts()
        days = _read_times(texts, form)
        typed = self.of_kind("times")
        if form != ISO and typed.any():
            days[typed] = _read_times(texts[typed], ISO)
        return days, texts == ""


@dataclass(frozen=True, eq=False, repr=False)
class ArrayCells(Cells):
    """Cells in an array, of numbers, text, times or any objects.

    Attributes
    ----------
    values : array of shape (n,)
    ordered : tuple of str
        Levels, where their order is declared.
    """

    values: NDArray[Any]
    ordered: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Their number."""
        return len(self.values)

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels in their order, where it was declared."""
        return self.ordered

    @cached_property
    def typed(self) -> Typed:
        """The kind of cells by the array's type; for objects, by all of them."""
        kinds: dict[str, Typed] = {"b": "truths", "i": "numbers", "u": "numbers", "f": "numbers"}
        if self.values.dtype.kind == "M":
            return "times"
        if self.values.dtype.kind != "O":
            return kinds.get(self.values.dtype.kind, "text")
        there = [cell for cell in self.values.tolist() if not is_gap(cell)]
        if there and all(isinstance(cell, dt.date) for cell in there):
            return "times"
        if there and all(isinstance(cell, bool | np.bool_) for cell in there):
            return "truths"
        if there and not any(isinstance(cell, str | bytes) for cell in there):
            return "text" if np.isnan(read_entries(there).values).any() else "numbers"
        return "text"

    def of_kind(self, kind: Typed) -> NDArray[np.bool_]:
        """Return which cells are of a kind by their type; of objects, each by its own."""
        if self.values.dtype.kind != "O" or kind == "text":
            return super().of_kind(kind)
        return np.array([_kind(cell) == kind for cell in self.values.tolist()], dtype=bool)

    def numbers(self) -> Entries:
        """Return cells as numbers."""
        if self.values.dtype.kind != "O":
            return read_entries(self.values)
        found = read_entries(self.values)
        gaps = np.array([is_gap(cell) for cell in self.values.tolist()], dtype=bool)
        return Entries(values=found.values, missing=found.missing | gaps)

    def texts(self) -> NDArray[np.object_]:
        """Return cells as text; numbers as Python writes them, whole ones without a point."""
        written = np.empty(self.count, dtype=object)
        written[:] = [write_cell(cell) for cell in self.values.tolist()]
        return written

    def times(self, form: str) -> tuple[Array, NDArray[np.bool_]]:
        """Return days since the start of 1970; of text, read in that form."""
        if self.values.dtype.kind == "M":
            missing = np.isnat(self.values)
            since = self.values.astype("datetime64[us]") - np.datetime64(0, "us")
            return np.where(missing, np.nan, since / DAY), missing
        return super().times(form)


def cells_of(column: Any) -> Cells:
    """Return the cells of a column of any table: pandas, polars, Arrow, arrays or lists.

    Examples
    --------
    >>> cells_of(["a", None, 1.0]).texts().tolist()
    ['a', '', '1']
    """
    if isinstance(column, Cells):
        return column
    kind = getattr(column, "dtype", None)
    levels = getattr(kind, "categories", None)
    ordered: tuple[str, ...] = ()
    if levels is not None and getattr(kind, "ordered", False):
        ordered = tuple(write_cell(level) for level in levels.tolist())
    if levels is not None and hasattr(column, "astype"):
        column = column.astype(object)
    elif hasattr(kind, "tz"):
        # To universal time; numpy has no other.
        column = np.asarray(column, dtype="datetime64[us]")
    if isinstance(column, np.ma.MaskedArray):
        column = column.astype(object).tolist()
    array = np.asarray(column, dtype=None if hasattr(column, "__array__") else object)
    if array.ndim != 1:
        raise ValueError("a column has one dimension")
    return ArrayCells(array, ordered)


def _kind(cell: object) -> Typed:
    if isinstance(cell, bool | np.bool_):
        return "truths"
    if isinstance(cell, dt.date):
        return "times"
    # Decimals and fractions among them: what is text is read as such.
    return "numbers" if isinstance(cell, Number) else "text"


def is_gap(cell: object) -> bool:
    """Return whether a cell holds nothing: None, NaN, NaT, NA and their like.

    Examples
    --------
    >>> is_gap(None), is_gap(float("nan")), is_gap("nan")
    (True, True, False)
    """
    if cell is None or cell is np.ma.masked:
        return True
    try:
        return bool(cell != cell)
    except (TypeError, ValueError):
        # Of pandas: what is not known does not compare.
        return True


def write_cell(cell: object) -> str:
    """Return a cell as text, without blanks around it, and empty if it holds nothing.

    Examples
    --------
    >>> write_cell(3.0), write_cell(" x "), write_cell(True), write_cell(None)
    ('3', 'x', 'true', '')
    """
    if is_gap(cell):
        return ""
    if isinstance(cell, bytes):
        return read_bytes(cell).strip()
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, dt.date):
        return cell.isoformat()
    return str(cell).strip()


def read_bytes(cell: bytes) -> str:
    """Return text in UTF-8 or, if it is none, in the encoding of western Windows.

    Decided cell by cell, so that no cell changes how others are read.

    Examples
    --------
    >>> read_bytes("Zürich".encode("latin-1")), read_bytes("Zürich".encode())
    ('Zürich', 'Zürich')
    """
    try:
        return cell.decode("utf-8")
    except UnicodeDecodeError:
        # Latin-1 has a letter for every byte, also those five that Windows lacks.
        return cell.decode("latin-1" if set(cell) & WITHOUT_LETTER else "cp1252")


WITHOUT_LETTER = frozenset({0x81, 0x8D, 0x8F, 0x90, 0x9D})


def _read_times(texts: NDArray[np.object_], form: str) -> Array:
    """Return days since the start of 1970; each different text is read once."""
    found, places = np.unique(texts.astype(str), return_inverse=True)
    days = np.array([_read_time(text, form) for text in found.tolist()], dtype=np.float64)
    return np.asarray(days[places])


def _read_time(text: str, form: str) -> float:
    """Return days since the start of 1970, in universal time where a zone is written, or NaN."""
    # Bare digits are read as years and days by the standard, and as numbers by people.
    if form == ISO and text.isdigit():
        return float("nan")
    try:
        time = dt.datetime.fromisoformat(text) if form == ISO else dt.datetime.strptime(text, form)
    except (ValueError, OverflowError):
        return float("nan")
    if time.tzinfo is not None:
        shift = time.utcoffset() or dt.timedelta()
        time = time.replace(tzinfo=None)
        return (time - EPOCH - shift) / dt.timedelta(days=1)
    return (time - EPOCH) / dt.timedelta(days=1)
