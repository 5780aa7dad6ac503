"""Names of persons: beside the chain, and erased without breaking it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from spenders import charge, gaussian

from cloakgp.ledger import Ledger, LedgerError
from cloakgp.ledger.chain import acting_as
from cloakgp.ledger.exports import receipt_of


def test_the_chain_holds_no_name(url):
    ledger = Ledger.create(url)
    with acting_as("Ada Lovelace"):
        account = ledger.open_account("people", epsilon=1.0, delta=1e-6)
        approved = ledger.account("people", approved_by="Charles Babbage")
        made = charge(approved, gaussian(0.01))
        charge(account, gaussian(0.01))
    written = "".join(entry.body for entry in ledger.entries()) + receipt_of(ledger, made.number)
    assert "Lovelace" not in written
    assert "Babbage" not in written
    names = ledger.names()
    entries = list(ledger.entries())
    assert {names[entry.content["who"]] for entry in entries[1:]} == {"Ada Lovelace"}
    assert names[entries[2].content["approved_by"]] == "Charles Babbage"
    ledger.close()


def test_a_name_is_erased_and_the_ledger_verifies(url):
    ledger = Ledger.create(url)
    account = ledger.open_account("people", epsilon=1.0, delta=1e-6)
    with acting_as("Ada Lovelace"):
        charge(account, gaussian(0.01))
    before = [entry.body for entry in ledger.entries()]
    assert ledger.erase(["Ada Lovelace", "nobody"], reason="left in 2014") == 1
    assert ledger.verify().findings == ()
    assert [entry.body for entry in ledger.entries()][:-1] == before
    assert "Ada Lovelace" not in ledger.names().values()
    assert ledger.erase(["Ada Lovelace"], reason="left in 2014") == 0
    # Who comes back is called otherwise.
    with acting_as("Ada Lovelace"):
        charge(account, gaussian(0.01))
    marks = [entry.content["who"] for entry in ledger.entries()]
    assert marks[2] == marks[4] != marks[-1]
    assert ledger.verify().findings == ()
    with pytest.raises(LedgerError, match="give a reason"):
        ledger.erase(["Ada Lovelace"], reason=" ")
    ledger.close()


def test_of_an_erased_name_no_file_of_the_database_has_a_byte(ledger, account, tmp_path):
    def found():
        return [
            path.name for path in tmp_path.glob("people.db*") if b"Lovelace" in path.read_bytes()
        ]

    with acting_as("Ada Lovelace"):
        charge(account, gaussian(0.01))
    assert found()
    ledger.erase(["Ada Lovelace"], reason="left in 2014")
    assert not found()


def test_names_that_were_not_erased_by_an_entry_are_missed(ledger, account):
    with acting_as("Ada Lovelace"):
        charge(account, gaussian(0.01))
    with ledger.database._engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM names WHERE name = 'Ada Lovelace'")
    (finding,) = ledger.verify().findings
    assert "is missing, and was not erased" in finding


def test_those_who_did_nothing_for_long_are_found(ledger, account):
    with acting_as("Ada Lovelace"):
        charge(account, gaussian(0.01))
    now = datetime.now(UTC)
    assert ledger.names_unused_since(now - timedelta(days=1)) == []
    everybody = sorted(ledger.names().values())
    assert ledger.names_unused_since(now + timedelta(days=1)) == everybody
    assert "Ada Lovelace" in everybody
