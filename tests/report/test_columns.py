"""Rows around a centre, by the columns that tell it from others."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cloakgp.columns import infer_schema
from cloakgp.report.columns import rows_like


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "region": np.repeat(["east", "north", "west"], 40),
            "since": pd.Timestamp("2020-03-01") + pd.to_timedelta(np.arange(120) * 9, unit="D"),
            "grade": pd.Categorical(
                np.tile(["low", "high"], 60), categories=["low", "high"], ordered=True
            ),
            "latitude": 47 + rng.uniform(0, 1, 120),
            "longitude": 8 + rng.uniform(0, 1, 120),
            "age": rng.uniform(20, 80, 120),
        }
    )


def told(people, rows):
    """What is said of the middle of some rows beside that of all others."""
    schema = infer_schema(people, list(people))
    X = schema.encode(people, row=str).X
    centres = np.array([X[rows].mean(axis=0), np.delete(X, rows, axis=0).mean(axis=0)])
    release = SimpleNamespace(schema=schema, input_names=schema.names, n_inputs=X.shape[1])
    return rows_like(release, centres, which=0, units=np.maximum(X.std(axis=0), 1e-3))


def test_levels_dates_and_numbers_are_told_as_in_the_table(people):
    rows = np.arange(40, 80)
    assert "region north" in told(people, rows)
    later = told(people[["since", "age"]], np.arange(100, 120))
    assert later.startswith("since 2022-11-")
    assert ", age " in later
    assert "grade high" in told(people[["grade", "age"]], np.arange(1, 120, 2))


def test_places_are_told_in_degrees(people):
    places = people[["latitude", "longitude"]]
    [words] = told(places, np.flatnonzero(people["latitude"] > 47.5)).split(" and ")
    *_, latitude, longitude = words.replace(",", "").split()
    assert float(latitude) == pytest.approx(47.75, abs=0.1)
    assert float(longitude) == pytest.approx(8.5, abs=0.15)


def test_a_level_that_less_than_half_have_is_not_told(people):
    mixed = np.concatenate([np.arange(0, 18), np.arange(40, 58), np.arange(80, 98)])
    assert told(people[["region"]], mixed) == "rows with like inputs"


def test_of_numbers_without_a_schema_those_are_told_that_lie_apart():
    release = SimpleNamespace(schema=None, input_names=(), n_inputs=5)
    centres = np.array([[9.0, 0.0, 3.0, 0.1, -4.0, 7.0], [0.0, 0.0, 0.0, 0.0, 0.0, 7.0]])
    assert rows_like(release, centres, which=0, units=np.ones(5)) == "x1 9, x5 -4, x3 3"
