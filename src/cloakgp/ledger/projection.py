"""Projection of the chain to tables: the accounts, charges and columns of its entries.

The same function follows a new entry in the database, and all entries from the first in an audit:
it reads and writes the rows of a `RowStore`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Protocol

from cloakgp.privacy.filters import Amount, PrivacyFilter, filter_of

Row = dict[str, Any]
# Tables, and the keys of their rows.
KEYED_BY = {
    "accounts": "name",
    "charges": "number",
    "columns": "mark",
    "draws": "digest",
    "recoveries": "number",
}
# States of a charge.
OPEN, COMMITTED, FAILED, REFUNDED, VOIDED, IMPORTED = (
    "open",
    "committed",
    "failed",
    "refunded",
    "voided",
    "imported",
)
# States of an older copy; and entries about keys, names and tables, which change no row here.
RECOVERING, RECOVERED = "recovering", "recovered"
ROTATED, ERASED, REBUILT = "rotated", "erased", "rebuilt"
# Answers that follow from those of a charge, by their digests.
NOTED = "noted"
# Cohorts: of an account the rows of people who are in one alone, beside charges about everybody; of
# one charge, of its rows, by number.
EVERYBODY, FIRST = "", "0"
# Names of cohorts in amounts: earlier versions took numbers for names, and wrote them bare.
_QUOTED_OR_BARE = re.compile(r'("(?:[^"\\]|\\.)*")|([^\s"{}\[\],:]+)(?=: \[)')
# In these states, the key of a charge is free again.
NOTHING_DRAWN = (REFUNDED, VOIDED)


class RowStore(Protocol):
    """Tables whose rows are found by one key each."""

    def get(self, table: str, key: object) -> Row | None:
        """Return a row, or None."""

    def put(self, table: str, row: Row) -> None:
        """Write a row, in the place of that with its key if there is one."""


class MemoryStore:
    """RowStore in dictionaries.

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


def amounts_of(account: Mapping[str, Any]) -> dict[str, Amount]:
    """Return what the charges of an account add up to, for the people of each of its cohorts.

    Those about a cohort, and those about everybody. Without cohorts they are for everybody, "".

    Examples
    --------
    >>> spent = {"": Amount(pure=4), "May": Amount(pure=2), "June": Amount(pure=1)}
    >>> {name: amount.pure for name, amount in amounts_of({"spent": amounts_text(spent)}).items()}
    {'': 4, 'May': 6, 'June': 5}
    """
    spent = amounts_from(account["spent"], alone=EVERYBODY)
    everybody = spent[EVERYBODY]
    return {name: everybody + amount if name else everybody for name, amount in spent.items()}


def amount_of(account: Mapping[str, Any], cohort: str = EVERYBODY) -> Amount:
    """Return what the charges of an account add up to, for anybody or the people of a cohort.

    For anybody it is the largest over cohorts, part by part: nobody is in two of them.
    """
    amounts = amounts_of(account)
    return amounts[cohort] if cohort else reduce(Amount.largest, amounts.values())


def cohorts_beyond(
    account: Mapping[str, Any], charges: Sequence[Mapping[str, Any]]
) -> frozenset[str]:
    """Return the cohorts on whose people more was spent than the limit allows.

    The filter refuses these sums. A charge that is the only one about somebody may take the limit
    whole, beyond the filter, and keeps it.

    Parameters
    ----------
    account : mapping
    charges : sequence of mappings
        All of the account.
    """
    rule = _filter_of(account)
    epsilon, delta = float.fromhex(account["epsilon"]), float.fromhex(account["delta"])
    spending = [charge["cohort"] for charge in charges if counted(charge) != Amount()]

    def is_beyond(cohort: str, spent: Amount) -> bool:
        alone = sum(about in (EVERYBODY, cohort) for about in spending) == 1
        return not rule.accepts(spent) and not (alone and spent.delta_at(epsilon) <= delta)

    return frozenset(name for name, spent in amounts_of(account).items() if is_beyond(name, spent))


def amount_text(amount: Amount) -> str:
    """Return an amount as text.

    Examples
    --------
    >>> amount_from(amount_text(Amount(pure=7))).pure
    7
    """
    # Hexadecimal, as whole numbers of that length are read in linear time.
    return json.dumps([f"{part:x}" for part in amount.parts])


def amount_from(text: str) -> Amount:
    """Return an amount that was written as text."""
    return Amount.from_parts([int(part, 16) for part in json.loads(text)])


def amounts_from(text: str, *, alone: str) -> dict[str, Amount]:
    """Return amounts about several cohorts from text.

    Parameters
    ----------
    text : str
    alone : str
        The name of the cohort that a single amount is about, as most are.

    Examples
    --------
    >>> amounts_from(amounts_text({"0": Amount(pure=7), "1": Amount(pure=9)}), alone="0")["1"].pure
    9
    """
    try:
        parts = json.loads(text)
    except json.JSONDecodeError:
        parts = json.loads(_QUOTED_OR_BARE.sub(_quote_name, text))
    cohorts = {alone: parts} if isinstance(parts, list) else parts
    return {
        name: Amount.from_parts([int(part, 16) for part in amount])
        for name, amount in cohorts.items()
    }


