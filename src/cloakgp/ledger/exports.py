"""Exports of a ledger: entries as CSV, JSON or lines of JSON, and signed receipts.

None holds a fingerprint of a private column: marks of columns and notes tell nothing (see
`cloakgp.ledger.marks`). Persons have their marks, unless the caller wants names: an export with
names cannot be erased.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from cloakgp.ledger import projection, schema
from cloakgp.ledger.chain import Entry, canonical
from cloakgp.ledger.database import TableStore
from cloakgp.ledger.errors import LedgerError
from cloakgp.ledger.keys import is_signed
from cloakgp.ledger.ledger import Ledger

# Columns of the CSV, in order; missing values are empty.
FIELDS = (
    *("number", "when", "who", "kind", "account", "charge", "purpose", "call", "unit", "people"),
    *("mechanism", "epsilon", "delta", "mu", "pure_epsilon", "pure_mu", "answers", "coarseness"),
    *("column", "cohort", "approved_by", "draws", "release", "key", "reason", "version"),
    *("choices", "declared_public"),
    *("digest", "signature"),
)
# Places where a spreadsheet could take text for a formula: its beginning, and after a separator of
# cells. Some spreadsheets take letters of full width for those of ASCII.
FORMULA = re.compile(r"(^|[,;|:\s\"'])(?=[=+\-@\uff1d\uff0b\uff0d\uff20\t\r])")


def entries_as_json(ledger: Ledger, *, account: str | None = None, names: bool = False) -> str:
    """Return entries with digests and signatures as JSON.

    Everyone can check the chain of all accounts: digests follow from each other, and signatures
    from the public keys that the first entry and the entries of rotations name.

    Parameters
    ----------
    ledger : Ledger
    account : str, optional
        Entries of this account alone.
    names : bool
        Name persons.
    """
    listed = [_shown(entry) for entry in ledger.entries(account=account)]
    exported: dict[str, Any] = {
        "ledger": ledger.id,
        "public_key": ledger.public_key,
        "entries": listed,
    }
    if names:
        exported["names"] = ledger.names()
    return json.dumps(exported, indent=1, sort_keys=True, allow_nan=False) + "\n"


def entries_as_lines(
    ledger: Ledger, *, account: str | None = None, after: int = 0, names: bool = False
) -> Iterator[str]:
    """Return entries as lines of JSON, one each, for programs that watch events.

    Parameters
    ----------
    ledger : Ledger
    account : str, optional
        Entries of this account alone.
    after : int
        Number of the last known entry.
    names : bool
        Name persons.
    """
    known = ledger.names() if names else {}
    for entry in ledger.entries(account=account, after=after):
        event = {**_named(entry, known), "digest": entry.digest, "signature": entry.signature}
        yield canonical({"ledger": ledger.id, **event}) + "\n"


def entries_as_csv(ledger: Ledger, *, account: str | None = None, names: bool = False) -> str:
    """Return entries as CSV, one a line; no cell is a formula.

    Parameters
    ----------
    ledger : Ledger
    account : str, optional
        Entries of this account alone.
    names : bool
        Name persons.
    """
    known = ledger.names() if names else {}
    written = io.StringIO()
    table = csv.DictWriter(written, FIELDS, extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    for entry in ledger.entries(account=account):
        shown = {**_named(entry, known), "digest": entry.digest, "signature": entry.signature}
        table.writerow({name: _cell(shown.get(name)) for name in FIELDS})
    return written.getvalue()


def receipt_of(ledger: Ledger, charge: int) -> str:
    """Return a signed receipt of a charge: its entries, and the end of the chain.

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
        rows = TableStore(connection)
        row = rows.get("charges", charge)
        if row is None:
            raise LedgerError(f"there is no charge {charge}")
        (head,) = rows.all("head")
        table = schema.entries
        # A first selection; entries of charges with a longer number are left out below.
        likely = table.c.body.contains(f'"charge":{charge}', autoescape=True)
        query = table.select().where((table.c.number == charge) | likely).order_by(table.c.number)
        entries = (Entry(*found) for found in connection.execute(query))
        about = [
            entry for entry in entries if charge in (entry.number, entry.content.get("charge"))
        ]
    key = ledger.key_of(head)
    spent = projection.counted(row).numbers
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
        "public_key": key.public,
        "signature": key.sign(canonical(receipt).encode()),
    }
    return json.dumps(signed, indent=1, sort_keys=True) + "\n"


def is_receipt(text: str, *, public_key: str) -> bool:
    """Return whether a receipt was signed by a ledger, and is unchanged.

    Parameters
    ----------
    text : str
    public_key : str
        The ledger's, from a trusted source; the one in the receipt is for convenience.
    """
    try:
        signed: Mapping[str, Any] = json.loads(text)
        content = canonical(signed["receipt"]).encode()
        signature = str(signed["signature"])
    except (ValueError, KeyError, TypeError):
        return False
    return is_signed(content, signature, public=public_key)


def _shown(entry: Entry) -> dict[str, Any]:
    return {"body": entry.content, "digest": entry.digest, "signature": entry.signature}


def _named(entry: Entry, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the content of an entry, with the known names of persons."""
    content = entry.content
    called = {field: content[field] for field in ("who", "approved_by") if content.get(field)}
    return {**content, **{field: names.get(mark, mark) for field, mark in called.items()}}


def _cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    return FORMULA.sub(r"\1'", value) if isinstance(value, str) else value
