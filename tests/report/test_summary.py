"""Summaries of releases keep to the schema that is published, and say what the release says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from jsonschema_rs import Draft202012Validator
from test_every_kind import FILES, release_of
from typer.testing import CliRunner

from cloakgp import DPGPRegressor, load
from cloakgp.cli import app
from cloakgp.columns import Boolean, Category, Date, Number, OrderedCategory, Place, Schema, Vector
from cloakgp.report.summary import json_schema, summarise
from cloakgp.report.worth import accuracies

GOLDEN = sorted((Path(__file__).parents[1] / "data" / "golden").glob("*.cloak"))
SCHEMA = Draft202012Validator(json.loads(json_schema("show")))


def plain(release):
    """The summary as a program reads it."""
    return json.loads(json.dumps(summarise(release), allow_nan=False))


def assert_valid(told):
    assert SCHEMA.is_valid(told), [error.message for error in SCHEMA.iter_errors(told)]


# What is said of a choice by the exponential mechanism takes long.
KEPT = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * ("exponential" in path.stem))
    for path in GOLDEN
]


@pytest.mark.parametrize("path", KEPT)
def test_every_kept_release_keeps_to_the_schema(path):
    release = load(path)
    told = plain(release)
    assert_valid(told)
    guarantee = release.guarantee
    assert (told["guarantee"]["epsilon"], told["guarantee"]["delta"]) == (
        guarantee.epsilon,
        guarantee.delta,
    )
    assert told["insecure"] is True
    assert len(told["inputs"]) == release.n_inputs


def test_the_commands_print_it():
    runner = CliRunner()
    schema = runner.invoke(app, ["show", "--json-schema"])
    assert schema.exit_code == 0, schema.output
    assert schema.stdout == json_schema("show")
    found = runner.invoke(app, ["show", str(GOLDEN[0]), "--json"])
    assert json.loads(found.stdout) == plain(load(GOLDEN[0]))


def test_the_schema_refuses_other_keys_and_text_for_numbers():
    told = plain(load(GOLDEN[0]))
    assert not SCHEMA.is_valid({**told, "more": 1})
    assert not SCHEMA.is_valid({key: told[key] for key in told if key != "accuracy"})
    assert not SCHEMA.is_valid(
        {**told, "guarantee": {**told["guarantee"], "epsilon": str(told["guarantee"]["epsilon"])}}
    )


def everything_closed(schema):
    """Every object of a schema names all its keys, and all of them are there."""
    if isinstance(schema, list):
        return all(map(everything_closed, schema))
    if not isinstance(schema, dict):
        return True
    if "properties" in schema and (
        schema["additionalProperties"] is not False
        or set(schema["required"]) != set(schema["properties"])
    ):
        return False
    return all(map(everything_closed, schema.values()))


@pytest.mark.parametrize("name", ["show", "plan"])
def test_no_key_is_left_to_chance(name):
    assert everything_closed(json.loads(json_schema(name)))


RAW = Schema(
    (
        Number("age", unit="years", title="Age of the person"),
        Category("job", levels=("clerk", "cook")),
        OrderedCategory("grade", levels=("low", "high")),
        Boolean("smoker", true_values=("yes",), false_values=("no",)),
        Date("when", cycles=("week",)),
        Place("home", latitude="lat", longitude="lon", centre=(51.5, -0.1)),
        Vector("word", columns=("w1", "w2"), centre=(0.5, -0.5), encoder="letters 1.0"),
    )
)


def test_inputs_are_the_columns_of_the_table_in_their_units():
    ages = np.linspace(20, 80, 12)
    table = pd.DataFrame(
        {
            "age": ages,
            "job": ["cook", "clerk"] * 6,
            "grade": ["low", "high"] * 6,
            "smoker": ["yes", "no"] * 6,
            "when": pd.date_range("2020-01-01", periods=12),
            "lat": np.linspace(51.4, 51.6, 12),
            "lon": np.linspace(-0.2, 0.0, 12),
            "w1": np.linspace(0.0, 1.0, 12),
            "w2": np.linspace(-1.0, 0.0, 12),
        }
    )
    model = DPGPRegressor(bounds=(0, 100), schema=RAW, epsilon=1.0)
    release = model.fit(table, pd.Series(ages, name="height")).release_
    told = plain(release)
    assert_valid(told)
    inputs = {each["name"]: each for each in told["inputs"]}
    assert list(inputs) == ["age", "job", "grade", "smoker", "when", "home", "word"]
    age = inputs["age"]
    assert (age["lo"], age["hi"], age["unit"], age["title"]) == (
        20.0,
        80.0,
        "years",
        "Age of the person",
    )
    assert inputs["job"]["levels"] == ["clerk", "cook"]
    assert inputs["when"]["first"] == "2020-01-01T00:00:00"
    assert inputs["when"]["last"] == "2020-01-12T00:00:00"
    assert inputs["home"]["columns"] == ["lat", "lon"]
    assert inputs["word"]["columns"] == ["w1", "w2"]
    assert inputs["word"]["encoder"] == "letters 1.0"
    # What stands for them in the fit is named nowhere.
    text = json.dumps({key: value for key, value in told.items() if key != "words"})
    for name in set(release.input_names) - {"age", "grade", "smoker", "when"}:
        assert name not in text
    assert told["outputs"][0] == {
        "name": "height",
        "kind": "numbers",
        "bounds": [0.0, 100.0],
        "transform": None,
        "classes": None,
        "quantiles": None,
    }
    [accuracy], [oracle] = told["accuracy"], accuracies(release)
    assert accuracy["typical_error"] == oracle.new_error
    assert told["rows"] == [12]


@pytest.mark.parametrize("name", FILES)
def test_every_kind_keeps_to_the_schema(name):
    release = release_of(FILES[name])
    told = plain(release)
    assert_valid(told)
    assert len(told["words"]) >= 3


def test_people_and_limits_are_told():
    X, y = np.linspace(0, 9, 10)[:, None], np.linspace(0, 1, 10)
    model = DPGPRegressor(bounds=(0, 1), epsilon=0.6)
    person = plain(model.fit(X, y, groups=np.arange(10) // 2).release_.within(1.0, 0.0))
    assert person["guarantee"]["protects"] == "person"
    assert person["guarantee"]["limit"] == {"epsilon": 1.0, "delta": 0.0}
    row = plain(model.fit(X, y).release_)
    assert row["guarantee"]["protects"] == "row"
    assert row["insecure"] is False
    assert plain(replace(model.release_, visits=2))["guarantee"]["visits"] == 2
