"""Periods beside brute force and the calendar of pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.streams.periods import Periods, days_of, moment_of


@given(
    origin=st.floats(-1e6, 1e6),
    length=st.floats(1e-3, 1e3),
    horizon=st.integers(1, 20),
    lateness=st.floats(0, 1e3),
    shares=st.lists(st.floats(-3, 23), min_size=1, max_size=20),
)
def test_every_time_is_in_one_period_or_outside(origin, length, horizon, lateness, shares):
    periods = Periods.declared(origin, length=length, horizon=horizon, lateness=lateness)
    times = origin + length * np.array(shares)
    for time, place in zip(times, periods.place(times), strict=True):
        spans = zip(periods.edges[:-1], periods.edges[1:], strict=True)
        inside = [number for number, (start, end) in enumerate(spans) if start <= time < end]
        assert inside == ([place] if 0 <= place < horizon else [])
        assert (place == -1) == (time < periods.edges[0])
        closed = [number for number in range(horizon) if periods.closing(number) <= time]
        assert periods.count_closed(time) == len(closed)


@pytest.mark.parametrize(("length", "offset"), [("month", "MS"), ("year", "YS")])
def test_calendar_periods_are_those_of_pandas(length, offset):
    origin = days_of(pd.Timestamp("2026-01-01").to_pydatetime())
    periods = Periods.declared(origin, length=length, horizon=30)
    expected = pd.date_range("2026-01-01", periods=31, freq=offset)
    assert [moment_of(edge) for edge in periods.edges] == list(expected.to_pydatetime())
    middle = Periods.declared(origin + 14.25, length=length, horizon=3)
    assert [moment_of(edge).day for edge in middle.edges] == [15] * 4
    assert moment_of(middle.edges[1]).hour == 6


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"length": 0.0}, "length"),
        ({"length": float("nan")}, "length"),
        ({"length": "week"}, "month, year"),
        ({"horizon": 0}, "horizon"),
        ({"horizon": True}, "horizon"),
        ({"horizon": 10**6}, "horizon"),
        ({"lateness": float("inf")}, "lateness"),
        ({"origin": float("nan")}, "origin"),
        ({"origin": 1e18, "length": 1.0}, "overlap"),
        ({"origin": 30.0, "length": "month"}, "1 to 28"),
        ({"origin": 2e6, "length": "year", "horizon": 9000}, "outside of the calendar"),
        ({"origin": 1e12, "length": "year"}, "outside of the calendar"),
    ],
)
def test_periods_that_are_none_are_refused(settings, match):
    usual = {"origin": 0.0, "length": 1.0, "horizon": 2}
    declared = usual | settings
    with pytest.raises(ValueError, match=match):
        Periods.declared(declared.pop("origin"), **declared)


def leap_by_rows(periods, times, since, held):
    """The whole periods between the clock and the latest time, one by one, without a row."""
    length = periods.edges[-1] - periods.edges[-2]
    latest, empty, after, number = max(times), [], 0, 0
    while True:
        inside = number < periods.horizon
        start = (
            periods.edges[number]
            if inside
            else periods.edges[-1] + length * (number - periods.horizon)
        )
        end = periods.edges[number + 1] if inside else start + length
        if end > latest:
            return tuple(empty), after
        rows = any(start <= time < end for time in times) or number in held
        if not rows and inside and (since is None or start >= since):
            empty.append(number)
        if not rows and not inside and (since is None or since < periods.edges[-1]):
            after += 1
        number += 1


@given(
    times=st.lists(st.integers(-20, 90), min_size=1, max_size=6),
    since=st.none() | st.integers(-20, 90),
    held=st.frozensets(st.integers(0, 3)),
)
def test_a_leap_is_over_whole_periods_without_a_row(times, since, held):
    periods = Periods.declared(0.0, length=10.0, horizon=4)
    found = periods.leap(np.array(times, dtype=float), since=since, held=held)
    assert (found.empty, found.after) == leap_by_rows(periods, times, since, held)
    allowed = 0 if max(times) >= 40 else 1
    assert found.is_doubtful == (len(found.empty) + found.after > allowed)


def test_of_many_periods_a_tenth_may_be_without_rows():
    at = {
        number: Periods.declared(0.0, length=1.0, horizon=number).leap(
            np.array([0.5]), since=None, held=()
        )
        for number in (1, 12, 19, 20, 365)
    }
    assert [each.allowed for each in at.values()] == [1, 1, 1, 2, 36]
