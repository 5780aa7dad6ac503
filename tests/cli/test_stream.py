"""`cloakgp stream` as users type it: plans, runs again and again, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cloakgp import Release
from cloakgp.cli import app
from cloakgp.columns import Number, Schema, schema_to_text
from cloakgp.ledger import Ledger
from cloakgp.models.kernels.forgetting import ForgettingKernel


def write(number, *, rows=40, **columns):
    rng = np.random.default_rng(number)
    days = pd.Timestamp(2026, number, 1) + pd.to_timedelta(rng.integers(0, 28, rows), unit="D")
    age = rng.integers(20, 80, size=rows)
    table = pd.DataFrame(
        {
            "day": days.strftime("%Y-%m-%d"),
            "age": age,
            "person": [f"P{number}-{row // 2}" for row in range(rows)],
            "height": (100.0 + age + rng.normal(0, 5, size=rows)).round(1),
        }
    )
    table.assign(**columns).to_csv(f"arrivals/{number:02d}.csv", index=False)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arrivals").mkdir()
    for number in (1, 2, 3):
        write(number)
    return tmp_path


WORDS = {
    "--output": "height",
    "--inputs": "age",
    "--time": "day",
    "--origin": "2026-01-01",
    "--length": "month",
    "--horizon": "12",
    "--people": "disjoint",
    "--epsilon": "1",
    "-o": "stream",
}


def run(*more, source="arrivals", **changed):
    words = WORDS | {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
    listed = [word for pair in words.items() for word in pair if pair[1] is not None]
    bounds = ["--bounds", "40", "240"] if "--classes" not in more else []
    return CliRunner().invoke(app, ["stream", source, *listed, *bounds, *more])


def done(*more, **changed):
    found = run(*more, **changed)
    assert found.exit_code == 0, found.output
    return found.output


def test_a_plan_spends_nothing_and_says_what_all_will(folder):
    write(1, height="secret")
    said = done("--plan")
    assert "12 periods, ε = 1, with no δ each" in said
    assert "each row spends" in said
    assert "nobody is" in said
    assert "after period 1" in said
    assert "Nothing of the private column was read, and nothing spent." in said
    assert not (folder / "stream").exists()
    said = " ".join(done("--plan", people="overlapping").split())
    assert "ε = 12, with no δ in all, for one who is in all of 12 periods" in said


def test_run_after_run(folder):
    said = done()
    assert "Wrote stream/period-0001.cloak: period 1, 2026-01-01 to 2026-02-01: 40 rows." in said
    assert "Wrote stream/period-0002.cloak" in said
    assert "period 3 closes at 2026-04-01" in said
    assert "all releases together: ε = 1, with no δ" in said
    assert "most that was drawn about one row: ε = 1, with no δ" in said
    assert "Nothing was asked: no period has closed." in done()
    write(4)
    assert "Wrote stream/period-0003.cloak" in done()
    release = Release.load("stream/period-0003.cloak")
    assert release.guarantee.pure_epsilon == pytest.approx(1.0)
    assert len({one.strategy.table for one in release.measurements}) == 3
    pd.DataFrame({"age": [30, 60]}).to_csv("new.csv", index=False)
    words = ["predict", "stream/period-0003.cloak", "--at", "new.csv", "-o", "out.csv"]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert sorted(path.name for path in (folder / "stream").glob("*.cloak")) == [
        f"period-000{number}.cloak" for number in (1, 2, 3)
    ]


def test_options_reach_the_stream():
    said = done(
        forgetting="60",
        lasting="0.2",
        lateness="1.5",
        person="person",
        purpose="figure 3",
        now="2026-03-02 13:00",
    )
    assert "period 2, 2026-02-01 to 2026-03-01: " in said
    assert "period 3 closes at 2026-04-02 12:00:00" in said
    assert "about one person" in said
    release = Release.load("stream/period-0002.cloak")
    kernel = release.fitted_prior.kernel
    assert isinstance(kernel, ForgettingKernel)
    assert (kernel.length, kernel.lasting) == (60.0, 0.2)
    assert release.provenance.purpose == "figure 3"
    assert release.measurements[0].strategy.grouped
    shown = CliRunner().invoke(app, ["show", "stream/period-0002.cloak"]).output
    assert "drifts with day" in " ".join(shown.split())


def test_a_ledger_counts_every_period(folder, monkeypatch):
    Ledger.create(folder / "people.db")
    monkeypatch.setenv("CLOAKGP_LEDGER", "people.db")
    found = run()
    assert found.exit_code == 1
    assert "name the account" in found.output
    done(account="people of month {period}")
    standings = Ledger("people.db").standings()
    assert [each.name for each in standings] == ["people of month 1", "people of month 2"]
    for each in standings:
        assert each.spent.epsilon_at(0.0) == pytest.approx(1.0, rel=1e-4)
    assert Ledger("people.db").verify().findings == ()
    monkeypatch.delenv("CLOAKGP_LEDGER")
    write(4)
    found = run()
    assert found.exit_code == 1
    assert "name these again" in " ".join(found.output.split())


def test_an_account_for_each_period_is_for_disjoint_people(folder, monkeypatch):
    Ledger.create(folder / "people.db")
    monkeypatch.setenv("CLOAKGP_LEDGER", "people.db")
    found = run(account="people of month {period}", people=None)
    assert found.exit_code == 1
    assert "would count a part of what is drawn" in " ".join(found.output.split())
    # Nor is it advised.
    assert "With --people disjoint" in " ".join(run().output.split())
    assert not (folder / "stream").exists()


def test_a_schema_with_the_private_column_is_refused_before_a_plan(folder):
    schema = Schema((Number("age"), Number("height")))
    (folder / "all.schema.json").write_text(schema_to_text(schema))
    found = run("--plan", inputs=None, schema="all.schema.json")
    assert found.exit_code == 1
    assert "column 'height' is named as input and as output" in " ".join(found.output.split())


def test_late_and_repeated_rows_are_told():
    rows = pd.read_csv("arrivals/01.csv").iloc[:3]
    rows.to_csv("arrivals/01b.csv", index=False)
    said = done(person="person", horizon="2")
    assert "40 rows" in said
    assert "repeated ones replaced" in said
    write(4)
    rows.to_csv("arrivals/05.csv", index=False)
    found = run(person="person", horizon="2")
    assert found.exit_code == 1
    assert "the horizon of 2 periods is exhausted" in found.output
    said = done(person="person", horizon="4", o=None, to="other")
    assert "rows that came too late, and are left out: 3" in said


def test_a_period_whose_rows_all_came_too_late_is_told_as_that(folder):
    late = (folder / "arrivals" / "01.csv").rename(folder / "arrivals" / "09.csv")
    write(4)
    done = run()
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert (
        "Nothing asked of period 1, 2026-01-01 to 2026-02-01: 40 rows, all of them too late."
        in said
    )
    assert "too few" not in said
    late.unlink()
    # Of a period of which no rows came, nothing is said of late ones.
    (folder / "arrivals" / "04.csv").unlink()
    done = run("-o", "other")
    said = " ".join(done.output.split())
    assert "Nothing asked of period 1, 2026-01-01 to 2026-02-01: 0 rows: too few." in said


def test_a_wrong_time_is_refused_until_the_clock_is_given(folder):
    path = folder / "arrivals" / "02.csv"
    right = path.read_text()
    path.write_text(right.replace("2026-02-", "2062-02-", 1))
    done = run()
    assert done.exit_code == 1
    said = " ".join(done.output.split())
    assert "02.csv: its latest time is 2062-02-" in said
    assert "whole periods of this stream, or after its last one, would pass without a row" in said
    assert "--now" in said
    done = run(now="2026-03-05")
    assert done.exit_code == 0, done.output
    assert done.output.count("Wrote") == 2


def test_classes_and_databases():
    import sqlite3

    table = pd.concat([pd.read_csv(f"arrivals/0{n}.csv") for n in (1, 2)])
    with sqlite3.connect("people.sqlite") as database:
        table.assign(ill=np.where(table["age"] > 50, "yes", "no")).to_sql("visits", database)
    said = done(
        "--classes",
        "no,yes",
        source="people.sqlite",
        output="ill",
        sql="SELECT day, age, ill FROM visits",
        stages=None,
    )
    assert "Wrote stream/period-0001.cloak" in said
    assert Release.load("stream/period-0001.cloak").classes == ("no", "yes")


@pytest.mark.parametrize(
    ("more", "changed", "advice"),
    [
        ((), {"length": "week"}, "--length"),
        ((), {"length": "1,2"}, "--length"),
        ((), {"people": "some"}, "--people"),
        ((), {"people": None, "horizon": "0"}, "horizon"),
        ((), {"origin": "soon"}, "origin must be a date"),
        ((), {"time": "when"}, "when"),
        ((), {"inputs": None}, "inputs"),
        ((), {"lengthscale": "3"}, "--lengthscale has no meaning"),
        ((), {"queries": "new.csv"}, "--queries has no meaning"),
        ((), {"account": "people"}, "--account, --key and --declared-public go with --ledger"),
        ((), {"source": "nowhere"}, "there is no folder nowhere"),
        ((), {"sql": "SELECT 1"}, "a query goes with"),
        ((), {"missing_output": "drop"}, "public columns"),
        (("--classes", "no,yes"), {"transform": "log"}, "--transform goes with --bounds"),
    ],
)
def test_what_makes_no_sense_fails_with_advice(more, changed, advice, folder):
    found = run(*more, **changed)
    assert found.exit_code == 1
    assert advice in found.output
    assert not list(folder.glob("stream/*.cloak"))


def test_another_declaration_and_bad_cells_are_refused_without_a_value():
    done()
    found = run(epsilon="2")
    assert found.exit_code == 1
    assert "epsilon and model differ from before" in found.output
    write(3, height="987654.321x")
    write(4)
    found = run()
    assert found.exit_code == 1
    assert "987654" not in found.output
    write(3, age="old")
    found = run()
    assert found.exit_code == 1
    assert "03.csv" in found.output


def test_rows_outside_of_all_periods_are_told():
    said = done(origin="2026-02-01", horizon="1")
    assert "rows before the first period, 2026-02-01: 40" in said
    assert "rows after the last period, 2026-03-01: 40" in said
