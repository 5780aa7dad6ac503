"""Recovery of a ledger from an older copy.

Later charges are missing in the copy, although their noise is published. The anchor knows of them,
so such a copy counts nothing (`Database.check`) until two entries are written: the first states
that the copy was put back, after which releases are imported and limits lowered, and nothing else;
the second gives an account of the missing charges, after which the ledger goes on.
"""

from __future__ import annotations

from dataclasses import dataclass

from cloakgp.ledger import audit, projection
from cloakgp.ledger.database import Database
from cloakgp.ledger.errors import DamagedLedgerError, LedgerError


@dataclass(frozen=True)
class Recovery:
    """An older copy that was put back.

    Attributes
    ----------
    number : int
        Of the entry about it.
    last : int
        The copy's last entry.
    seen : int or None
        The last entry that this machine saw; None if its anchor is lost, too.
    """

    number: int
    last: int
    seen: int | None

    @property
    def missing(self) -> int | None:
        """The least number of missing entries; None if it is unknown."""
        return None if self.seen is None else max(1, self.seen - self.last)


def check_behind(database: Database) -> None:
    """Check that there is an older copy to recover.

    Raises
    ------
    LedgerError
        If this machine has an anchor, and the ledger is not older than it.
    """
    if database.anchor.read() is None:
        return
    try:
        database.check_anchor()
    except DamagedLedgerError:
        return
    raise LedgerError(
        "the ledger is not older than its anchor: no older copy was put back, and there is nothing "
        "to recover"
    )


def begin_recovery(database: Database, *, reason: str) -> Recovery:
    """Note that an older copy was put back, and go on from it.

    Parameters
    ----------
    database : Database
    reason : str

    Raises
    ------
    LedgerError
        If it is not older than this machine's anchor.
    DamagedLedgerError
        If it has other findings.
    """
    check_behind(database)
    noted = database.anchor.read()
    with database.writing(behind=True) as writing:
        found = audit.audit(writing.connection, noted=noted or (0, ""), keys=database.keys)
        others = [finding for finding in found.findings if not audit.is_rollback(finding)]
        if others:
            raise DamagedLedgerError(
                f"the copy that was put back was changed ({others[0]}): put back another"
            )
        last = writing.number
        seen = None if noted is None else {"number": noted[0], "digest": noted[1]}
        number = writing.append(projection.RECOVERING, reason=reason, last=last, seen=seen)
    return Recovery(number=number, last=last, seen=None if noted is None else noted[0])


def end_recovery(database: Database, *, reason: str) -> None:
    """Note the account of the missing charges; the ledger then takes all entries again.

    Parameters
    ----------
    database : Database
    reason : str

    Raises
    ------
    LedgerError
        If no older copy was put back, or all that was missing is reconciled.
    """
    with database.writing() as writing:
        rows = writing.rows.all("recoveries", state=projection.RECOVERING)
        if not rows:
            raise LedgerError("no older copy was put back that is not reconciled")
        numbers = [row["number"] for row in rows]
        writing.append(projection.RECOVERED, recoveries=numbers, reason=reason)
