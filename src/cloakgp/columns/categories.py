"""Categories, with and without order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from cloakgp.columns.base import NOT_KNOWN, Column, Field, Missing, Reading, texts_and_gaps, typical
from cloakgp.columns.cells import Cells, write_cell
from cloakgp.models.axes import Axis, Levels
from cloakgp.utils.arrays import Array

# So that two different levels are at distance 1 of each other.
CORNER = float(np.sqrt(0.5))
# Of levels that are told apart if nobody says; rarer ones are "other".
MOST_LEVELS = 50
# That a file may declare.
LIMIT_LEVELS = 5000


@dataclass(frozen=True)
class Category(Column):
    """One of some levels: corners of a simplex, every two of them at distance 1.

    Attributes
    ----------
    levels : tuple of str
        Matched letter by letter, but for blanks around them.
    other : bool
        Whether one more level stands for all that are not named. If not, these are faults.
    """

    levels: tuple[str, ...] = ()
    other: bool = True

    kind: ClassVar[str] = "category"
    field_type: ClassVar[str] = "string"
    policies: ClassVar[tuple[Missing, ...]] = ("refuse", "drop", "category")
    what: ClassVar[str] = "categories"

    @property
    def slots(self) -> tuple[str, ...]:
        """All levels, also those for others and for missing cells."""
        own = ("missing",) if self.missing == "category" else ()
        return (*self.levels, *(("other",) if self.other else ()), *own)

    @property
    def own_blocks(self) -> tuple[tuple[str, ...], ...]:
        """A coordinate for each level, all of one scale."""
        marks = [f"{self.name}: {level}" for level in self.levels]
        extra = [f"{self.name}: ({slot})" for slot in self.slots[len(self.levels) :]]
        return ((*marks, *extra),)

    def read(self, cells: Sequence[Cells], *, codes: frozenset[str]) -> Reading:
        """Return which level each cell is."""
        texts, missing = texts_and_gaps(cells[0], codes - frozenset(self.levels))
        place_of = {level: float(place) for place, level in enumerate(self.levels)}
        unknown = float(len(self.levels)) if self.other else np.nan
        places = np.array([place_of.get(text, unknown) for text in texts.tolist()], dtype=float)
        unseen = ~missing & np.array([text not in place_of for text in texts.tolist()], dtype=bool)
        empty = float(len(self.slots) - 1) if self.missing == "category" else np.nan
        values = np.where(missing, empty, places)
        faults = {} if self.other else {"has a level that is not declared": unseen}
        return Reading(values=values[:, None], missing=missing, faults=faults, unseen=unseen)

    def expand(self, values: Array) -> Array:
        """Return corners of the simplex."""
        X = np.zeros((len(values), len(self.slots)))
        X[np.arange(len(values)), values[:, 0].astype(np.intp)] = CORNER
        return X

    def fill_from(self, cells: Sequence[Cells], *, codes: frozenset[str]) -> Self:
        """Take the most common levels, unless some are declared."""
        if self.levels:
            return self
        texts, missing = texts_and_gaps(cells[0], codes)
        counted = Counter(texts[~missing].tolist())
        common = sorted(counted, key=lambda level: (-counted[level], level))[:MOST_LEVELS]
        return replace(self, levels=tuple(sorted(common)))

    @property
    def complete(self) -> bool:
        """Whether levels are declared."""
        return bool(self.levels)

    def take_declared(self) -> Self:
        """Refuse it without levels."""
        if not self.levels:
            raise self._needs_ranges("its levels")
        return self

    @property
    def own_ranges(self) -> tuple[tuple[float, float], ...]:
        """From 0 to the corner, of each level."""
        return ((0.0, CORNER),) * len(self.slots)

    def own_axes(self, start: int) -> tuple[Axis, ...]:
        """Return its levels."""
        return (Levels(tuple(range(start, start + len(self.slots)))),)

    def validate(self) -> None:
        """Refuse levels that are not different."""
        super().validate()
        check_levels(self.name, self.levels)
        if not self.slots:
            raise ValueError(f"column {self.name!r} needs a level at least")

    def to_field(self) -> Field:
        """Return the levels."""
        return {"categories": list(self.levels), "categoriesOrdered": False, "other": self.other}

    @classmethod
    def from_field(cls, field: Field, common: Field) -> Self:
        """Return the column of a field."""
        return cls(**common, levels=declared(field), other=bool(field.get("other", True)))

    def describe_middle(self, numbers: Array) -> str:
        """Return the level that more than half of the rows have."""
        most = int(np.argmax(numbers))
        if numbers[most] <= CORNER / 2:
            return ""
        name = self.slots[most] if most < len(self.levels) else f"({self.slots[most]})"
        return f"{self.name} {name}"

    def describe(self) -> str:
        """Return the levels, and whether there is one for all others."""
        few = ", ".join(self.levels[:6]) + (", …" if len(self.levels) > 6 else "")
        return f"{len(self.levels)} categories ({few})" + ", or another" * self.other


@dataclass(frozen=True)
class OrderedCategory(Column):
    """One of some levels in their order: its rank. A level that is not declared is missing.

    Attributes
    ----------
    levels : tuple of str
        From the lowest to the highest.
    fill : float
        The rank that stands for a missing one.
    """

    levels: tuple[str, ...] = ()
    fill: float = 0.0

    kind: ClassVar[str] = "ordered category"
    field_type: ClassVar[str] = "string"
    what: ClassVar[str] = "ordered categories"

    @property
    def filling(self) -> tuple[float, ...]:
        """The median rank."""
        return (self.fill,)

    def read(self, cells: Sequence[Cells], *, codes: frozenset[str]) -> Reading:
        """Return the rank of each cell."""
        texts, missing = texts_and_gaps(cells[0], codes - frozenset(self.levels))
        ranks = {level: float(rank) for rank, level in enumerate(self.levels)}
        values = np.array([ranks.get(text, np.nan) for text in texts.tolist()], dtype=np.float64)
        unseen = np.isnan(values) & ~missing
        faults = {"has a level that is not declared": unseen} if self.missing == "refuse" else {}
        return Reading(
            values=values[:, None],
            missing=missing if faults else missing | unseen,
            faults=faults,
            unseen=unseen,
        )

    def take_declared(self) -> Self:
        """Refuse it without levels; of missing cells none is known but by a middle rank."""
        if not self.levels:
            raise self._needs_ranges("its levels, in their order")
        return self if np.isfinite(self.fill) else replace(self, fill=(len(self.levels) - 1) / 2)

    @property
    def own_ranges(self) -> tuple[tuple[float, float], ...]:
        """Of ranks, each of which is the middle of an equal part."""
        return ((-0.5, len(self.levels) - 0.5),)

    def fill_from(self, cells: Sequence[Cells], *, codes: frozenset[str]) -> Self:
        """Take the order from the column's type, if it says one, and the median rank."""
        made = self if self.levels else replace(self, levels=cells[0].levels)
        return replace(made, fill=typical(made.read(cells, codes=codes).values)[0])

    def validate(self) -> None:
        """Refuse levels that are not different."""
        super().validate()
        check_levels(self.name, self.levels)
        if not self.levels:
            raise ValueError(f"column {self.name!r} needs a level at least")

    def to_field(self) -> Field:
        """Return the levels."""
        return {"categories": list(self.levels), "categoriesOrdered": True, "fill": self.fill}

    @classmethod
    def from_field(cls, field: Field, common: Field) -> Self:
        """Return the column of a field."""
        return cls(**common, levels=declared(field), fill=float(field.get("fill", NOT_KNOWN)))

    def describe_middle(self, numbers: Array) -> str:
        """Return the level of the nearest rank."""
        rank = int(np.clip(np.rint(numbers[0]), 0, len(self.levels) - 1))
        return f"{self.name} {self.levels[rank]}"

    def describe(self) -> str:
        """Return the levels."""
        return f"{len(self.levels)} ordered categories ({' < '.join(self.levels[:6])})"


def check_levels(name: str, levels: Sequence[str]) -> None:
    """Refuse levels that are too many, or not all different.

    Examples
    --------
    >>> check_levels("sex", ["f", "m"])
    """
    if len(levels) > LIMIT_LEVELS:
        raise ValueError(f"column {name!r} has more than {LIMIT_LEVELS} levels")
    if len(set(levels)) < len(levels) or any(level != level.strip() for level in levels):
        raise ValueError(f"column {name!r}: levels must differ, without blanks around them")


def declared(field: Field) -> tuple[str, ...]:
    """Return the levels that a field declares, in either form that the standard allows.

    Examples
    --------
    >>> declared({"categories": [{"value": "a", "label": "apple"}, {"value": "b"}]})
    ('a', 'b')
    """
    return values_of(field.get("categories") or field.get("constraints", {}).get("enum") or [])


def values_of(listed: Sequence[Any]) -> tuple[str, ...]:
    """Return values as text that a Table Schema lists as they are, or each with a label.

    Examples
    --------
    >>> values_of([-9, {"value": "-8", "label": "refused"}])
    ('-9', '-8')
    """
    values = [each["value"] if isinstance(each, dict) else each for each in listed]
    return tuple(value if isinstance(value, str) else write_cell(value) for value in values)
