"""Keys: their rotation, where they are, and what old ones are for."""

from __future__ import annotations

import json

import numpy as np
import pytest
from spenders import charge, gaussian

from cloakgp.ledger import Ledger, LedgerError
from cloakgp.ledger.exports import is_receipt, receipt_of
from cloakgp.ledger.keys import KeyFile
from cloakgp.privacy import OutputBounds, ask


def rotated(url):
    """A ledger with an attached column and a charge under each of two keys."""
    ledger = Ledger.create(url)
    account = ledger.open_account("people", epsilon=1.0, delta=1e-6)
    account.attach([3.0, 1.0], column="old")
    charge(account, gaussian(0.01))
    ledger.rotate_keys(reason="once a year")
    account.attach([5.0, 1.0], column="new")
    charge(account, gaussian(0.01))
    return ledger


def test_a_rotation_is_signed_by_both_keys_and_verified(url):
    ledger = rotated(url)
    assert ledger.verify().findings == ()
    entries = list(ledger.entries())
    (place,) = (n for n, entry in enumerate(entries) if entry.content["kind"] == "rotated")
    first, second = entries[0].content["public_key"], entries[place].content["public_key"]
    assert (first != second, second) == (True, ledger.public_key)
    assert all(entry.is_signed(public=first) for entry in entries[: place + 1])
    assert all(entry.is_signed(public=second) for entry in entries[place + 1 :])
    # Another process goes on with the new one, and a third rotation works there too.
    again = Ledger(url)
    again.rotate_keys(reason="once a year")
    charge(ledger.account("people"), gaussian(0.01))
    assert ledger.verify().findings == again.verify().findings == ()
    with pytest.raises(LedgerError, match="give a reason"):
        ledger.rotate_keys(reason="")
    ledger.close()
    again.close()


@pytest.mark.usefixtures("home")
def test_columns_of_older_keys_are_recognised(tmp_path, monkeypatch):
    ledger = rotated(str(tmp_path / "people.db"))
    monkeypatch.setenv("CLOAKGP_LEDGER", ledger.database.shown)
    for outputs in ([1.0, 3.0], [1.0, 5.0]):
        ask(
            np.ones((1, 2)), outputs, question=OutputBounds.checked((0, 9)), epsilon=0.1, delta=1e-7
        )
    told = list(ledger.notes().values())[-2:]
    assert [each["columns"] for each in told] == [["old"], ["new"]]


@pytest.mark.usefixtures("home")
def test_receipts_are_signed_with_the_key_of_their_time(tmp_path):
    ledger = rotated(str(tmp_path / "people.db"))
    receipt = receipt_of(ledger, 4)
    assert is_receipt(receipt, public_key=ledger.public_key)
    old = next(ledger.entries()).content["public_key"]
    assert not is_receipt(receipt, public_key=old)
    assert json.loads(receipt)["public_key"] == ledger.public_key


def test_a_copy_from_before_a_rotation_is_refused(home, tmp_path):
    ledger = Ledger.create(tmp_path / "people.db")
    path = home / "people.db.key"
    old = path.read_text()
    ledger.rotate_keys(reason="once a year")
    path.write_text(old)
    with pytest.raises(LedgerError, match="from before a rotation"):
        Ledger(tmp_path / "people.db")


def test_a_rotation_that_died_before_its_entry_changes_nothing(ledger, account, home):
    KeyFile(home / "people.db.key").add()
    charge(account, gaussian(0.01))
    ledger.rotate_keys(reason="again")
    charge(account, gaussian(0.01))
    assert len((home / "people.db.key").read_text().split()) == 3
    assert (home / "people.db.key").stat().st_mode & 0o777 == 0o600
    assert ledger.verify().findings == ()


def test_entries_after_a_rotation_by_the_old_key_are_found(ledger, account, home):
    """As by somebody who got hold of it, for which it was rotated."""
    old = (home / "people.db.key").read_text()
    ledger.rotate_keys(reason="it was lost")
    account.attach([1.0], column="a")
    forger = Ledger.__new__(Ledger)
    forger.database = type(ledger.database)(ledger.database.url)
    (home / "forged.key").write_text(old)
    forger.database.keys = KeyFile(home / "forged.key")
    with pytest.raises(LedgerError, match="from before a rotation"):
        forger.open_account("others", epsilon=1.0, delta=1e-6)
    with ledger.database._engine.begin() as connection:
        check = next(ledger.entries()).content["key_check"]
        connection.exec_driver_sql("UPDATE head SET key_check = ?", (check,))
    with pytest.raises(LedgerError, match="not written with its key"):
        forger.open_account("others", epsilon=1.0, delta=1e-6)
    assert ledger.verify().findings == ("the ledger's key is not the one that its entries name",)


def test_key_and_anchor_lie_apart_where_that_is_wanted(tmp_path, monkeypatch):
    monkeypatch.setenv("CLOAKGP_LEDGER_KEYS", str(tmp_path / "keys"))
    monkeypatch.setenv("CLOAKGP_LEDGER_ANCHORS", str(tmp_path / "anchors"))
    monkeypatch.setenv("CLOAKGP_LEDGER_HOME", str(tmp_path / "neither"))
    (tmp_path / "data").mkdir()
    ledger = Ledger.create(tmp_path / "data" / "people.db")
    ledger.close()
    assert [path.name for path in (tmp_path / "keys").iterdir()] == ["people.db.key"]
    assert [path.name for path in (tmp_path / "anchors").iterdir()] == ["people.db.anchor"]
    assert not [
        path for path in (tmp_path / "data").iterdir() if path.suffix in (".key", ".anchor")
    ]
    assert not (tmp_path / "neither").exists()
    assert Ledger(tmp_path / "data" / "people.db").verify().sound
