"""Calibration from the command line: by itself, off, and by rows that are kept out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from cloakgp import load
from cloakgp.cli import app

USUAL = ["--output", "pay", "--inputs", "age", "--bounds", "0", "100", "--epsilon", "8"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(2)
    age = rng.uniform(20, 65, 300).round(1)
    people = pd.DataFrame({"age": age, "pay": (age + 3 * rng.normal(size=300)).round(2)})
    people["height"] = (150 + age / 2 + rng.normal(size=300)).round(2)
    people.to_csv(tmp_path / "people.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def release(*words: str) -> Result:
    return run("release", "people.csv", *USUAL, "--gap", "0.1", "-o", "out.cloak", *words)


def test_rows_are_kept_out_and_it_is_said(folder: Path) -> None:
    made = release("--calibrate", "0.3")
    assert made.exit_code == 0, made.output
    known = load(folder / "out.cloak")
    assert known.margins.rows == 90
    shown = " ".join(run("show", "out.cloak").output.split())
    assert "90 rows, drawn at random, were kept out of the fit" in shown
    told = run(
        "predict", "out.cloak", "--at", "people.csv", "--interval", "0.8", "-o", "intervals.csv"
    )
    assert told.exit_code == 0, told.output
    written, people = pd.read_csv(folder / "intervals.csv"), pd.read_csv(folder / "people.csv")
    lower, upper = known.predict_interval(people[["age"]], 0.8)
    np.testing.assert_allclose(written["lo_80"], lower, atol=0.1)
    np.testing.assert_allclose(written["hi_80"], upper, atol=0.1)


def test_it_is_off_where_it_is_said_to_be(folder: Path) -> None:
    for words, calibrated in ((["--calibrate", "off"], False), (["--epsilon", "30"], True)):
        made = release(*words, "--overwrite")
        assert made.exit_code == 0, made.output
        assert load(folder / "out.cloak").is_calibrated is calibrated


def test_plans_know_of_rows_that_are_kept_out() -> None:
    planned = run("plan", "people.csv", *USUAL, "--calibrate", "0.3")
    assert planned.exit_code == 0, planned.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--calibrate", "yes"], "--calibrate is auto, off, or a share"),
        (["--calibrate", "0.7"], "above 0 and below 0.5"),
        (["--calibrate", "0.01"], "too few at this budget"),
        (["--calibrate", "0.3", "--counts"], "counts scatter by their likelihood"),
        (["--calibrate", "0.3", "--quantiles", "0.5"], "--calibrate has no meaning"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(words: list[str], said: str) -> None:
    made = release(*words)
    assert made.exit_code != 0
    assert said in " ".join(made.output.split())


@pytest.mark.parametrize(("choice", "calibrated"), [("auto", True), ("off", False)])
def test_several_columns_are_calibrated_unless_it_is_off(
    folder: Path, choice: str, calibrated: bool
) -> None:
    columns = ["--output", "pay=0:100", "--output", "height=100:250", "--inputs", "age"]
    made = run(
        "release-several", "people.csv", *columns, "--epsilon", "60", "-o", "two.cloak",
        "--calibrate", choice, "--inducing", "6",
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    assert load(folder / "two.cloak").is_calibrated is calibrated
