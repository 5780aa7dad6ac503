"""Database of a ledger: SQLite or PostgreSQL, and one writer at a time.

Every entry has the digest of the one before it, so entries are written one after another: whoever
writes holds the whole ledger, with SQLite's write lock or the lock of PostgreSQL's one row of
`head`, for some milliseconds. What was written is on the disk when a transaction ends
(``synchronous=FULL``, ``synchronous_commit``): noise is drawn only afterwards.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cloakgp.ledger import projection, schema
from cloakgp.ledger.chain import Entry
from cloakgp.ledger.errors import DamagedLedgerError, LedgerError
from cloakgp.ledger.keys import Anchor
from cloakgp.ledger.upgrading import NewerTablesError, upgrade
from cloakgp.utils.extras import extra

with extra("ledger"):
    import sqlalchemy as sa
    from sqlalchemy.engine import URL, Connection, Engine
    from sqlalchemy.exc import (
        ArgumentError,
        OperationalError,
        ProgrammingError,
        SQLAlchemyError,
    )

VERSION_TABLE = "schema_version"
# How long a writer waits for the others, in seconds.
PATIENCE = 120.0
SQLITE_SETTINGS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    f"PRAGMA busy_timeout={int(1000 * PATIENCE)}",
)
DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}


def parse_url(url: str) -> URL:
    """Return where a ledger is: the path of a file, ``sqlite:///…`` or ``postgresql://…``.

    Raises
    ------
    LedgerError
        For anything else.

    Examples
    --------
    >>> parse_url("people.db").get_backend_name()
    'sqlite'
    """
    try:
        parsed = sa.make_url(url if "://" in url else f"sqlite:///{url}")
        name = parsed.get_backend_name()
    except ArgumentError:
        raise LedgerError("a ledger is a file, sqlite:///FILE or postgresql://HOST/NAME") from None
    if name not in DRIVERS or (name == "sqlite" and parsed.database in (None, "", ":memory:")):
        raise LedgerError("a ledger is a file, sqlite:///FILE or postgresql://HOST/NAME")
    return parsed.set(drivername=DRIVERS[name])


class Writing:
    """One transaction of the only writer.

    Attributes
    ----------
    number : int
    digest : str
        Of the last entry.
    """

    def __init__(self, connection: Connection, *, number: int, digest: str) -> None:
        self.connection = connection
        self.rows = RowsInTables(connection)
        self.number = number
        self.digest = digest

    def append(self, kind: str, **content: object) -> int:
        """Write an entry and what follows from it; return its number."""
        entry = Entry.after(self.number, self.digest, content={"kind": kind, **content})
        self.connection.execute(
            schema.entries.insert().values(
                number=entry.number, body=entry.body, digest=entry.digest
            )
        )
        projection.project(entry.content, self.rows)
        self.connection.execute(
            schema.head.update().values(number=entry.number, digest=entry.digest)
        )
        self.number, self.digest = entry.number, entry.digest
        return entry.number


class RowsInTables:
    """Rows of the database, as `cloakgp.ledger.projection` reads and writes them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, table: str, key: object) -> projection.Row | None:
        """Return a row, or None."""
        found = schema.metadata.tables[table]
        query = found.select().where(found.c[projection.KEYED_BY[table]] == key)
        row = self._connection.execute(query).mappings().one_or_none()
        return None if row is None else dict(row)

    def put(self, table: str, row: projection.Row) -> None:
        """Write a row, in the place of that with its key if there is one."""
        found = schema.metadata.tables[table]
        place = found.c[projection.KEYED_BY[table]]
        changed = self._connection.execute(
            found.update().where(place == row[place.name]).values(**row)
        )
        if not changed.rowcount:
            self._connection.execute(found.insert().values(**row))

    def all(self, table: str, **where: object) -> list[projection.Row]:
        """Return the rows that have these values, in order."""
        found = schema.metadata.tables[table]
        query = found.select().where(*(found.c[name] == value for name, value in where.items()))
        ordered = query.order_by(*found.primary_key.columns)
        return [dict(row) for row in self._connection.execute(ordered).mappings()]


