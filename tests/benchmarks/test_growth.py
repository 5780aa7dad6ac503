"""Growth with the number of rows: the tables it is measured on, and one small run."""

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


def test_a_small_run_measures_what_it_says(measured, tmp_path, monkeypatch):
    # Kept, and not measured again.
    monkeypatch.setattr(growth, "run", None)
    (row,) = growth.measure_all(
        rows=[300],
        criteria=["trace"],
        repeats=1,
        limits=Limits(seconds=600),
        store=Store(measured / "growth", resume=True),
        small=True,
    )
    assert row["status"] == "ok"
    # Of so few rows, private predictions need not be better than the mean.
    assert 0 < row["RMSE"] < trips.BOUNDS[1]
    assert 0 < row["RMSE of the mean"] < trips.BOUNDS[1]
    assert row["seconds"] > row["release seconds"] > 0
    assert row["peak MB"] > 50
    growth.report([row], folder=tmp_path, setting="a test")
    assert (tmp_path / "growth.png").stat().st_size > 5_000
    assert "| 300 | 1 | trace |" in (tmp_path / "growth.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("criterion", ["bayes", "trace"])
def test_rows_that_nobody_keeps_are_told_of(criterion, measured):
    """Read in passes, by the noise that the forecast chooses."""
    (row,) = growth.measure_all(
        rows=[6000],
        criteria=[criterion],
        repeats=1,
        limits=Limits(seconds=600),
        store=Store(measured / "growth", resume=True),
        small=True,
    )
    assert row["status"] == "ok"
    assert row["noise"] == ("laplace" if criterion == "bayes" else "gaussian")
    assert row["longest column"] == pytest.approx(1.0, abs=1e-9)
    assert row["answers"] >= 1
    assert 0 <= row["gap"] < 0.5


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


def test_a_run_that_fails_says_so(tmp_path):
    (row,) = growth.measure_all(
        rows=[300],
        criteria=["no such criterion"],
        repeats=1,
        limits=Limits(seconds=600),
        store=Store(tmp_path / "kept"),
        small=True,
    )
    assert row["status"] != "ok"
    assert "seconds" not in row