def _quote_name(found: re.Match[str]) -> str:
    quoted, bare = found.groups()
    return quoted or json.dumps(bare)


def amounts_text(amounts: Mapping[str, Amount]) -> str:
    """Return amounts about several cohorts as text, the first of which stands alone if it can."""
    if len(amounts) == 1 and amounts.keys() <= {EVERYBODY, FIRST}:
        (amount,) = amounts.values()
        return amount_text(amount)
    cohorts = (f"{json.dumps(name)}: {amount_text(amount)}" for name, amount in amounts.items())
    return "{" + ", ".join(cohorts) + "}"


def drawn_of(charge: Mapping[str, Any]) -> Amount:
    """Return what a charge has drawn: the largest over its cohorts, part by part.

    Nobody's output is in two cohorts, so that this is no less than the draws about anybody.
    """
    return reduce(Amount.largest, amounts_from(charge["drawn"], alone=FIRST).values())


def has_room(account: Mapping[str, Any], charge: Mapping[str, Any]) -> bool:
    """Return whether an account keeps within its limit, with the charge that was counted last.

    For the people of each cohort whom the charge is about: by the filter; or because that charge is
    the only one about them, and takes the limit whole: this is settled before its first answer,
    and stays, however little it draws in the end.
    """
    rule = _filter_of(account)
    held, drawn = amount_from(charge["held"]), drawn_of(charge)
    fixed = held.covers_pure(drawn) or charge["draws"] <= 1

    def has_room_for(spent: Amount) -> bool:
        if rule.accepts(spent):
            return True
        takes_whole = charge["whole"] and rule.takes_whole(spent, draws=charge["draws"])
        return counted(charge) == spent and fixed and takes_whole

    return all(map(has_room_for, _amounts_about(account, charge)))


def _amounts_about(account: Mapping[str, Any], charge: Mapping[str, Any]) -> list[Amount]:
    """Return what was spent on the people whom a charge is about: of its cohort, or of each."""
    cohort = charge["cohort"]
    return [amount_of(account, cohort)] if cohort else list(amounts_of(account).values())


def counted(charge: Mapping[str, Any]) -> Amount:
    """Return the amount of a charge against its account."""
    if charge["state"] in NOTHING_DRAWN:
        return Amount()
    drawn = drawn_of(charge)
    if charge["state"] == OPEN or charge["whole"]:
        return drawn.largest(amount_from(charge["held"]))
    return drawn


def project(content: Mapping[str, Any], rows: RowStore) -> None:
    """Follow one entry.

    Parameters
    ----------
    content : mapping
        Of the entry.
    rows : RowStore

    Raises
    ------
    KeyError, TypeError, ValueError
        If it does not follow from those before it.
    """
    kind = content["kind"]
    if kind == "account":
        about = {"name": content["account"], "unit": content["unit"], **_limit(content)}
        rows.put("accounts", {**about, "spent": amount_text(Amount()), "spending": 0})
    elif kind == "limit":
        rows.put("accounts", {**_account(content["account"], rows), **_limit(content)})
    elif kind == "attached":
        _account(content["account"], rows)
        # Earlier versions took a number for a name, and the database kept its text.
        row = {"name": str(content["column"]), "account": content["account"]}
        row["cohort"] = str(content.get("cohort") or EVERYBODY)
        if row["cohort"]:
            _add_cohort(content["account"], content["cohort"], rows)
        rows.put("columns", {name: content[name] for name in ("mark", "salt", "key")} | row)
    elif kind == RECOVERING:
        rows.put("recoveries", {"number": content["number"], "state": RECOVERING})
    elif kind == RECOVERED:
        _reconcile(content, rows)
    elif kind in {"reserved", IMPORTED}:
        _open(content, rows)
    elif kind in {"drawing", COMMITTED, FAILED, REFUNDED, VOIDED, NOTED, "published"}:
        _follow(content, rows)
    elif kind not in {"ledger", ROTATED, ERASED, REBUILT}:
        raise ValueError(f"unknown kind of entry {kind!r}")


def _open(content: Mapping[str, Any], rows: RowStore) -> None:
    number = content["number"]
    imported = content["kind"] == IMPORTED
    amount = Amount.from_numbers(content)
    charge = {
        "number": number,
        "account": content["account"],
        "state": IMPORTED if imported else OPEN,
        "held": amount_text(Amount() if imported else amount),
        "drawn": amount_text(amount if imported else Amount()),
        # Draws of noise; of an import, an unknown number.
        "draws": 2 if imported else 0,
        "whole": False,
        "cohort": content.get("cohort", EVERYBODY),
        "key": content.get("key"),
        "release": content.get("release"),
    }
    _count(charge, Amount(), rows)
    if not imported:
        charge["whole"] = _is_beyond(charge, rows)
    rows.put("charges", charge)
    _note_draws(content, number, rows)


