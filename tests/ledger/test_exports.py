"""Exports: what anybody can check of them, and what a spreadsheet makes of them."""

from __future__ import annotations

import csv
import io
import json

import pytest
from spenders import charge, gaussian

from cloakgp.ledger import LedgerError
from cloakgp.ledger.chain import GENESIS, canonical, linked
from cloakgp.ledger.exports import entries_as_csv, entries_as_json, is_receipt, receipt_of


def test_the_chain_can_be_checked_from_its_export(ledger, account):
    charge(account, gaussian(0.1))
    exported = json.loads(entries_as_json(ledger))
    digest = GENESIS
    for entry in exported["entries"]:
        digest = linked(digest, canonical(entry["body"]))
        assert entry["digest"] == digest
    assert digest == ledger.verify().digest
    assert exported["ledger"] == ledger.id


def test_the_csv_has_a_line_for_every_entry_and_no_formula(ledger, account):
    ledger.open_account("others", epsilon=1.0, delta=1e-6)
    ledger.change_limit("others", epsilon=2.0, delta=1e-6, reason="=HYPERLINK(1)")
    charge(account, gaussian(0.1), draws=["a", "b"])
    rows = list(csv.DictReader(io.StringIO(entries_as_csv(ledger))))
    assert [row["number"] for row in rows] == [str(1 + place) for place in range(len(rows))]
    assert rows[3]["reason"] == "'=HYPERLINK(1)"
    assert rows[-1]["draws"] == "a b"
    assert float(rows[-2]["mu"]) == 0.1
    only = list(csv.DictReader(io.StringIO(entries_as_csv(ledger, account="others"))))
    assert [row["kind"] for row in only] == ["account", "limit"]


def test_a_receipt_is_signed_by_the_ledger(ledger, account):
    made = charge(account, gaussian(0.1), draws=["a"])
    receipt = receipt_of(ledger, made.number)
    assert is_receipt(receipt, public_key=ledger.public_key)
    shown = json.loads(receipt)["receipt"]
    assert shown["spent"]["mu"] == 0.1
    assert [entry["body"]["kind"] for entry in shown["entries"]] == [
        "reserved",
        "drawing",
        "committed",
    ]
    assert not is_receipt(receipt.replace("0.1", "0.2"), public_key=ledger.public_key)
    assert not is_receipt(receipt, public_key="00" * 32)
    assert not is_receipt("{}", public_key=ledger.public_key)
    with pytest.raises(LedgerError, match="no charge 999"):
        receipt_of(ledger, 999)
