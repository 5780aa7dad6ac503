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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from numpy.typing import ArrayLike

from cloakgp.ledger import projection
from cloakgp.ledger.errors import OthersColumnError, PrivateInputError
from cloakgp.ledger.keys import Key, KeyFile, new_salt
from cloakgp.privacy.fingerprints import count_different, fingerprint_column

# A column of fewer different values can be guessed whole, by how often it has each. With so many,
# there are some 2^60 columns even if all of these numbers are known to within one.
GUESSABLE = 64


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


# Names of public inputs → a function that reads the column, in all forms in which it may have been
# attached: with empty cells, and without them.
ReadInputs = Mapping[str, Callable[[], Iterable[ArrayLike]]]


@dataclass(frozen=True)
class RecognisedInputs:
    """Public inputs that have the values of attached columns.

    Attributes
    ----------
    by_name : mapping of str to list of rows
        Name of an input → the columns.
    guessable : frozenset of str
        Inputs of so few different values that whoever makes them up can guess a column.
    """

    by_name: Mapping[str, Sequence[projection.Row]]
    guessable: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, inputs: ReadInputs, attached: Sequence[projection.Row], *, keys: KeyFile
    ) -> RecognisedInputs:
        """Return those among the inputs of a call; nothing is read if nothing is attached."""
        found, guessable = {}, set()
        for name, read in inputs.items() if attached else ():
            forms = list(read())
            # Of every input, whatever it equals: how long this takes tells nothing.
            if any(is_guessable(values) for values in forms):
                guessable.add(name)
            columns = {
                row["mark"]: row
                for values in forms
                for row in recognised(partial(_fingerprint, values), attached, keys=keys)
            }
            if columns:
                found[name] = list(columns.values())
        return cls(found, frozenset(guessable))

    def check(
        self, account: str, *, declared: Sequence[str], own: Collection[str] | None = None
    ) -> None:
        """Refuse inputs that are private columns of an account.

        Parameters
        ----------
        account : str
        declared : sequence of str
            Inputs that the caller declares to be public.
        own : collection of str, optional
            Private columns of the account that are the caller's own; all of them by default. That
            a guessable input is one of the others is for auditors alone (`note`).

        Raises
        ------
        PrivateInputError
            If inputs are private columns of the caller.
        OthersColumnError
            If they are others' alone.
        """
        private = {
            name: columns for name, columns in self._within(account).items() if name not in declared
        }
        wrong = {
            name: [column for column in columns if own is None or column in own]
            for name, columns in private.items()
        }
        wrong = {name: columns for name, columns in wrong.items() if columns}
        if wrong:
            listed = ", ".join(wrong)
            columns = ", ".join(dict.fromkeys(each for both in wrong.values() for each in both))
            raise PrivateInputError(
                f"{listed} cannot be public: the same values are attached to the account "
                f"{account!r} as the private {columns}. Public columns are in the release, row by "
                "row. Leave them out; or, if everybody may know them, declare that: "
                f"--declared-public {','.join(wrong)}",
                tuple(wrong),
            )
        if others := tuple(name for name in private if name not in self.guessable):
            raise OthersColumnError(
                "a public column has the same values as a private one that somebody else has "
                f"attached to the account {account!r}",
                others,
            )

    def note(self, account: str, *, declared: Sequence[str]) -> dict[str, object]:
        """Return what auditors see: inputs that are private here by name, and elsewhere.

        Parameters
        ----------
        account : str
        declared : sequence of str
            As for `check`. Others are guessable columns of others.
        """
        here: dict[bool, list[dict[str, str]]] = {True: [], False: []}
        for name, columns in self._within(account).items():
            here[name in declared] += [{"input": name, "column": each} for each in columns]
        others = [
            {"input": name, **other}
            for name, columns in self.by_name.items()
            for other in elsewhere(columns, account=account)
        ]
        return {
            **({"declared_public": here[True]} if here[True] else {}),
            **({"inputs_of_others": here[False]} if here[False] else {}),
            **({"inputs_elsewhere": others} if others else {}),
        }

    def _within(self, account: str) -> dict[str, list[str]]:
        found = {
            name: [row["name"] for row in columns if row["account"] == account]
            for name, columns in self.by_name.items()
        }
        return {name: columns for name, columns in found.items() if columns}


def is_guessable(values: ArrayLike) -> bool:
    """Return whether a column has so few different values that it can be guessed whole.

    Parameters
    ----------
    values : array-like

    Examples
    --------
    >>> is_guessable(["yes", "no"] * 500), is_guessable(range(64))
    (True, False)
    """
    return count_different(values) < GUESSABLE


def _fingerprint(values: ArrayLike, key: bytes) -> str | None:
    return fingerprint_column(values, key=key)
