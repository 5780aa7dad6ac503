"""Public inputs as people know them: their kinds, ranges and typical values.

Of a release with a schema these are the raw columns of a table; of any other, its inputs. A
picture of predictions over one of them holds the others at typical values: at the median of
numbers, at the most common of levels. That is always a possible row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from cloakgp.columns import Schema
from cloakgp.columns.base import Column
from cloakgp.columns.categories import Category, OrderedCategory
from cloakgp.columns.dates import PERIODS, Date
from cloakgp.columns.numbers import Boolean, Number
from cloakgp.columns.places import RADIUS, Place
from cloakgp.columns.vectors import Vector
from cloakgp.release import OneOutputRelease, Release
from cloakgp.report.columns import input_names
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import amount

Kind = Literal["number", "level", "date"]
# What stands in a raw row for a level that was not declared.
OTHER = "\ue000other"
# Of dates that only come round: the Monday that they are shown from, in days since 1970.
SHOWN_MONDAY = 19723.0
DAY_MICROSECONDS = 86_400_000_000


@dataclass(frozen=True)
class Control:
    """One public input with a choice of values.

    Attributes
    ----------
    name : str
        Of the raw column.
    label : str
        What people call it.
    unit : str
    kind : {"number", "level", "date"}
    lo, hi : float
        Of numbers; of dates in days since the start of 1970.
    levels : tuple of str
        What can be chosen, in words.
    values : tuple of str or None
        What a table holds for each level.
    typical : float
        A number, a date in days, or the place of a level.
    whole : bool
        Whether all known numbers are whole.
    by_time : bool
        Of dates, whether the time of the day matters.
    known : array of shape (n,)
        Of numbers, those of the rows, or of the query points.
    """

    name: str
    label: str
    kind: Kind
    unit: str = ""
    lo: float = 0.0
    hi: float = 1.0
    levels: tuple[str, ...] = ()
    values: tuple[str | None, ...] = ()
    typical: float = 0.0
    whole: bool = False
    by_time: bool = False
    known: Array = field(default_factory=lambda: np.empty(0), repr=False, compare=False)

    def in_words(self, value: float) -> str:
        """Return a value in words, with its unit.

        Examples
        --------
        >>> Control("age", "age", "number", unit="years").in_words(40.0)
        '40 years'
        >>> Control("born", "born", "date").in_words(0.0)
        '1970-01-01'
        """
        if self.kind == "level":
            return self.levels[int(value)]
        if self.kind == "date":
            return str(np.datetime64(round(value * DAY_MICROSECONDS), "us"))[:10]
        return f"{amount(value, 4)} {self.unit}".rstrip()

    def raw(self, value: float) -> object:
        """Return a value as a cell of a table holds it.

        Examples
        --------
        >>> Control("sex", "sex", "level", levels=("f", "m"), values=("f", "m")).raw(1)
        'm'
        """
        if self.kind == "level":
            return self.values[int(value)]
        if self.kind == "date":
            microseconds = round(value * DAY_MICROSECONDS)
            return np.datetime64(microseconds, "us")
        return float(value)


def controls_of(release: OneOutputRelease) -> tuple[Control, ...]:
    """Return the inputs of a release with their choices, in order.

    Parameters
    ----------
    release : OneOutputRelease
        Of private inputs, declared ranges, and as typical the median of published counts.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> [(each.name, each.lo, each.hi, each.typical) for each in controls_of(model.release_)]
    [('x1', 0.0, 2.0, 1.0)]
    """
    X, ranges = release.known_inputs, release.input_ranges
    if release.schema is None:
        found_by_name = zip(
            input_names(release), X.T, ranges.T, release.typical_inputs, strict=True
        )
        return tuple(
            _number(name, column, ends, typical=middle)
            for name, column, ends, middle in found_by_name
        )
    if release.private_inputs:
        X = release.typical_inputs[None, :]
    found: list[Control] = []
    for column, start in offsets(release.schema):
        own = _controls(column, X[:, start:], ranges[:, start:])
        found += _of_private(own, column) if release.private_inputs else own
    return tuple(found)


def _of_private(controls: list[Control], column: Column) -> list[Control]:
    """Return the choices of a private column: over declared ranges, and with no row known."""
    ranges = column.ranges * (len(controls) if len(column.ranges) == 1 else 1)
    if controls[0].kind == "number":
        controls = [
            replace(each, lo=lo, hi=hi) for each, (lo, hi) in zip(controls, ranges, strict=True)
        ]
    return [replace(each, known=np.empty(0), whole=False) for each in controls]


def offsets(schema: Schema) -> tuple[tuple[Column, int], ...]:
    """Return the columns that are used, each with the place of its first number.

    Parameters
    ----------
    schema : Schema
    """
    found, place = [], 0
    for column in schema.used:
        found.append((column, place))
        place += sum(map(len, column.blocks))
    return tuple(found)


def raw_rows(
    release: OneOutputRelease,
    controls: tuple[Control, ...],
    values: Mapping[str, Any],
    *,
    count: int,
) -> Any:
    """Return raw rows in which some inputs vary, and the others are typical.

    Parameters
    ----------
    release : Release
    controls : tuple of Control
    values : mapping of str to arrays of shape (count,)
        By the names of controls, as these hold them.
    count : int

    Returns
    -------
    table
        For `release.predict`: columns by name, or a matrix if the release has no schema.
    """
    filled = {
        each.name: np.asarray(values.get(each.name, np.full(count, each.typical)), dtype=float)
        for each in controls
    }
    if release.schema is None:
        return np.column_stack([filled[each.name] for each in controls])
    cells: dict[str, Any] = {}
    for each in controls:
        raw = [each.raw(value) for value in filled[each.name]]
        if each.kind == "date":
            cells[each.name] = np.array(raw, dtype="datetime64[us]")
        else:
            cells[each.name] = np.array(raw, dtype=object if each.kind == "level" else float)
    return cells


def _number(
    name: str,
    column: Array,
    ends: Array,
    *,
    label: str = "",
    unit: str = "",
    typical: float | None = None,
) -> Control:
    lo, hi = float(ends[0]), float(ends[1])
    middle = np.median(column) if typical is None else typical
    return Control(
        name=name,
        label=label or name,
        kind="number",
        unit=unit,
        lo=lo,
        hi=hi,
        typical=float(np.clip(middle, lo, hi)),
        whole=len(column) > 0 and bool((column == np.round(column)).all()) and hi - lo >= 2,
        known=column,
    )


def _levels(
    column: Column, levels: list[tuple[str, str | None]], *, typical: float
) -> list[Control]:
    return [
        Control(
            name=column.name,
            label=column.title or column.name,
            kind="level",
            unit=column.unit,
            levels=tuple(word for word, _ in levels),
            values=tuple(value for _, value in levels),
            typical=typical,
            hi=float(len(levels) - 1),
        )
    ]


def _controls(column: Column, X: Array, ranges: Array) -> list[Control]:
    """Return the inputs that a column stands for; X and ranges start at its first number."""
    label = column.title or column.name
    if isinstance(column, Number):
        return [_number(column.name, X[:, 0], ranges[:, 0], label=label, unit=column.unit)]
    if isinstance(column, OrderedCategory):
        place = float(np.clip(np.round(np.median(X[:, 0])), 0, len(column.levels) - 1))
        return _levels(column, [(level, level) for level in column.levels], typical=place)
    if isinstance(column, Boolean):
        pairs: list[tuple[str, str | None]] = [
            (words[0], words[0]) for words in (column.false_values, column.true_values)
        ]
        return _levels(column, pairs, typical=float(np.mean(X[:, 0]) > 0.5))
    if isinstance(column, Category):
        counted = X[:, : len(column.slots)].sum(axis=0)
        extra = {"other": ("(any other)", OTHER), "missing": ("(not known)", None)}
        slots = column.slots[len(column.levels) :]
        pairs = [(level, level) for level in column.levels]
        pairs += [extra[slot] for slot in slots]
        return _levels(column, pairs, typical=float(np.argmax(counted)))
    if isinstance(column, Date):
        return [_date(column, X, ranges, label=label)]
    if isinstance(column, Place):
        return _places(column, X, label=label)
    if isinstance(column, Vector):
        return _numbers(column, X, label=label)
    raise TypeError(f"there is no choice of values for {column.what}")


def _date(column: Date, X: Array, ranges: Array, *, label: str) -> Control:
    if column.linear:
        lo, hi, typical = float(ranges[0, 0]), float(ranges[1, 0]), float(np.median(X[:, 0]))
    else:
        lo = SHOWN_MONDAY
        hi = lo + max(PERIODS[cycle] for cycle in column.cycles)
        typical = lo + 0.5
    by_time = "day" in column.cycles or (column.linear and hi - lo < 3)
    return Control(
        name=column.name,
        label=label,
        kind="date",
        unit=column.unit,
        lo=lo,
        hi=hi,
        typical=typical if by_time else float(np.floor(typical)),
        by_time=by_time,
    )


def _places(column: Place, X: Array, *, label: str) -> list[Control]:
    if column.projection == "plane":
        north, east = X[:, 0] / RADIUS, X[:, 1] / RADIUS
        across = math.cos(math.radians(column.centre[0]))
        degrees = (
            column.centre[0] + np.degrees(north),
            column.centre[1] + np.degrees(east / across),
        )
    else:
        space = X[:, :3] / RADIUS
        degrees = (
            np.degrees(np.arcsin(np.clip(space[:, 2], -1.0, 1.0))),
            np.degrees(np.arctan2(space[:, 1], space[:, 0])),
        )
    named = zip(column.sources, ("latitude", "longitude"), degrees, strict=True)
    return [
        _number(
            source,
            values,
            np.array([values.min(), values.max()]),
            label=f"{label}, {axis}" if label != source else source,
            unit="°",
        )
        for source, axis, values in named
    ]


def _numbers(column: Vector, X: Array, *, label: str) -> list[Control]:
    values = column.restore(X[:, : len(column.own_blocks[0])])
    return [
        _number(source, each, np.array([each.min(), each.max()]), label=f"{label}, {source}")
        for source, each in zip(column.sources, values.T, strict=True)
    ]


def remark_outside(name: str, count: int, *, lo: float, hi: float) -> str:
    """Return in sentences that rows lie outside the range of a number that was asked.

    Parameters
    ----------
    name : str
        Of the column.
    count : int
        Of the rows.
    lo, hi : float

    Examples
    --------
    >>> print(remark_outside("age", 1, lo=1.0, hi=18.0).partition(".")[0])
    age is outside 1 to 18 in 1 row
    """
    return (
        f"{name} is outside {amount(lo, 6)} to {amount(hi, 6)} in {count:,} "
        f"{'row' if count == 1 else 'rows'}. Nothing was asked there: the further away, the more "
        "predictions rest on the prior alone"
    )


def rows_outside(release: Release, X: Array) -> dict[str, tuple[int, float, float]]:
    """Return how many points lie outside the range of each number that was asked, and that range.

    Parameters
    ----------
    release : Release
    X : array of shape (P, D)
        Inputs as the release takes them.

    Returns
    -------
    dict of str to (int, float, float)
        By the names of the columns; those that hold all points are left out.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> rows_outside(model.release_, np.array([[300.0], [1.0]]))
    {'x1': (1, 0.0, 2.0)}
    """
    ranges = release.input_ranges
    if release.schema is None:
        places = list(zip(input_names(release), range(release.n_inputs), strict=True))
    else:
        places = [
            (column.name, place)
            for column, place in offsets(release.schema)
            if isinstance(column, Number)
        ]
    found = {}
    for name, place in places:
        lo, hi = float(ranges[0, place]), float(ranges[1, place])
        count = int(((X[:, place] < lo) | (X[:, place] > hi)).sum())
        if count:
            found[name] = (count, lo, hi)
    return found
