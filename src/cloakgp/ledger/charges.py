"""Life of a charge: reserved, drawing, and then committed, failed or refunded.

A charge is one call: a fit with all of its stages, or one measurement. If the call states its whole
budget, the charge holds it before anything is drawn (`reserved`), so that no fit runs out of room
for its second half. Before every draw of noise an entry states the exact cost of that draw
(`drawing`), and is on the disk before the noise is drawn. A charge counts for the larger of the
hold and the drawn amount; of draws about rows that have none in common (cohorts), for the largest
amount of one. When the call returns, an entry notes the digests of the published
answers and gives the rest of the hold back (`committed`); when it fails, the drawn amount stays
spent (`failed`), and only if nothing was drawn, all of it is given back (`refunded`). A charge
whose process died stays open, and counts, until it is voided (`voided`). This is refused if noise
may have been drawn for it, unless the caller confirms that nobody has seen it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cloakgp.ledger import projection
from cloakgp.ledger.database import Database, Writing
from cloakgp.ledger.errors import ClosedByAnotherError, LedgerError, LimitError
from cloakgp.privacy.filters import Amount
from cloakgp.privacy.spending import Budget, Cost, Spender, Unit

# Attempts to close a charge; it stays reserved if all fail.
TRIES = 3
# A guarantee for the first unit holds for the others, too: their neighbours differ in less.
STRONGER: dict[Unit, frozenset[Unit]] = {
    "row": frozenset({"row"}),
    "person": frozenset({"person", "row"}),
    "whole row replaced": frozenset({"whole row replaced", "row"}),
    "whole row added or removed": frozenset({"whole row added or removed"}),
}


@dataclass(frozen=True)
class Purpose:
    """The purpose of a charge.

    Attributes
    ----------
    account : str
    text : str
        In the words of the caller.
    key : str or None
        Of one release; no two charges of an account have the same.
    choices : str
        The digest of the public choices that go with the key; empty if they are not stated.
    approved_by : str
        The approver, if approval was needed.
    cohort : str
        Of the account, whose people alone it is about; empty for everybody.
    declared_public : tuple of str
        Inputs that the caller declares to be public, whatever is attached.
    """

    account: str
    text: str = ""
    key: str | None = None
    choices: str = ""
    approved_by: str = ""
    cohort: str = ""
    declared_public: tuple[str, ...] = ()


class LedgerCharge:
    """The charge of one call to an account.

    Parameters
    ----------
    database : Database
    spender : Spender
    purpose : Purpose
    note : mapping
        The attached columns of the private outputs, for auditors alone: it follows from the
        outputs. The entry, which others read, has a mark of it that tells nothing.
    resumed : int, optional
        Number of the open charge of a call whose process died, which this one goes on with: what
        was drawn for it counts, and its hold covers the rest.
    """

    def __init__(
        self,
        database: Database,
        spender: Spender,
        *,
        purpose: Purpose,
        note: Mapping[str, object],
        resumed: int | None = None,
    ) -> None:
        self.number: int | None = resumed
        self._database = database
        self._purpose = purpose
        self._about = {
            "call": spender.call,
            "unit": spender.unit,
            "epsilon": spender.epsilon,
            "delta": spender.delta,
            **({"people": spender.people} if spender.people else {}),
        }
        self._note = note
        # Of one that is gone on with, the process that died may have drawn.
        self._drawing = 0 if resumed is None else 1
        self._digests: list[str] = []

    def hold(self, budgets: Sequence[Cost | Budget]) -> None:
        """Hold budgets for later draws.

        Raises
        ------
        LimitError
            If the account has no room for them.
        LedgerError
            If they are too large or too small for a guarantee.
        """
        if self.number is None:
            try:
                held = Amount.to_hold(budgets)
            except ValueError as error:
                raise LedgerError(str(error)) from None
            with self._database.writing() as writing:
                number = self._open(writing, held)
            self.number = number

    def reserve(self, cost: Cost) -> None:
        """Reserve the cost of a draw; it is on the disk when this returns.

        Raises
        ------
        LimitError
            If the account has no room for it.
        ClosedByAnotherError
            If the charge was closed meanwhile.
        LedgerError
            If the database fails.
        """
        amount = Amount.of(cost)
        with self._database.writing() as writing:
            number = self.number or self._open(writing, Amount())
            charge = writing.rows.get("charges", number)
            if charge is None or charge["state"] != projection.OPEN:
                raise _closed_by_another(number, charge)
            writing.append(
                "drawing",
                charge=number,
                account=self._purpose.account,
                mechanism=cost.mechanism,
                **({"cohort": cost.cohort} if cost.cohort else {}),
                **amount.numbers,
            )
            self._check_room(writing, number)
        self.number = number
        self._drawing += 1

    def drawn(self, digest: str | None) -> None:
        """Note the digest of drawn answers."""
        if digest is not None:
            self._digests.append(digest)

    def close(self, *, failed: bool) -> None:
        """Commit the drawn amount, and give the rest of the hold back."""
        if self.number is None:
            return
        drawn = self._drawing > 0
        kind = projection.REFUNDED
        if drawn:
            kind = projection.FAILED if failed else projection.COMMITTED
        for left in reversed(range(TRIES)):
            try:
                self._close(kind)
            except ClosedByAnotherError:
                raise
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
            # An earlier attempt may have closed it without an answer.
            elif state != kind:
                raise _closed_by_another(self.number, charge)

    def _open(self, writing: Writing, held: Amount) -> int:
        key = self._purpose.key
        if key is not None and writing.rows.all("charges", account=self._purpose.account, key=key):
            raise LedgerError(
                f"the key {key!r} has been used: one key is for one fit, and nothing is drawn twice"
            )
        approver = self._purpose.approved_by
        number = writing.append_noted(
            "reserved",
            note=self._note,
            account=self._purpose.account,
            purpose=self._purpose.text,
            approved_by=writing.pseudonym(approver) if approver else None,
            key=key,
            **({"choices": self._purpose.choices} if self._purpose.choices else {}),
            **({"cohort": self._purpose.cohort} if self._purpose.cohort else {}),
            **(
                {"declared_public": list(self._purpose.declared_public)}
                if self._purpose.declared_public
                else {}
            ),
            **self._about,
            **held.numbers,
        )
        if held != Amount():
            self._check_room(writing, number)
        return number

    def _check_room(self, writing: Writing, number: int) -> None:
        """Raise, and so undo the transaction, if the account is beyond its limit."""
        row = writing.rows.get("accounts", self._purpose.account)
        charge = writing.rows.get("charges", number)
        assert row is not None
        assert charge is not None
        if not projection.has_room(row, charge):
            epsilon, delta = float.fromhex(row["epsilon"]), float.fromhex(row["delta"])
            raise LimitError(
                f"the account {self._purpose.account!r} has no room for this within its limit of "
                f"({epsilon:g}, {delta:g}): nothing was drawn. cloakgp ledger show states the "
                "room"
            )


def _closed_by_another(
    number: int | None, charge: Mapping[str, object] | None
) -> ClosedByAnotherError:
    """Return the error of a call whose charge is not open any more."""
    state = None if charge is None else charge["state"]
    counts = state is not None and state not in projection.NOTHING_DRAWN
    how = "who voided it" if state == projection.VOIDED else f"and is {state or 'gone'}"
    told = "what was drawn for it counts" if counts else "nothing of it counts"
    return ClosedByAnotherError(
        f"charge {number} was closed by another person, {how}: {told}, nothing more is drawn for "
        "it, and nothing is returned",
        counts=counts,
    )


def check_unit(account_unit: str, unit: Unit, *, name: str) -> None:
    """Refuse a charge whose unit does not cover that of an account.

    A guarantee for all outputs of a person holds for each row of theirs, and one for whole rows for
    their outputs: such charges are taken, at the cost of the stronger guarantee. Others are not.

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
