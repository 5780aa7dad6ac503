"""Numbers, in the notation of any country, and truth values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from cloakgp.columns.base import (
    NOT_KNOWN,
    Column,
    Field,
    Missing,
    Reading,
    declared_range,
    middle,
    texts_and_gaps,
    typical,
)
from cloakgp.columns.cells import Cells
from cloakgp.models.axes import Axis, Levels
from cloakgp.privacy.entries import EMPTY, read_entry
from cloakgp.utils.arrays import Array

Decimal = Literal[".", ","]
Thousands = Literal["", ",", ".", "'", "’", " ", "\u00a0", "\u202f", "_"]


@dataclass(frozen=True)
class Number(Column):
    """A number: itself.

    Attributes
    ----------
    decimal, thousands : str
        What separates whole numbers from fractions, and thousands from each other.
    fill : float
        What stands for a missing one.
    """

    decimal: Decimal = "."
    thousands: Thousands = ""
    fill: float = 0.0

    kind: ClassVar[str] = "number"
    field_type: ClassVar[str] = "number"
    what: ClassVar[str] = "numbers"

    @property
    def undecided(self) -> bool:
        """Whether one sign stands for both, as nothing told what it means."""
        return self.decimal == self.thousands

    @property
    def either(self) -> str:
        """What a schema may say of a sign that stands for both."""
        sign, other = self.decimal, "." if self.decimal == "," else ","
        return (
            f'"decimalChar": "{sign}" (and "groupChar": "{other}", if thousands have that), or '
            f'"decimalChar": "{other}" and "groupChar": "{sign}"'
        )

    @property
    def filling(self) -> tuple[float, ...]:
        """The median of the public column."""
        return (self.fill,)

    def read(self, cells: Sequence[Cells], *, codes: frozenset[str]) -> Reading:
        """Read numbers, text in this notation among them."""
        if (self.decimal, self.thousands) == (".", "") or cells[0].typed != "text":
            found = cells[0].numbers()
            values, missing = found.values, found.missing.copy()
        else:
            texts, missing = texts_and_gaps(cells[0], codes)
            values = np.array(
                [read_number(text, self.decimal, self.thousands) for text in texts.tolist()],
                dtype=np.float64,
            )
            typed = cells[0].of_kind("numbers")
            if typed.any():
                values = np.where(typed, cells[0].numbers().values, values)
        coded = [value for value in map(read_entry, codes) if not np.isnan(value)]
        if coded:
            missing |= np.isin(values, coded)
        words = codes - EMPTY
        if cells[0].typed == "text" and words:
            missing |= texts_and_gaps(cells[0], codes)[1]
        values = np.where(missing, np.nan, values)
        faults = {
            "is not a number": np.isnan(values) & ~missing,
            "is infinite": np.isinf(values),
        }
        values = np.where(np.isinf(values), np.nan, values)
        return Reading(values=values[:, None], missing=missing, faults=faults)

    def fill_from(self, cells: Sequence[Cells], *, codes: frozenset[str]) -> Self:
        """Take the median."""
        return replace(self, fill=typical(self.read(cells, codes=codes).values)[0])

    def take_declared(self) -> Self:
        """Refuse it without a range, whose middle stands for missing ones if nothing else does."""
        if len(self.ranges) != 1:
            raise self._needs_ranges("a range (constraints: minimum and maximum)")
        return self if np.isfinite(self.fill) else replace(self, fill=middle(self.ranges)[0])

    def validate(self) -> None:
        """Refuse a notation in which numbers are not unique."""
        super().validate()
        if self.undecided:
            raise ValueError(
                f"column {self.name!r}: nothing tells whether 1{self.decimal}234 is a little more "
                f"than one or more than a thousand. Say it in a schema: {self.either}"
            )

    def to_field(self) -> Field:
        """Return notation and filling."""
        decimal = {} if self.decimal == "." else {"decimalChar": self.decimal}
        thousands = {"groupChar": self.thousands} if self.thousands else {}
        limits = [{"constraints": {"minimum": lo, "maximum": hi}} for lo, hi in self.ranges]
        # A typical value is not known before it is known what its digits mean.
        fill = {} if self.undecided else {"fill": self.fill}
        return {**decimal, **thousands, **fill, **(limits[0] if limits else {})}

    @classmethod
    def from_field(cls, field: Field, common: Field) -> Self:
        """Return the column of a field."""
        limits = field.get("constraints", {})
        return cls(
            **common,
            ranges=declared_range(limits.get("minimum"), limits.get("maximum")),
            decimal=field.get("decimalChar", "."),
            thousands=field.get("groupChar", ""),
            fill=float(field.get("fill", NOT_KNOWN)),
        )


def read_together(
    names: Sequence[str], cells: Sequence[Cells], *, codes: frozenset[str]
) -> tuple[Array, NDArray[np.bool_], NDArray[np.bool_]]:
    """Read numbers that mean something only together, a column each: a point, a vector.

    Parameters
    ----------
    names : sequence of str
    cells : sequence of Cells
    codes : set of str
        Text that means that a cell is missing.

    Returns
    -------
    values : array of shape (n, w)
        NaN in a row that lacks a number.
    missing : array of bool, shape (n,)
        Where one is missing.
    strange : array of bool, shape (n,)
        Where one is no finite number.

    Examples
    --------
    >>> from cloakgp.columns.cells import cells_of
    >>> pair = [cells_of([1.0, None]), cells_of([2.0, 3.0])]
    >>> read_together(["a", "b"], pair, codes=frozenset())[0].tolist()
    [[1.0, 2.0], [nan, nan]]
    """
    parts = [
        Number(name).read([part], codes=codes) for name, part in zip(names, cells, strict=True)
    ]
    missing = np.logical_or.reduce([each.missing for each in parts])
    strange = np.logical_or.reduce([mask for each in parts for mask in each.faults.values()])
    values = np.hstack([each.values for each in parts])
    return np.where((missing | strange)[:, None], np.nan, values), missing, strange


def read_number(text: str, decimal: str, thousands: str) -> float:
    """Return the number that one cell of text holds in a notation, or NaN.

    Parameters
    ----------
    text : str
    decimal : str
    thousands : str
        Empty if thousands are not separated. If they are, three digits follow each separator.

    Examples
    --------
    >>> read_number("1.234,5", ",", "."), read_number("1.2,5", ",", ".")
    (1234.5, nan)
    """
    text = text.strip(' \t"')
    if (decimal, thousands) == (".", ""):
        return read_entry(text)
    if thousands and thousands in text:
        whole, point, rest = text.partition(decimal)
        if not re.fullmatch(rf"[+-]?[0-9]{{1,3}}(?:{re.escape(thousands)}[0-9]{{3}})+", whole):
            return float("nan")
        text = whole.replace(thousands, "") + point + rest
    if decimal != ".":
        if "." in text:
            return float("nan")
        text = text.replace(decimal, ".")
    return read_entry(text)


@dataclass(frozen=True)
class Boolean(Column):
    """A truth value: 0 or 1; missing values lie between them, with a mark.

    Attributes
    ----------
    true_values, false_values : tuple of str
        How they are written, in any case of letters.
    """

    true_values: tuple[str, ...] = ("true",)
    false_values: tuple[str, ...] = ("false",)

    kind: ClassVar[str] = "boolean"
    field_type: ClassVar[str] = "boolean"
    policies: ClassVar[tuple[Missing, ...]] = ("refuse", "drop", "impute")
    what: ClassVar[str] = "yes or no"

    @property
    def filling(self) -> tuple[float, ...]:
        """Between both."""
        return (0.5,)

    def read(self, cells: Sequence[Cells], *, codes: frozenset[str]) -> Reading:
        """Read words, in any case of letters."""
        texts, missing = texts_and_gaps(cells[0], codes)
        meaning = {word.lower(): 0.0 for word in self.false_values}
        meaning |= {word.lower(): 1.0 for word in self.true_values}
        values = np.array([meaning.get(text.lower(), np.nan) for text in texts.tolist()])
        # True by type is yes, whatever the words for it are.
        values = np.where(cells[0].of_kind("truths"), texts == "true", values)
        values = np.where(missing, np.nan, values.astype(np.float64))
        strange = np.isnan(values) & ~missing
        yes, no = (", ".join(words) for words in (self.true_values, self.false_values))
        fault = f"is neither yes nor no ({yes} for yes; {no} for no)"
        return Reading(values=values[:, None], missing=missing, faults={fault: strange})

    @property
    def own_ranges(self) -> tuple[tuple[float, float], ...]:
        """From no to yes."""
        return ((0.0, 1.0),)

    def own_axes(self, start: int) -> tuple[Axis, ...]:
        """Return two levels."""
        return (Levels((start,)),)

    def validate(self) -> None:
        """Refuse words that mean both."""
        super().validate()
        both = {word.lower() for word in self.true_values} & {
            word.lower() for word in self.false_values
        }
        if both or not self.true_values or not self.false_values:
            raise ValueError(f"column {self.name!r}: name different words for true and for false")

    def to_field(self) -> Field:
        """Return the words."""
        return {"trueValues": list(self.true_values), "falseValues": list(self.false_values)}

    @classmethod
    def from_field(cls, field: Field, common: Field) -> Self:
        """Return the column of a field."""
        return cls(
            **common,
            true_values=tuple(map(str, field.get("trueValues", ["true", "1"]))),
            false_values=tuple(map(str, field.get("falseValues", ["false", "0"]))),
        )
