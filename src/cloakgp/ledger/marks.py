"""Marks: commitments of the chain to texts beside it, and recognition of private columns by them.

A mark is an HMAC (RFC 2104) of a text under a salt of its own. It tells nothing of the text, and
marks of one text under two salts tell nothing of each other; with the salt and the text, anybody
can check it. So a text beside the chain can be erased, with its salt, and the chain
verifies as before.

Of a private column the ledger keeps the mark of its keyed fingerprint. The database alone tells
nothing from it, not even whether two columns are the same. The database and the key together allow
tests of guessed columns, as this module makes them. The chain, receipts and exports hold marks, and
no fingerprint.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence

from cloakgp.ledger import projection
from cloakgp.ledger.keys import Key, KeyFile, new_salt


def mark_of(text: str, *, salt: str) -> str:
    """Return the mark of a text.

    Parameters
    ----------
    text : str
    salt : str
        In hexadecimal, from `cloakgp.ledger.keys.new_salt`.

    Examples
    --------
    >>> mark_of("anna", salt="00" * 32) == mark_of("anna", salt="00" * 32)
    True
    >>> mark_of("anna", salt="00" * 32) == mark_of("anna", salt="11" * 32)
    False
    """
    return hmac.new(bytes.fromhex(salt), text.encode(), hashlib.sha256).hexdigest()


Fingerprinting = Callable[[bytes], str | None]


def marked(fingerprinted: Fingerprinting, *, key: Key) -> dict[str, str] | None:
    """Return the mark of a column, or None if it has no entries.

    Parameters
    ----------
    fingerprinted : callable
        A key → the keyed fingerprint of the column.
    key : Key
    """
    fingerprint = fingerprinted(key.columns)
    if fingerprint is None:
        return None
    salt = new_salt()
    return {"mark": mark_of(fingerprint, salt=salt), "salt": salt, "key": key.check}


def recognised(
    fingerprinted: Fingerprinting, attached: Sequence[projection.Row], *, keys: KeyFile
) -> list[projection.Row]:
    """Return the attached columns that are equal to a column.

    Parameters
    ----------
    fingerprinted : callable
        A key → the keyed fingerprint of the column.
    attached : sequence of rows
    keys : KeyFile
    """
    checks = dict.fromkeys(row["key"] for row in attached)
    fingerprints = {check: fingerprinted(keys.key(check).columns) for check in checks}
    columns = []
    for row in attached:
        fingerprint = fingerprints[row["key"]]
        if fingerprint is not None and mark_of(fingerprint, salt=row["salt"]) == row["mark"]:
            columns.append(row)
    return columns


def elsewhere(columns: Sequence[projection.Row], *, account: str) -> list[dict[str, str]]:
    """Return the other accounts of columns, with the names there."""
    return [
        {"account": row["account"], "column": row["name"]}
        for row in columns
        if row["account"] != account
    ]
