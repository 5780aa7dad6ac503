"""`cloakgp release-...`: several private columns, private inputs, grid search."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cloakgp import MultiOutputRelease, Release, StatisticsRelease
from cloakgp.cli import app
from cloakgp.columns import Category, Number, Schema, schema_to_text
from cloakgp.data.tables import read_private_columns

SECRET = "777.125"
BUDGET = ["--epsilon", 1, "--delta", 1e-3]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    rows = 40
    frame = pd.DataFrame(
        {
            "id": [f"p{number // 2}" for number in range(rows)],
            "job": rng.choice(["cook", "clerk"], rows),
            "age": rng.uniform(20, 80, rows).round(1),
            "pay": rng.uniform(100, 900, rows).round(3),
            "rent": rng.uniform(10, 90, rows).round(3),
        }
    )
    frame.loc[5, "pay"] = float(SECRET)
    frame.to_csv("people.csv", index=False)
    frame[["id", "job", "age"]].head(7).to_csv("new.csv", index=False)
    return tmp_path


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert SECRET not in result.output
    assert "unforeseen" not in result.output
    return result


def done(*words):
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result


def test_several_private_columns():
    words = ["--output", "pay=0:1000", "--output", "rent=0:100", "--inputs", "job,age", *BUDGET]
    words += ["--inducing", 4, "--person", "id", "--by", "A. Custodian", "--licence", "CC0"]
    done("release-several", "people.csv", *words, "-o", "both.cloak")
    release = MultiOutputRelease.load("both.cloak")
    assert release.names == ("pay", "rent")
    assert release.schema is not None
    assert (release.provenance.by, release.provenance.licence) == ("A. Custodian", "CC0")
    done("predict", "both.cloak", "--at", "new.csv", "-o", "out.csv")
    told = pd.read_csv("out.csv")
    assert {"job", "pay", "pay_sd", "pay_lower", "rent", "rent_upper"} <= set(told)
    assert told["rent"].between(0, 100).all()
    said = done("show", "both.cloak").output.splitlines()
    assert [line.split()[0] for line in said if "declared to lie" in line] == ["pay", "rent"]
    done("release-several", "people.csv", *words, "-o", "again.cloak")
    done("combine", "both.cloak", "again.cloak", "-o", "all.cloak")
    together = MultiOutputRelease.load("all.cloak").entries.measurements
    assert len(together) == 2 * len(release.entries.measurements)


@pytest.fixture
def shuffled(folder):
    """A query of a database that gives the same rows in another order whenever it is asked."""
    rng = np.random.default_rng(2)
    age = rng.uniform(20, 80, 60).round(2)
    people = [f"p{number // 3}" for number in range(60)]
    frame = pd.DataFrame({"id": people, "age": age, "pay": 10 * age, "rent": age})
    with closing(sqlite3.connect(folder / "people.db")) as database:
        frame.to_sql("people", database, index=False)
    return "people.db", "--sql", "SELECT * FROM people ORDER BY random()"


def test_all_outputs_of_a_row_are_of_one_read_of_a_database(shuffled, monkeypatch):
    seen = []

    def fit(_, X, y, *, groups=None):
        seen.append((X, y, groups))
        raise ValueError("seen")

    monkeypatch.setattr("cloakgp.estimators.multioutput.DPGPMultiOutputRegressor.fit", fit)
    words = ["--output", "pay=0:1000", "--output", "rent=0:100", "--inputs", "age", *BUDGET]
    run("release-several", *shuffled, *words, "--person", "id", "-o", "both.cloak")
    [(X, y, groups)] = seen
    age = X["age"].numbers().values
    assert (y["pay"].to_numpy(), y["rent"].to_numpy()) == (
        pytest.approx(10 * age),
        pytest.approx(age),
    )
    with closing(sqlite3.connect("people.db")) as database:
        owners = dict(database.execute("SELECT age, id FROM people"))
    assert list(groups) == [owners[each] for each in age]


def test_intervals_of_several_columns_are_looked_for_unless_told_otherwise():
    words = ["--output", "pay=0:100000", "--output", "rent=0:100", "--inputs", "age"]
    words += ["--epsilon", 20, "--delta", 1e-3, "--inducing", 4, "-o", "both.cloak", "--overwrite"]
    # How many rounds there are depends on the noise, but for the first one of either output.
    for interval, rounds in [("auto", 2), ("off", 0)]:
        done("release-several", "people.csv", *words, "--interval", interval)
        release = MultiOutputRelease.load("both.cloak")
        counts = [release.counts_of(one) for one in release.entries.measurements]
        assert len([one for one in counts if one is not None]) >= rounds
        assert (release.intervals is not None) == (interval == "auto")
    refused = run("release-several", "people.csv", *words, "--interval", "on")
    assert refused.exit_code == 1
    assert "--interval" in refused.output


def test_private_inputs():
    words = ["--input", "age=0:100", "--output", "pay=0:1000", *BUDGET, "--purpose", "a survey"]
    done("release-private-inputs", "people.csv", *words, "-o", "private.cloak")
    release = StatisticsRelease.load("private.cloak")
    assert (release.output_name, release.provenance.purpose) == ("pay", "a survey")
    done("predict", "private.cloak", "--at", "new.csv", "-o", "out.csv")
    assert pd.read_csv("out.csv")["mean"].between(0, 1000).all()
    done("plot", "private.cloak", "-o", "private.png")
    assert Path("private.png").stat().st_size > 1000
    refused = run("plot", "private.cloak", "--kind", "calibration", "-o", "counts.png")
    assert "not calibrated" in " ".join(refused.output.split())


def test_private_inputs_and_private_classes():
    words = ["--input", "age=0:100", "--input", "pay=0:1000", "--output", "job", *BUDGET]
    asked = ["release-private-inputs", "people.csv", *words]
    said = done(*asked, "--classes", "clerk,cook,guard", "-o", "private.cloak").output
    assert "probabilities of job" in said
    assert StatisticsRelease.load("private.cloak").classes.labels == ("clerk", "cook", "guard")
    pd.DataFrame({"age": [30.0, 50.0], "pay": [200.0, 400.0]}).to_csv("at.csv", index=False)
    done("predict", "private.cloak", "--at", "at.csv", "-o", "out.csv")
    shares = pd.read_csv("out.csv")[["p_clerk", "p_cook", "p_guard"]]
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=2e-4)
    assert "clerk, cook and guard" in " ".join(done("show", "private.cloak").output.split())
    refused = run(*asked, "--classes", "clerk,guard", "-o", "x.cloak")
    assert refused.exit_code == 1
    assert "not among the declared" in " ".join(refused.output.split())
    wrong = run("predict", "private.cloak", "--at", "at.csv", "--new-output", "-o", "y.csv")
    assert "probabilities" in " ".join(wrong.output.split())
    # A range is needed where no classes are named.
    assert run(*asked, "-o", "x.cloak").exit_code == 1


def test_a_plan_of_private_inputs_reads_no_table():
    words = ["--input", "age=0:100", "--output", "pay=0:1000", "--rows", 500, "--delta", 1e-5]
    said = " ".join(done("plan-private-inputs", *words, "--epsilon", 1).output.split())
    assert "nothing spent" in said
    assert "expected error" in said
    both = [*words, "--epsilon", 1, "--epsilon", 3, "--json"]
    told = json.loads(done("plan-private-inputs", *both).output)
    assert [each["epsilon"] for each in told["forecasts"]] == [1.0, 3.0]
    words = ["--input", "age=0:100", "--output", "job", "--classes", "clerk,cook", *BUDGET]
    assert "probabilities" in done("plan-private-inputs", *words, "--rows", 40).output
    twice = ["--input", "age=0:100", "--output", "age=0:9", "--rows", 40, *BUDGET]
    assert run("plan-private-inputs", *twice).exit_code == 1


def test_private_inputs_of_a_schema():
    schema = Schema(
        (
            Number("age", ranges=((0.0, 100.0),)),
            Category("job", levels=("clerk", "cook", "guard"), other=False),
        )
    )
    Path("private.schema.json").write_text(schema_to_text(schema), encoding="utf-8")
    words = ["--schema", "private.schema.json", "--output", "pay=0:1000", *BUDGET]
    told = json.loads(done("plan-private-inputs", *words, "--rows", 500, "--json").output)
    assert told["inputs"] == 2
    assert told["questions"][0]["numbers"] == 8 + 3 + 16
    done("release-private-inputs", "people.csv", *words, "-o", "private.cloak")
    release = StatisticsRelease.load("private.cloak")
    assert release.schema.columns == schema.columns
    done("predict", "private.cloak", "--at", "new.csv", "-o", "out.csv", "--interval", 0.8)
    found = pd.read_csv("out.csv")
    assert found["mean"].between(0, 1000).all()
    assert (found.lo_80 <= found.hi_80).all()
    inputs = json.loads(done("show", "private.cloak", "--json").output)["inputs"]
    assert [each["kind"] for each in inputs] == ["number", "category"]
    assert inputs[1]["levels"] == ["clerk", "cook", "guard"]
    done("plot", "private.cloak", "-o", "private.png")
    done("page", "private.cloak", "-o", "private.html")
    assert "Cloak" in Path("private.html").read_text(encoding="utf-8")
    public = ["--output", "pay", "--bounds", 0, 1000, "--inputs", "age,job", *BUDGET]
    done("release", "people.csv", *public, "-o", "public.cloak")
    said = done("compare", "private.cloak", "public.cloak", "--at", "new.csv").output
    assert "7 places" in " ".join(said.split())
    assert run("compare", "private.cloak", "public.cloak").exit_code == 1


def test_a_schema_that_leaves_something_open_or_says_it_twice_is_refused():
    asked = ["release-private-inputs", "people.csv", "--output", "pay=0:1000", *BUDGET]
    open_one = schema_to_text(Schema((Category("job", missing="refuse"),)))
    Path("open.schema.json").write_text(open_one, encoding="utf-8")
    for words, complaint in (
        (["--schema", "open.schema.json"], "needs its levels"),
        (["--schema", "open.schema.json", "--input", "age=0:100"], "or by a --schema"),
        ([], "name the private inputs"),
    ):
        refused = run(*asked, *words, "-o", "open.cloak")
        assert refused.exit_code == 1
        assert complaint in " ".join(refused.output.split())
        assert not Path("open.cloak").exists()


def test_private_inputs_that_are_damaged_show_nothing():
    text = Path("people.csv").read_text(encoding="utf-8")
    age = text.splitlines()[3].split(",")[2]
    Path("people.csv").write_text(text.replace(f",{age},", ",secret-4711,", 1), encoding="utf-8")
    words = ["--input", "age=0:100", "--output", "pay=0:1000", *BUDGET]
    refused = run("release-private-inputs", "people.csv", *words, "-o", "private.cloak")
    assert refused.exit_code == 1
    assert "4711" not in refused.output
    assert "row 3" not in refused.output


def test_a_private_choice_of_hyperparameters():
    words = ["--output", "pay=0:1000", "--inputs", "job,age", *BUDGET, "--lengthscale", "0.5,2"]
    words += ["--selection-epsilon", 0.5, "--folds", 2, "--noise-sd", "100,200"]
    done("release-chosen", "people.csv", *words, "-o", "chosen.cloak")
    release = Release.load("chosen.cloak")
    assert release.choice is not None
    assert release.schema is not None
    assert release.guarantee.epsilon > 1.4
    done("predict", "chosen.cloak", "--at", "new.csv", "-o", "out.csv")


def test_the_whole_function_is_a_criterion():
    words = ["--output", "pay", "--bounds", 0, 1000, "--inputs", "age", *BUDGET]
    done("release", "people.csv", *words, "--criterion", "functional", "-o", "function.cloak")
    assert np.isfinite(Release.load("function.cloak").function()([[30.0]])).all()


@pytest.mark.parametrize(
    "words",
    [
        ["release-several", "--output", "pay=0:1000", "--output", "rent=0:100", "--inputs", "age"],
        ["release-private-inputs", "--input", "age=0:100", "--output", "pay=0:1000"],
    ],
    ids=lambda words: words[0],
)
def test_all_kinds_are_counted(words):
    unit = "person" if words[0] == "release-several" else "replace"
    done("ledger", "init", "--ledger", "people.db")
    limit = ["--epsilon", 1.1, "--delta", 1e-3, "--unit", unit, "--ledger", "people.db"]
    done("ledger", "limit", "staff", *limit)
    more = [*BUDGET, "--ledger", "people.db", "--account", "staff"]
    more += ["--person", "id", "--inducing", 4] if unit == "person" else []
    done(words[0], "people.csv", *words[1:], *more, "-o", "one.cloak")
    assert "charges: 1" in done("ledger", "show", "--ledger", "people.db").output
    assert run(words[0], "people.csv", *words[1:], *more, "-o", "two.cloak").exit_code == 1


@pytest.mark.parametrize("given", ["pay", "pay=1", "pay=9:1", "=0:1", "pay=a:b"])
def test_ranges_that_are_none_are_refused(given):
    words = ["--output", given, "--inputs", "age", *BUDGET, "-o", "x.cloak"]
    refused = run("release-several", "people.csv", *words)
    assert refused.exit_code == 1
    assert "height=100:220" in refused.output


def test_where_whole_rows_are_private_advice_about_decimal_commas_holds():
    people = pd.read_csv("people.csv", dtype=str)
    for name in ("age", "pay"):
        people[name] = people[name].str.replace(".", ",")
    people.to_csv("german.csv", index=False, sep=";")
    ask = ["release-private-inputs", "german.csv", "--output", "pay=0:1000", *BUDGET]
    plain = schema_to_text(Schema((Number("age", ranges=((0.0, 100.0),)),)))
    Path("plain.schema.json").write_text(plain)
    told = run(*ask, "--schema", "plain.schema.json", "-o", "rows.cloak")
    assert told.exit_code == 1
    alone = run(*ask, "--input", "age=0:100", "-o", "rows.cloak")
    assert '"decimalChar": ","' in alone.output
    assert "an input of numbers in a schema (--schema;" in " ".join(alone.output.split())
    Path("german.json").write_text(plain.replace('"fill"', '"decimalChar": ",", "fill"'))
    done(*ask, "--schema", "german.json", "-o", "rows.cloak")
    schema = Schema((Number("age", decimal=",", thousands="."),))
    Path("pay.csv").write_text("age;pay\n1.000,5;4.677\n2,5;1,5\n")
    assert read_private_columns("pay.csv", schema=schema, output="pay")[1].tolist() == [4677, 1.5]
