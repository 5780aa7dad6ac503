"""Attached columns: recognition of private outputs by keyed marks.

The ledger keeps a mark of a column: its keyed fingerprint, once more under a salt of that mark
(`cloakgp.ledger.commitments`). The database alone tells nothing from it, not even whether two
columns are the same. The database and the key together allow tests of guessed columns, as this
module makes them. The chain, receipts and exports hold marks, and no fingerprint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cloakgp.ledger import projection
from cloakgp.ledger.commitments import mark_of
from cloakgp.ledger.keys import Key, KeyFile, new_salt

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
