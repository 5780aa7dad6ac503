"""`cloakgp custodians` as users type it: a plan, two custodians, a coordinator, and refusals."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cloakgp import Release
from cloakgp.cli import app
from cloakgp.ledger import Ledger

PLAN = [
    *("plan", "shared", "--output", "height", "--inputs", "age", "--sites", "north,south"),
    *("--bounds", "40", "240", "--epsilon", "1", "--stages", "one", "--interval", "off"),
    *("--inducing", "5", "--learn", "none"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("north", "south"):
        age = rng.integers(20, 80, size=30)
        height = (120.0 + age / 2 + rng.normal(0, 5, size=30)).round(1)
        pd.DataFrame({"age": age, "height": height}).to_csv(f"{name}.csv", index=False)
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, ["custodians", *map(str, words)])


def done(*words):
    result = run(*words)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def answer(name, *more):
    return run("answer", "shared", f"{name}.csv", "--site", name, "--own", f"own-{name}", *more)


def step():
    return [answer(name).output for name in ("north", "south")]


def test_a_release_of_two_custodians(folder):
    told = done(*PLAN)
    digest = told.partition("Wrote the plan to shared: ")[2][:19]
    assert len(digest.replace(" ", "")) == 16
    assert f"Joined: the plan {digest}" in answer("north").output
    waiting = run("collect", "shared", "-o", "release.cloak")
    assert waiting.exit_code != 0
    assert "waiting for south to join" in " ".join(waiting.output.split())
    assert not (folder / "release.cloak").exists()
    step()
    assert "waiting for north, south to answer" in " ".join(run("collect", "shared").output.split())
    assert all("Answered" in told for told in step())
    assert "to open their masks" in " ".join(run("collect", "shared").output.split())
    assert all("Opened" in told for told in step())
    told = done("collect", "shared", "-o", "release.cloak")
    assert "60 rows, 1-differentially private" in told
    assert "any 1 of the custodians together" in told
    release = Release.load(folder / "release.cloak")
    assert release.predict([[40.0]]).shape == (1,)
    assert "The release is there" in step()[0]
    shown = " ".join(CliRunner().invoke(app, ["show", "release.cloak"]).output.split())
    assert "none of whom showed an output to another" in shown


def test_what_was_agreed_is_shown():
    done(*PLAN)
    assert "roster: not closed yet" in done("show", "shared")
    step()
    run("collect", "shared")
    told = done("show", "shared")
    assert "north: 30 rows, key " in told
    assert "asked, in attempt 1: north, south" in told


def test_only_the_roster_that_was_agreed_is_answered():
    done(*PLAN)
    step()
    run("collect", "shared")
    digest = done("show", "shared").partition("roster: ")[2][:19]
    result = answer("north", "--agreed", "0123 4567")
    assert result.exit_code != 0
    assert "another than was agreed" in " ".join(result.output.split())
    assert "eight digits" in " ".join(answer("north", "--agreed", digest[:4]).output.split())
    assert "Answered" in answer("north", "--agreed", digest).output


def test_a_custodian_who_does_not_join_is_left_out(folder):
    done(*[word.replace("north,south", "north,south,west") for word in PLAN])
    step()
    result = run("collect", "shared", "--without", "west")
    assert "Going on without west" in result.output
    step()
    run("collect", "shared")
    step()
    assert "60 rows" in done("collect", "shared", "-o", "release.cloak")
    assert (folder / "release.cloak").exists()


def test_a_custodians_ledger_counts(folder):
    ledger = Ledger.create(folder / "ledger.db")
    ledger.open_account("patients", epsilon=1.0, delta=0.0)
    done(*PLAN)
    words = ["--ledger", "ledger.db", "--account", "patients"]
    for _ in range(3):
        assert answer("north", *words).exit_code == 0
        answer("south")
        run("collect", "shared")
    [standing] = ledger.standings()
    assert standing.used == pytest.approx(1.0)
    assert standing.open == ()
    assert answer("north", "--ledger", "ledger.db").exit_code != 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (["--sites", "north"], "two sites"),
        (["--colluding", "2"], "may work together"),
        (["--transform", "log", "--bounds", "40", "240"], "output_transform"),
        (["--quantiles", "0.5"], "leave --quantiles out"),
        (["--lengthscale", "3"], "--lengthscale has no meaning"),
        (["--schema", "people.schema.json"], "by --inputs or by --schema"),
        (["--inputs", "age,height"], "no public one"),
    ],
)
def test_plans_that_make_no_sense_are_refused(changed, message, folder):
    result = run(*PLAN, *changed)
    assert result.exit_code != 0
    assert message in " ".join(result.output.split())
    assert not (folder / "shared" / "plan.json").exists()


def test_categories_come_by_a_schema(folder):
    for name in ("north", "south"):
        table = pd.read_csv(f"{name}.csv")
        table.assign(sex=["f", "m"] * 15).to_csv(f"{name}.csv", index=False)
    made = CliRunner().invoke(app, ["schema", "north.csv", "--output", "height", "-o", "s.json"])
    assert made.exit_code == 0, made.output
    words = [word for word in PLAN if word not in ("--inputs", "age")]
    done(*words, "--schema", "s.json")
    for _ in range(3):
        assert all("Error" not in told for told in step())
        run("collect", "shared", "-o", "release.cloak")
    release = Release.load(folder / "release.cloak")
    assert release.schema.sources == ("age", "sex")
    raw = pd.DataFrame({"age": [30], "sex": ["f"]})
    assert release.predict(raw).shape == (1,)


def test_several_processes_on_one_machine(folder):
    """Each waits for the others, until the release is there."""
    done(*PLAN)
    program = [sys.executable, "-m", "cloakgp", "custodians"]
    waiting = [
        subprocess.Popen(
            [
                *program,
                *("answer", "shared", f"{name}.csv", "--site", name, "--own", f"own-{name}"),
                *("--wait", "100"),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("north", "south")
    ]
    made = subprocess.run(
        [*program, "collect", "shared", "-o", "release.cloak", "--wait", "100"],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert made.returncode == 0, made.stderr
    for process in waiting:
        told, _ = process.communicate(timeout=100)
        assert "The release is there" in told
    assert Release.load(folder / "release.cloak").n_rows == 60


def test_a_release_of_classes(folder):
    for name in ("north", "south"):
        table = pd.read_csv(f"{name}.csv")
        tall = np.where(table["height"] > 145, "yes", "no")
        table.assign(height=tall).to_csv(f"{name}.csv", index=False)
    done(
        *("plan", "shared", "--output", "height", "--inputs", "age", "--sites", "north,south"),
        *("--classes", "no,yes", "--epsilon", "3", "--inducing", "5"),
    )
    for _ in range(3):
        step()
        run("collect", "shared", "-o", "release.cloak")
    assert Release.load(folder / "release.cloak").classes == ("no", "yes")
