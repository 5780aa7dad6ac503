"""Quantiles from the command line: released, planned, shown, predicted, and what goes with what."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from cloakgp import load
from cloakgp.cli import app
from cloakgp.pages.sheet import sheet_html

USUAL = ["--output", "pay", "--inputs", "age", "--bounds", "100", "1e7", "--epsilon", "5"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(2)
    age = rng.uniform(20, 65, 80).round(1)
    people = pd.DataFrame({"age": age, "pay": np.exp(9 + age / 50 + rng.normal(size=80)).round()})
    people.to_csv(tmp_path / "people.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def release(*words: str) -> Result:
    return run("release", "people.csv", *USUAL, "--gap", "0.1", "-o", "out.cloak", *words)


def test_quantiles_are_released_shown_and_predicted(folder: Path) -> None:
    made = release("--quantiles", "0.25,0.75", "--stages", "one")
    assert made.exit_code == 0, made.output
    assert "50 % of values" in " ".join(made.output.split())
    known = load(folder / "out.cloak")
    assert known.likelihood.quantiles == (0.25, 0.75)
    assert known.transform.name == "log"
    shown = run("show", "out.cloak", "--all")
    assert shown.exit_code == 0, shown.output
    assert "at or below each of 2 thresholds" in " ".join(shown.output.split())
    predicted = run("predict", "out.cloak", "--at", "people.csv", "-o", "quantiles.csv")
    assert predicted.exit_code == 0, predicted.output
    columns = {f"q_{level}{end}" for level in ("25", "75") for end in ("", "_lower", "_upper")}
    written = pd.read_csv(folder / "quantiles.csv")
    assert columns <= set(written)
    assert (written["q_25"] <= written["q_75"]).all()
    assert "thresholds" in sheet_html(known)


def test_small_quantiles_keep_their_digits(folder: Path) -> None:
    people = pd.read_csv(folder / "people.csv")
    people["pay"] *= 1e-7
    people.to_csv(folder / "people.csv", index=False)
    made = release("--quantiles", "0.5", "--stages", "one", "--bounds", "1e-5", "1")
    assert made.exit_code == 0, made.output
    assert run("predict", "out.cloak", "--at", "people.csv", "-o", "a.csv").exit_code == 0
    written = pd.read_csv(folder / "a.csv")["q_50"]
    expected = load(folder / "out.cloak").predict(people[["age"]])[:, 0]
    np.testing.assert_allclose(written, expected, rtol=0.01)


def test_tables_without_room_are_read_in_passes(folder: Path) -> None:
    rng = np.random.default_rng(4)
    age = rng.uniform(20, 60, 6000).round(1)
    pay = np.exp(8 + age / 40 + 0.3 * rng.normal(size=6000)).round(2)
    pd.DataFrame({"age": age, "pay": pay}).to_csv(folder / "people.csv", index=False)
    asked = ("--quantiles", "0.5", "--stages", "one", "--memory", "0.01", "--inducing", "5")
    made = release(*asked)
    assert made.exit_code == 0, made.output
    known = load(folder / "out.cloak")
    assert (known.n_rows, known.input_names) == (6000, ("age",))
    assert type(known.measurements[0].strategy).__name__ == "GatheredStrategy"
    shown = run("show", "out.cloak", "--all")
    assert "cells of similar inputs" in " ".join(shown.output.split())
    planned = run("plan", "people.csv", *USUAL, *asked)
    assert planned.exit_code == 0, planned.output
    assert "rows read in passes" in " ".join(planned.output.split())


def test_other_scales_and_kernels(folder: Path) -> None:
    made = release(
        "--quantiles", "0.5", "--lengthscale", "20", "--mean", "5000", "--noise", "laplace"
    )
    assert made.exit_code == 0, made.output
    assert "RBF" in str(load(folder / "out.cloak").prior.kernel)


def test_plans_say_what_is_asked() -> None:
    planned = run("plan", "people.csv", *USUAL, "--quantiles", "0.1,0.5,0.9")
    assert planned.exit_code == 0, planned.output
    said = " ".join(planned.output.split())
    assert "how near quantiles come depends on how values scatter" in said
    assert "in 3 stages" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--quantiles", "0.5", "--counts"], "--counts has no meaning with --quantiles"),
        (["--quantiles", "0.5", "--noise-variance", "1"], "--noise-variance has no meaning"),
        (["--quantiles", "0.5", "--criterion", "trace"], "are for --criterion bayes"),
        (["--quantiles", "half"], "--quantiles takes positive numbers"),
        (["--quantiles", "0.5,2"], "quantiles must lie between 0 and 1"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], said: str) -> None:
    made = release(*words)
    assert made.exit_code == 1
    assert said in " ".join(made.output.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["compare", "out.cloak", "out.cloak"], "one of these is of quantiles"),
        (
            ["predict", "out.cloak", "--at", "people.csv", "-o", "a.csv", "--new-output"],
            "leave out new_output",
        ),
    ],
)
def test_what_there_is_not_of_quantiles_is_said(words: list[str], said: str) -> None:
    assert release("--quantiles", "0.5", "--stages", "one").exit_code == 0
    asked = run(*words)
    assert asked.exit_code == 1, asked.output
    assert said in " ".join(asked.output.split())


@pytest.mark.parametrize(
    "words",
    [
        ["plot", "out.cloak", "-o", "out.png"],
        ["plot", "out.cloak", "-o", "out.png", "--kind", "fan"],
        ["page", "out.cloak", "-o", "out.html"],
        ["show", "out.cloak", "--html", "out.html"],
    ],
)
def test_quantiles_are_presented(folder: Path, words: list[str]) -> None:
    assert release("--quantiles", "0.25,0.5", "--stages", "one").exit_code == 0
    shown = run(*words)
    assert shown.exit_code == 0, shown.output
    assert (folder / words[words.index("-o") + 1 if "-o" in words else -1]).stat().st_size > 1000


def test_quantiles_go_with_bounds() -> None:
    usual = ["--output", "pay", "--inputs", "age", "--classes", "a,b", "--epsilon", "5"]
    made = run("release", "people.csv", *usual, "-o", "out.cloak", "--quantiles", "0.5")
    assert made.exit_code == 1
    assert "--quantiles goes with --bounds" in " ".join(made.output.split())
