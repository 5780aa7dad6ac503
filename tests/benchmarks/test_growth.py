"""Growth with the number of rows: the tables it is measured on, and what is said of failures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from benchmarks import growth, trips
from benchmarks.processes import FAILED, Limits, Outcome
from benchmarks.store import Store


@pytest.fixture(scope="module")
def source():
    return trips.artificial_trips()


def test_tables_have_as_many_rows_as_asked_for(source, tmp_path, monkeypatch):
    monkeypatch.setattr(trips, "BLOCK_ROWS", 40)
    path = tmp_path / "trips.parquet"
    trips.write_trips(path, source, rows=100)
    table = pd.read_parquet(path)
    assert list(table.columns) == [*trips.INPUTS, trips.OUTPUT]
    assert len(table) == 100
    assert pq.ParquetFile(path).num_row_groups == 3
    again = pd.concat(trips.drawn_trips(source, rows=100, seed=trips.SEED), ignore_index=True)
    pd.testing.assert_frame_equal(table, again)


def test_drawn_trips_stay_near_real_ones(source):
    (drawn,) = trips.drawn_trips(source, rows=500, seed=1)
    places = source[list(trips.INPUTS)].to_numpy()
    for one in drawn[list(trips.INPUTS)].to_numpy()[:20]:
        assert np.abs(places - one).max(axis=1).min() < 6 * trips.JITTER


def test_other_trips_are_held_out_and_clipped(source):
    places, durations = trips.held_out(source, rows=300)
    assert len(places) == len(durations) == 300
    assert durations.min() >= trips.BOUNDS[0]
    assert durations.max() <= trips.BOUNDS[1]


def test_a_run_that_fails_when_files_are_written_says_so(tmp_path, monkeypatch):
    def failing(*_, options, **__):
        for name in ("release", "out"):
            Path(options[name]).touch()
        return Outcome(FAILED, "exit code 1: ValueError")

    monkeypatch.setattr(growth, "run", failing)
    (row,) = growth.measure_all(
        rows=[300],
        criteria=["bayes"],
        repeats=1,
        limits=Limits(),
        store=Store(tmp_path / "kept"),
        small=True,
    )
    assert row["status"] == "failed: exit code 1: ValueError"
    assert "seconds" not in row
    [table] = growth.tables_for_pages([row], setting="a test")
    assert table.rows == [{"rows": "300", "failed": "failed: exit code 1: ValueError"}]
