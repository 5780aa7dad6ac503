"""Projection of the chain: which accounts, charges and columns its entries make, one by one.

The same function follows a new entry in the database, and all entries from the first when the
ledger is audited: what is read and written, it gets from a `Rows`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from cloakgp.ledger.amounts import Amount

Row = dict[str, Any]
# Tables, and what their rows are found by.
KEYED_BY = {
    "accounts": "name",
    "charges": "number",
    "columns": "fingerprint",
    "draws": "digest",
}
PARTS = ("gaussian", "pure", "pure_gaussian", "answers", "coarseness")
# Of a charge.
OPEN, COMMITTED, FAILED, REFUNDED, VOIDED, IMPORTED = (
    "open",
    "committed",
    "failed",
    "refunded",
    "voided",
    "imported",
)
# Whoever wanted a charge of such a state with a key may try again with that key.
NOTHING_DRAWN = (REFUNDED, VOIDED)


class Rows(Protocol):
    """Tables whose rows are found by one key each."""

    def get(self, table: str, key: object) -> Row | None:
        """Return a row, or None."""

    def put(self, table: str, row: Row) -> None:
        """Write a row, in the place of that with its key if there is one."""


class RowsInMemory:
    """Rows in dictionaries.

    Attributes
    ----------
    tables : dict
        Name of a table → key → row.
    """

    def __init__(self) -> None:
        self.tables: dict[str, dict[object, Row]] = {name: {} for name in KEYED_BY}

    def get(self, table: str, key: object) -> Row | None:
        """Return a copy of a row, or None."""
        row = self.tables[table].get(key)
        return None if row is None else dict(row)

    def put(self, table: str, row: Row) -> None:
        """Write a row."""
        self.tables[table][row[KEYED_BY[table]]] = dict(row)


def amount_of(row: Mapping[str, Any]) -> Amount:
    """Return what an account has spent."""
    return Amount(*(int(row[part]) for part in PARTS))


def amount_text(amount: Amount) -> str:
    """Return an amount as text.

    Examples
    --------
    >>> amount_from(amount_text(Amount(pure=7))).pure
    7
    """
    return json.dumps([str(part) for part in amount.parts])


def amount_from(text: str) -> Amount:
    """Return an amount that was written as text."""
    return Amount(*(int(part) for part in json.loads(text)))


def counted(charge: Mapping[str, Any]) -> Amount:
    """Return for how much a charge counts against its account."""
    if charge["state"] in NOTHING_DRAWN:
        return Amount()
    drawn = amount_from(charge["drawn"])
    if charge["state"] == OPEN:
        return drawn.largest(amount_from(charge["held"]))
    return drawn


def project(content: Mapping[str, Any], rows: Rows) -> None:
    """Follow one entry.

    Parameters
    ----------
    content : mapping
        Of the entry.
    rows : Rows

    Raises
    ------
    KeyError, TypeError, ValueError
        If it does not follow from those before it.
    """
    kind = content["kind"]
    if kind == "account":
        zero = dict.fromkeys(PARTS, "0")
        limit = _limit(content)
        rows.put("accounts", {"name": content["account"], "unit": content["unit"], **limit, **zero})
    elif kind == "limit":
        rows.put("accounts", {**_account(content["account"], rows), **_limit(content)})
    elif kind == "attached":
        _account(content["account"], rows)
        row = {"name": content["column"], "account": content["account"]}
        rows.put("columns", {"fingerprint": content["fingerprint"], **row})
    elif kind in {"reserved", IMPORTED}:
        _open(content, rows)
    elif kind in {"drawing", COMMITTED, FAILED, REFUNDED, VOIDED, "published"}:
        _follow(content, rows)
    elif kind != "ledger":
        raise ValueError(f"unknown kind of entry {kind!r}")


def _open(content: Mapping[str, Any], rows: Rows) -> None:
    number = content["number"]
    imported = content["kind"] == IMPORTED
    amount = Amount.from_numbers(content)
    charge = {
        "number": number,
        "account": content["account"],
        "state": IMPORTED if imported else OPEN,
        "held": amount_text(Amount() if imported else amount),
        "drawn": amount_text(amount if imported else Amount()),
        "key": content.get("key"),
        "release": content.get("release"),
    }
    rows.put("charges", charge)
    _count(content["account"], counted(charge), rows)
    _note_draws(content, number, rows)


def _follow(content: Mapping[str, Any], rows: Rows) -> None:
    number, kind = content["charge"], content["kind"]
    charge = rows.get("charges", number)
    if charge is None:
        raise ValueError(f"there is no charge {number}")
    before = counted(charge)
    if kind == "published":
        charge["release"] = content["release"]
    elif charge["state"] != OPEN:
        raise ValueError(f"charge {number} is {charge['state']}")
    elif kind == "drawing":
        drawn = amount_from(charge["drawn"]) + Amount.from_numbers(content)
        charge["drawn"] = amount_text(drawn)
    else:
        if kind == REFUNDED and amount_from(charge["drawn"]) != Amount():
            raise ValueError(f"noise was drawn for charge {number}")
        charge["state"] = kind
        if kind in NOTHING_DRAWN:
            charge["key"] = None
    rows.put("charges", charge)
    _count(charge["account"], counted(charge) - before, rows)
    _note_draws(content, number, rows)


def _note_draws(content: Mapping[str, Any], number: int, rows: Rows) -> None:
    for digest in content.get("draws", ()):
        if rows.get("draws", digest) is None:
            rows.put("draws", {"digest": digest, "charge": number})


def _count(name: str, change: Amount, rows: Rows) -> None:
    account = _account(name, rows)
    total = amount_of(account) + change
    parts = zip(PARTS, total.parts, strict=True)
    rows.put("accounts", {**account, **{part: str(value) for part, value in parts}})


def _account(name: str, rows: Rows) -> Row:
    account = rows.get("accounts", name)
    if account is None:
        raise ValueError(f"there is no account {name!r}")
    return account


def _limit(content: Mapping[str, Any]) -> Row:
    return {name: float(content[name]).hex() for name in ("epsilon", "delta")}
