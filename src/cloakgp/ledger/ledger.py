"""Ledger of charges: its accounts, its entries, and their changes."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from cloakgp.ledger import audit, projection, schema
from cloakgp.ledger.accounts import (
    Account,
    Standing,
    checked_account,
    known_cohort,
    standing_of,
)
from cloakgp.ledger.blocks import ACCOUNT, Named
from cloakgp.ledger.chain import GENESIS, Entry
from cloakgp.ledger.database import Database, TableStore
from cloakgp.ledger.engines import parse_url
from cloakgp.ledger.errors import DamagedLedgerError, LedgerError
from cloakgp.ledger.keys import Key, new_name
from cloakgp.ledger.texts import checked_name, checked_text, is_text, known_name
from cloakgp.privacy.filters import Amount, checked_limit
from cloakgp.privacy.spending import ENVIRONMENT, Unit
from cloakgp.utils.extras import extra

with extra("ledger"):
    import sqlalchemy as sa

if TYPE_CHECKING:
    from cloakgp.ledger.audit import Audit

# Entries that are read at a time.
CHUNK = 1000
UNITS: tuple[Unit, ...] = get_args(Unit)


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


class Ledger:
    """An existing ledger.

    Parameters
    ----------
    url : str or Path, optional
        A file (SQLite), ``sqlite:///FILE`` or ``postgresql://USER@HOST/NAME``; the environment
        variable ``CLOAKGP_LEDGER`` if not given.

    Raises
    ------
    LedgerError
        If there is none, its key cannot be read, or a newer version of this package made it.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(folder + "/people.db")
    ...     account = ledger.open_account("patients 2024", epsilon=1.0, delta=1e-6)
    ...     [one.name for one in ledger.standings()], ledger.verify().findings
    (['patients 2024'], ())
    """

    def __init__(self, url: str | Path | None = None) -> None:
        named = os.environ.get(ENVIRONMENT) if url is None or url == "" else url
        if not named:
            raise LedgerError(f"name a ledger, or set {ENVIRONMENT}")
        self.database = Database(parse_url(named))
        with _told_plainly(self.database):
            self.database.prepare()
        head = self.database.head()
        self.id: str = head["ledger"]
        self.database.keys.key(head["key_check"])

    @classmethod
    def create(cls, url: str | Path) -> Ledger:
        """Make a ledger, and its key.

        Parameters
        ----------
        url : str or Path
            As for `Ledger`.

        Raises
        ------
        LedgerError
            If there is one, or a key of one; or if no file can have that name, or be written.
        """
        database = Database(parse_url(url))
        with _told_plainly(database):
            return cls._made(url, database)

    @classmethod
    def _made(cls, url: str | Path, database: Database) -> Ledger:
        if database.is_file and Path(database.shown).is_dir():
            raise LedgerError(f"{database.shown} is a folder: name a file")
        keys, anchor = database.keys, database.anchor
        if keys.path.exists() or anchor.path.exists():
            raise LedgerError(
                f"{keys.path}, or the anchor {anchor.path}, is there already: it may be the key of "
                "another ledger, without which that one is lost. Move it, or choose another name"
            )
        number = new_name()
        key = keys.create()
        try:
            database.create(ledger=number, key_check=key.check, number=0, digest=GENESIS)
        except BaseException:
            keys.path.unlink()
            raise
        with database.writing() as writing:
            writing.append("ledger", ledger=number, public_key=key.public, key_check=key.check)
        database.close()
        return cls(url)

    @property
    def public_key(self) -> str:
        """The public key of the present signatures, in hexadecimal."""
        return self.key_of(self.database.head()).public

    def key_of(self, head: Mapping[str, Any]) -> Key:
        """Return the key that signs.

        Parameters
        ----------
        head : mapping
            Of `Database.head`.
        """
        return self.database.keys.key(head["key_check"])

    def account(
        self, name: str, *, purpose: str = "", approved_by: str = "", cohort: str = ""
    ) -> Account:
        """Return an account, to be opened by ``with``.

        Parameters
        ----------
        name : str
        purpose : str
            Stands in every charge.
        approved_by : str
            The approver, if approval was needed.
        cohort : str
            Of `Account.attach`: charges are about its people alone.

        Raises
        ------
        LedgerError
            If there is none of this name, or a text cannot be printed.
        """
        _check_words(purpose=purpose, approved_by=approved_by, cohort=cohort)
        with self.database.reading() as connection:
            row = checked_account(name, TableStore(connection))
        return Account(
            database=self.database,
            name=row["name"],
            purpose=purpose,
            approved_by=approved_by,
            cohort=known_cohort(cohort, row),
        )

    def any_account(self, purpose: str = "", *, approved_by: str = "", cohort: str = "") -> Account:
        """Return the account to which a table is attached, to be opened by ``with``.

        Parameters
        ----------
        purpose, approved_by, cohort : str
            As for `account`.
        """
        _check_words(purpose=purpose, approved_by=approved_by, cohort=cohort)
        return Account(
            database=self.database,
            name="",
            purpose=purpose,
            approved_by=approved_by,
            cohort=cohort,
        )

    def open_account(
        self, name: str, *, epsilon: float, delta: float, unit: Unit = "row"
    ) -> Account:
        """Open an account of a population.

        Parameters
        ----------
        name : str
            Of the people, not of a table: two tables about the same people share a population. It
            is composed (NFC), and stripped of blanks: names that look alike are one.
        epsilon, delta : float
            The limit of all charges about them, for ever. δ may be 0, for noise that needs none.
        unit : str
            The protected unit: ``"row"`` (one output), ``"person"`` (all outputs of a group),
            ``"whole row replaced"`` or ``"whole row added or removed"``.

        Raises
        ------
        LedgerError
            If there is one of this name, or a value makes no sense.
        """
        limit = _limit(epsilon, delta)
        if unit not in UNITS:
            raise LedgerError(f"unit must be one of {', '.join(UNITS)}, got {unit!r}")
        checked_name(name, what="an account")
        with self.database.writing() as writing:
            names = [row["name"] for row in writing.rows.all("accounts")]
            name = known_name(name, names)
            if name in names:
                raise LedgerError(f"there is an account {name!r} already")
            writing.append("account", account=name, unit=unit, epsilon=limit[0], delta=limit[1])
        return Account(database=self.database, name=name)

    def change_limit(self, name: str, *, epsilon: float, delta: float, reason: str) -> None:
        """Change the limit of an account; charges stay spent.

        Raises
        ------
        LedgerError
            If there is none, there is no reason, or the limit makes no sense.
        """
        limit = _limit(epsilon, delta)
        _check_reason(reason)
        with self.database.writing() as writing:
            row = checked_account(name, writing.rows)
            writing.append(
                "limit", account=row["name"], epsilon=limit[0], delta=limit[1], reason=reason
            )

    def void(self, charge: int, *, reason: str, although_drawn: bool = False) -> None:
        """Void a charge whose process died.

        Parameters
        ----------
        charge : int
            Its number.
        reason : str
            Stands in the entry.
        although_drawn : bool
            Noise may have been drawn, and the caller knows that nobody has seen or will see its
            answers.

        Raises
        ------
        LedgerError
            If it is closed, or noise may have been drawn and the caller does not confirm this.
        """
        _check_reason(reason)
        if isinstance(charge, bool) or not isinstance(charge, Integral):
            raise LedgerError("a charge is a whole number: cloakgp ledger log shows it")
        # Databases count to 2^63.
        if not 0 < charge < 2**63:
            raise LedgerError(f"there is no charge {charge}")
        charge = int(charge)
        with self.database.writing() as writing:
            row = writing.rows.get("charges", charge)
            if row is None:
                raise LedgerError(f"there is no charge {charge}")
            if row["state"] != projection.OPEN:
                raise LedgerError(f"charge {charge} is {row['state']}: only open ones are voided")
            drawn = projection.drawn_of(row) != Amount()
            if drawn and not although_drawn:
                raise LedgerError(
                    f"noise may have been drawn for charge {charge}: it stays spent, unless you "
                    "know that its answers were never seen, and confirm it (--although-drawn)"
                )
            writing.append(
                "voided",
                charge=charge,
                account=row["account"],
                reason=reason,
                although_drawn=drawn,
            )

    def standings(self) -> list[Standing]:
        """Return the standings of all accounts."""
        with self.database.reading() as connection:
            names = [row["name"] for row in TableStore(connection).all("accounts")]
            return [standing_of(name, connection) for name in names]

    def columns(self) -> list[projection.Row]:
        """Return the attached columns: their names, accounts and marks."""
        with self.database.reading() as connection:
            return TableStore(connection).all("columns")

    def entries(self, *, account: str | None = None, after: int = 0) -> Iterator[Entry]:
        """Return the entries of the chain in order, or those about one account.

        Parameters
        ----------
        account : str, optional
        after : int
            Number of the entry that all of them come after.
        """
        table = schema.entries
        while True:
            with self.database.reading() as connection:
                query = table.select().where(table.c.number > after).order_by(table.c.number)
                found = connection.execute(query.limit(CHUNK)).all()
            if not found:
                return
            for row in found:
                entry = Entry(*row)
                if account is None or entry.content.get("account") == account:
                    yield entry
            after = found[-1].number

    def verify(self) -> Audit:
        """Check every entry, the tables that follow from them, and the anchor."""
        noted = audit.note_of(self.database.anchor)
        with self.database.reading() as connection:
            return audit.audit(connection, noted=noted, keys=self.database.keys)

    def rebuild(self, *, reason: str) -> int:
        """Make the tables of the ledger anew from its entries, and return how many rows changed.

        Entries alone say what was spent; `verify` finds rows that are not what they make them.

        Parameters
        ----------
        reason : str
            Stands in the entry.

        Raises
        ------
        LedgerError
            If all rows are what the entries make them.
        DamagedLedgerError
            If the entries are not sound themselves, or do not reach the anchor.
        """
        _check_reason(reason)
        noted = audit.note_of(self.database.anchor)
        with self.database.writing() as writing:
            return audit.rebuild(writing, noted=noted, keys=self.database.keys, reason=reason)

    def check(self) -> None:
        """Check that the ledger can count; much faster than `verify`.

        Raises
        ------
        LedgerError
            If the database does not answer, or an older copy of it was put back, and its missing
            entries are not reconciled.
        """
        self.database.check()

    def recover(self, *, reason: str) -> Recovery:
        """Go on from an older copy of the database that was put back.

        Later charges are missing in the copy, although their noise is published. The anchor knows
        of them, so such a copy counts nothing (`Database.check`) until two entries are written:
        this one, after which releases are imported and limits lowered, and nothing else; and that
        of `reconcile`, after which the ledger goes on.

        Parameters
        ----------
        reason : str
            Stands in the entry.

        Raises
        ------
        LedgerError
            If no older copy was put back, or it is damaged.
        """
        _check_reason(reason)
        self.check_behind()
        noted = self.database.anchor.read()
        with self.database.writing(behind=True) as writing:
            found = audit.audit(writing.connection, noted=noted or (0, ""), keys=self.database.keys)
            others = [finding for finding in found.findings if not audit.is_rollback(finding)]
            if others:
                raise DamagedLedgerError(
                    f"the copy that was put back was changed ({others[0]}): put back another"
                )
            last = writing.number
            seen = None if noted is None else {"number": noted[0], "digest": noted[1]}
            number = writing.append(projection.RECOVERING, reason=reason, last=last, seen=seen)
        return Recovery(number=number, last=last, seen=None if noted is None else noted[0])

    def check_behind(self) -> None:
        """Check that there is an older copy to `recover`.

        Raises
        ------
        LedgerError
            If this machine has an anchor, and the ledger is not older than it.
        """
        if self.database.anchor.read() is None:
            return
        try:
            self.database.check_anchor()
        except DamagedLedgerError:
            return
        raise LedgerError(
            "the ledger is not older than its anchor: no older copy was put back, and there is "
            "nothing to recover"
        )

    def reconcile(self, *, reason: str) -> None:
        """Confirm that all charges missing in an older copy are counted; see `recover`.

        Parameters
        ----------
        reason : str
            Account of the work; stands in the entry.

        Raises
        ------
        LedgerError
            If no older copy was put back, or all that was missing is reconciled.
        """
        _check_reason(reason)
        with self.database.writing() as writing:
            rows = writing.rows.all("recoveries", state=projection.RECOVERING)
            if not rows:
                raise LedgerError("no older copy was put back that is not reconciled")
            numbers = [row["number"] for row in rows]
            writing.append(projection.RECOVERED, recoveries=numbers, reason=reason)

    def rotate_keys(self, *, reason: str) -> None:
        """Sign with a new key from now on; it is written to the file of the old one.

        Old keys stay there: columns that they marked are recognised by them, and entries that they
        signed are verified. Other machines need a copy of the file.

        Parameters
        ----------
        reason : str
            Stands in the entry.
        """
        _check_reason(reason)
        with self.database.writing() as writing:
            writing.rotate(self.database.keys.add(), reason=reason)

    def names(self) -> dict[str, str]:
        """Return the names of persons by their marks; erased ones are missing."""
        with self.database.reading() as connection:
            rows = connection.execute(schema.names.select())
            return {row.mark: row.name for row in rows}

    def notes(self) -> dict[int, dict[str, Any]]:
        """Return the notes for auditors alone: the attached columns of entries.

        Returns
        -------
        dict
            Number of an entry → of a charge, ``columns`` of its account; and those ``elsewhere``.
        """
        with self.database.reading() as connection:
            rows = connection.execute(schema.notes.select().order_by(schema.notes.c.number))
            return {row.number: json.loads(row.content) for row in rows}

    def erase(self, names: Collection[str], *, reason: str) -> int:
        """Erase names of persons; entries keep their marks, which identify no one, for ever.

        Copies of the database keep the names, and so do purposes and reasons with names in them.

        Parameters
        ----------
        names : collection of str
            As `names` returns them; others are ignored.
        reason : str
            Stands in the entry.

        Returns
        -------
        int
            Number of erased names.
        """
        _check_reason(reason)
        table = schema.names
        with self.database.writing() as writing:
            query = sa.select(table.c.mark).where(table.c.name.in_(names)).order_by(table.c.mark)
            marks = list(writing.connection.execute(query).scalars())
            if marks:
                writing.append(projection.ERASED, persons=marks, reason=reason)
                writing.connection.execute(table.delete().where(table.c.mark.in_(marks)))
        self.database.forget()
        return len(marks)

    def names_unused_since(self, moment: datetime) -> list[str]:
        """Return the names of persons without an entry since a moment.

        Parameters
        ----------
        moment : datetime
            With its time zone.
        """
        names = self.names()
        for entry in self.entries():
            content = entry.content
            if datetime.fromisoformat(content["when"]) >= moment:
                for called in ("who", "approved_by"):
                    names.pop(content.get(called) or "", None)
        return sorted(names.values())

    def close(self) -> None:
        """Close the connections."""
        self.database.close()

    def __repr__(self) -> str:
        return f"<Ledger {self.id[:8]} at {self.database.shown}>"


@contextmanager
def _told_plainly(database: Database) -> Iterator[None]:
    """Say of what the system refuses where the ledger is, or would be."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise LedgerError(f"no ledger can be at {database.shown:.200}: {reason}") from None


