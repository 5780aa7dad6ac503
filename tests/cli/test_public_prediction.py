"""Public predictions from the command line: a column, its release, and what it is said to be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from cloakgp import load
from cloakgp.cli import app
from cloakgp.fitting import planning


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(2)
    age = rng.uniform(20, 80, 80).round(1)
    census = (100 + 30 * np.sin(age / 10)).round(2)
    people = pd.DataFrame({"age": age, "census": census, "job": "cook", "y": census + 2})
    people.to_csv(tmp_path / "people.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: str, *words: str, inputs: str = "age") -> Result:
    usual = ["people.csv", "--output", "y", "--inputs", inputs, "--epsilon", "1", "--gap", "0.1"]
    return CliRunner().invoke(app, [command, *usual, *words])


WITH_HELP = ("--bounds", "0", "300", "--public-prediction", "census")


@pytest.mark.usefixtures("noise_that_repeats")
@pytest.mark.parametrize("inputs", ["age", "age,census"])
def test_the_column_is_an_input_named_or_not(folder: Path, inputs: str) -> None:
    # So much that no draw of the noise moves predictions by what is tested in the end.
    made = run("release", *WITH_HELP, "--epsilon", "20", "-o", "out.cloak", inputs=inputs)
    assert made.exit_code == 0, made.output
    known = load(folder / "out.cloak")
    assert known.input_names == ("age", "census")
    assert known.prior.trend.column == 1
    shown = CliRunner().invoke(app, ["show", "out.cloak"], env={"COLUMNS": "1000"})
    assert "go by census" in shown.output
    assert "census was declared to be public, for every row" in shown.output
    told = CliRunner().invoke(app, ["predict", "out.cloak", "--at", "people.csv", "-o", "at.csv"])
    assert told.exit_code == 0, told.output
    predicted = pd.read_csv(folder / "at.csv")
    assert np.abs(predicted["mean"] - predicted["census"]).mean() < 15


def test_many_rows_have_one_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "MANY_ROWS", 50)
    made = run("release", *WITH_HELP, "--inducing", "5", "-o", "out.cloak")
    assert made.exit_code == 0, made.output
    known = load(folder / "out.cloak")
    assert known.prior.trend.column == 1
    assert len(known.prior.inducing) == 6


def test_a_plan_expects_less_error_with_it() -> None:
    def error(*words: str) -> float:
        told = run("plan", *words)
        assert told.exit_code == 0, told.output
        return float(" ".join(told.output.split()).split("off by ")[1].split(" ")[0])

    assert error(*WITH_HELP) < error("--bounds", "0", "300")
    told = " ".join(run("plan", *WITH_HELP).output.split())
    assert "the prior describes the private column, and that census predicts it" in told
    assert "predicts it" not in run("plan", "--bounds", "0", "300").output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--classes", "a,b", "--public-prediction", "census"), "goes with --bounds"),
        ((*WITH_HELP, "--quantiles", "0.5"), "has no meaning with --quantiles"),
        ((*WITH_HELP, "--counts"), "transform outputs and their prediction beforehand"),
        (
            ("--bounds", "0", "300", "--public-prediction", "job"),
            "public_prediction='job' is no input of numbers",
        ),
        (("--bounds", "0", "300", "--public-prediction", "zensus"), "zensus"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], message: str) -> None:
    refused = run("release", *words, "-o", "out.cloak")
    assert refused.exit_code != 0
    assert message in " ".join(refused.output.split())