class Database:
    """Transactions of a ledger's database, by threads and processes, forked ones as well.

    Parameters
    ----------
    url : URL
    anchor : Anchor
    """

    def __init__(self, url: URL, *, anchor: Anchor) -> None:
        self.url = url
        self.anchor = anchor
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._engine = make_engine(url)
        weakref.finalize(self, _dispose, self._engine, self._process)

    def create(self, **about: object) -> None:
        """Make the tables, and the first row of the head.

        Raises
        ------
        LedgerError
            If there is a ledger.
        """
        with self._connected(writing=True) as connection:
            self._upgrade(connection)
            if connection.execute(schema.head.select()).first() is not None:
                raise LedgerError(f"there is a ledger at {self.shown} already")
            connection.execute(schema.head.insert().values(id=1, **about))

    def prepare(self) -> None:
        """Bring the tables of a ledger that is there up to date.

        Raises
        ------
        LedgerError
            If there is none, or a newer version of this package has made it.
        """
        if self.url.get_backend_name() == "sqlite" and not Path(self.url.database or "").is_file():
            raise LedgerError(self._absence)
        with self._connected(writing=True) as connection:
            self._head(connection)
            self._upgrade(connection)

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """Be the only writer; everything is on the disk when the block ends, or nothing.

        Raises
        ------
        LedgerError
            If the database fails.
        DamagedLedgerError
            If it is older than its anchor.
        """
        with self._connected(writing=True) as connection:
            head = self._head(connection, locked=True)
            self._check_anchor(connection, head)
            writing = Writing(connection, number=head["number"], digest=head["digest"])
            yield writing
        if writing.number > head["number"]:
            self.anchor.advance(writing.number, writing.digest)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Read what was there at one moment."""
        with self._connected(writing=False) as connection:
            self._head(connection)
            yield connection

    def head(self) -> Mapping[str, Any]:
        """Return which ledger this is, and where its chain ends."""
        with self._connected(writing=False) as connection:
            return self._head(connection)

    @property
    def shown(self) -> str:
        """Where it is, without a password."""
        database = self.url.database or ""
        if self.url.get_backend_name() == "sqlite":
            return database
        return self.url.render_as_string(hide_password=True)

    @property
    def _absence(self) -> str:
        return f"there is no ledger at {self.shown}: make one by cloakgp ledger init"

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _head(self, connection: Connection, *, locked: bool = False) -> Mapping[str, Any]:
        query = schema.head.select()
        if locked:
            query = query.with_for_update()
        try:
            head: Any = connection.execute(query).mappings().one_or_none()
        except (OperationalError, ProgrammingError):
            # There is no such table, unless the database has another trouble.
            if sa.inspect(self._engine).has_table(schema.head.name):
                raise
            head = None
        if head is None:
            raise LedgerError(self._absence)
        return dict(head)

    def _check_anchor(self, connection: Connection, head: Mapping[str, Any]) -> None:
        noted = self.anchor.read()
        if noted is None:
            return
        number, digest = noted
        found = connection.execute(
            sa.select(schema.entries.c.digest).where(schema.entries.c.number == number)
        ).scalar()
        if number > head["number"] or (number and found != digest):
            raise DamagedLedgerError(
                f"the ledger is not the one that this machine saw up to entry {number} (it ends at "
                f"{head['number']}): was an old copy put back? See cloakgp ledger verify"
            )

    def _upgrade(self, connection: Connection) -> None:
        """Bring the tables to what this version of the package knows."""
        try:
            upgrade(
                connection,
                migrations=Path(__file__).parent / "migrations",
                version_table=VERSION_TABLE,
            )
        except NewerTablesError:
            raise LedgerError(
                f"the ledger at {self.shown} was made by a newer version of cloakgp"
            ) from None

    @contextmanager
    def _connected(self, *, writing: bool) -> Iterator[Connection]:
        if self.url.get_backend_name() == "sqlite":
            folder = Path(self.url.database or "").parent
            if not folder.is_dir():
                raise LedgerError(f"there is no folder {folder} for the ledger")
        try:
            engine = self._usable().execution_options(writing=writing)
            with engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            cause = getattr(error, "orig", None) or error
            first = str(cause).partition("\n")[0]
            raise LedgerError(f"the ledger's database failed: {first}") from None

    def _usable(self) -> Engine:
        """Return an engine without connections of the process that this one was forked from."""
        with self._lock:
            if self._process != os.getpid():
                self._engine.dispose(close=False)
                self._process = os.getpid()
        return self._engine


def _dispose(engine: Engine, process: int) -> None:
    """Close what a process has opened, in that process."""
    if os.getpid() == process:
        engine.dispose()


def make_engine(url: URL) -> Engine:
    """Return an engine whose transactions are on the disk when they end.

    SQLite's take its write lock when they begin if the execution option ``writing`` is set.

    Parameters
    ----------
    url : URL
        From `parse_url`.
    """
    sqlite = url.get_backend_name() == "sqlite"
    settings: dict[str, Any] = (
        {"timeout": PATIENCE, "isolation_level": None} if sqlite else {"connect_timeout": 10}
    )
    # A connection to a server may be dropped while it waits: each transaction has its own. Whoever
    # closes the last one to a file of SQLite's empties its log, which takes long: one stays.
    engine = sa.create_engine(
        url, connect_args=settings, poolclass=sa.QueuePool if sqlite else sa.NullPool
    )

    @sa.event.listens_for(engine, "connect")
    def set_up(connection: Any, _: object) -> None:
        cursor = connection.cursor()
        for setting in SQLITE_SETTINGS if sqlite else ("SET synchronous_commit TO on",):
            cursor.execute(setting)
        cursor.close()
        if not sqlite:
            connection.commit()

    if sqlite:
        # Python's own driver would begin later, and without the lock.
        @sa.event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            writing = connection.get_execution_options().get("writing")
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine
