"""Commands that are interrupted: what was spent, in one line of standard error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cloakgp.cli import app
from cloakgp.privacy import sampler
from cloakgp.privacy.spending import spend
from cloakgp.privacy.tally import describe_spent

SECRET = "777.125"
NUMBERS = ["--inputs", "age", "--output", "pay", "--bounds", 0, 1000]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    age = rng.uniform(20, 80, 60).round(1)
    pay = rng.uniform(100, 900, 60).round(3)
    pay[5] = float(SECRET)
    pd.DataFrame({"age": age, "pay": pay}).to_csv("people.csv", index=False)
    return tmp_path


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert SECRET not in result.output
    return result


@pytest.fixture
def interrupt(monkeypatch):
    """Interrupts a command after so many draws; returns it, and what it had drawn."""

    def interrupted(*words, after, error=KeyboardInterrupt):
        drawn = []

        def drawing(cost, draw):
            if len(drawn) == after:
                raise error
            drawn.append(cost)
            return spend(cost, draw)

        with monkeypatch.context() as patch:
            patch.setattr(sampler, "spend", drawing)
            return run(*words), drawn

    return interrupted


def lines_of(result):
    return [line for line in result.stderr.splitlines() if "nterrupted" in line]


def release(to="a.cloak", **budget):
    budget = {"epsilon": 1, "delta": 0, **budget}
    words = [word for name, value in budget.items() for word in (f"--{name}", value)]
    return ["release", "people.csv", *NUMBERS, *words, "-o", to]


@pytest.mark.parametrize("noise", [{}, {"delta": 1e-3, "noise": "gaussian"}])
def test_a_release_says_what_was_spent(interrupt, noise):
    result, drawn = interrupt(*release(**noise), after=1)
    assert result.exit_code == 130
    spent = describe_spent(drawn, delta=noise.get("delta", 0.0))
    assert lines_of(result) == [
        f"Interrupted after noise was drawn: {spent} is spent; no release was made."
    ]
    assert not Path("a.cloak").exists()


def test_nothing_is_spent_before_the_first_draw(interrupt):
    result, drawn = interrupt(*release(), after=0)
    assert (result.exit_code, drawn) == (130, [])
    assert lines_of(result) == ["Interrupted: nothing was drawn, so nothing is spent."]


def test_signals_are_told_as_well(interrupt):
    result, _ = interrupt(*release(), after=1, error=SystemExit(143))
    assert result.exit_code == 143
    assert "is spent; no release was made" in lines_of(result)[0]


def test_failures_say_what_they_spent(interrupt):
    result, drawn = interrupt(*release(), after=1, error=MemoryError())
    assert result.exit_code == 1
    assert f"It failed after noise was drawn: {describe_spent(drawn)} is spent" in result.stderr
    assert "not enough memory" in result.stderr


@pytest.mark.parametrize("command", ["refine", "extend"])
def test_later_visits_say_what_they_spent(interrupt, command):
    assert run(*release(to="first.cloak")).exit_code == 0
    words = [command, "first.cloak", "people.csv", "--epsilon", 0.5, "-o", "b.cloak"]
    result, drawn = interrupt(*words, after=0)
    assert lines_of(result) == ["Interrupted: nothing was drawn, so nothing is spent."]

    with pytest.MonkeyPatch.context() as patch:
        # After the only draw of the visit.
        patch.setattr("cloakgp.release.Release.to_bytes", _interrupt)
        result, _ = interrupt(*words, after=9)
    assert result.exit_code == 130
    assert lines_of(result) == [
        "Interrupted after noise was drawn: ε = 0.5, with no δ, is spent; no release was made."
    ]
    assert drawn == []


def _interrupt(*_, **__):
    raise KeyboardInterrupt


def test_plans_spend_nothing(monkeypatch):
    monkeypatch.setattr("cloakgp.orders.estimators.plan_releases", _interrupt)
    result = run("plan", "people.csv", *NUMBERS, "--epsilon", 1)
    assert result.exit_code == 130, result.output
    assert lines_of(result) == ["Interrupted: nothing was drawn, so nothing is spent."]


def test_a_file_that_is_being_written_may_be_there(monkeypatch):
    monkeypatch.setattr("cloakgp.utils.files.ReservedFile.write", _interrupt)
    result = run(*release())
    assert lines_of(result) == ["Interrupted after noise was drawn: ε = 1, with no δ, is spent."]


def test_the_ledger_has_counted_the_same(interrupt):
    ledger = ["--ledger", "people.db", "--account", "staff"]
    run("ledger", "init", "--ledger", "people.db")
    run("ledger", "limit", "staff", "--epsilon", 3, "--delta", 0, "--ledger", "people.db")
    result, drawn = interrupt(*release(), *ledger, after=2)
    spent = describe_spent(drawn)
    assert lines_of(result) == [
        f"Interrupted after noise was drawn: {spent} is spent, which the ledger has counted; no "
        "release was made."
    ]
    shown = run("ledger", "show", "--ledger", "people.db").output
    told = float(spent.split(" = ")[1].split(",")[0])
    assert 0 < sum(cost.epsilon for cost in drawn) <= told < 1
    assert "epsilon 3 of 3" not in shown
    assert run("ledger", "verify", "--ledger", "people.db").exit_code == 0


WAITING = """
import signal, threading
from cloakgp.cli import main
from cloakgp.data.files import FileRows

interrupted, blocks = threading.Event(), FileRows._blocks

def interrupt(*given):
    interrupted.set()
    signal.default_int_handler(*given)

def waiting(*given, **settings):
    for block in blocks(*given, **settings):
        yield block
        print("reading", flush=True)
        while not interrupted.wait(0.05):
            pass

signal.signal(signal.SIGINT, interrupt)
FileRows._blocks = waiting
main()
"""


def test_a_real_interruption(folder, patience):
    """SIGINT to the process, while rows are read in passes: it goes on with none before that."""
    rows = 200_000
    rng = np.random.default_rng(1)
    table = {"age": rng.uniform(20, 80, rows), "pay": rng.uniform(0, 1000, rows)}
    pd.DataFrame(table).to_parquet("people.parquet")
    words = [str(word) for word in release(epsilon=1)]
    words[1] = "people.parquet"
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, *words],
        cwd=folder,
        env={**os.environ, "CLOAKGP_LEDGER": ""},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "reading\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=patience)
    finally:
        process.kill()
    assert process.returncode == 130
    [line] = [line for line in said.splitlines() if "Interrupted" in line]
    assert "is spent" in line
