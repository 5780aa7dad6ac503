"""Account of a population: what was spent about it, and the block that counts what is."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from numpy.typing import ArrayLike

from cloakgp.ledger import projection, schema
from cloakgp.ledger.amounts import Amount, checked_limit, releases_left
from cloakgp.ledger.charges import LedgerCharge, Purpose, check_unit
from cloakgp.ledger.database import Database, RowsInTables, Writing
from cloakgp.ledger.errors import LedgerError
from cloakgp.privacy.fingerprints import fingerprint_column
from cloakgp.privacy.spending import ENVIRONMENT, Budget, Spender, counted_by
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release.open import OpenedRelease, load
from cloakgp.utils.extras import extra

with extra("ledger"):
    from sqlalchemy.engine import Connection

if TYPE_CHECKING:
    from types import TracebackType


ACCOUNT, PURPOSE = "CLOAKGP_ACCOUNT", "CLOAKGP_PURPOSE"


class Publishable(Protocol):
    """A release that can be written to a file."""

    def to_bytes(self) -> bytes:
        """Return the file."""


Made = TypeVar("Made", bound=Publishable)


@dataclass(frozen=True)
class Standing:
    """What was spent of an account at one moment.

    Attributes
    ----------
    name : str
    unit : str
        Whom it protects.
    limit : (float, float)
        (ε, δ).
    spent : Amount
    open : tuple of int
        Charges that are not closed: calls that are running, or whose process died. They count.
    charges : int
        How many there were, of whatever state.
    """

    name: str
    unit: str
    limit: Budget
    spent: Amount
    open: tuple[int, ...]
    charges: int

    @property
    def epsilon(self) -> float:
        """The ε at which all of it holds at the limit's δ."""
        return self.spent.epsilon_at(self.limit[1])

    def releases_left(self, epsilon: float, delta: float) -> int:
        """Return how many more releases of a budget the limit has room for.

        Parameters
        ----------
        epsilon, delta : float
            Of each.
        """
        budget = checked_limit(epsilon, delta)
        return releases_left(self.spent, Amount.held([budget]), limit=self.limit)