def account_of_environment(
    directions: Mapping[str, str] | None = None, *, process: str = ""
) -> Account:
    """Return the account that the environment names, or the one that was sent to this process.

    The environment names it by ``CLOAKGP_LEDGER`` and ``CLOAKGP_ACCOUNT``; without the second it is
    the account to which the outputs are attached. ``CLOAKGP_COHORT``, ``CLOAKGP_PURPOSE`` and
    ``CLOAKGP_APPROVED_BY`` say what its charges hold. `cloakgp.privacy.spending` calls this outside
    of blocks.

    Parameters
    ----------
    directions : mapping of str to str, optional
        From `Account.directions`, in another process.
    process : str
        The process of whose block these are.

    Raises
    ------
    LedgerError
        If there is no such ledger; if several accounts were open where this process was started;
        or if a person gave the environment another account than the
        one that was sent. What blocks of the sending process left there is outdated, since workers
        are kept from one block to the next.
    """
    named = Named.by_environment()
    if directions is None:
        return _account_named(named)
    sent = directions["account"]
    if named.url and named.process != process:
        here = _ledger_at(named.url)
        if here.id != directions["ledger"] or (named.account and named.account != sent):
            raise LedgerError(
                f"this was sent here to count for the account {sent!r} of the ledger "
                f"{directions['ledger'][:8]}, and the environment of this process names "
                f"{_in_words(named.account)} of {here.id[:8]}: nothing was drawn. Set "
                f"{ENVIRONMENT} and {ACCOUNT} to the same for both, or for none of them"
            )
    ledger = _ledger_sent(directions["ledger"], (named.url, directions["url"]))
    about = {name: directions[name] for name in ("purpose", "approved_by", "cohort")}
    return ledger.account(sent, **about) if sent else ledger.any_account(**about)


