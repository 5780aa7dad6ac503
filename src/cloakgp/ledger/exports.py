"""Exports of a ledger: entries as CSV or JSON, and signed receipts."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

from cloakgp.ledger import projection
from cloakgp.ledger.chain import Entry, canonical
from cloakgp.ledger.database import RowsInTables
from cloakgp.ledger.errors import LedgerError
from cloakgp.ledger.keys import is_signed
from cloakgp.ledger.ledger import Ledger

# Columns of the CSV, in order; what an entry does not have is left empty.
FIELDS = (
    *("number", "when", "who", "kind", "account", "charge", "purpose", "call", "unit"),
    *("mechanism", "epsilon", "delta", "mu", "pure_epsilon", "pure_mu", "answers", "coarseness"),
    *("column", "fingerprint", "draws", "release", "key", "reason", "version", "digest"),
)
# What a spreadsheet would take for a formula.
FORMULAE = ("=", "+", "-", "@", "\t", "\r")


def entries_as_json(ledger: Ledger, *, account: str | None = None) -> str:
    """Return entries with their digests as JSON; of all accounts, anybody can check the chain."""
    listed = [_shown(entry) for entry in ledger.entries(account=account)]
    exported = {"ledger": ledger.id, "public_key": ledger.public_key, "entries": listed}
    return json.dumps(exported, indent=1, sort_keys=True, allow_nan=False) + "\n"


def entries_as_csv(ledger: Ledger, *, account: str | None = None) -> str:
    """Return entries as CSV, one a line; no cell is a formula."""
    written = io.StringIO()
    table = csv.DictWriter(written, FIELDS, extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    for entry in ledger.entries(account=account):
        shown = {**entry.content, "digest": entry.digest}
        table.writerow({name: _cell(shown.get(name)) for name in FIELDS})
    return written.getvalue()


def receipt_of(ledger: Ledger, charge: int) -> str:
    """Return a signed receipt of a charge: its entries, and where the chain was then.

    Parameters
    ----------
    ledger : Ledger
    charge : int

    Raises
    ------
    LedgerError
        If there is none.
    """
    with ledger.database.reading() as connection:
        row = RowsInTables(connection).get("charges", charge)
    if row is None:
        raise LedgerError(f"there is no charge {charge}")
    about = [
        entry
        for entry in ledger.entries(account=row["account"])
        if charge in (entry.number, entry.content.get("charge"))
    ]
    spent = projection.counted(row).numbers
    head = ledger.database.head()
    receipt = {
        "ledger": ledger.id,
        "charge": charge,
        "account": row["account"],
        "state": row["state"],
        "release": row["release"],
        "spent": spent,
        "entries": [_shown(entry) for entry in about],
        "chain": {"number": head["number"], "digest": head["digest"]},
    }
    signed = {
        "receipt": receipt,
        "public_key": ledger.public_key,
        "signature": ledger.key.sign(canonical(receipt).encode()),
    }
    return json.dumps(signed, indent=1, sort_keys=True) + "\n"


def is_receipt(text: str, *, public_key: str) -> bool:
    """Return whether a receipt was signed by a ledger, and is as it was.

    Parameters
    ----------
    text : str
    public_key : str
        The ledger's, from a source that one trusts; that in the receipt is for convenience.
    """
    try:
        signed: Mapping[str, Any] = json.loads(text)
        content = canonical(signed["receipt"]).encode()
        signature = str(signed["signature"])
    except (ValueError, KeyError, TypeError):
        return False
    return is_signed(content, signature, public=public_key)


def _shown(entry: Entry) -> dict[str, Any]:
    return {"body": entry.content, "digest": entry.digest}


def _cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    if isinstance(value, str) and value.startswith(FORMULAE):
        return "'" + value
    return value
