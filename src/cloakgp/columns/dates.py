"""Dates and times: days on a line, and angles on circles of a day, a week or a year."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from cloakgp.columns.base import (
    NOT_KNOWN,
    Column,
    Field,
    Reading,
    declared_range,
    middle,
    typical,
)
from cloakgp.columns.cells import ISO, Cells, cells_of
from cloakgp.models.axes import Axis, Circle, Line
from cloakgp.utils.arrays import Array

Cycle = Literal["day", "week", "year"]
PERIODS: dict[Cycle, float] = {"day": 1.0, "week": 7.0, "year": 365.2425}
# A date after ISO 8601.
EXAMPLE = "2024-09-05"
# A Monday, in days since the start of 1970.
MONDAY = 4.0
# Dates are known to the microsecond.
MICROSECONDS = 86_400_000_000
# The share of a period that dates cover at least if they tell of its cycle: of opening hours from 9
# to 12 it is an eighth, of Mondays and Tuesdays a seventh; winter and summer time of dates at
# midnight, in universal time, are a twenty-fourth of a day apart.
LEAST_COVER = 0.1
_DATES = (
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y", "%Y.%m.%d"),
    *("%d %b %Y", "%d-%b-%Y"),
    # Of years of two digits, those with the year last come before those with it first.
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%m-%d-%y", "%d %b %y", "%d-%b-%y"),
    *("%y.%m.%d", "%y/%m/%d", "%y-%m-%d"),
)
_TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
# What dates are tried to be, after ISO 8601; in two orders of day and month, the first that fits.
FORMS = (
    ISO,
    *(date + time for date in _DATES for time in _TIMES),
    "%d %B %Y",
    *("%b %d, %Y", "%B %d, %Y"),
    "%Y-%m",
    *("%b %Y", "%B %Y", "%Y %b", "%Y %B"),
)
# Without signs between year, month and day: numbers, unless all of many are dates.
COMPACT = "%Y%m%d"
_SIGNS = re.compile(r"(?<!%)[^%\w]")
_PATTERN = re.compile(r"(?:%[YymdHIMSfpbBzj]|[-/.:, T]){1,40}")


def forms_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the forms whose signs some of a few texts have, in order: no other can fit.

    Parameters
    ----------
    texts : sequence of str

    Examples
    --------
    >>> forms_of(["3-Apr-2020"])[:2], forms_of(["cook"])
    (('default', '%d-%m-%Y'), ())
    """
    held = {" " if sign.isspace() else sign for text in texts for sign in text}
    if not any(sign.isdigit() for sign in held):
        return ()
    return tuple(form for form in FORMS if form == ISO or set(_SIGNS.findall(form)) <= held)


def with_year_first(form: str) -> str | None:
    """Return the form with the year first of one that ends a date with a year of two digits.

    Of dates such as 03.04.05, nothing else tells which of both is meant.

    Parameters
    ----------
    form : str

    Returns
    -------
    str or None
        None of other forms.

    Examples
    --------
    >>> with_year_first("%d.%m.%y %H:%M"), with_year_first("%d.%m.%Y")
    ('%y.%m.%d %H:%M', None)
    """
    sign, date = form[2:3], form[:8]
    if date not in (f"%d{sign}%m{sign}%y", f"%m{sign}%d{sign}%y"):
        return None
    return f"%y{sign}%m{sign}%d{form[8:]}"


