"""`cloakgp ledger`, and `cloakgp release` with one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import sqlite3

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cloakgp.cli import app
from cloakgp.ledger import Ledger

# What is counted depends on none of it.
QUICK = ("--stages", "one", "--interval", "off", "--learn", "none")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table, a ledger with an account, and both where the command line looks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOAKGP_LEDGER", "people.db")
    ages = np.linspace(20, 60, 30)
    pd.DataFrame({"age": ages, "height": 100 + ages, "ill": "no"}).to_csv("a.csv", index=False)
    run("init")
    run("limit", "people", "--epsilon", "1", "--delta", "1e-6")
    return tmp_path


def invoke(*words):
    return CliRunner().invoke(app, list(words))


def run(*words):
    done = invoke("ledger", *words)
    assert done.exit_code == 0, done.output
    return done.output


def release(*words, epsilon="0.5", to="a.cloak"):
    return invoke(
        *("release", "a.csv", "--inputs", "age", "--output", "height", "--bounds", "40", "200"),
        *("--epsilon", epsilon, "--delta", "1e-6", "-o", to, *QUICK, *words),
    )


def test_a_release_is_counted_and_refused_at_the_limit(folder):
    done = release("--account", "people", "--purpose", "figure 3")
    assert done.exit_code == 0, done.output
    assert "used: 50 % of the limit" in run("show")
    assert "figure 3" in run("log")
    refused = release("--account", "people", epsilon="0.9", to="b.cloak")
    assert refused.exit_code == 1
    assert "no room" in refused.output
    assert not (folder / "b.cloak").exists()
    assert "all as they were written" in run("verify")


def test_the_release_is_known_by_its_file(folder):
    release("--account", "people", epsilon="0.50001")
    told = run("import", "a.cloak", "--account", "people", "--reason", "to see")
    # Rounded up, as what is lost.
    assert "a.cloak: (0.501, 1e-06), known already" in told
    (charge,) = (one.number for one in Ledger("people.db").entries() if "call" in one.content)
    receipt = json.loads(run("export", "--receipt", str(charge)))["receipt"]

    assert receipt["release"] == hashlib.sha256((folder / "a.cloak").read_bytes()).hexdigest()


@pytest.mark.usefixtures("folder")
def test_a_word_about_people_is_given_and_listed():
    run("limit", "made", "--epsilon", "2", "--delta", "1e-6")
    first = invoke(*made("first.cloak", "0.5"))
    assert first.exit_code == 0, first.output
    assert invoke(*made("second.cloak", "0.25")).exit_code == 0
    files = ("first.cloak", "second.cloak")
    done = invoke("combine", *files, "--rows", "other", "--people", "disjoint", "-o", "both.cloak")
    assert done.exit_code == 0, done.output
    counted = ("import", "both.cloak", "--account", "people", "--reason", "from 2023")
    assert "--people" in invoke("ledger", *counted, "--people", "others").output
    run(*counted, "--people", "disjoint")
    assert "epsilon 0.5, at delta 1e-06" in run("show").partition("people")[2]
    assert "disjoint" in run("log")
    assert "counts less than the sum" in " ".join(run("verify").split())
    run("limit", "others", "--epsilon", "1", "--delta", "1e-6")
    run("import", "both.cloak", "--account", "others", "--reason", "from 2023")
    assert "epsilon 0.75, at delta 1e-06" in run("show").partition("others")[2]


def made(to, epsilon):
    """A release that another account counts."""
    return (
        *("release", "a.csv", "--inputs", "age", "--output", "height", "--bounds", "40", "200"),
        *("--epsilon", epsilon, "--noise", "laplace", "--learn", "none", "--lengthscale", "10"),
        *("--signal-variance", "900", "--noise-variance", "25", "--stages", "one"),
        *("--interval", "off", "--calibrate", "off"),
        *("--account", "made", "-o", to),
    )


def test_an_attached_column_needs_no_account(folder):
    lost = release()
    assert lost.exit_code == 1
    assert "attached to no account" in lost.output
    run("attach", "a.csv", "--output", "height", "--account", "people")
    # Sorted, and written anew.
    ages = np.linspace(20, 60, 30)[::-1]
    table = pd.DataFrame({"age": ages, "height": 100 + ages, "ill": "no"})
    table.to_csv(folder / "a.csv", index=False, float_format="%.17g")
    assert release().exit_code == 0
    assert "columns: height" in run("show")
    assert "people, fit, height" in run("log")


def test_a_key_writes_the_same_release_again(folder):
    words = ("--account", "people", "--key", "figure 3")
    assert release(*words).exit_code == 0
    assert release(*words, to="b.cloak").exit_code == 0
    assert (folder / "a.cloak").read_bytes() == (folder / "b.cloak").read_bytes()
    assert "charges: 1" in run("show", "--epsilon", "0.5", "--delta", "1e-6")


ASKED = {
    "release": ("release", "a.csv", "--inputs", "age,height", "--output", "ill"),
    "several": (
        *("release-several", "a.csv", "--inputs", "age,height", "--output", "pay=0:1"),
        *("--output", "tax=0:1", "--interval", "off", "--calibrate", "off"),
    ),
    "chosen": (
        *("release-chosen", "a.csv", "--inputs", "age,height", "--output", "pay=0:1"),
        *("--lengthscale", "0.5,1", "--selection-epsilon", "0.1"),
    ),
    "extend": ("extend", "first.cloak", "a.csv"),
}


@pytest.mark.parametrize("kind", ASKED)
def test_a_private_column_of_the_account_is_no_public_input(kind, folder):
    ages = np.linspace(20, 60, 30)
    people = pd.DataFrame({"age": ages, "height": 100 + ages, "ill": "no", "pay": 0.5, "tax": 0.1})
    people.to_csv("a.csv", index=False)
    run("limit", "pat", "--epsilon", "9", "--delta", "1e-4")
    run("limit", "other", "--epsilon", "9", "--delta", "1e-4")
    words = [*ASKED[kind], "--epsilon", "0.5", "--delta", "1e-6"]
    if kind == "release":
        words += ["--classes", "no,yes"]
    if kind == "extend":
        first = invoke(
            *("release", "a.csv", "--inputs", "age,height", "--output", "pay", "--bounds", "0"),
            *("1", "--epsilon", "0.5", "--account", "other", "-o", "first.cloak"),
        )
        assert first.exit_code == 0, first.output
    run("attach", "a.csv", "--output", "height", "--account", "pat")
    refused = invoke(*words, "--account", "pat", "-o", "a.cloak")
    assert refused.exit_code == 1
    said = " ".join(refused.output.split())
    assert "height cannot be public: the same values are attached to the account 'pat'" in said
    assert "--declared-public height" in said
    assert "age" not in said
    assert not (folder / "a.cloak").exists()
    assert "charges: 0" in run("show").partition("pat")[2]
    # Whoever asks in another account learns nothing; auditors do.
    elsewhere = invoke(*words, "--account", "other", "-o", "a.cloak")
    assert elsewhere.exit_code == 0, elsewhere.output
    assert "pat" not in elsewhere.output
    assert "to another account, 'pat', as 'height'" in " ".join(run("verify").split())
    declared = invoke(*words, "--account", "pat", "--declared-public", "height", "-o", "b.cloak")
    assert declared.exit_code == 0, declared.output
    assert "takes 'height' to be public, as its writer declares" in run("verify")


def test_a_private_input_is_refused_before_anybody_confirms(folder, monkeypatch):
    monkeypatch.setattr("cloakgp.cli.release.somebody_is_there", lambda: True)
    run("attach", "a.csv", "--output", "height", "--account", "people")
    refused = invoke(
        *("release", "a.csv", "--inputs", "age,height", "--output", "ill", "--classes", "no,yes"),
        *("--epsilon", "0.5", "--account", "people", "-o", "a.cloak"),
    )
    assert "height cannot be public" in refused.output
    assert "Ask the private column now" not in refused.output
    assert not (folder / "a.cloak").exists()
    alone = release("--ledger", "", "--declared-public", "age")
    assert "go with --ledger" in alone.output
    unknown = release("--account", "people", "--declared-public", "weight")
    assert "weight cannot be declared public" in " ".join(unknown.output.split())


OTHERS = {
    "table": ("b.csv", "height", "40 200", "0.5", ()),
    "column": ("a.csv", "weight", "40 200", "0.5", ()),
    "bounds": ("a.csv", "height", "40 210", "0.5", ()),
    "budget": ("a.csv", "height", "40 200", "0.25", ()),
    "quantiles": ("a.csv", "height", "40 200", "0.5", ("--quantiles", "0.5")),
    "missing cells": ("a.csv", "height", "40 200", "0.5", ("--missing-output", "150")),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_key_with_other_options_is_refused(name, folder):
    table, output, bounds, epsilon, more = OTHERS[name]
    people = pd.read_csv("a.csv").assign(weight=60.0)
    for each in ("a.csv", "b.csv"):
        people.to_csv(each, index=False)
    key = ("--account", "people", "--key", "figure 3")
    assert release(*key).exit_code == 0
    refused = invoke(
        *("release", table, "--inputs", "age", "--output", output, "--bounds", *bounds.split()),
        *("--epsilon", epsilon, "--delta", "1e-6", "-o", "w.cloak", *key, *more),
    )
    assert refused.exit_code == 1
    assert "the key 'figure 3' belongs to another release" in " ".join(refused.output.split())
    assert not (folder / "w.cloak").exists()
    assert "charges: 1" in run("show")


def test_what_is_taken_from_the_ledger_is_told_as_that(folder):
    key = ("--account", "people", "--key", "figure 3")
    asked = " ".join(release(*key).output.split())
    assert "Wrote a.cloak: predictions of height" in asked
    assert "This spent" in asked
    assert "Another run with this key and the same options spends nothing" in asked
    taken = " ".join(release(*key, "--by", "somebody else", to="w.cloak").output.split())
    said = "the release of height that the ledger keeps under the key 'figure 3'"
    assert f"Wrote w.cloak: {said}." in taken
    assert "taken from the ledger: nothing was asked now, and nothing spent" in taken
    for untrue in ("This spent", "Another run", "predictions of"):
        assert untrue not in taken
    assert (folder / "a.cloak").read_bytes() == (folder / "w.cloak").read_bytes()


def test_a_key_from_before_names_the_release_that_it_has(folder):
    """Without a digest of choices nothing is compared, and no option is told as what was asked."""
    import cloakgp

    model = cloakgp.DPGPRegressor(bounds=(0, 1), epsilon=0.5, delta=1e-6)
    table = pd.DataFrame({"age": np.linspace(20, 60, 30)})
    account = Ledger("people.db").account("people")
    account.publish(
        lambda: model.fit(table, pd.Series(np.ones(30), name="ill")).release_, key="figure 3"
    )
    taken = release("--account", "people", "--key", "figure 3")
    assert "the release of ill that the ledger keeps" in " ".join(taken.output.split())
    assert (folder / "a.cloak").exists()


def test_nobody_is_asked_to_confirm_what_is_not_asked(folder, monkeypatch):
    monkeypatch.setattr("cloakgp.cli.release.somebody_is_there", lambda: True)
    key = ("--account", "people", "--key", "figure 3")
    assert release(*key, "--yes").exit_code == 0
    # Nobody answers.
    taken = release(*key, to="w.cloak")
    assert taken.exit_code == 0, taken.output
    assert "Ask the private column now" not in taken.output
    assert (folder / "w.cloak").exists()


AGAIN = {
    "several": (
        *("release-several", "a.csv", "--inputs", "age", "--output", "height=40:200"),
        *("--output", "weight=20:200", "--interval", "off", "--calibrate", "off"),
    ),
    "private inputs": (
        *("release-private-inputs", "a.csv", "--input", "age=0:100", "--output", "height=40:200"),
    ),
    "chosen": (
        *("release-chosen", "a.csv", "--inputs", "age", "--output", "height=40:200"),
        *("--lengthscale", "0.5,1", "--selection-epsilon", "0.1"),
    ),
    "refine": ("refine", "first.cloak", "a.csv"),
    "extend": ("extend", "first.cloak", "a.csv"),
}


@pytest.mark.parametrize("kind", AGAIN)
@pytest.mark.usefixtures("folder")
def test_every_command_compares_what_goes_with_a_key(kind):
    pd.read_csv("a.csv").assign(weight=np.linspace(50, 90, 30)).to_csv("a.csv", index=False)
    run("limit", "all", "--epsilon", "9", "--delta", "1e-4")
    run("limit", "rows", "--epsilon", "9", "--delta", "1e-4", "--unit", "replace")
    first = release("--account", "all", to="first.cloak")
    assert first.exit_code == 0, first.output
    account = "rows" if kind == "private inputs" else "all"
    words = (*AGAIN[kind], "--delta", "1e-6", "--account", account, "--key", "k")
    done = invoke(*words, "--epsilon", "0.5", "-o", "k.cloak")
    assert done.exit_code == 0, done.output
    again = invoke(*words, "--epsilon", "0.5", "-o", "again.cloak")
    assert again.exit_code == 0, again.output
    said = " ".join(again.output.split())
    assert "that the ledger keeps under the key 'k'" in said
    assert "height" in said
    assert "Another run" not in said
    other = invoke(*words, "--epsilon", "0.6", "-o", "other.cloak")
    assert "the key 'k' belongs to another release" in " ".join(other.output.split())


@pytest.mark.usefixtures("folder")
def test_a_limit_is_changed_with_a_reason():
    assert (
        "give a reason"
        in invoke("ledger", "limit", "people", "--epsilon", "2", "--delta", "1e-6").output
    )
    changed = run("limit", "people", "--epsilon", "2", "--delta", "1e-6", "--reason", "approved")
    assert "limit: epsilon 2" in changed
    assert "releases of (0.5, 1e-06) left: " in run("show", "--epsilon", "0.5", "--delta", "1e-6")
    assert "releases of (0.5, 0) left: " in run("show", "--epsilon", "0.5")
    assert "--delta goes with --epsilon" in invoke("ledger", "show", "--delta", "1e-6").output


@pytest.mark.usefixtures("folder")
def test_a_limit_below_what_was_spent_is_told_as_that():
    assert release("--account", "people").exit_code == 0
    lowered = ("limit", "people", "--epsilon", "0.1", "--delta", "1e-6", "--reason", "the end")
    for told in (run(*lowered), run("show", "--epsilon", "0.001")):
        assert "used: more than the limit: nothing fits" in told
        assert "100 %" not in told
    assert "left: 0" in run("show", "--epsilon", "0.001")


@pytest.mark.usefixtures("folder")
def test_exports_are_files_or_go_to_the_terminal(tmp_path):
    assert json.loads(run("export"))["entries"]
    run("export", "--as", "csv", "-o", "log.csv")
    assert (tmp_path / "log.csv").read_text().startswith("number,when,who")
    assert invoke("ledger", "export", "--as", "xml").exit_code == 1
    assert invoke("ledger", "export", "--receipt", "99").exit_code == 1


@pytest.mark.usefixtures("folder")
def test_damage_is_told_with_an_exit_code():
    ledger = Ledger("people.db")
    with ledger.database._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE accounts SET spending = 7")
    done = invoke("ledger", "verify")
    assert done.exit_code == 1
    assert "accounts: people is not what the entries make it" in done.output
    ledger.close()


def test_what_goes_with_a_ledger_needs_one(folder, monkeypatch):
    monkeypatch.delenv("CLOAKGP_LEDGER")
    assert "go with --ledger" in release("--account", "people").output
    assert release().exit_code == 0
    assert invoke("ledger", "init").exit_code == 1
    assert (folder / "a.cloak").exists()


@pytest.mark.usefixtures("folder")
def test_verification_is_for_timers(monkeypatch):
    assert run("verify", "--quiet") == ""
    ledger = Ledger("people.db")
    with ledger.database._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE accounts SET spending = 7")
    ledger.close()
    damaged = invoke("ledger", "verify", "--quiet")
    assert (damaged.exit_code, "is not what the entries make it" in damaged.output) == (1, True)
    monkeypatch.setenv("CLOAKGP_LEDGER", "typo.db")
    missing = invoke("ledger", "verify", "--quiet")
    assert missing.exit_code == 2
    assert "Not verified: there is no ledger at typo.db" in missing.output


@pytest.mark.parametrize("elsewhere", [False, True])
def test_where_the_anchor_lies_is_told_with_what_it_does_not_reveal(
    elsewhere, tmp_path, monkeypatch
):
    home = tmp_path / "ledger"
    home.mkdir()
    url = str(home / "ours.db")
    monkeypatch.setenv("CLOAKGP_LEDGER", url)
    if elsewhere:
        monkeypatch.setenv("CLOAKGP_LEDGER_ANCHORS", str(tmp_path / "other disk"))
    told = [run("init")]
    run("limit", "care", "--epsilon", "2", "--delta", "1e-6")
    told.append(run("verify"))
    beside = ["nothing where both are put back together" in " ".join(one.split()) for one in told]
    assert beside == [not elsewhere] * 2
    # What it says: the whole folder is put back, and a limit with it.
    shutil.copytree(home, tmp_path / "copy")
    run("limit", "care", "--epsilon", "1", "--delta", "1e-6", "--reason", "a test")
    shutil.rmtree(home)
    shutil.copytree(tmp_path / "copy", home)
    assert invoke("ledger", "verify").exit_code == (1 if elsewhere else 0)


@pytest.mark.usefixtures("folder")
def test_entries_are_exported_as_lines_from_where_they_ended():
    lines = run("export", "--as", "lines").splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["ledger", "account"]
    assert run("export", "--as", "lines", "--after", "1").splitlines() == lines[1:]
    assert "goes with --as lines" in invoke("ledger", "export", "--after", "1").output


@pytest.mark.usefixtures("folder")
def test_a_person_is_erased(monkeypatch):
    monkeypatch.setenv("CLOAKGP_USER", "Ada Lovelace")
    assert release("--account", "people").exit_code == 0
    monkeypatch.setenv("CLOAKGP_USER", "Bob")
    assert "Ada Lovelace" in run("log")
    assert "Ada Lovelace" not in run("export")
    assert "Ada Lovelace" in run("export", "--names")
    assert "Erased: 0" in run("erase", "--unused-since", "2001-01-01", "--reason", "retention")
    assert "Erased: 1" in run("erase", "Ada Lovelace", "--reason", "retention")
    assert "Ada Lovelace" not in run("log") + run("export", "--names")
    assert "the ledger has no person called Ada" in invoke("ledger", "erase", "Ada").output
    assert "give --unused-since" in invoke("ledger", "erase").output
    assert "all as they were written" in run("verify")


@pytest.mark.usefixtures("folder")
def test_tables_are_made_anew_from_the_entries():
    assert release("--account", "people").exit_code == 0
    assert "nothing to rebuild" in invoke("ledger", "rebuild", "--reason", "a test").output
    with contextlib.closing(sqlite3.connect("people.db")) as database, database:
        database.execute("UPDATE accounts SET spending = 0")
    assert "accounts: people is not what the entries make it" in invoke("ledger", "verify").output
    assert "give a reason" in invoke("ledger", "rebuild").output
    assert "Rows that were not what the entries make them: 1." in run(
        "rebuild", "--reason", "sums of April"
    )
    told = run("verify")
    assert "all as they were written" in told
    assert "the tables were made anew from the entries; rows that were not" in " ".join(
        told.split()
    )


@pytest.mark.usefixtures("folder")
def test_the_key_is_rotated():
    assert "give a reason" in invoke("ledger", "rotate-key").output
    assert "people.db.key has another key" in run("rotate-key", "--reason", "once a year")
    assert release("--account", "people").exit_code == 0
    assert "all as they were written" in run("verify")


@pytest.mark.usefixtures("folder")
def test_room_is_told_for_the_noise_that_releases_draw():
    for noise, epsilon, left in (("gaussian", "0.3", 9), ("laplace", "0.2", 5), ("auto", "0.2", 4)):
        told = run("show", "--epsilon", epsilon, "--delta", "1e-6", "--noise", noise)
        assert f"left: {left}" in told, told
    refused = invoke("ledger", "show", "--epsilon", "1", "--delta", "0", "--noise", "none")
    assert "--noise" in refused.output
