"""Exports: what anybody can check of them, and what a spreadsheet makes of them."""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pytest
from spenders import charge, gaussian

from cloakgp import DPGPRegressor
from cloakgp.ledger import LedgerError
from cloakgp.ledger.chain import GENESIS, Entry, acting_as, canonical, linked
from cloakgp.ledger.exports import (
    entries_as_csv,
    entries_as_json,
    entries_as_lines,
    is_receipt,
    receipt_of,
)
from cloakgp.ledger.schema import columns
from cloakgp.privacy.fingerprints import fingerprint_column


def test_the_chain_can_be_checked_from_its_export(ledger, account):
    charge(account, gaussian(0.1))
    exported = json.loads(entries_as_json(ledger))
    digest = GENESIS
    for entry in exported["entries"]:
        body = canonical(entry["body"])
        digest = linked(digest, body)
        assert entry["digest"] == digest
        signed = Entry(0, body, digest, entry["signature"])
        assert signed.is_signed(public=exported["public_key"])
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


# Text, and how many formulae hide in it, for whatever separates cells.
FORMULAE = {
    "=1+1": 1,
    "x;=1+1": 1,
    "x,=1+1": 1,
    "x\t=1+1": 1,
    "x|@SUM(1)": 1,
    'x";=1+1': 1,
    "x\n+1": 1,
    "x; -1, @2": 2,
    " =1": 1,
    "\uff1d1": 1,
    "a-b = c + d@e": 2,
}


@pytest.mark.parametrize("text", FORMULAE)
def test_no_cell_is_a_formula_whatever_separates_cells(text, ledger):
    ledger.open_account("others", epsilon=1.0, delta=1e-6)
    ledger.change_limit("others", epsilon=2.0, delta=1e-6, reason=text)
    reason = list(csv.DictReader(io.StringIO(entries_as_csv(ledger))))[-1]["reason"]
    assert reason.replace("'", "") == text
    assert reason.count("'") == FORMULAE[text]
    for cell in re.split(r"[,;|\t\n]", reason):
        assert not cell.strip(' "').startswith(("=", "+", "-", "@", "\uff1d"))


# What is another in every entry, and what is random: marks, and digests of noisy answers.
OF_THE_ENTRY = {"when", "digest", "signature", "number", "charge"}
RANDOM = {"note", "draws", "mark", "salt"}


def public(shown, *, chance):
    """What is shown but for what is another each time; `chance` collects what is random."""
    if isinstance(shown, list):
        return [public(each, chance=chance) for each in shown]
    if not isinstance(shown, dict):
        return shown
    for name in RANDOM & shown.keys():
        chance += [shown[name]] if isinstance(shown[name], str) else shown[name]
    return {
        name: "another" if name in OF_THE_ENTRY | RANDOM else public(value, chance=chance)
        for name, value in shown.items()
    }


@pytest.mark.parametrize("attached", [False, True])
def test_nothing_that_is_handed_out_tells_whether_an_output_changed(attached, ledger, account):
    """Of y, of y again, and of y with one output changed: receipts and exports are alike."""
    first = np.linspace(0.1, 0.9, 20)
    other = first.copy()
    other[3] = 0.7
    if attached:
        account.attach(first, column="heights")
    X = np.arange(20.0)[:, None]
    model = DPGPRegressor(bounds=(0, 1), epsilon=0.1, delta=1e-7, noise="gaussian")
    charges = []
    with account:
        for outputs in (first, first, other):
            model.fit(X, outputs)
            charges.append(max(e.number for e in ledger.entries() if "call" in e.content))
    receipts = [json.loads(receipt_of(ledger, number)) for number in charges]
    chances = [[], [], []]
    shown = [public(each, chance=chance) for each, chance in zip(receipts, chances, strict=True)]
    assert shown[0] == shown[1] == shown[2]
    # What is random is so: no two receipts share any of it.
    assert len({*chances[0], *chances[1], *chances[2]}) == sum(map(len, chances))
    assert len(chances[0]) >= 2
    # Exports have the same entries, and nothing else of a charge.
    exported = json.loads(entries_as_json(ledger))["entries"]
    for receipt in receipts:
        entries = receipt["receipt"]["entries"]
        assert all(entry in exported for entry in entries)
        assert len(entries) == len(
            [
                entry
                for entry in exported
                if receipt["receipt"]["charge"]
                in (entry["body"]["number"], entry["body"].get("charge"))
            ]
        )
    # Nor do exports of attachments tell whether columns are the same.
    others = ledger.open_account("others", epsilon=1.0, delta=1e-6)
    for outputs in (first, other):
        others.attach(outputs, column="heights")
    attachments = [
        public(json.loads(line), chance=[]) for line in list(entries_as_lines(ledger))[-2:]
    ]
    assert attachments[0] == attachments[1]
    keys = ledger.database.keys
    fingerprints = [
        fingerprint_column(outputs, key=key.columns)
        for outputs in (first, other)
        for key in keys._keys.values()
    ]
    handed_out = entries_as_json(ledger) + entries_as_csv(ledger) + json.dumps(receipts)
    assert not any(fingerprint in handed_out for fingerprint in fingerprints)
    with ledger.database.reading() as connection:
        kept = json.dumps([list(map(str, row)) for row in connection.execute(columns.select())])
    assert not any(fingerprint in kept for fingerprint in fingerprints)


def test_lines_go_on_where_they_ended(ledger, account):
    charge(account, gaussian(0.1))
    lines = list(entries_as_lines(ledger))
    events = [json.loads(line) for line in lines]
    assert all(line.count("\n") == 1 for line in lines)
    assert [event["number"] for event in events] == [1, 2, 3, 4, 5]
    assert {event["ledger"] for event in events} == {ledger.id}
    assert list(entries_as_lines(ledger, after=3)) == lines[3:]
    assert list(entries_as_lines(ledger, after=5)) == []


def test_persons_have_names_where_these_are_asked_for(ledger, account):
    with acting_as("ada@example.org"):
        charge(account, gaussian(0.1))
    for text in (entries_as_json(ledger), entries_as_csv(ledger), *entries_as_lines(ledger)):
        assert "ada@example.org" not in text
    assert "ada@example.org" in entries_as_json(ledger, names=True)
    rows = list(csv.DictReader(io.StringIO(entries_as_csv(ledger, names=True))))
    assert rows[-1]["who"] == "ada@example.org"
    assert json.loads(list(entries_as_lines(ledger, names=True))[-1])["who"] == "ada@example.org"


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
