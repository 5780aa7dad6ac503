"""Dates as points on circles: equal phases, and which cycles a table tells of."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.columns import Date, Schema, infer_schema

HOUR = dt.timedelta(hours=1)
DAY = dt.timedelta(days=1)
PERIODS = {"day": DAY, "week": 7 * DAY, "year": dt.timedelta(days=365.2425)}
# A Monday.
START = dt.datetime(1970, 1, 5)
PHASES = st.integers(0, 10**15).map(lambda count: dt.timedelta(microseconds=count))
# Float64 holds microseconds of days since 1970 until 2149.
CYCLES_AWAY = st.lists(st.integers(-100, 100), min_size=2, max_size=6)


def encode(cells, *cycles):
    return Schema((Date("when", linear=False, cycles=cycles),)).encode({"when": cells}).X


def cycles_of(cells):
    [column] = infer_schema({"when": pd.Series(cells)}, ["when"]).columns
    assert isinstance(column, Date)
    return column.cycles


def every(step, count, *, start=START + 40 * 365 * DAY):
    return [start + number * step for number in range(count)]


# --- equal phases ---


@pytest.mark.parametrize("cycle", PERIODS)
@given(phase=PHASES, away=CYCLES_AWAY)
def test_equal_phases_have_equal_bits(cycle, phase, away):
    period = PERIODS[cycle]
    X = encode([START + phase % period + count * period for count in away], cycle)
    assert (X[0] == X).all()


@pytest.mark.parametrize("cycle", PERIODS)
@given(dates=st.lists(st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2140, 1, 1)), min_size=1))
def test_points_on_circles_are_those_of_exact_phases(cycle, dates):
    """With phases in whole microseconds, by Python's own arithmetic of times."""
    turns = np.array([(date - START) % PERIODS[cycle] / PERIODS[cycle] for date in dates])
    oracle = np.column_stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)])
    np.testing.assert_allclose(encode(dates, cycle), oracle, rtol=0, atol=1e-15)


@pytest.mark.parametrize("cycle", PERIODS)
def test_points_are_as_of_angles_that_grow_with_the_years(cycle, rng):
    """Of which readers of releases compute them, and releases before had them."""
    days = rng.uniform(-20_000, 50_000, size=(500, 1))
    angle = 2 * np.pi * (days - 4) / {"day": 1, "week": 7, "year": 365.2425}[cycle]
    X = Date("when", linear=False, cycles=(cycle,)).expand(days)
    np.testing.assert_allclose(X, np.hstack([np.cos(angle), np.sin(angle)]), rtol=0, atol=1e-10)


# --- which cycles ---


TABLES = {
    "Mondays": (every(7 * DAY, 100), ("year",)),
    "Mondays and Tuesdays": (
        [monday + later * DAY for monday in every(7 * DAY, 100) for later in (0, 1)],
        ("week", "year"),
    ),
    "Monday to Friday": (
        [monday + later * DAY for monday in every(7 * DAY, 20) for later in range(5)],
        ("week",),
    ),
    "every day": (every(DAY, 100), ("week",)),
    "noons": (every(DAY, 300, start=dt.datetime(2024, 1, 1, 12)), ("week",)),
    "noons and one o'clock": (
        [noon + later * HOUR for noon in every(DAY, 30) for later in (12, 13)],
        ("week",),
    ),
    "opening hours": (
        [day + later * HOUR for day in every(DAY, 30) for later in (9, 10, 11, 12)],
        ("day", "week"),
    ),
    "Mondays in opening hours": (
        [monday + later * HOUR for monday in every(7 * DAY, 30) for later in (9, 10, 11, 12)],
        ("day",),
    ),
    "hours around midnight": (
        [day + later * HOUR for day in every(DAY, 30) for later in (-2, -1, 0, 1)],
        ("day", "week"),
    ),
    "midnights of Berlin": (
        pd.date_range("2024-01-01", periods=400, freq="D", tz="Europe/Berlin"),
        ("week",),
    ),
    "hours": (every(HOUR, 1000), ("day", "week")),
    "1 January": ([dt.datetime(year, 1, 1) for year in range(1990, 2024)], ()),
    "1 January and 1 July": (
        [dt.datetime(year, month, 1) for year in range(1990, 2024) for month in (1, 7)],
        ("year",),
    ),
    "one date": ([START] * 5, ()),
    "nothing": (pd.to_datetime([None, None]), ()),
}


@pytest.mark.parametrize(("cells", "cycles"), TABLES.values(), ids=TABLES.keys())
def test_tables_tell_of_cycles_whose_period_their_dates_cover(cells, cycles):
    assert cycles_of(cells) == cycles


@pytest.mark.parametrize("late", [False, True])
def test_a_tenth_of_the_period_is_enough(late):
    """Of the day 2 h 24 min."""
    ends = [0 * HOUR, 2.4 * HOUR - late * dt.timedelta(milliseconds=1)]
    cells = [day + 9 * HOUR + end for day in every(DAY, 10) for end in ends]
    assert ("day" in cycles_of(cells)) is not late


@given(
    minutes=st.lists(st.integers(0, 24 * 60 - 1), min_size=1, max_size=8),
    turn=st.integers(0, 24 * 60),
)
def test_covering_is_that_of_the_shortest_arc_wherever_it_begins(minutes, turn):
    """The shortest arc that holds all phases, by trying each of them as its beginning."""
    day = 24 * 60
    shortest = min(max((other - first) % day for other in minutes) for first in minutes)
    cells = [
        date + (turn + minute) * dt.timedelta(minutes=1)
        for date in every(DAY, 3)
        for minute in minutes
    ]
    timed = any((turn + minute) % day for minute in minutes)
    assert ("day" in cycles_of(cells)) is (timed and 10 * shortest >= day)