def _in_words(account: str) -> str:
    return f"the account {account!r}" if account else "no account"


def _ledger_sent(name: str, urls: Sequence[str]) -> Ledger:
    """Return the ledger of a name, at one of the addresses at which it may be from here."""
    refusal = ""
    for url in filter(None, urls):
        try:
            found = _ledger_at(url)
        except LedgerError as error:
            refusal = f": {error}"
            continue
        if found.id == name:
            return found
    raise LedgerError(
        f"this was sent here to count in the ledger {name[:8]}, which is not found from this "
        f"process{refusal}"
    )


@lru_cache(maxsize=8)
def _ledger_at(url: str) -> Ledger:
    return Ledger(url)


@lru_cache(maxsize=8)
def _account_named(named: Named) -> Account:
    about = {
        "purpose": named.purpose,
        "cohort": named.cohort,
        "approved_by": named.approved_by,
    }
    ledger = _ledger_at(named.url)
    return ledger.account(named.account, **about) if named.account else ledger.any_account(**about)


def _limit(epsilon: object, delta: object) -> tuple[float, float]:
    try:
        return checked_limit(epsilon, delta)
    except ValueError as error:
        raise LedgerError(str(error)) from None
    except OverflowError:
        raise LedgerError("a limit is a pair of numbers: this one is too large") from None


def _check_reason(reason: str) -> None:
    if not is_text(reason) or not reason.strip():
        raise LedgerError("give a reason, as text that can be printed: it stands in the ledger")


def _check_words(*, purpose: str, approved_by: str, cohort: str) -> None:
    """Refuse what no entry could hold, before anything is drawn for it."""
    checked_text(purpose, what="a purpose", empty=True)
    checked_text(approved_by, what="the name of an approver", empty=True)
    checked_text(cohort, what="the name of a cohort", empty=True)