@dataclass(frozen=True)
class Account:
    """An account of one population, of which a block counts what is spent within it.

    ``with ledger.account("patients 2024"):`` counts every fit, those of ``cross_val_score``
    included, in threads and processes that are started within the block as well, and refuses what
    would go beyond the limit before any noise is drawn.

    Attributes
    ----------
    database : Database
    fingerprint_key : bytes
        Secret.
    name : str
        Empty for whichever account the table is attached to.
    purpose : str
        What for; it is written down with every charge.
    key : str or None
        See `publish`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from cloakgp import DPGPRegressor
    >>> from cloakgp.ledger import Ledger
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-6)
    >>> with TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(folder + "/people.db")
    ...     account = ledger.open_account("patients 2024", epsilon=2.0, delta=1e-6)
    ...     with account:
    ...         model = model.fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    ...     round(account.standing.epsilon, 3), account.standing.releases_left(1.0, 1e-6)
    (1.0, 1)
    """

    database: Database = field(repr=False)
    fingerprint_key: bytes = field(repr=False)
    name: str
    purpose: str = ""
    key: str | None = None
    _blocks: list[ExitStack] = field(default_factory=list, compare=False, repr=False)

    @property
    def standing(self) -> Standing:
        """What was spent, now."""
        with self.database.reading() as connection:
            return standing_of(self.name, connection)

    def __enter__(self) -> Account:
        block = ExitStack()
        block.enter_context(counted_by(self))
        block.enter_context(_exported(self))
        self._blocks.append(block)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._blocks.pop().close()

    def open_charge(self, spender: Spender) -> LedgerCharge:
        """Begin to count a call; `cloakgp.privacy.spending` calls this.

        Raises
        ------
        LedgerError
            If the account is about others than the call, or the outputs are attached to another
            account.
        """
        fingerprint = spender.fingerprint(self.fingerprint_key)
        with self.database.reading() as connection:
            rows = RowsInTables(connection)
            column = None if fingerprint is None else rows.get("columns", fingerprint)
            name = self.name or (column or {}).get("account", "")
            if not name:
                raise LedgerError(
                    f"these outputs are attached to no account: name one (--account, {ACCOUNT}), "
                    "or attach them (cloakgp ledger attach)"
                )
            account = checked_account(name, rows)
        if column is not None and column["account"] != name:
            raise LedgerError(
                f"these outputs are those of {column['name']!r}, which is attached to the account "
                f"{column['account']!r} and not to {name!r}"
            )
        check_unit(account["unit"], spender.unit, name=name)
        return LedgerCharge(
            self.database,
            spender,
            purpose=Purpose(account=name, text=self.purpose, key=self.key),
            fingerprint=fingerprint,
            column=None if column is None else column["name"],
        )

    @forget_on_failure
    def attach(self, y: ArrayLike, *, column: str) -> None:
        """Recognise a private column from now on, and count it for no other account.

        Parameters
        ----------
        y : array-like of shape (N,)
            Private. Its keyed fingerprint is kept, and nothing else of it.
        column : str
            What it is called.

        Raises
        ------
        LedgerError
            If it is attached already, or has no entries.
        """
        fingerprint = fingerprint_column(y, key=self.fingerprint_key)
        if fingerprint is None:
            raise LedgerError("there are no outputs to attach")
        with self.database.writing() as writing:
            found = writing.rows.get("columns", fingerprint)
            if found is not None:
                raise LedgerError(
                    f"this column is attached already, as {found['name']!r} to the account "
                    f"{found['account']!r}"
                )
            checked_account(self.name, writing.rows)
            writing.append("attached", account=self.name, column=column, fingerprint=fingerprint)

    def publish(self, make: Callable[[], Made], *, key: str | None = None) -> Made:
        """Make one release, count it, and note the digest of its file.

        With a key, the release is kept, and whoever asks again with that key gets the same one:
        nothing is drawn a second time, however often, and from wherever, it is tried.

        Parameters
        ----------
        make : callable
            Fits once, and returns a release.
        key : str, optional
            Any text; one for every release that is wanted.

        Returns
        -------
        object
            What ``make`` returned, or what it returned when it was first called.

        Raises
        ------
        LedgerError
            If the limit leaves no room; if another call with this key is running, or died after it
            had drawn noise; or if ``make`` fits not exactly once.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from cloakgp import DPGPRegressor
        >>> from cloakgp.ledger import Ledger
        >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-6)
        >>> def make():
        ...     return model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_
        >>> with TemporaryDirectory() as folder:
        ...     ledger = Ledger.create(folder + "/people.db")
        ...     account = ledger.open_account("patients 2024", epsilon=2.0, delta=1e-6)
        ...     first = account.publish(make, key="figure 3")
        ...     again = account.publish(make, key="figure 3")
        ...     first.to_bytes() == again.to_bytes(), account.standing.charges
        (True, 1)
        """
        if key is not None:
            if not self.name:
                raise LedgerError("a key belongs to an account: name the account")
            kept = self._kept(key)
            if kept is not None:
                return cast(Made, opened(kept))
        counting = _OneCharge(replace(self, key=key))
        with counted_by(counting), _exported(self):
            made = make()
        if counting.charge is None or counting.charge.number is None:
            raise LedgerError("nothing was drawn, so there is nothing to publish")
        content = made.to_bytes()
        digest = hashlib.sha256(content).hexdigest()
        number = counting.charge.number
        with self.database.writing() as writing:
            row = writing.rows.get("charges", number)
            assert row is not None
            if key is not None:
                keep(content, digest=digest, writing=writing)
            writing.append("published", charge=number, account=row["account"], release=digest)
        return made

    def _kept(self, key: str) -> bytes | None:
        with self.database.reading() as connection:
            rows = RowsInTables(connection)
            found = rows.all("charges", account=self.name, key=key)
            if not found:
                return None
            (charge, *_) = found
            kept = None
            if charge["release"] is not None:
                table = schema.releases
                kept = connection.execute(
                    table.select().where(table.c.digest == charge["release"])
                ).first()
        if kept is not None:
            content: bytes = kept.content
            return content
        if charge["state"] == projection.OPEN:
            raise LedgerError(
                f"charge {charge['number']} has the key {key!r} and is not closed: it is running, "
                "or its process died. Void it if that is so, and try again"
            )
        raise LedgerError(
            f"noise was drawn for the key {key!r}, and the release was lost: it stays spent. Take "
            "another key"
        )


def standing_of(name: str, connection: Connection) -> Standing:
    """Return what was spent of an account, as a transaction sees it.

    Raises
    ------
    LedgerError
        If there is none.
    """
    rows = RowsInTables(connection)
    row = checked_account(name, rows)
    charges = rows.all("charges", account=name)
    return Standing(
        name=name,
        unit=row["unit"],
        limit=(float.fromhex(row["epsilon"]), float.fromhex(row["delta"])),
        spent=projection.amount_of(row),
        open=tuple(one["number"] for one in charges if one["state"] == projection.OPEN),
        charges=len(charges),
    )


def checked_account(name: str, rows: projection.Rows) -> projection.Row:
    """Return the row of an account.

    Raises
    ------
    LedgerError
        If there is none.
    """
    row = rows.get("accounts", name)
    if row is None:
        raise LedgerError(f"there is no account {name!r}: cloakgp ledger limit opens one")
    return row


def keep(content: bytes, *, digest: str, writing: Writing) -> None:
    """Keep the file of a release, which is public."""
    table = schema.releases
    held = writing.connection.execute(table.select().where(table.c.digest == digest)).first()
    if held is None:
        writing.connection.execute(table.insert().values(digest=digest, content=content))


class _OneCharge:
    """A keeper that lets one charge through."""

    def __init__(self, account: Account) -> None:
        self.charge: LedgerCharge | None = None
        self._account = account

    def open_charge(self, spender: Spender) -> LedgerCharge:
        if self.charge is not None:
            raise LedgerError("one release is one fit: this is a second")
        self.charge = self._account.open_charge(spender)
        return self.charge


def opened(content: bytes) -> OpenedRelease:
    """Return the release in a file that the ledger keeps."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "kept.cloak"
        path.write_bytes(content)
        return load(path)


@contextmanager
def _exported(account: Account) -> Iterator[None]:
    """Have processes that are started within a block count for the account as well."""
    url = account.database.url.render_as_string(hide_password=False)
    wanted = {ENVIRONMENT: url, ACCOUNT: account.name, PURPOSE: account.purpose}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
