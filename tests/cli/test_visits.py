"""`cloakgp refine`, `extend`, `combine` and `compare`: later visits from raw tables, counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cloakgp import DPGPRegressor, Release, refine
from cloakgp.cli import app
from cloakgp.data.tables import read_person_ids

SECRET = "777.125"
QUICK = ["--stages", "one", "--interval", "off", "--learn", "none", "--inducing", 5]
BUDGET = ["--epsilon", 1, "--delta", 1e-3]


def table(seed, rows=40):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": [f"p{number // 2}" for number in range(rows)],
            "job": rng.choice(["cook", "clerk"], rows),
            "age": rng.uniform(20, 80, rows).round(1),
            "pay": rng.uniform(100, 900, rows).round(3),
        }
    )
    frame.loc[5, "pay"] = float(SECRET)
    return frame


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(1).to_csv("people.csv", index=False)
    table(2).to_csv("others.csv", index=False)
    return tmp_path


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert SECRET not in result.output
    assert "unforeseen" not in result.output
    return result


def test_rows_of_a_further_table_that_are_left_out_are_counted_too():
    gaps = table(2)
    gaps.loc[[0, 1, 2], "pay"] = np.nan
    gaps.to_csv("others.csv", index=False)
    asked = ("--output", "pay", "--inputs", "age", "--bounds", 0, 1000, *BUDGET, *QUICK)
    done("release", "people.csv", *asked, "-o", "a.cloak")
    words = ("--missing-output", "drop", *BUDGET, "-o", "b.cloak")
    done("extend", "a.cloak", "others.csv", *words)
    assert Release.load("a.cloak").provenance.without_output == 0
    assert Release.load("b.cloak").provenance.without_output == 3
    assert "3 more rows have no private value" in " ".join(done("show", "b.cloak").stdout.split())


def done(*words):
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result


def first(*more, to="first.cloak"):
    words = ["--inputs", "job,age", "--output", "pay", "--bounds", 0, 1000, *BUDGET, *QUICK]
    return done("release", "people.csv", *words, "-o", to, *more)


def test_the_same_people_are_asked_again():
    first("--purpose", "a survey")
    told = done("refine", "first.cloak", "people.csv", *BUDGET, "-o", "second.cloak")
    assert "spends the same again" in told.output
    before, after = Release.load("first.cloak"), Release.load("second.cloak")
    assert len(after.measurements) == len(before.measurements) + 1
    assert after.guarantee.epsilon > before.guarantee.epsilon
    assert (after.provenance.refines, after.provenance.purpose) == (
        before.provenance.id,
        "a survey",
    )
    assert after.n_rows == before.n_rows


def test_other_rows_are_not_refined():
    first()
    refused = run("refine", "first.cloak", "others.csv", *BUDGET, "-o", "second.cloak")
    assert refused.exit_code == 1
    assert "other rows" in refused.output
    assert not Path("second.cloak").exists()


def test_new_people_are_added_with_their_raw_columns():
    first("--log", "--person", "id", "--bounds", 1, 1000)
    done("extend", "first.cloak", "others.csv", "--person", "id", *BUDGET, "-o", "both.cloak")
    both = Release.load("both.cloak")
    assert both.n_rows == 80
    assert both.transform is not None
    assert all(one.strategy.grouped for one in both.measurements)


def test_new_rows_of_a_release_for_persons_must_say_whose_they_are():
    first("--person", "id")
    refused = run("extend", "first.cloak", "others.csv", *BUDGET, "-o", "both.cloak")
    assert refused.exit_code == 1
    assert "--person, or say --by-rows" in refused.output
    assert not Path("both.cloak").exists()
    refused = run(
        *("extend", "first.cloak", "others.csv", *BUDGET, "-o", "both.cloak"),
        *("--person", "id", "--by-rows"),
    )
    assert refused.exit_code == 1
    assert "contradict" in refused.output
    done("extend", "first.cloak", "others.csv", *BUDGET, "-o", "both.cloak", "--by-rows")
    assert not Release.load("both.cloak").measurements[-1].strategy.grouped
    # The same rows keep the groups that they have.
    done("refine", "first.cloak", "people.csv", *BUDGET, "-o", "again.cloak")
    assert all(one.strategy.grouped for one in Release.load("again.cloak").measurements)
    refused = run("refine", "first.cloak", "people.csv", *BUDGET, "-o", "2.cloak", "--by-rows")
    assert refused.exit_code == 1
    assert "keep whose they are" in refused.output


@pytest.mark.parametrize("command", ["refine", "extend"])
def test_rows_that_the_release_does_not_keep(command):
    pd.concat([table(seed) for seed in range(130)], ignore_index=True).to_csv(
        "people.csv", index=False
    )
    first()
    done(command, "first.cloak", "people.csv", *BUDGET, "-o", "second.cloak")
    assert len(Release.load("second.cloak").measurements) == 2


def test_every_visit_is_counted():
    done("ledger", "init", "--ledger", "people.db")
    done("ledger", "limit", "staff", "--epsilon", 3, "--delta", 1e-2, "--ledger", "people.db")
    counted = ["--ledger", "people.db", "--account", "staff"]
    first(*counted)
    done("refine", "first.cloak", "people.csv", *BUDGET, "-o", "second.cloak", *counted)
    done("extend", "first.cloak", "others.csv", *BUDGET, "-o", "third.cloak", *counted)
    assert "charges: 3" in done("ledger", "show", "--ledger", "people.db").output
    big = ["--epsilon", 5, "--delta", 1e-3]
    refused = run("refine", "first.cloak", "people.csv", *big, "-o", "fourth.cloak", *counted)
    assert refused.exit_code == 1
    assert not Path("fourth.cloak").exists()


def test_releases_are_combined_and_compared():
    first("--noise", "gaussian")
    first("--noise", "gaussian", to="again.cloak")
    told = done("combine", "first.cloak", "again.cloak", "-o", "both.cloak")
    both = Release.load("both.cloak")
    assert len(both.measurements) == 2
    assert str(both.guarantee) in told.output
    said = done("compare", "first.cloak", "both.cloak").output
    assert "typical sd" in said
    assert "places" in said
    table(9, rows=6).drop(columns="pay").to_csv("new.csv", index=False)
    assert "6 places" in done("compare", "first.cloak", "both.cloak", "--at", "new.csv").output


def test_what_cannot_be_combined_is_refused():
    first()
    assert "two releases" in run("combine", "first.cloak", "-o", "x.cloak").output
    first("--log", "--bounds", 1, 1000, to="log.cloak")
    assert run("combine", "first.cloak", "log.cloak", "-o", "x.cloak").exit_code == 1
    assert run("compare", "first.cloak", "log.cloak").exit_code == 1


@pytest.mark.usefixtures("noise_that_repeats")
def test_long_tails_from_the_command_line():
    first("--log", "--bounds", 1, 1000)
    table(9, rows=6).drop(columns="pay").to_csv("new.csv", index=False)
    done("predict", "first.cloak", "--at", "new.csv", "-o", "median.csv")
    done("predict", "first.cloak", "--at", "new.csv", "--estimate", "mean", "-o", "mean.csv")
    median, mean = pd.read_csv("median.csv"), pd.read_csv("mean.csv")
    # Of outputs that all are within the bounds, which the upper half may reach.
    assert mean["mean"].between(1, 1000).all()
    far_below = median["median"] < 100
    assert (mean["mean"] >= median["median"])[far_below].all()
    assert median["lower"].between(1, 1000).all()
    assert "the logarithm of pay" in done("show", "first.cloak", "--all").output
    done("plot", "first.cloak", "--vary", "age", "-o", "curve.png")
    refused = run("release", "people.csv", "--output", "pay", "--classes", "1,2", "--log", *BUDGET)
    assert refused.exit_code != 0


def of_classes(*more):
    words = ["--inputs", "age", "--output", "job", "--classes", "clerk,cook", *BUDGET]
    done("release", "people.csv", *words, "-o", "first.cloak", "--learn", "none", *more)


def test_classes_are_asked_again_and_of_new_people():
    of_classes()
    done("refine", "first.cloak", "people.csv", *BUDGET, "-o", "second.cloak")
    done("extend", "second.cloak", "others.csv", *BUDGET, "-o", "both.cloak")
    both = Release.load("both.cloak")
    assert [one.strategy.table for one in both.measurements] == [0, 0, 1]
    assert both.n_rows == 80
    wrong = pd.read_csv("people.csv").replace({"job": {"cook": SECRET}})
    wrong.to_csv("wrong.csv", index=False)
    refused = run("refine", "first.cloak", "wrong.csv", *BUDGET, "-o", "x.cloak")
    assert refused.exit_code == 1
    assert "Declare every class" in refused.output
    assert not Path("x.cloak").exists()


def test_classes_of_rows_that_are_not_kept_say_why_they_are_not_asked_again():
    pd.concat([table(seed) for seed in range(150)], ignore_index=True).to_csv(
        "people.csv", index=False
    )
    of_classes("--person", "id", "--inducing", 5)
    assert Release.load("first.cloak").n_rows == 6000
    refused = run("refine", "first.cloak", "people.csv", *BUDGET, "-o", "x.cloak")
    assert refused.exit_code == 1
    assert "linearised at the latent" in refused.output


def test_other_people_pay_for_their_own_table():
    first()
    ask = ["extend", "first.cloak", "others.csv", *BUDGET]
    summed = done(*ask, "-o", "both.cloak").output
    apart = done(*ask, "--people", "disjoint", "-o", "apart.cloak").output
    assert Release.load("apart.cloak").cohorts == ((0,), (1,))
    assert "all visits together: ε = 1, with no δ" in " ".join(apart.split()), apart
    assert "all visits together: ε = 1," not in " ".join(summed.split())
    refused = run("refine", "first.cloak", "people.csv", *BUDGET, "--people", "disjoint", "-o", "x")
    assert refused.exit_code != 0
    assert "--people, --id and --earlier are about new rows" in refused.output


def test_ids_of_people_are_compared_and_not_kept():
    first("--person", "id")
    ask = ["extend", "first.cloak", "others.csv", *BUDGET, "--person", "id", "--id", "id"]
    refused = run(*ask, "--earlier", "people.csv", "--people", "disjoint", "-o", "x.cloak")
    assert refused.exit_code != 0
    assert "20 people are in two tables" in " ".join(refused.output.split())
    assert not Path("x.cloak").exists()
    done(*ask, "--earlier", "people.csv", "-o", "both.cloak")
    assert Release.load("both.cloak").cohorts == ()
    others = table(3)
    others["id"] = [f"q{number // 2}" for number in range(len(others))]
    others.to_csv("others.csv", index=False)
    done(*ask, "--earlier", "people.csv", "--people", "disjoint", "-o", "apart.cloak")
    assert Release.load("apart.cloak").cohorts == ((0,), (1,))
    assert b"q17" not in Path("apart.cloak").read_bytes()
    alone = run(*ask, "-o", "y.cloak")
    assert "--id and --earlier go together" in " ".join(alone.output.split())


def test_a_visit_is_planned_without_asking():
    """No file is written, no ledger has a charge, and what is said is what the visit then does."""
    done("ledger", "init", "--ledger", "people.db")
    done("ledger", "limit", "staff", "--epsilon", 3, "--delta", 1e-2, "--ledger", "people.db")
    counted = ["--ledger", "people.db", "--account", "staff"]
    first("--noise", "laplace", *counted)
    visit = ["others.csv", "--epsilon", 1, "--noise", "laplace"]
    told = " ".join(done("extend", "first.cloak", *visit, "--plan", *counted).output.split())
    assert "Nothing was asked, and nothing is spent." in told
    assert "charges: 1" in done("ledger", "show", "--ledger", "people.db").output
    refused = run("extend", "first.cloak", *visit, *counted)
    assert refused.exit_code == 1
    assert "-o, or say --plan" in refused.output
    done("extend", "first.cloak", *visit, "-o", "both.cloak", *counted)
    both = Release.load("both.cloak")
    assert both.guarantee.pure_epsilon == pytest.approx(2)
    assert "at most ε = 2, with no δ, for a person who is in all tables" in told
    again = done("refine", "first.cloak", "people.csv", *visit[1:], "--plan").output
    assert "40, those that were asked before" in " ".join(again.split())
    apart = done("extend", "first.cloak", *visit, "--people", "disjoint", "--plan").output
    assert "as nobody is in both" in " ".join(apart.split())


def questions(path):
    return [type(one.question).__name__ for one in Release.load(path).measurements]


@pytest.mark.parametrize("alike", [True, False])
def test_a_visit_without_a_band_asks_as_python_does(alike):
    """Of values that are 0 or 1 nothing is clipped to bands, unless these are asked for."""
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 80, 600)
    curve = 0.5 + 0.4 * np.sin(age / 10)
    pay = (rng.random(600) < curve) * 1.0 if alike else curve + rng.normal(0, 0.02, 600)
    pd.DataFrame({"age": age, "pay": pay}).to_csv("people.csv", index=False)
    asked = ("--output", "pay", "--inputs", "age", "--bounds", 0, 1, "--inducing", 10)
    done("release", "people.csv", *asked, "--epsilon", 1, "-o", "a.cloak")
    first = Release.load("a.cloak")
    assert "CountQuestion" in questions("a.cloak")
    assert ("Bands" in questions("a.cloak")) != alike
    budget = ("--epsilon", 1)
    expected = "OutputBounds" if alike else "Bands"
    python = refine(first, pay, epsilon=1.0)
    assert type(python.measurements[-1].question).__name__ == expected
    for command, table_ in [("refine", "people.csv"), ("extend", "people.csv")]:
        done(command, "a.cloak", table_, *budget, "-o", f"{command}.cloak")
        assert questions(f"{command}.cloak")[-1] == expected
    for band, question in [("auto", expected), ("2", "Bands"), ("0", "OutputBounds")]:
        done("refine", "a.cloak", "people.csv", *budget, "--band", band, "-o", f"{band}.cloak")
        assert questions(f"{band}.cloak")[-1] == question
    told = done("show", "refine.cloak").output
    assert ("no values clipped to bands" in " ".join(told.split())) == alike
    plans = [
        " ".join(done("refine", "a.cloak", "people.csv", *budget, *band, "--plan").output.split())
        for band in [(), ("--band", "0"), ("--band", "1")]
    ]
    assert plans[0] == plans[1 if alike else 2]
    assert plans[1] != plans[2]


@pytest.mark.parametrize("band", ["-1", "inf", "nan", "wide"])
def test_what_is_no_band_is_named(band):
    first()
    words = ("refine", "first.cloak", "people.csv", *BUDGET, "--band", band, "-o", "second.cloak")
    told = run(*words)
    assert told.exit_code == 1
    assert f"--band must be auto, 0 or a number of sds, got {band}" in " ".join(told.output.split())


def test_one_number_is_one_choice_however_it_is_written():
    done("ledger", "init", "--ledger", "people.db")
    done("ledger", "limit", "staff", "--epsilon", 9, "--delta", 1e-2, "--ledger", "people.db")
    counted = ["--ledger", "people.db", "--account", "staff"]
    first("--noise", "laplace", *counted)
    for band in ("2", "2.0"):
        words = ("refine", "first.cloak", "people.csv", "--epsilon", 1, "--band", band)
        done(*words, "-o", f"{band}.cloak", "--key", "again", *counted)
    assert "charges: 2" in done("ledger", "show", "--ledger", "people.db").output


def test_ids_of_new_rows_are_of_the_read_that_is_asked(monkeypatch):
    """A database that is asked again may answer with other people."""
    first("--person", "id")
    read = []

    def ids(path, **kwargs):
        read.append(Path(path).name)
        return read_person_ids(path, **kwargs)

    monkeypatch.setattr("cloakgp.data.tables.read_person_ids", ids)
    ask = ["extend", "first.cloak", "others.csv", *BUDGET, "--person", "id", "--id", "id"]
    done(*ask, "--earlier", "people.csv", "-o", "both.cloak")
    assert read == ["people.csv"]
    two = run(*ask[:-1], "job", "--earlier", "people.csv", "-o", "x.cloak")
    assert "--id and --person name one column" in " ".join(two.output.split())


def test_tables_beside_a_release_of_plain_numbers_are_read_as_by_release():
    """A column with commas and one with points decided how private numbers were read."""
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"age": rng.uniform(20, 80, 40), "dose": rng.uniform(1, 9, 40)})
    model = DPGPRegressor(bounds=(0, 1000), epsilon=1.0, stages=None, interval=False, learn=None)
    model.fit(X, rng.uniform(100, 900, 40)).release_.save("plain.cloak")
    text = table(3).assign(dose=[f"{1 + row % 8}.5" for row in range(40)])
    text["age"] = text["age"].astype(str).str.replace(".", ",")
    text.assign(y=text.pop("pay")).to_csv("text.csv", index=False)
    ask = ["extend", "plain.cloak", "text.csv", *BUDGET]
    for words in (["-o", "more.cloak"], ["--plan"]):
        refused = run(*ask, *words)
        assert refused.exit_code == 1
        assert "has decimal commas and 'dose' decimal points" in " ".join(refused.output.split())
    assert not Path("more.cloak").exists()
    text.assign(dose=text["dose"].str.replace(".", ",")).to_csv("text.csv", index=False)
    told = run(*ask, "--plan")
    assert told.exit_code == 0, told.output
    said = " ".join(told.stderr.split())
    assert "age: read with decimal commas" in said
    assert "y: text in it is read with decimal commas" in said


def test_exposures_of_new_rows_are_read_as_those_of_the_release():
    people = table(1).assign(pay=1)
    for name, days in (("people", ["4.706", "956,5"] * 20), ("others", ["4.706"] * 40)):
        people.assign(age=[f"{row},5" for row in range(40)], days=days).to_csv(
            f"{name}.csv", index=False
        )
    counted = ["--output", "pay", "--inputs", "age", "--bounds", 0, 9, "--counts"]
    made = run("release", "people.csv", *counted, "--exposure", "days", *BUDGET, "-o", "a.cloak")
    assert made.exit_code == 0, made.output
    more = run("extend", "a.cloak", "others.csv", "--exposure", "days", *BUDGET, "-o", "b.cloak")
    assert more.exit_code == 0, more.output
    known = Release.load("b.cloak")
    assert known.measurements[-1].strategy.row_exposure.tolist() == [4706.0] * 40
    assert known.exposure.thousands == "."
    for wrong in ("pay", "age"):
        refused = run(
            "extend", "a.cloak", "others.csv", "--exposure", wrong, *BUDGET, "-o", "c.cloak"
        )
        assert refused.exit_code == 1
        assert not Path("c.cloak").exists()
