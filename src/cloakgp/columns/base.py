"""Column kinds: the content of a public column, and its encoding as numbers.

A kind is a frozen dataclass of plain values, so that a release file can hold it. Its hooks: which
columns of a table it reads, what it makes of their cells, and into which numbers that expands. What
to do about missing cells is common to all kinds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from cloakgp.columns.cells import Cells
from cloakgp.models.axes import Axis, Levels, Line
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import amount

Missing = Literal["refuse", "drop", "impute", "category"]
"""What is done about missing cells: an error; rows left out; a typical value, with a column that
says where it was filled in; or a level of its own."""

Field = dict[str, Any]
"""A field of a Table Schema, as JSON has it."""

# The fault of a cell that must not be missing.
EMPTY_CELL = "is empty"
# What stands for missing cells until it is taken from public ones.
NOT_KNOWN = float("nan")
# The range of a number that says whether a cell was missing.
MARK = (0.0, 1.0)
# Of words from files, which are shown: no more than this.
LONGEST_TEXT = 1000


@dataclass(frozen=True, eq=False)
class Reading:
    """The parsed cells of a column.

    Attributes
    ----------
    values : array of shape (n, w)
        NaN where a cell is missing or at fault.
    missing : array of bool, shape (n,)
    faults : dict of str to arrays of bool, shape (n,)
        What is wrong, and in which rows.
    unseen : array of bool, shape (n,)
        Where a level stands that was not declared.
    """

    values: Array
    missing: NDArray[np.bool_]
    faults: Mapping[str, NDArray[np.bool_]]
    unseen: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Coded:
    """A column as numbers.

    Attributes
    ----------
    X : array of shape (n, d)
        What stands in rows at fault, or left out, has no meaning.
    left_out : array of bool, shape (n,)
    faults : dict of str to arrays of bool, shape (n,)
    unseen : array of bool, shape (n,)
    """

    X: Array
    left_out: NDArray[np.bool_]
    faults: Mapping[str, NDArray[np.bool_]]
    unseen: NDArray[np.bool_]


@dataclass(frozen=True)
class Column(ABC):
    """A public column.

    Attributes
    ----------
    name : str
        As in the table.
    title : str
        What people call it.
    unit : str
    missing : {"refuse", "drop", "impute", "category"}
        What is done about missing cells.
    ranges : tuple of (float, float)
        Declared, of each number that its cells say, in units of these, dates in days since the
        start of 1970; empty if none is. Private inputs need them, and public ones are not clipped.
    """

    name: str
    title: str = ""
    unit: str = ""
    missing: Missing = "refuse"
    ranges: tuple[tuple[float, float], ...] = ()

    kind: ClassVar[str]
    field_type: ClassVar[str]
    policies: ClassVar[tuple[Missing, ...]] = ("refuse", "drop", "impute")
    what: ClassVar[str]
    # Whether ranges that somebody thought of are of round numbers.
    round_ranges: ClassVar[bool] = True
    # What a column of a table is called of which it reads several; in files, where these say so.
    part_of: ClassVar[str] = ""

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns of a table that are read."""
        return (self.name,)

    @property
    def own_blocks(self) -> tuple[tuple[str, ...], ...]:
        """Names of the numbers that stand for it, those of one scale together: itself."""
        return ((self.name,),)

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        """All numbers: its own, and whether it was missing."""
        filled = ((f"{self.name}: missing",),) if self.missing == "impute" else ()
        return (*self.own_blocks, *filled)

    @property
    def filling(self) -> tuple[float, ...]:
        """The filling of missing cells, w numbers."""
        return ()

    @abstractmethod
    def read(self, cells: Sequence[Cells], *, codes: frozenset[str]) -> Reading:
        """Return parsed cells.

        Parameters
        ----------
        cells : sequence of Cells
            One for each source.
        codes : set of str
            Text that means that a cell is missing.
        """

    def expand(self, values: Array) -> Array:
        """Return numbers for what cells say, shape (n, d), of values of shape (n, w): themselves.

        Parameters
        ----------
        values : array of shape (n, w)
        """
        return values

    def encode(self, cells: Sequence[Cells], *, codes: frozenset[str]) -> Coded:
        """Return the encoding of cells, and the invalid cells with their faults.

        Parameters
        ----------
        cells, codes
            As for `read`.
        """
        found = self.read(cells, codes=codes)
        values, faults = found.values, dict(found.faults)
        left_out = np.zeros(len(values), dtype=bool)
        if self.missing == "refuse":
            faults[EMPTY_CELL] = found.missing
        elif self.missing == "drop":
            left_out = found.missing
        elif self.missing == "impute":
            values = np.where(found.missing[:, np.newaxis], np.array(self.filling), values)
        unknown: NDArray[np.bool_] = np.asarray(np.isnan(values).any(axis=1))
        X = self.expand(np.where(unknown[:, None], 0.0, values))
        if self.missing == "impute":
            X = np.column_stack([X, found.missing.astype(np.float64)])
        unseen = np.zeros(len(values), dtype=bool) if found.unseen is None else found.unseen
        return Coded(X=X, left_out=left_out, faults=faults, unseen=unseen)

    def validate(self) -> None:
        """Refuse contradictory settings.

        Raises
        ------
        ValueError
        """
        if not self.name or any(
            len(text) > LONGEST_TEXT for text in (self.name, self.title, self.unit)
        ):
            raise ValueError("a column needs a name, of a length that can be shown")
        if self.missing not in self.policies:
            raise ValueError(
                f"column {self.name!r}: missing must be one of {', '.join(self.policies)} for "
                f"{self.what}, got {self.missing!r}"
            )
        if not np.isfinite(self.filling).all():
            raise ValueError(f"column {self.name!r}: what stands for missing cells is damaged")
        # So must its width be, by which all is scaled.
        if not all(lo < hi and math.isfinite(hi - lo) for lo, hi in self.ranges):
            raise ValueError(f"column {self.name!r}: its range must be finite, the lower end first")

    def take_declared(self) -> Self:
        """Return the column with its open parts taken from what is declared, and from no cell.

        Raises
        ------
        ValueError
            If a level, or a range, is not declared.
        """
        return self

    @property
    def own_ranges(self) -> tuple[tuple[float, float], ...]:
        """The ranges of its own numbers, by what is declared."""
        return self.ranges

    def own_axes(self, start: int) -> tuple[Axis, ...]:
        """Return what its own numbers say: each lies on a line.

        Parameters
        ----------
        start : int
            The place of the first of them among the inputs.
        """
        return tuple(Line(start + place) for place in range(len(self.own_ranges)))

    @property
    def all_ranges(self) -> tuple[tuple[float, float], ...]:
        """Of all numbers: its own, and whether it was missing."""
        return (*self.own_ranges, *((MARK,) if self.missing == "impute" else ()))

    def all_axes(self, start: int) -> tuple[Axis, ...]:
        """Return what all numbers say: its own, and whether it was missing.

        Parameters
        ----------
        start : int
            The place of the first of them among the inputs.
        """
        filled = (Levels((start + len(self.own_ranges),)),) if self.missing == "impute" else ()
        return (*self.own_axes(start), *filled)

    def _needs_ranges(self, what: str) -> ValueError:
        return ValueError(
            f"column {self.name!r} is a private input and needs {what}, known without the table: "
            "nothing is taken from private cells"
        )

    def fill_from(self, cells: Sequence[Cells], *, codes: frozenset[str]) -> Self:
        """Return the column with what it takes from public cells: nothing, or a typical value.

        Parameters
        ----------
        cells, codes
            As for `read`.
        """
        del cells, codes
        return self

    @property
    def complete(self) -> bool:
        """Whether nothing is left to be taken from public cells."""
        return bool(np.isfinite(self.filling).all())

    def with_gaps(self, cells: Sequence[Cells], *, codes: frozenset[str]) -> Self:
        """Return the column with a policy for missing cells, if some are missing."""
        made = self.fill_from(cells, codes=codes)
        if not made.read(cells, codes=codes).missing.any():
            return made
        return replace(made, missing="category" if "category" in self.policies else "impute")

    def to_field(self) -> Field:
        """Return its properties in a Table Schema, except for its name and kind."""
        return {}

    @classmethod
    def from_field(cls, field: Field, common: Field) -> Self:
        """Return the column that a Table Schema's field describes.

        Parameters
        ----------
        field : dict
        common : dict
            Name, title, unit and missing, as the constructor takes them.
        """
        del field
        return cls(**common)

    def describe(self) -> str:
        """Return a short description of its content."""
        return self.what

    def describe_middle(self, numbers: Array) -> str:
        """Return what rows are like of whose own numbers this is the mean; empty if it says little.

        Parameters
        ----------
        numbers : array of shape (d,)
        """
        if self.own_blocks != ((self.name,),):
            return ""
        return f"{self.name} {amount(float(numbers[0]), 3)}"

    def describe_ranges(self) -> str:
        """Return what is declared of its range in words; empty if nothing is."""
        return " and ".join(f"{amount(lo, 12)} to {amount(hi, 12)}" for lo, hi in self.ranges)


