"""`cloakgp plan`, and the question before a release: nothing private is read, nothing spent."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from jsonschema_rs import Draft202012Validator
from typer.testing import CliRunner

from cloakgp.cli import app
from cloakgp.cli import release as making
from cloakgp.cli.fit_options import FitOptions, TableOptions
from cloakgp.cli.plan import plan
from cloakgp.report.summary import json_schema

SECRET = "the text of somebody"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(5)
    count = 40
    people = pd.DataFrame(
        {
            "age": rng.uniform(0, 80, count).round(1),
            "job": rng.choice(["cook", "clerk"], count),
            "id": [f"p{number // 4}" for number in range(count)],
            "height": SECRET,
        }
    )
    people.to_csv(tmp_path / "people.csv", index=False)
    people.to_parquet(tmp_path / "people.parquet", index=False)
    people.assign(height=rng.uniform(60, 180, count)).to_csv(tmp_path / "heights.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words, typed=None):
    result = CliRunner().invoke(app, [str(word) for word in words], input=typed)
    assert SECRET not in result.output
    assert "unforeseen" not in result.output
    return result


NUMBERS = ("--inputs", "age,job", "--output", "height", "--bounds", 40, 200, "--epsilon", 1)
CLASSES = ("--inputs", "age", "--output", "height", "--classes", "no,yes", "--epsilon", 1)


@pytest.mark.parametrize("missing", ["refuse", "drop", "100"])
@pytest.mark.parametrize("table", ["people.csv", "people.parquet"])
def test_a_private_column_full_of_text_is_not_read(table, missing):
    said = run("plan", table, *NUMBERS, "--missing-output", missing)
    assert said.exit_code == 0, said.output
    text = " ".join(said.stdout.split())
    for part in (
        "at the query points",
        "age, job",
        "40, each protected on its own",
        "nothing spent",
        "Over budgets",
    ):
        assert part in text
    assert run("release", table, *NUMBERS, "-o", "a.cloak").exit_code == 1


# As the command prints it.
SCHEMA = Draft202012Validator(json.loads(json_schema("plan")))


def test_the_schema_is_printed_without_a_table():
    said = run("plan", "--json-schema")
    assert said.exit_code == 0, said.output
    assert said.stdout == json_schema("plan")


def test_people_budgets_and_pictures(folder):
    said = run("plan", "people.csv", *NUMBERS, "--epsilon", 3, "--person", "id", "--json")
    assert said.exit_code == 0, said.output
    told = json.loads(said.stdout)
    assert [each["epsilon"] for each in told["forecasts"]] == [1.0, 3.0]
    assert (told["rows"], told["people"], told["most_rows"]) == (40, 10, 4)
    assert told["columns"] == ["age", "job"]
    assert SCHEMA.is_valid(told), list(SCHEMA.iter_errors(told))
    drawn = run("plan", "people.csv", *NUMBERS, "--picture", "plan.png")
    assert drawn.exit_code == 0, drawn.output
    assert (folder / "plan.png").read_bytes().startswith(b"\x89PNG")
    assert run("plan", "people.csv", *NUMBERS, "--picture", "plan.png").exit_code == 1


def test_a_column_that_may_name_persons_is_hinted_at_once():
    def hint(*words):
        said = run("plan", "people.csv", *words, "--quick")
        assert said.exit_code == 0, said.output
        return [line for line in said.stderr.splitlines() if "--person" in line]

    (told,) = hint(*NUMBERS)
    assert told.startswith("If id says whose rows these are, --person id protects all rows")
    assert hint(*NUMBERS, "--person", "id") == []
    # Values of public columns are looked at, and of no others.
    assert run("schema", "people.csv", "--output", "height").exit_code == 0
    (told,) = hint(*NUMBERS[2:])
    assert "(10 different values in 40 rows)" in told
    people = pd.read_csv("people.csv").assign(id=[f"q{number}" for number in range(40)])
    people.to_csv("people.csv", index=False)
    assert hint(*NUMBERS[2:]) == []


@pytest.fixture
def many(folder):
    """A table of so many rows that a few places stand for them."""
    rng = np.random.default_rng(6)
    people = pd.DataFrame({"age": rng.uniform(0, 80, 300), "job": "cook", "height": SECRET})
    people.to_csv(folder / "many.csv", index=False)


@pytest.mark.usefixtures("many")
def test_approximate_figures_come_first():
    said = run("plan", "many.csv", *NUMBERS)
    assert said.exit_code == 0, said.output
    first, full = said.stdout.split("In full")
    facts, lines = full.split("Over budgets")
    # What the full plan does not change is not said again.
    assert "≈" in first
    assert "within 20 %" in " ".join(first.split())
    assert "becomes public" in first
    assert "≈" not in full
    assert "expected error" in facts
    assert "becomes public" not in facts
    assert [line.split()[0] for line in lines.splitlines()[2:7]] == ["0.25", "0.5", "1", "2", "4"]


@pytest.mark.usefixtures("many")
def test_quick_figures_are_all_there_is_on_request():
    said = run("plan", "many.csv", *NUMBERS, "--epsilon", 3, "--quick")
    assert said.exit_code == 0, said.output
    assert "In full" not in said.stdout
    assert said.stdout.count("≈") >= 4
    told = json.loads(run("plan", "many.csv", *NUMBERS, "--quick", "--json").stdout)
    assert SCHEMA.is_valid(told), list(SCHEMA.iter_errors(told))
    assert all(each["within"] == 0.2 for each in told["forecasts"])
    full = json.loads(run("plan", "many.csv", *NUMBERS, "--json").stdout)
    assert all(each["within"] == 0 for each in full["forecasts"])


@pytest.mark.usefixtures("many")
def test_figures_are_written_as_soon_as_they_are_known(monkeypatch):
    """The first are there before the full plan begins, and each line before the next budget."""
    from cloakgp.cli import plan as planning

    seen, plans = [], planning._plans

    def watched(*order, **chosen):
        for found in plans(*order, **chosen):
            seen.append(found)
            yield found

    lines = []
    monkeypatch.setattr(planning, "_plans", watched)
    monkeypatch.setattr(planning, "say", lambda text, **_: lines.append((len(seen), text.split())))
    assert run("plan", "many.csv", *NUMBERS).exit_code == 0
    when = {words[0]: count for count, words in lines if words and words[0] in ("0.25", "0.5", "4")}
    # An approximate plan, a full one, and then one for each further budget.
    assert when == {"0.25": 3, "0.5": 4, "4": 6}


def test_classes_and_many_rows_say_what_is_not_known():
    said = run("plan", "people.csv", *CLASSES)
    assert said.exit_code == 0, said.output
    assert "cannot be forecast" in " ".join(said.stdout.split())
    many = pd.DataFrame({"age": np.linspace(0, 80, 5100).round(3), "height": SECRET})
    many.to_parquet("many.parquet", index=False)
    for given in (NUMBERS[2:], CLASSES[2:]):
        said = run("plan", "many.parquet", "--inputs", "age", *given, "--inducing", 5)
        assert said.exit_code == 0, said.output
        assert "5,100" in said.stdout
        assert "read in passes" in " ".join(said.stdout.split())


def test_it_takes_the_options_of_a_release():
    """What says something of a table or a fit, and budgets to compare; nothing else is shared."""
    shared = {each.name for group in (TableOptions, FitOptions) for each in fields(group)}
    planned = set(inspect.signature(plan).parameters)
    assert shared <= planned & set(inspect.signature(making.release).parameters)
    assert planned - shared == {
        *("epsilon", "quick", "picture", "vary", "as_json", "json_schema", "overwrite")
    }


@pytest.mark.parametrize(("answer", "written"), [("y\n", True), ("n\n", False)])
def test_somebody_at_a_terminal_is_asked(monkeypatch, answer, written):
    monkeypatch.setattr(making, "somebody_is_there", lambda: True)
    words = ("release", "heights.csv", *NUMBERS, "--stages", "one", "-o", "a.cloak")
    said = run(*words, typed=answer)
    assert "expected error" in said.stdout
    assert "spend this?" in said.stdout
    assert said.exit_code == (0 if written else 1), said.output
    assert Path("a.cloak").exists() is written
    silent = run(*words[:-1], "b.cloak", "--yes")
    assert silent.exit_code == 0, silent.output
    assert "expected error" not in silent.stdout


def test_scripts_are_not_asked():
    said = run("release", "heights.csv", *NUMBERS, "--stages", "one", "-o", "a.cloak")
    assert said.exit_code == 0, said.output
    assert "spend this?" not in said.stdout


def test_bounds_of_zero_and_one_are_remarked_on_before_a_release():
    people = pd.read_csv("people.csv").assign(height=SECRET)
    people.to_csv("people.csv", index=False)
    ones = [
        *NUMBERS[: NUMBERS.index("--bounds")],
        "--bounds",
        0,
        1,
        *NUMBERS[NUMBERS.index("--bounds") + 3 :],
    ]
    assert "--classes 0,1" in run("release", "people.csv", *ones, "-o", "a.cloak").stderr
    assert "--classes 0,1" in " ".join(run("plan", "people.csv", *ones, "--quick").stdout.split())
    assert "--classes 0,1" not in run("release", "people.csv", *NUMBERS, "-o", "a.cloak").stderr
