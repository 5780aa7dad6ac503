"""Engines of SQLAlchemy for ledgers, whose transactions are on the disk at their end."""

from __future__ import annotations

from typing import Any

from cloakgp.ledger.errors import LedgerError
from cloakgp.utils.extras import extra

with extra("ledger"):
    import sqlalchemy as sa
    from sqlalchemy.engine import URL, Connection, Engine
    from sqlalchemy.exc import ArgumentError

# Seconds for which a writer waits for others.
PATIENCE = 120.0
SQLITE_SETTINGS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    # Deleted rows, such as erased names, are overwritten.
    "PRAGMA secure_delete=ON",
    "PRAGMA foreign_keys=ON",
    f"PRAGMA busy_timeout={int(1000 * PATIENCE)}",
)
DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}


def parse_url(url: str) -> URL:
    """Return the address of a ledger: the path of a file, ``sqlite:///…`` or ``postgresql://…``.

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
    # A server may drop a waiting connection: each transaction has its own. The end of the last
    # connection to a file of SQLite empties its log, which takes long: one stays.
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
