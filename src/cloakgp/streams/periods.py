"""Periods: half-open spans of equal length on a line of time, declared before any row is there."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cloakgp.utils.arrays import Array

# Days since the start of 1970, where times are dates.
EPOCH = dt.datetime(1970, 1, 1)
Calendar = Literal["month", "year"]
CALENDAR: tuple[Calendar, ...] = get_args(Calendar)
# Days of every month.
SHORTEST_MONTH = 28
MOST_PERIODS = 100_000


# A chunk may pass over so many of all periods without a row, and over one.
SKIPPED = 10


@dataclass(frozen=True)
class Leap:
    """What the clock passes over, of which no row has come.

    Attributes
    ----------
    empty : tuple of int
        Whole periods.
    after : int
        How many more there would be after the last one, as long as that.
    allowed : int
        How many rows may pass over by themselves.
    """

    empty: tuple[int, ...]
    after: int
    allowed: int

    @property
    def is_doubtful(self) -> bool:
        """Whether a wrong time may be the cause."""
        return len(self.empty) + self.after > self.allowed


@dataclass(frozen=True)
class Periods:
    """Spans [e₀, e₁), [e₁, e₂), … of time.

    Attributes
    ----------
    edges : tuple of float
        e, one more than there are periods, rising; in units of the time, days since the start of
        1970 where times are dates.
    lateness : float
        How long after the end of a period its rows are waited for.

    Examples
    --------
    >>> periods = Periods.declared(0.0, length=30.0, horizon=3, lateness=5.0)
    >>> periods.edges
    (0.0, 30.0, 60.0, 90.0)
    >>> periods.place(np.array([-1.0, 0.0, 29.9, 30.0, 90.0])).tolist()
    [-1, 0, 0, 1, 3]
    >>> periods.count_closed(34.9), periods.count_closed(35.0)
    (0, 1)
    """

    edges: tuple[float, ...]
    lateness: float = 0.0

    @classmethod
    def declared(
        cls,
        origin: float,
        *,
        length: float | Calendar,
        horizon: int,
        lateness: float = 0.0,
    ) -> Periods:
        """Return periods from an origin on.

        Parameters
        ----------
        origin : float
            The start of the first.
        length : float, "month" or "year"
            Of each; months and years go with dates.
        horizon : int
            H, their number.
        lateness : float

        Raises
        ------
        ValueError
            If a length is not positive, the horizon is no count, or periods have no room in
            float64 or in the calendar.
        """
        if not (isinstance(horizon, int) and not isinstance(horizon, bool)):
            raise ValueError(f"horizon must be a whole number of periods, got {horizon!r}")
        if not 1 <= horizon <= MOST_PERIODS:
            raise ValueError(f"horizon must be from 1 to {MOST_PERIODS:,} periods, got {horizon}")
        # Written so that NaN fails.
        if not (0 <= lateness < np.inf):
            raise ValueError(f"lateness must be at least 0 and finite, got {lateness!r}")
        if not np.isfinite(origin):
            raise ValueError(f"origin must be finite, got {origin!r}")
        if isinstance(length, str):
            edges = _calendar_edges(origin, length=length, horizon=horizon)
        elif not 0 < length < np.inf:
            raise ValueError(f"length must be positive and finite, got {length!r}")
        else:
            edges = [origin + length * number for number in range(horizon + 1)]
        if not (np.diff(edges) > 0).all() or not np.isfinite(edges[-1]):
            raise ValueError("periods overlap: their length is lost beside the origin")
        return cls(edges=tuple(edges), lateness=float(lateness))

    @property
    def horizon(self) -> int:
        """H, the number of periods."""
        return len(self.edges) - 1

    def place(self, times: Array) -> NDArray[np.intp]:
        """Return the period of each time, shape (n,): −1 before the first, H after the last.

        Parameters
        ----------
        times : array of shape (n,)
        """
        return np.searchsorted(np.asarray(self.edges), times, side="right") - 1

    def closing(self, number: int) -> float:
        """Return when a period closes: its end, and the lateness."""
        return self.edges[number + 1] + self.lateness

    def count_closed(self, clock: float) -> int:
        """Return how many periods have closed at a time."""
        ends = np.asarray(self.edges[1:]) + self.lateness
        return int(np.searchsorted(ends, clock, side="right"))

    def leap(self, times: Array, *, since: float | None, held: Collection[int]) -> Leap:
        """Return what lies between the clock and the latest of some times without a row.

        One wrong time may close all periods for ever. So a chunk passes over a tenth of them at
        most, or one, without a row in these; and over none to where the last one has ended.

        Parameters
        ----------
        times : array of shape (n,)
            Of a chunk, one at least.
        since : float or None
            The clock before; None before the first chunk.
        held : collection of int
            Periods that have rows in other chunks.

        Examples
        --------
        >>> periods = Periods.declared(0.0, length=30.0, horizon=12)
        >>> periods.leap(np.array([5.0, 95.0]), since=None, held=()).empty
        (1, 2)
        >>> periods.leap(np.array([5.0, 9100.0]), since=None, held=()).after
        291
        >>> periods.leap(np.array([70.0]), since=5.0, held=()).is_doubtful
        False
        """
        ends, latest = np.asarray(self.edges), float(times.max())
        begun = -np.inf if since is None else since
        rows = set(self.place(times).tolist()) | set(held)
        empty = tuple(
            number
            for number in range(self.horizon)
            if number not in rows and begun <= ends[number] and ends[number + 1] <= latest
        )
        allowed = 0 if latest >= ends[-1] else max(1, self.horizon // SKIPPED)
        # After the last one as many of its length follow as there is room for.
        beyond = np.floor((times[times >= ends[-1]] - ends[-1]) / (ends[-1] - ends[-2]))
        passed = beyond[beyond < beyond.max(initial=0.0)]
        after = int(beyond.max(initial=0.0)) - len(np.unique(passed))
        # Where the clock was there before, nothing is passed over by this.
        after = after if begun < ends[-1] else 0
        return Leap(empty=empty, after=after, allowed=allowed)


def days_of(moment: dt.datetime) -> float:
    """Return the days of a moment since the start of 1970.

    Examples
    --------
    >>> days_of(dt.datetime(1970, 1, 2, 12))
    1.5
    """
    return (moment - EPOCH) / dt.timedelta(days=1)


def moment_of(days: float) -> dt.datetime:
    """Return the moment that lies so many days after the start of 1970.

    Raises
    ------
    ValueError
        If it is outside of the calendar.

    Examples
    --------
    >>> moment_of(1.5)
    datetime.datetime(1970, 1, 2, 12, 0)
    """
    try:
        return EPOCH + dt.timedelta(days=days)
    except OverflowError:
        pass
    raise ValueError(f"{days:g} days after the start of 1970 is outside of the calendar")


def _calendar_edges(origin: float, *, length: str, horizon: int) -> list[float]:
    if length not in CALENDAR:
        raise ValueError(f"length is a number or one of {', '.join(CALENDAR)}, got {length!r}")
    first = moment_of(origin)
    if first.day > SHORTEST_MONTH:
        raise ValueError("months and years begin on a day that every month has: 1 to 28")
    months = 1 if length == "month" else 12
    edges = []
    for number in range(horizon + 1):
        years, month = divmod(first.month - 1 + months * number, 12)
        if first.year + years > dt.MAXYEAR:
            raise ValueError("the horizon is outside of the calendar")
        edges.append(days_of(first.replace(year=first.year + years, month=month + 1)))
    return edges
