"""Database of a ledger: SQLite or PostgreSQL, and one writer at a time.

Every entry has the digest of the one before it, so entries are written one after another: a writer
holds the whole ledger, with SQLite's write lock or the lock of PostgreSQL's one row of `head`, for
some milliseconds. A transaction is on the disk at its end (``synchronous=FULL``,
``synchronous_commit``): noise is drawn only afterwards.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from cloakgp.ledger import projection, schema
from cloakgp.ledger.chain import Anchor, Entry, acting_person, canonical, endorse
from cloakgp.ledger.engines import anchor_file, key_file, make_engine, upgrade
from cloakgp.ledger.errors import DamagedLedgerError, LedgerError
from cloakgp.ledger.keys import Key, KeyFile, new_salt
from cloakgp.ledger.marks import mark_of
from cloakgp.utils.extras import extra
from cloakgp.utils.files import PERSONAL

with extra("ledger"):
    import sqlalchemy as sa
    from sqlalchemy.engine import URL, Connection, Engine
    from sqlalchemy.exc import SQLAlchemyError

# Entries between the recovery of an older copy and its reconciliation, beside lower limits.
WHILE_RECOVERING = frozenset(
    {
        projection.IMPORTED,
        projection.RECOVERING,
        projection.RECOVERED,
        projection.ROTATED,
        projection.ERASED,
        projection.REBUILT,
    }
)
VERSION_TABLE = "schema_version"


class Writing:
    """One transaction of the only writer.

    Attributes
    ----------
    number : int
    digest : str
        Of the last entry.
    key : Key
        The key that signs entries.
    """

    def __init__(self, connection: Connection, *, head: Mapping[str, Any], key: Key) -> None:
        self.connection = connection
        self.rows = TableStore(connection)
        self.number: int = head["number"]
        self.digest: str = head["digest"]
        self.key = key

    def append(self, kind: str, **content: object) -> int:
        """Write an entry and the rows that follow from it; return its number.

        Raises
        ------
        LedgerError
            If an older copy was put back, and its missing entries are not reconciled.
        """
        self._check_recovered(kind, content)
        who = self.pseudonym(acting_person())
        entry = Entry.after(
            self.number, self.digest, content={"kind": kind, "who": who, **content}, key=self.key
        )
        self.connection.execute(
            schema.entries.insert().values(
                number=entry.number,
                body=entry.body,
                digest=entry.digest,
                signature=entry.signature,
            )
        )
        projection.project(entry.content, self.rows)
        self.connection.execute(
            schema.head.update().values(number=entry.number, digest=entry.digest)
        )
        self.number, self.digest = entry.number, entry.digest
        return entry.number

    def append_noted(self, kind: str, *, note: Mapping[str, object], **content: object) -> int:
        """Write an entry with a mark of a note for auditors alone; return its number.

        Parameters
        ----------
        kind : str
        note : mapping
            It follows from private outputs. The mark, which others read, tells nothing of it.
        **content
            Of the entry.
        """
        noted, salt = canonical(note), new_salt()
        number = self.append(kind, note=mark_of(noted, salt=salt), **content)
        values = {"number": number, "salt": salt, "content": noted}
        self.connection.execute(schema.notes.insert().values(**values))
        return number

    def rotate(self, key: Key, *, reason: str) -> None:
        """Sign with another key from now on: the old one names it, and it takes over the chain."""
        self.append(
            projection.ROTATED,
            key_check=key.check,
            public_key=key.public,
            endorsement=endorse(self.digest, key=key),
            reason=reason,
        )
        self.connection.execute(schema.head.update().values(key_check=key.check))
        self.key = key

    def pseudonym(self, name: str) -> str:
        """Return the mark of a person in entries, whose name is kept beside them."""
        table = schema.names
        query = sa.select(table.c.mark).where(table.c.name == name)
        known: str | None = self.connection.execute(query).scalar()
        if known is not None:
            return known
        salt = new_salt()
        mark = mark_of(name, salt=salt)
        self.connection.execute(table.insert().values(mark=mark, salt=salt, name=name))
        return mark

    def _check_recovered(self, kind: str, content: Mapping[str, Any]) -> None:
        if not is_recovering(self.rows) or kind in WHILE_RECOVERING:
            return
        if kind == "limit":
            row = self.rows.get("accounts", content["account"])
            if row is not None and all(
                float(content[name]) <= float.fromhex(row[name]) for name in ("epsilon", "delta")
            ):
                return
        raise LedgerError(
            "an older copy of the ledger was put back: until its missing charges are reconciled "
            "(cloakgp ledger recover --reconciled), releases are imported and limits lowered, and "
            "nothing else"
        )


class TableStore:
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

    def replace(self, tables: Mapping[str, Mapping[object, projection.Row]]) -> None:
        """Write all rows anew.

        Parameters
        ----------
        tables : mapping
            Name of a table → key → row, for every table of `projection.KEYED_BY`.
        """
        found = [schema.metadata.tables[name] for name in projection.KEYED_BY]
        # Later ones refer to earlier ones.
        for table in reversed(found):
            self._connection.execute(table.delete())
        for table in found:
            if rows := list(tables[table.name].values()):
                self._connection.execute(table.insert(), rows)

    def all(self, table: str, **where: object) -> list[projection.Row]:
        """Return the rows that have these values, in order."""
        found = schema.metadata.tables[table]
        query = found.select().where(*(found.c[name] == value for name, value in where.items()))
        ordered = query.order_by(*found.primary_key.columns)
        return [dict(row) for row in self._connection.execute(ordered).mappings()]


def is_recovering(rows: TableStore) -> bool:
    """Return whether an older copy was put back, and its missing entries are not reconciled."""
    return bool(rows.all("recoveries", state=projection.RECOVERING))


class Database:
    """Transactions of a ledger's database, for threads and processes, also forked ones.

    Parameters
    ----------
    url : URL
    """

    def __init__(self, url: URL) -> None:
        self.url = url
        self.anchor = Anchor(anchor_file(url))
        self.keys = KeyFile(key_file(url))
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
        if self.is_file:
            # SQLite gives the files that it makes beside this one the same permissions.
            self._check_folder()
            os.close(os.open(self.url.database or "", os.O_RDWR | os.O_CREAT, PERSONAL))
        with self._connected(writing=True) as connection:
            if sa.inspect(connection).has_table(schema.head.name):
                raise LedgerError(f"there is a ledger at {self.shown} already")
            self._upgrade(connection)
            connection.execute(schema.head.insert().values(id=1, format=schema.FORMAT, **about))

    def prepare(self) -> None:
        """Bring the tables of an existing ledger up to date.

        Raises
        ------
        LedgerError
            If there is none, or another version of this package has made it.
        """
        if self.is_file and not Path(self.url.database or "").is_file():
            raise LedgerError(self._absence)
        with self._connected(writing=True) as connection:
            if not sa.inspect(connection).has_table(schema.head.name):
                raise LedgerError(self._absence)
            self._upgrade(connection)
            self._check_format(connection)

    @contextmanager
    def writing(self, *, behind: bool = False) -> Iterator[Writing]:
        """Be the only writer; everything is on the disk when the block ends, or nothing.

        Parameters
        ----------
        behind : bool
            Go on from an older copy: the anchor is put back to it.

        Raises
        ------
        LedgerError
            If the database fails.
        DamagedLedgerError
            If it is older than its anchor, or ends with an entry that its key has not signed.
        """
        with self._connected(writing=True) as connection:
            head = self._head(connection, locked=True)
            key = self.keys.key(head["key_check"])
            if not behind:
                self._check_noted(connection, self.anchor.read())
            self._check_last(connection, head, key)
            writing = Writing(connection, head=head, key=key)
            yield writing
        if behind:
            self.anchor.replace(writing.number, writing.digest)
        elif writing.number > head["number"]:
            self.anchor.advance(writing.number, writing.digest)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Read the state of one moment."""
        with self._connected(writing=False) as connection:
            self._head(connection)
            yield connection

    def head(self) -> Mapping[str, Any]:
        """Return the name of the ledger, and the end of its chain."""
        with self._connected(writing=False) as connection:
            return self._head(connection)

    def check(self) -> None:
        """Check that the ledger can count.

        Raises
        ------
        LedgerError
            If the database does not answer, or an older copy was put back that is not reconciled.
        """
        self.check_anchor()
        with self.reading() as connection:
            if is_recovering(TableStore(connection)):
                raise LedgerError(
                    "an older copy of the ledger was put back, and its missing charges are not "
                    "reconciled: see cloakgp ledger recover"
                )

    def check_anchor(self) -> None:
        """Check that the ledger reaches its anchor.

        Raises
        ------
        DamagedLedgerError
            If it does not.
        """
        # Before the ledger, which may grow meanwhile.
        noted = self.anchor.read()
        with self.reading() as connection:
            self._check_noted(connection, noted)

    def has_table(self, name: str) -> bool:
        """Return whether the database has a table."""
        with self.reading() as connection:
            return sa.inspect(connection).has_table(name)

    def forget(self) -> None:
        """Remove deleted rows from SQLite's log; a server does so when it is vacuumed."""
        if self.is_file:
            with self._usable().connect() as connection:
                driver = connection.connection.driver_connection
                assert driver is not None
                driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @property
    def is_file(self) -> bool:
        """Whether it is SQLite's."""
        return self.url.get_backend_name() == "sqlite"

    @property
    def shown(self) -> str:
        """Its address, without a password."""
        if self.is_file:
            return self.url.database or ""
        return self.url.render_as_string(hide_password=True)

    @property
    def bare_url(self) -> str:
        """Its address for other processes of any folder, without a password."""
        url, query = self.url, self.url.query
        path = url.database
        if self.is_file and path and not path.startswith("file:"):
            path = str(Path(path).absolute())
        return URL.create(
            url.drivername.partition("+")[0],
            username=url.username,
            host=url.host,
            port=url.port,
            database=path,
            query={each: query[each] for each in query if "password" not in each.lower()},
        ).render_as_string(hide_password=True)

    @cached_property
    def name(self) -> str:
        """The name of the ledger, which no other has."""
        return str(self.head()["ledger"])

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
        head: Any = connection.execute(query).mappings().one_or_none()
        if head is None:
            raise LedgerError(self._absence)
        return dict(head)

    def _check_format(self, connection: Connection) -> None:
        columns = {column["name"] for column in sa.inspect(connection).get_columns("head")}
        if "format" not in columns:
            raise LedgerError(self._other_version("an earlier"))
        found = connection.execute(sa.select(schema.head.c.format)).scalar()
        if found is None:
            raise LedgerError(self._absence)
        if found != schema.FORMAT:
            earlier = int(found) < schema.FORMAT
            raise LedgerError(self._other_version("an earlier" if earlier else "a newer"))

    def _other_version(self, which: str) -> str:
        return (
            f"the ledger at {self.shown} was made by {which} version of cloakgp, and this one "
            "cannot read it: use that version, or make a new ledger and import the releases "
            "(cloakgp ledger import)"
        )

    def _check_noted(self, connection: Connection, noted: tuple[int, str] | None) -> None:
        if noted is None or not noted[0]:
            return
        number, digest = noted
        found = connection.execute(
            sa.select(schema.entries.c.digest).where(schema.entries.c.number == number)
        ).scalar()
        if found != digest:
            raise DamagedLedgerError(
                f"the ledger is not the one that this machine saw up to entry {number}: was an "
                "old copy put back? See cloakgp ledger verify, and cloakgp ledger recover"
            )

    def _check_last(self, connection: Connection, head: Mapping[str, Any], key: Key) -> None:
        """Refuse to go on from an entry that was written without the key."""
        if not head["number"]:
            return
        table = schema.entries
        row = connection.execute(table.select().where(table.c.number == head["number"])).first()
        last = None if row is None else Entry(*row)
        if last is not None and last.digest == head["digest"]:
            if last.is_signed(public=key.public):
                return
            # The old key signs the entry of a rotation.
            content = last.content
            if content.get("kind") == projection.ROTATED and content["key_check"] == key.check:
                return
        raise DamagedLedgerError(
            "the ledger ends with an entry that was not written with its key: see cloakgp ledger "
            "verify"
        )

    def _upgrade(self, connection: Connection) -> None:
        """Bring the tables to the state of this version of the package."""
        upgrade(
            connection,
            tables=schema.metadata,
            migrations=Path(__file__).parent / "migrations",
            version_table=VERSION_TABLE,
        )

    @contextmanager
    def _connected(self, *, writing: bool) -> Iterator[Connection]:
        self._check_folder()
        try:
            engine = self._usable().execution_options(writing=writing)
            if not writing and engine.dialect.name == "postgresql":
                # Otherwise each query sees the state at its own beginning.
                engine = engine.execution_options(
                    isolation_level="REPEATABLE READ", postgresql_readonly=True
                )
            with engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            cause = getattr(error, "orig", None) or error
            first = str(cause).partition("\n")[0]
            raise LedgerError(f"the ledger's database failed: {first}") from None

    def _check_folder(self) -> None:
        folder = Path(self.url.database or "").parent
        if self.is_file and not folder.is_dir():
            raise LedgerError(f"there is no folder {folder} for the ledger")

    def _usable(self) -> Engine:
        """Return an engine without connections of the process that this one was forked from."""
        with self._lock:
            if self._process != os.getpid():
                self._engine.dispose(close=False)
                self._process = os.getpid()
        return self._engine


def _dispose(engine: Engine, process: int) -> None:
    """Close the connections of a process, in that process."""
    if os.getpid() == process:
        engine.dispose()