@dataclass(frozen=True)
class Date(Column):
    """A date or a time. Where a zone is written, it is turned into universal time.

    Attributes
    ----------
    form : str
        How it is written: "default" for ISO 8601, or a pattern such as %d.%m.%Y.
    linear : bool
        Whether time goes on.
    cycles : tuple of {"day", "week", "year"}
        In which it comes round.
    fill : float
        What stands for a missing one, in days since the start of 1970.
    """

    form: str = ISO
    linear: bool = True
    cycles: tuple[Cycle, ...] = ()
    fill: float = 0.0

    kind: ClassVar[str] = "date"
    field_type: ClassVar[str] = "datetime"
    round_ranges: ClassVar[bool] = False
    what: ClassVar[str] = "dates or times"

    @property
    def own_blocks(self) -> tuple[tuple[str, ...], ...]:
        """Days since the start of 1970, and a circle for each cycle."""
        line = ((self.name,),) if self.linear else ()
        circles = (
            (f"{self.name}: {cycle} cos", f"{self.name}: {cycle} sin") for cycle in self.cycles
        )
        return (*line, *circles)

    @property
    def filling(self) -> tuple[float, ...]:
        """The median."""
        return (self.fill,)

    def read(self, cells: Sequence[Cells], *, codes: frozenset[str]) -> Reading:
        """Read times as days since the start of 1970."""
        days, missing = cells[0].times(self.form)
        if cells[0].typed == "text":
            texts = cells[0].texts()
            missing = missing | np.array([text in codes for text in texts.tolist()], dtype=bool)
        days = np.where(missing, np.nan, days)
        written = EXAMPLE if self.form == ISO else self.form
        fault = f"is not a date or time as {written}"
        return Reading(
            values=days[:, None], missing=missing, faults={fault: np.isnan(days) & ~missing}
        )

    def expand(self, values: Array) -> Array:
        """Return days, and a point on each circle."""
        parts = [values] if self.linear else []
        for cycle in self.cycles:
            angle = 2 * np.pi * (_phases(values, cycle=cycle) / _length(cycle))
            parts += [np.cos(angle), np.sin(angle)]
        return np.hstack(parts)

    def fill_from(self, cells: Sequence[Cells], *, codes: frozenset[str]) -> Self:
        """Take the median."""
        return replace(self, fill=typical(self.read(cells, codes=codes).values)[0])

    def take_declared(self) -> Self:
        """Refuse it without a range, whose middle stands for missing ones if nothing else does."""
        if self.linear and len(self.ranges) != 1:
            raise self._needs_ranges("a first and a last date (constraints: minimum and maximum)")
        if np.isfinite(self.fill):
            return self
        return replace(self, fill=middle(self.ranges)[0] if self.ranges else 0.0)

    @property
    def own_ranges(self) -> tuple[tuple[float, float], ...]:
        """The range of days, and of cosines and sines."""
        return (*(self.ranges if self.linear else ()), *(((-1.0, 1.0),) * 2 * len(self.cycles)))

    def own_axes(self, start: int) -> tuple[Axis, ...]:
        """Return a line of days, and a circle for each cycle."""
        line = (Line(start),) if self.linear else ()
        first = start + len(line)
        cosines = range(first, first + 2 * len(self.cycles), 2)
        return (*line, *(Circle(place, place + 1) for place in cosines))

    def with_cycles(self, cells: Sequence[Cells], *, codes: frozenset[str]) -> Self:
        """Return it with those cycles that the table goes through more than once, and covers well.

        Of the period, all but the largest gap between neighbouring dates around it must be a tenth
        at least: dates that are all Mondays tell nothing of other days.
        """
        days = self.read(cells, codes=codes).values
        days = days[np.isfinite(days)]
        if not len(days):
            return self
        span, timed = float(np.ptp(days)), bool((days % 1.0 > 0).any())
        cycles: list[Cycle] = ["day"] if timed and span >= 1.0 else []
        cycles += ["week"] if span >= 14.0 and (timed or span < 1000.0) else []
        cycles += ["year"] if span >= 500.0 else []
        return replace(self, cycles=tuple(each for each in cycles if _is_covered(days, each)))

    def validate(self) -> None:
        """Refuse patterns that no date is written in."""
        super().validate()
        if self.form != ISO and not _PATTERN.fullmatch(self.form):
            raise ValueError(f"column {self.name!r}: {self.form[:40]!r} is no pattern of a date")
        if not self.own_blocks or len(set(self.cycles)) < len(self.cycles):
            raise ValueError(f"column {self.name!r} must be linear or cyclic, each cycle once")
        if not set(self.cycles) <= set(PERIODS):
            raise ValueError(f"column {self.name!r}: cycles are {', '.join(PERIODS)}")

    def to_field(self) -> Field:
        """Return form and cycles."""
        limits = [
            {"constraints": {"minimum": _written(first), "maximum": _written(last)}}
            for first, last in self.ranges
        ]
        return {
            "format": self.form,
            "linear": self.linear,
            "cycles": list(self.cycles),
            "fill": self.fill,
            **(limits[0] if limits else {}),
        }

    @classmethod
    def from_field(cls, field: Field, common: Field) -> Self:
        """Return the column of a field."""
        limits = field.get("constraints", {})
        form = field.get("format", ISO)
        ends = [_days(limits.get(name), form=form) for name in ("minimum", "maximum")]
        return cls(
            **common,
            ranges=declared_range(*ends),
            form=form,
            linear=bool(field.get("linear", True)),
            cycles=tuple(field.get("cycles", ())),
            fill=float(field.get("fill", NOT_KNOWN)),
        )

    def describe_middle(self, numbers: Array) -> str:
        """Return the date, to the day."""
        return f"{self.name} {_written(float(np.rint(numbers[0])))}" if self.linear else ""

    def describe_ranges(self) -> str:
        """Return the first and the last date."""
        return "".join(f"{_written(first)} to {_written(last)}" for first, last in self.ranges)

    def describe(self) -> str:
        """Return a description of its encoding."""
        line = ["days"] if self.linear else []
        return f"{self.what}, as {' and '.join([*line, *(f'the {c}' for c in self.cycles)])}"


def _length(cycle: Cycle) -> int:
    """Return the length of a period in microseconds."""
    return round(PERIODS[cycle] * MICROSECONDS)


def _phases(days: Array, *, cycle: Cycle) -> Array:
    """Return whole microseconds since a period began.

    Equal to the last bit for equal phases. Angles that grow with the years would differ by
    rounding, and tables of the same phase alone would seem to vary.
    """
    since = days - MONDAY
    whole = np.floor(since)
    # Whole days are exact in microseconds, however many they are.
    micro = (whole * MICROSECONDS) % _length(cycle) + np.rint((since - whole) * MICROSECONDS)
    phases: Array = micro % _length(cycle)
    return phases


def _is_covered(days: Array, cycle: Cycle) -> bool:
    """Return whether dates cover a good part of a period."""
    phases, length = np.unique(_phases(days, cycle=cycle)), _length(cycle)
    gaps = np.diff(phases, append=phases[0] + length)
    return bool(length - gaps.max() >= LEAST_COVER * length)


def _days(written: object, *, form: str) -> float | None:
    """Return the days of a date after ISO 8601 or in the column's own form, or None."""
    for each in (ISO, form):
        days = cells_of([written]).times(each)[0][0] if isinstance(written, str) else np.nan
        if np.isfinite(days):
            return float(days)
    return None


def _written(days: float) -> str:
    """Return days since the start of 1970 after ISO 8601."""
    return str(np.datetime64(round(days * 86_400_000_000), "us")).removesuffix("T00:00:00.000000")
