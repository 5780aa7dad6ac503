"""Predictions at dates that lie on other days, hours and months than those of the table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cloakgp import DPGPClassifier, DPGPRegressor
from cloakgp.columns import Date, Number, Schema
from cloakgp.data import FileRows
from cloakgp.data.raw import RawRows
from cloakgp.estimators.baselines import DPIntegralHistogramRegressor

ROWS = 300
BOUNDS, WIDTH = (0.0, 200.0), 200.0
AGE, TRUTH = 50.0, 90.0
# Sds that a prediction may lie from the truth.
SDS = 4.0

MONDAYS = pd.date_range("2024-01-01", periods=100, freq="7D")
NOONS = pd.date_range("2024-01-01 12:00", periods=300, freq="D")
MIDNIGHTS = pd.date_range("2024-01-01", periods=300, freq="D", tz="Europe/Berlin")
JANUARIES = pd.to_datetime([f"{year}-01-01" for year in range(2000, 2024)])
TABLES = {
    "Mondays": (MONDAYS, ["2025-03-03", "2025-03-04", "2025-03-08"]),
    "noons": (NOONS, ["2024-05-03 12:00", "2024-05-04 13:00", "2024-05-04 00:00"]),
    "midnights of Berlin": (MIDNIGHTS, ["2024-05-03", "2024-05-04 11:00", "2024-12-01"]),
    "1 January": (JANUARIES, ["2010-01-01", "2010-07-01", "2015-03-01"]),
}
CYCLES = {"Mondays": "week", "noons": "day", "midnights of Berlin": "day", "1 January": "year"}
EVERY = pytest.mark.parametrize("name", TABLES)
# What is asked and known is the same with a day, a week and a year: fits of other kinds show that
# they know of it.
A_FEW = pytest.mark.parametrize(
    "name",
    [
        *("noons", "1 January"),
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("Mondays", "midnights of Berlin")
        ),
    ],
)


def table(dates, rng):
    """Costs of 40 and a year's of age more, whatever the date."""
    age = rng.uniform(20, 80, ROWS)
    frame = pd.DataFrame({"age": age, "when": dates[rng.integers(0, len(dates), ROWS)]})
    return frame, 40 + age + rng.normal(0, 3, ROWS)


def at(dates):
    return pd.DataFrame({"age": AGE, "when": pd.to_datetime(dates, format="mixed")})


def assert_right(mean, sd):
    mean, sd = np.asarray(mean), np.asarray(sd)
    assert (sd <= WIDTH).all()
    assert ((mean > BOUNDS[0]) & (mean < BOUNDS[1])).all()
    assert (np.abs(mean - TRUTH) < SDS * sd).all()


def declare(name, *, linear=True):
    return Schema((Number("age"), Date("when", linear=linear, cycles=(CYCLES[name],))))


@EVERY
def test_predictions_elsewhere_are_as_sure_as_where_the_rows_are(name, rng):
    dates, points = TABLES[name]
    model = DPGPRegressor(bounds=BOUNDS, epsilon=2.0, insecure_seed=1).fit(*table(dates, rng))
    found = model.release_.predict_frame(at(points))
    assert_right(found["mean"], found["sd"])
    assert (found["sd"] < WIDTH / 10).all()


@EVERY
@pytest.mark.parametrize("linear", [True, False])
def test_declared_cycles_that_no_row_tells_of_are_no_surer_than_the_bounds(name, linear, rng):
    dates, points = TABLES[name]
    model = DPGPRegressor(
        bounds=BOUNDS, epsilon=2.0, insecure_seed=1, schema=declare(name, linear=linear)
    ).fit(*table(dates, rng))
    found = model.release_.predict_frame(at(points))
    assert_right(found["mean"], found["sd"])
    assert found["sd"][0] < WIDTH / 5


@pytest.mark.parametrize("name", ["Mondays", "noons"])
def test_a_declared_cycle_of_one_phase_tells_nothing(name, rng):
    dates, points = TABLES[name]
    model = DPGPRegressor(bounds=BOUNDS, epsilon=2.0, insecure_seed=1, schema=declare(name))
    found = model.fit(*table(dates, rng)).release_.predict_frame(at(points))
    assert (found["sd"] < WIDTH / 10).all()


@A_FEW
def test_rows_in_passes(name, rng, tmp_path):
    dates, points = TABLES[name]
    frame, y = table(dates, rng)
    frame.assign(cost=y).to_parquet(tmp_path / "people.parquet")
    raw = RawRows(declare(name))
    rows = FileRows(tmp_path / "people.parquet", raw=raw, output="cost")
    model = DPGPRegressor(bounds=BOUNDS, epsilon=2.0, insecure_seed=1).fit_rows(rows)
    found = model.release_.predict_frame(at(points))
    assert_right(found["mean"], found["sd"])


@A_FEW
def test_classes(name, rng):
    """Of a cost above the median: at the median, neither is sure."""
    dates, points = TABLES[name]
    frame, y = table(dates, rng)
    model = DPGPClassifier(
        classes=("no", "yes"), epsilon=2.0, insecure_seed=1, schema=declare(name)
    )
    release = model.fit(frame, np.where(y > TRUTH, "yes", "no")).release_
    found = release.predict_frame(at(points))["p_yes"]
    assert ((found > 0.1) & (found < 0.9)).all()


def test_numbers_that_are_equal_but_for_rounding(rng):
    X = np.column_stack(
        [rng.uniform(20, 80, ROWS), np.where(rng.random(ROWS) < 0.5, 0.3, 0.1 + 0.2)]
    )
    y = 40 + X[:, 0] + rng.normal(0, 3, ROWS)
    points = [[AGE, 0.3], [AGE, 0.31], [AGE, 0.0]]
    model = DPGPRegressor(bounds=BOUNDS, epsilon=2.0, insecure_seed=1).fit(X, y)
    mean, sd = model.predict(points, return_std=True)
    assert_right(mean, sd)
    assert (sd < WIDTH / 10).all()
    binned = DPIntegralHistogramRegressor(bounds=BOUNDS, epsilon=2.0, delta=1e-5, insecure_seed=1)
    mean, sd = binned.fit(X, y).predict(points, return_std=True)
    assert_right(mean, sd)
