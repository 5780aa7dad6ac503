"""Counts from the command line: an exposure column, rates, and what goes with what."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from cloakgp import load
from cloakgp.cli import app
from cloakgp.fitting import planning
from cloakgp.release.gathered_strategy import GatheredStrategy


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(2)
    age, years = rng.uniform(20, 80, 80).round(1), rng.uniform(0.5, 2.0, 80).round(2)
    visits = rng.poisson(years * np.exp(age / 40))
    people = pd.DataFrame({"age": age, "years": years, "visits": visits})
    people.to_csv(tmp_path / "people.csv", index=False)
    people.assign(years=0.0).to_csv(tmp_path / "none.csv", index=False)
    people["visits"] = people["visits"].astype(object)
    people.loc[3, "visits"] = ""
    people.to_csv(tmp_path / "gaps.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def release(table: str = "people.csv", *words: str) -> Result:
    usual = ["--output", "visits", "--inputs", "age", "--bounds", "0", "40", "-o", "out.cloak"]
    usual += ["--epsilon", "5", "--gap", "0.1"]
    return CliRunner().invoke(app, ["release", table, *usual, *words])


def test_an_exposure_column_is_read_and_kept(folder: Path) -> None:
    made = release("people.csv", "--counts", "--exposure", "years", "--overdispersion", "0.2")
    assert made.exit_code == 0, made.output
    known = load(folder / "out.cloak")
    [strategy, *_] = [each.strategy for each in known.measurements]
    years = pd.read_csv(folder / "people.csv")["years"]
    np.testing.assert_array_equal(strategy.row_exposure, years)
    assert known.likelihood.overdispersion == 0.2
    assert known.input_names == ("age",)
    predicted = CliRunner().invoke(
        app, ["predict", "out.cloak", "--at", "people.csv", "-o", "rates.csv"]
    )
    assert predicted.exit_code == 0, predicted.output
    assert {"median", "lower", "upper"} <= set(pd.read_csv(folder / "rates.csv"))


def test_large_tables_are_read_in_passes_with_their_exposures(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "MANY_ROWS", 50)
    words = ["--counts", "--exposure", "years", "--inducing", "5"]
    made = release("people.csv", *words)
    assert made.exit_code == 0, made.output
    known = load(folder / "out.cloak")
    strategy = known.measurements[0].strategy
    assert isinstance(strategy, GatheredStrategy)
    assert known.input_names == ("age",)
    years = pd.read_csv(folder / "people.csv")["years"]
    np.testing.assert_allclose(np.sort(strategy.row_exposure), np.sort(years), rtol=1e-12)
    refused = release("none.csv", *words, "--overwrite")
    assert refused.exit_code != 0
    assert "exposure must be positive" in refused.output


@pytest.mark.parametrize("most", [50, 1000])
def test_exposures_are_written_as_inputs_are(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Of days in thousands, 4.706 and 956, only those below a thousand were read rightly."""
    monkeypatch.setattr(planning, "MANY_ROWS", most)
    people = pd.read_csv("people.csv")
    days = np.linspace(500, 9000, len(people)).round()
    german = pd.DataFrame(
        {
            "age": [f"{age:.1f}".replace(".", ",") for age in people["age"]],
            "days": [f"{each:,.0f}".replace(",", ".") for each in days],
            "visits": people["visits"],
        }
    )
    german.to_csv("german.csv", index=False, sep=";")
    made = release("german.csv", "--counts", "--exposure", "days", "--inducing", "5")
    assert made.exit_code == 0, made.output
    for said in ("days: read with decimal commas, and '.'", "visits: text in it is read with"):
        assert said in " ".join(made.stderr.split())
    known = load("out.cloak")
    strategy = known.measurements[0].strategy
    assert isinstance(strategy, GatheredStrategy) == (most == 50)
    np.testing.assert_allclose(np.sort(strategy.row_exposure), days, rtol=1e-12)
    # Its notation is the release's: that of new rows alone would not tell it.
    Path("new.csv").write_text("age;time\n43,5;4.706\n43,5;1.000\n")
    words = ["predict", "out.cloak", "--at", "new.csv", "-o", "told.csv", "--exposure", "time"]
    told = CliRunner().invoke(app, [*words, "--interval", "0.9"])
    assert told.exit_code == 0, told.output
    found = pd.read_csv("told.csv", sep=";", decimal=",")
    expected = known.predict_interval({"age": ["43,5"] * 2}, 0.9, exposure=[4706.0, 1000.0])
    np.testing.assert_array_equal(found[["lo_90", "hi_90"]].to_numpy().T, expected)


