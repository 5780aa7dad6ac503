"""Life of a charge: reserved, drawing, and then committed, failed or refunded.

A charge is one call: a fit with all of its stages, or one measurement. Where the call says how much
it will spend in all, that is held before anything is drawn (`reserved`), so that no fit finds
itself without room for its second half. Before every draw of noise an entry says exactly what that
draw costs (`drawing`), and is on the disk before the noise is drawn. A charge counts for the larger
of what is held and what was drawn. When the call returns, the digests of what was published are
noted and what is left of the hold is given back (`committed`); when it fails, what was drawn stays
spent (`failed`), and only if nothing was, all of it is given back (`refunded`). A charge whose
process died stays as it is, and counts, until somebody says otherwise (`voided`), which is refused
if noise may have been drawn for it, unless that is said too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cloakgp.ledger import projection
from cloakgp.ledger.amounts import Amount
from cloakgp.ledger.database import Database, Writing
from cloakgp.ledger.errors import LedgerError, LimitError
from cloakgp.privacy.spending import Budget, Cost, Spender, Unit

# How often it is tried to note that a charge is closed: it was reserved, whatever happens.
TRIES = 3
# Guarantees about the first are about the second too: neighbours of the second differ in less.
STRONGER: dict[Unit, frozenset[Unit]] = {
    "row": frozenset({"row"}),
    "person": frozenset({"person", "row"}),
    "whole row replaced": frozenset({"whole row replaced", "row"}),
    "whole row added or removed": frozenset({"whole row added or removed"}),
}


@dataclass(frozen=True)
class Purpose:
    """What a charge is for.

    Attributes
    ----------
    account : str
    text : str
        In somebody's words.
    key : str or None
        Of the one release that is wanted; no two charges of an account have one.
    """

    account: str
    text: str = ""
    key: str | None = None


class LedgerCharge:
    """What one call spends of an account.

    Parameters
    ----------
    database : Database
    spender : Spender
    purpose : Purpose
    fingerprint, column : str or None
        Of the private outputs, and what they are called if they are attached.
    """

    def __init__(
        self,
        database: Database,
        spender: Spender,
        *,
        purpose: Purpose,
        fingerprint: str | None,
        column: str | None,
    ) -> None:
        self.number: int | None = None
        self._database = database
        self._purpose = purpose
        self._about = {
            "call": spender.call,
            "unit": spender.unit,
            "epsilon": spender.epsilon,
            "delta": spender.delta,
            "fingerprint": fingerprint,
            "column": column,
        }
        self._drawing = 0
        self._digests: list[str] = []

    def hold(self, budgets: Sequence[Budget]) -> None:
        """Hold budgets for what will be drawn.

        Raises
        ------
        LimitError
            If the account has no room for them.
        """
        if self.number is None:
            held = Amount.held(budgets)
            with self._database.writing() as writing:
                number = self._open(writing, held)
            self.number = number

    def reserve(self, cost: Cost) -> None:
        """Reserve what a draw costs; it is on the disk when this returns.

        Raises
        ------
        LimitError
            If the account has no room for it.
        LedgerError
            If somebody has voided the charge meanwhile, or the database fails.
        """
        amount = Amount.of(cost)
        with self._database.writing() as writing:
            number = self.number or self._open(writing, Amount())
            charge = writing.rows.get("charges", number)
            if charge is None or charge["state"] != projection.OPEN:
                raise LedgerError(f"charge {number} was closed by somebody else: nothing is drawn")
            writing.append(
                "drawing",
                charge=number,
                account=self._purpose.account,
                mechanism=cost.mechanism,
                **amount.numbers,
            )
            self._check_room(writing)
        self.number = number
        self._drawing += 1

    def drawn(self, digest: str | None) -> None:
        """Note the digest of what was drawn."""
        if digest is not None:
            self._digests.append(digest)

    def close(self, *, failed: bool) -> None:
        """Commit what was drawn, and give back what was only held."""
        if self.number is None:
            return
        drawn = self._drawing > 0
        kind = projection.REFUNDED
        if drawn:
            kind = projection.FAILED if failed else projection.COMMITTED
        for left in reversed(range(TRIES)):
            try:
                self._close(kind)
            except LedgerError:
                if not left:
                    raise
            else:
                return

    def _close(self, kind: str) -> None:
        with self._database.writing() as writing:
            charge = writing.rows.get("charges", self.number)
            state = None if charge is None else charge["state"]
            if state == projection.OPEN:
                writing.append(
                    kind, charge=self.number, account=self._purpose.account, draws=self._digests
                )
            # An earlier try may have done it, and not have heard.
            elif state != kind:
                raise LedgerError(f"charge {self.number} was closed by somebody else")

    def _open(self, writing: Writing, held: Amount) -> int:
        key = self._purpose.key
        if key is not None and writing.rows.all("charges", account=self._purpose.account, key=key):
            raise LedgerError(
                f"the key {key!r} has been used: one key is for one fit, and nothing is drawn twice"
            )
        number = writing.append(
            "reserved",
            account=self._purpose.account,
            purpose=self._purpose.text,
            key=key,
            **self._about,
            **held.numbers,
        )
        if held != Amount():
            self._check_room(writing)
        return number

    def _check_room(self, writing: Writing) -> None:
        """Raise, and so undo the transaction, if the account is beyond its limit."""
        row = writing.rows.get("accounts", self._purpose.account)
        assert row is not None
        limit = float.fromhex(row["epsilon"]), float.fromhex(row["delta"])
        if not projection.amount_of(row).fits(limit):
            raise LimitError(
                f"the account {self._purpose.account!r} has no room for this within its limit of "
                f"({limit[0]:g}, {limit[1]:g}): nothing was drawn. cloakgp ledger show tells what "
                "is left"
            )


def check_unit(account_unit: str, unit: Unit, *, name: str) -> None:
    """Refuse a charge about others than an account is about.

    A guarantee for all outputs of a person holds for each row of theirs, and one for whole rows for
    their outputs: such charges are taken, at what they cost for the stronger. Nothing else is.

    Raises
    ------
    LedgerError

    Examples
    --------
    >>> check_unit("row", "person", name="people")
    """
    if account_unit not in STRONGER[unit]:
        raise LedgerError(
            f"the account {name!r} protects one {account_unit}, and this would protect one {unit}: "
            "guarantees about different neighbours do not add up"
        )