def _follow(content: Mapping[str, Any], rows: RowStore) -> None:
    number, kind = content["charge"], content["kind"]
    charge = rows.get("charges", number)
    if charge is None:
        raise ValueError(f"there is no charge {number}")
    before = counted(charge)
    if kind == "published":
        charge["release"] = content["release"]
    elif kind == NOTED:
        if charge["state"] in NOTHING_DRAWN:
            raise ValueError(f"nothing was drawn for charge {number}")
    elif charge["state"] != OPEN:
        raise ValueError(f"charge {number} is {charge['state']}")
    elif kind == "drawing":
        drawn = amounts_from(charge["drawn"], alone=FIRST)
        cohort = str(int(content.get("cohort", FIRST)))
        drawn[cohort] = drawn.get(cohort, Amount()) + Amount.from_numbers(content)
        charge["drawn"] = amounts_text(drawn)
        charge["draws"] += 1
    else:
        if kind == REFUNDED and drawn_of(charge) != Amount():
            raise ValueError(f"noise was drawn for charge {number}")
        charge["state"] = kind
        if kind in NOTHING_DRAWN:
            charge["key"] = None
    _count(charge, before, rows)
    if kind == "drawing" and charge["draws"] == 1 and amount_from(charge["held"]) == Amount():
        charge["whole"] = _is_beyond(charge, rows)
    rows.put("charges", charge)
    _note_draws(content, number, rows)


def _reconcile(content: Mapping[str, Any], rows: RowStore) -> None:
    for number in content["recoveries"]:
        row = rows.get("recoveries", number)
        if row is None or row["state"] != RECOVERING:
            raise ValueError(f"entry {number} is no recovery that is not reconciled")
        rows.put("recoveries", {**row, "state": RECOVERED})


def charge_of_draw(digest: str, account: str, rows: RowStore) -> int | None:
    """Return the number of an account's charge that counts a draw; None if none does.

    A charge that was voided counts nothing: what follows from its draws, after all, counts anew.

    Parameters
    ----------
    digest : str
        Of the noisy answers.
    account : str
        Its name. What other accounts count is about other people, and counts nothing here.
    rows : RowStore
    """
    for place in (digest, _draw_in(account, digest)):
        row = rows.get("draws", place)
        charge = None if row is None else _charge(row["charge"], rows)
        if charge is not None and charge["account"] == account and charge["state"] != VOIDED:
            number: int = charge["number"]
            return number
    return None


def _note_draws(content: Mapping[str, Any], number: int, rows: RowStore) -> None:
    for digest in content.get("draws", ()):
        account = _charge(number, rows)["account"]
        if charge_of_draw(digest, account, rows) is None:
            known = rows.get("draws", digest) is not None
            place = _draw_in(account, digest) if known else digest
            rows.put("draws", {"digest": place, "charge": number})


def _draw_in(account: str, digest: str) -> str:
    """Return the key of a draw that another account counted first."""
    return f"{digest} {account}"


def _charge(number: int, rows: RowStore) -> Row:
    row = rows.get("charges", number)
    if row is None:
        raise ValueError(f"there is no charge {number}")
    return row


def _count(charge: Mapping[str, Any], before: Amount, rows: RowStore) -> None:
    """Count the present amount of a charge in the place of its earlier one."""
    account, after = _account(charge["account"], rows), counted(charge)
    spent, cohort = amounts_from(account["spent"], alone=EVERYBODY), charge["cohort"]
    if cohort not in spent:
        raise ValueError(f"nobody has said who the people of {cohort!r} are")
    spent[cohort] = spent[cohort] + after - before
    spending = account["spending"] + (after != Amount()) - (before != Amount())
    rows.put("accounts", {**account, "spent": amounts_text(spent), "spending": spending})


def _add_cohort(name: str, cohort: str, rows: RowStore) -> None:
    account = _account(name, rows)
    spent = amounts_from(account["spent"], alone=EVERYBODY)
    spent.setdefault(cohort, Amount())
    rows.put("accounts", {**account, "spent": amounts_text(spent)})


def _is_beyond(charge: Mapping[str, Any], rows: RowStore) -> bool:
    """Return whether an account's filter refuses the last charge."""
    account = _account(charge["account"], rows)
    rule = _filter_of(account)
    return not all(map(rule.accepts, _amounts_about(account, charge)))


def _filter_of(account: Mapping[str, Any]) -> PrivacyFilter:
    return filter_of((float.fromhex(account["epsilon"]), float.fromhex(account["delta"])))


def _account(name: str, rows: RowStore) -> Row:
    account = rows.get("accounts", name)
    if account is None:
        raise ValueError(f"there is no account {name!r}")
    return account


def _limit(content: Mapping[str, Any]) -> Row:
    return {name: float(content[name]).hex() for name in ("epsilon", "delta")}
