"""Ledgers: where they are, their keys, and their versions."""

from __future__ import annotations

import os

import pytest
from spenders import charge, gaussian

from cloakgp.ledger import Ledger, LedgerError
from cloakgp.ledger.engines import parse_url


def test_a_ledger_is_made_once(url, home):
    ledger = Ledger.create(url)
    ledger.close()
    with pytest.raises(LedgerError, match="is there already"):
        Ledger.create(url)
    for path in home.iterdir():
        path.rename(path.with_suffix(".away"))
    with pytest.raises(LedgerError, match="there is a ledger at"):
        Ledger.create(url)
    assert not list(home.glob("*.key"))


@pytest.mark.usefixtures("home")
def test_a_ledger_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(LedgerError, match="no ledger at"):
        Ledger(tmp_path / "typo.db")
    assert not (tmp_path / "typo.db").exists()
    with pytest.raises(LedgerError, match="no folder"):
        Ledger.create(tmp_path / "nowhere" / "people.db")


def test_the_key_is_needed_and_is_that_of_the_ledger(ledger, home, tmp_path):
    key = home / "people.db.key"
    assert key.stat().st_mode & 0o777 == 0o600
    kept = key.read_text()
    key.write_text("00" * 32)
    with pytest.raises(LedgerError, match="another ledger"):
        Ledger(tmp_path / "people.db")
    key.unlink()
    with pytest.raises(LedgerError, match="not to be read"):
        Ledger(tmp_path / "people.db")
    key.write_text(kept)
    assert Ledger(tmp_path / "people.db").id == ledger.id
    keys = ledger.database.keys
    shown = (repr(ledger), repr(keys), repr(keys.__dict__), repr(ledger.__dict__))
    assert kept.strip() not in "".join(shown)


def test_the_key_is_in_no_database(ledger, home, tmp_path):
    secret = (home / "people.db.key").read_text().strip()
    ledger.close()
    content = b"".join(path.read_bytes() for path in tmp_path.glob("people.db*"))
    assert secret.encode() not in content
    assert bytes.fromhex(secret) not in content


@pytest.mark.parametrize("url", ["mysql://a/b", "sqlite://", "sqlite:///:memory:", "://", "x://y"])
def test_other_places_are_refused(url):
    with pytest.raises(LedgerError, match="a ledger is a file"):
        parse_url(url)


@pytest.mark.usefixtures("home")
def test_no_password_is_shown():
    with pytest.raises(LedgerError) as caught:
        Ledger("postgresql://user:hunter2@127.0.0.1:1/nothing?connect_timeout=1")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "statement",
    ["UPDATE schema_version SET version_num = '999'", "UPDATE head SET format = 999"],
)
def test_a_ledger_of_a_newer_version_is_refused(statement, ledger, tmp_path):
    with ledger.database._engine.begin() as connection:
        connection.exec_driver_sql(statement)
    with pytest.raises(LedgerError, match="made by a newer version"):
        Ledger(tmp_path / "people.db")


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE head RENAME COLUMN ledger TO name",
        "ALTER TABLE head RENAME COLUMN number TO count",
    ],
)
def test_tables_of_a_newer_version_are_not_read(statement, ledger, tmp_path):
    with ledger.database._engine.begin() as connection:
        connection.exec_driver_sql(statement)
        connection.exec_driver_sql("UPDATE schema_version SET version_num = '999'")
    with pytest.raises(LedgerError, match="made by a newer version"):
        Ledger(tmp_path / "people.db")


@pytest.mark.parametrize(
    "statement",
    ["ALTER TABLE head RENAME COLUMN format TO kind", "UPDATE head SET format = 1"],
)
def test_a_ledger_from_before_is_refused(statement, ledger, tmp_path):
    with ledger.database._engine.begin() as connection:
        connection.exec_driver_sql(statement)
    with pytest.raises(LedgerError, match=r"made by an earlier version.*make a new ledger"):
        Ledger(tmp_path / "people.db")


@pytest.mark.usefixtures("home")
def test_the_database_is_its_owners_alone(tmp_path):
    before = os.umask(0o022)
    try:
        ledger = Ledger.create(tmp_path / "people.db")
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("people.db*")}
        ledger.close()
    finally:
        os.umask(before)
    assert set(modes) == {"people.db", "people.db-wal", "people.db-shm"}
    assert set(modes.values()) == {0o600}


def test_nothing_is_kept_of_what_was_refused(ledger, account):
    before = ledger.verify()
    with pytest.raises(LedgerError):
        charge(account, gaussian(100.0))
    with pytest.raises(LedgerError):
        ledger.void(99, reason="a mistake")
    assert ledger.verify() == before


def test_entries_say_who_and_when(ledger, account, monkeypatch):
    monkeypatch.setenv("CLOAKGP_USER", "ada")
    charge(account, gaussian(0.1))
    entry = list(ledger.entries(account="people"))[-1].content
    assert ledger.names()[entry["who"]] == "ada"
    assert entry["when"].endswith("+00:00")
