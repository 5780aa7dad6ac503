"""Ledger of what was spent: its accounts, its entries, and who may change what about them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from cloakgp.ledger import audit, projection, schema
from cloakgp.ledger.accounts import (
    ACCOUNT,
    PURPOSE,
    Account,
    Standing,
    checked_account,
    standing_of,
)
from cloakgp.ledger.amounts import Amount, checked_limit
from cloakgp.ledger.chain import GENESIS, Entry
from cloakgp.ledger.database import Database, RowsInTables, parse_url
from cloakgp.ledger.errors import LedgerError
from cloakgp.ledger.keys import Anchor, Key, files_of, new_name, suffixed
from cloakgp.privacy.spending import ENVIRONMENT, Unit

if TYPE_CHECKING:
    from cloakgp.ledger.audit import Audit

# Entries that are read at a time.
CHUNK = 1000
UNITS: tuple[Unit, ...] = get_args(Unit)


class Ledger:
    """A ledger that is there.

    Parameters
    ----------
    url : str or Path, optional
        A file (SQLite), ``sqlite:///FILE`` or ``postgresql://USER@HOST/NAME``; the environment
        variable ``CLOAKGP_LEDGER`` if not given.

    Raises
    ------
    LedgerError
        If there is none, its key is not to be read, or a newer version of this package made it.

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
        named = url or os.environ.get(ENVIRONMENT)
        if not named:
            raise LedgerError(f"name a ledger, or set {ENVIRONMENT}")
        self.database = _database(str(named))
        self.database.prepare()
        head = self.database.head()
        self.id: str = head["ledger"]
        self.public_key: str = head["public_key"]
        path = suffixed(files_of(self.database.url), ".key")
        self.key = Key.read(path, check=head["key_check"])

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
            If there is one, or a key of one.
        """
        database = _database(str(url))
        files = files_of(database.url)
        path = suffixed(files, ".key")
        if path.exists() or suffixed(files, ".anchor").exists():
            raise LedgerError(
                f"{path}, or the anchor beside it, is there already: it may be the key of another "
                "ledger, without which that one is lost. Move it, or choose another name"
            )
        number = new_name()
        key = Key.create(path)
        try:
            database.create(
                ledger=number,
                key_check=key.check,
                public_key=key.public,
                number=0,
                digest=GENESIS,
            )
        except BaseException:
            path.unlink()
            raise
        with database.writing() as writing:
            writing.append("ledger", ledger=number, public_key=key.public, key_check=key.check)
        database.close()
        return cls(url)

    def account(self, name: str, *, purpose: str = "") -> Account:
        """Return an account, to be opened by ``with``.

        Parameters
        ----------
        name : str
        purpose : str
            Is written down with every charge.

        Raises
        ------
        LedgerError
            If there is none of this name.
        """
        with self.database.reading() as connection:
            checked_account(name, RowsInTables(connection))
        return self._account(name, purpose=purpose)

    def any_account(self, purpose: str = "") -> Account:
        """Return whichever account a table is attached to, to be opened by ``with``."""
        return self._account("", purpose=purpose)

    def open_account(
        self, name: str, *, epsilon: float, delta: float, unit: Unit = "row"
    ) -> Account:
        """Open an account of a population.

        Parameters
        ----------
        name : str
            Of the people, not of a table: whoever is in two tables is in one population.
        epsilon, delta : float
            The limit of all that is ever spent about them. δ may be 0, for noise that needs none.
        unit : str
            Whom it protects: ``"row"`` (one output), ``"person"`` (all outputs of a group),
            ``"whole row replaced"`` or ``"whole row added or removed"``.

        Raises
        ------
        LedgerError
            If there is one of this name, or what is given makes no sense.
        """
        limit = _limit(epsilon, delta)
        if unit not in UNITS:
            raise LedgerError(f"unit must be one of {', '.join(UNITS)}, got {unit!r}")
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise LedgerError("an account needs a name that can be printed")
        with self.database.writing() as writing:
            if writing.rows.get("accounts", name) is not None:
                raise LedgerError(f"there is an account {name!r} already")
            writing.append("account", account=name, unit=unit, epsilon=limit[0], delta=limit[1])
        return self._account(name)

    def change_limit(self, name: str, *, epsilon: float, delta: float, reason: str) -> None:
        """Change the limit of an account; what was spent stays spent.

        Raises
        ------
        LedgerError
            If there is none, no reason is given, or the limit makes no sense.
        """
        limit = _limit(epsilon, delta)
        _check_reason(reason)
        with self.database.writing() as writing:
            checked_account(name, writing.rows)
            writing.append("limit", account=name, epsilon=limit[0], delta=limit[1], reason=reason)

    def void(self, charge: int, *, reason: str, although_drawn: bool = False) -> None:
        """Give back a charge whose process died.

        Parameters
        ----------
        charge : int
            Its number.
        reason : str
            Is written down.
        although_drawn : bool
            Noise may have been drawn, and whoever says this knows that nobody has seen, and nobody
            will see, what came of it.

        Raises
        ------
        LedgerError
            If it is closed, or noise may have been drawn and this is not said.
        """
        _check_reason(reason)
        with self.database.writing() as writing:
            row = writing.rows.get("charges", charge)
            if row is None:
                raise LedgerError(f"there is no charge {charge}")
            if row["state"] != projection.OPEN:
                raise LedgerError(f"charge {charge} is {row['state']}: only open ones are voided")
            drawn = projection.amount_from(row["drawn"]) != Amount()
            if drawn and not although_drawn:
                raise LedgerError(
                    f"noise may have been drawn for charge {charge}: it stays spent, unless you "
                    "know that nobody has seen what came of it, and say so (--although-drawn)"
                )
            writing.append(
                "voided",
                charge=charge,
                account=row["account"],
                reason=reason,
                although_drawn=drawn,
            )

    def standings(self) -> list[Standing]:
        """Return what was spent of every account."""
        with self.database.reading() as connection:
            names = [row["name"] for row in RowsInTables(connection).all("accounts")]
            return [standing_of(name, connection) for name in names]

    def columns(self) -> list[projection.Row]:
        """Return the attached columns: fingerprint, name and account."""
        with self.database.reading() as connection:
            return RowsInTables(connection).all("columns")

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
                entry = Entry(number=row.number, body=row.body, digest=row.digest)
                if account is None or entry.content.get("account") == account:
                    yield entry
            after = found[-1].number

    def verify(self) -> Audit:
        """Check every entry, all that follows from them, and the anchor."""
        with self.database.reading() as connection:
            return audit.audit(connection, anchor=self.database.anchor)

    def close(self) -> None:
        """Close the connections."""
        self.database.close()

    def _account(self, name: str, *, purpose: str = "") -> Account:
        return Account(
            database=self.database, fingerprint_key=self.key.columns, name=name, purpose=purpose
        )

    def __repr__(self) -> str:
        return f"<Ledger {self.id[:8]} at {self.database.shown}>"


def account_of_environment() -> Account:
    """Return the account that the environment names: ``CLOAKGP_LEDGER``, ``CLOAKGP_ACCOUNT``.

    Without the second it is whichever account the outputs are attached to. What
    `cloakgp.privacy.spending` calls where no block says who counts.

    Raises
    ------
    LedgerError
        If there is no such ledger.
    """
    names = (os.environ.get(name, "") for name in (ENVIRONMENT, ACCOUNT, PURPOSE))
    return _named(*names)


@lru_cache(maxsize=8)
def _named(url: str, account: str, purpose: str) -> Account:
    ledger = Ledger(url)
    return ledger.account(account, purpose=purpose) if account else ledger.any_account(purpose)


def _database(url: str) -> Database:
    parsed = parse_url(url)
    return Database(parsed, anchor=Anchor(suffixed(files_of(parsed), ".anchor")))


def _limit(epsilon: object, delta: object) -> tuple[float, float]:
    try:
        return checked_limit(epsilon, delta)
    except ValueError as error:
        raise LedgerError(str(error)) from None


def _check_reason(reason: str) -> None:
    if not reason.strip():
        raise LedgerError("say why: the reason is written down")