def test_exposures_are_read_as_a_schema_declares_them() -> None:
    days = [f"{days:,.0f}".replace(",", ".") for days in np.linspace(1000, 9000, 80)]
    pd.read_csv("people.csv").assign(years=days).to_csv("people.csv", index=False)
    undecided = release("people.csv", "--counts", "--exposure", "years")
    assert undecided.exit_code == 0, undecided.output
    assert load("out.cloak").measurements[0].strategy.row_exposure[0] == 1.0
    fields = (
        '{"name": "age", "type": "number"}, {"name": "years", "type": "number", '
        '"decimalChar": ",", "groupChar": "."}'
    )
    Path("people.schema.json").write_text(f'{{"fields": [{fields}]}}')
    made = release("people.csv", "--counts", "--exposure", "years", "--overwrite")
    assert made.exit_code == 0, made.output
    assert load("out.cloak").measurements[0].strategy.row_exposure[0] == 1000.0


def test_exposures_are_no_private_column() -> None:
    refused = release("people.csv", "--counts", "--exposure", "visits")
    assert refused.exit_code == 1
    assert "visits (--exposure) is no input, and no output" in " ".join(refused.output.split())


def test_new_counts_have_the_exposure_of_their_rows() -> None:
    assert release("people.csv", "--counts", "--exposure", "years").exit_code == 0
    people = pd.read_csv("people.csv")
    words = ["predict", "out.cloak", "--at", "people.csv", "-o", "new.csv", "--quantiles", "0.9"]
    told = CliRunner().invoke(app, [*words, "--above", "0", "--exposure", "years"])
    assert told.exit_code == 0, told.output
    found, known = pd.read_csv("new.csv"), load("out.cloak")
    exposure = people["years"].to_numpy()
    expected = known.predict_quantile(people, 0.9, exposure=exposure)
    np.testing.assert_array_equal(found["q_90"], expected)
    above = known.probability_above(people, 0, exposure=exposure)
    np.testing.assert_allclose(found["above_0"], above, atol=5.1e-5)
    for table, more, said in [
        ("people.csv", ["--exposure", "hours", "--above", "0"], "hours"),
        ("none.csv", ["--exposure", "years", "--above", "0"], "positive and finite"),
    ]:
        words[3] = table
        told = CliRunner().invoke(app, [*words, *more, "--overwrite"])
        assert told.exit_code == 1
        assert said in " ".join(told.output.split())
    told = CliRunner().invoke(app, [*words[:4], "-o", "rates.csv", "--exposure", "years"])
    assert told.exit_code == 1
    assert "rates are those of one unit of exposure" in " ".join(told.output.split())


def test_rows_without_a_count_take_their_exposure_with_them(folder: Path) -> None:
    made = release("gaps.csv", "--counts", "--exposure", "years", "--missing-output", "drop")
    assert made.exit_code == 0, made.output
    years = pd.read_csv(folder / "people.csv")["years"].drop(index=3)
    strategy = load(folder / "out.cloak").measurements[0].strategy
    np.testing.assert_array_equal(strategy.row_exposure, years)


@pytest.mark.parametrize(
    ("table", "words", "said"),
    [
        ("people.csv", ["--exposure", "years"], "--exposure goes with --counts"),
        ("people.csv", ["--counts", "--exposure", "age"], "is no input"),
        ("people.csv", ["--counts", "--log"], "no meaning with --counts"),
        ("people.csv", ["--overdispersion", "1"], "--overdispersion is of counts"),
        ("none.csv", ["--counts", "--exposure", "years"], "positive and finite"),
    ],
)
def test_what_makes_no_sense_is_refused(
    folder: Path, table: str, words: list[str], said: str
) -> None:
    made = release(table, *words)
    assert made.exit_code == 1
    assert said in " ".join(made.output.split())
    assert not (folder / "out.cloak").exists()


def test_new_rows_name_their_exposures(folder: Path) -> None:
    """Without them each would have been counted in exposure 1."""
    assert release("people.csv", "--counts", "--exposure", "years").exit_code == 0
    again = ["people.csv", "--epsilon", "5", "-o", "both.cloak"]
    refused = CliRunner().invoke(app, ["extend", "out.cloak", *again])
    assert refused.exit_code == 1
    assert "--exposure" in refused.output
    refused = CliRunner().invoke(app, ["refine", "out.cloak", *again, "--exposure", "years"])
    assert "keep their exposures" in refused.output
    assert not (folder / "both.cloak").exists()
    made = CliRunner().invoke(app, ["extend", "out.cloak", *again, "--exposure", "years"])
    assert made.exit_code == 0, made.output
    years = pd.read_csv(folder / "people.csv")["years"]
    for each in (load(folder / "both.cloak").measurements[place].strategy for place in (0, -1)):
        np.testing.assert_array_equal(each.row_exposure, years)


def test_other_outputs_have_no_exposures() -> None:
    usual = ["--output", "visits", "--inputs", "age", "--bounds", "0", "40", "-o", "out.cloak"]
    assert (
        CliRunner().invoke(app, ["release", "people.csv", *usual, "--epsilon", "5"]).exit_code == 0
    )
    words = ["people.csv", "--epsilon", "5", "-o", "both.cloak", "--exposure", "years"]
    refused = CliRunner().invoke(app, ["extend", "out.cloak", *words])
    assert refused.exit_code == 1
    assert "is about other outputs" in refused.output