def declared_range(lo: object, hi: object) -> tuple[tuple[float, float], ...]:
    """Return a range that a field declares, or none if it is no pair of finite numbers.

    Examples
    --------
    >>> declared_range(0, 120), declared_range(0, None)
    (((0.0, 120.0),), ())
    """
    if isinstance(lo, int | float) and isinstance(hi, int | float):
        return ((float(lo), float(hi)),)
    return ()


def middle(ranges: Sequence[tuple[float, float]]) -> tuple[float, ...]:
    """Return the middle of each range.

    Examples
    --------
    >>> middle([(0.0, 10.0)])
    (5.0,)
    """
    return tuple((lo + hi) / 2 for lo, hi in ranges)


def typical(values: Array) -> tuple[float, ...]:
    """Return the median of each column of values over the rows that have one, 0 if none has.

    Examples
    --------
    >>> typical(np.array([[1.0], [3.0], [np.nan], [8.0]]))
    (3.0,)
    """
    known: Array = values[np.isfinite(values).all(axis=1)]
    if not len(known):
        return (0.0,) * int(values.shape[1])
    return tuple(float(np.median(each)) for each in known.T)


def texts_and_gaps(
    cells: Cells, codes: frozenset[str]
) -> tuple[NDArray[np.object_], NDArray[np.bool_]]:
    """Return cells as text, and which of them are missing.

    Examples
    --------
    >>> from cloakgp.columns.cells import cells_of
    >>> texts_and_gaps(cells_of(["a", "NA", None]), frozenset({"", "NA"}))[1].tolist()
    [False, True, True]
    """
    texts = cells.texts()
    gaps = np.array([text in codes for text in texts.tolist()], dtype=bool) | (texts == "")
    return texts, gaps
