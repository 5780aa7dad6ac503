"""Addresses of ledgers: their engines of SQLAlchemy, their migrations, and the files beside them.

Transactions are on the disk at their end. The key and the anchor are files outside of the
database: those of SQLite lie beside it, those of a server in the user's folder. The environment
variable ``CLOAKGP_LEDGER_HOME`` names another folder for both, ``CLOAKGP_LEDGER_KEYS`` and
``CLOAKGP_LEDGER_ANCHORS`` one for each. An anchor protects best on another disk, and a backup of
the database should not have the key with it.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path
from typing import Any

from cloakgp.ledger.blocks import refuse_several
from cloakgp.ledger.errors import LedgerError
from cloakgp.ledger.texts import is_text
from cloakgp.utils.extras import extra

with extra("ledger"):
    import sqlalchemy as sa
    from alembic import command
    from alembic.config import Config
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError
    from sqlalchemy import MetaData
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
# The lock of a server that whoever changes tables holds.
UPGRADES = 0x636C6F616B
NO_ADDRESS = "a ledger is a file, sqlite:///FILE or postgresql://HOST/NAME"
DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}


def parse_url(url: object) -> URL:
    """Return the address of a ledger: the path of a file, ``sqlite:///…`` or ``postgresql://…``.

    Parameters
    ----------
    url : str or os.PathLike

    Raises
    ------
    LedgerError
        For anything else, and for what stands for several ledgers that were open together.

    Examples
    --------
    >>> parse_url("people.db").get_backend_name()
    'sqlite'
    """
    address = os.fspath(url) if isinstance(url, str | os.PathLike) else url
    if not isinstance(address, str):
        raise LedgerError(f"{NO_ADDRESS}, got {type(url).__name__}")
    refuse_several(address)
    if not address.strip() or not is_text(address):
        raise LedgerError(f"{NO_ADDRESS}: this one is no name of a file")
    try:
        parsed = sa.make_url(address if "://" in address else f"sqlite:///{address}")
        name = parsed.get_backend_name()
    except (ArgumentError, ValueError):
        raise LedgerError(NO_ADDRESS) from None
    if name not in DRIVERS or (name == "sqlite" and parsed.database in (None, "", ":memory:")):
        raise LedgerError(NO_ADDRESS)
    parsed = parsed.set(drivername=DRIVERS[name])
    try:
        parsed.get_dialect()().create_connect_args(parsed)
    except (ArgumentError, ValueError, TypeError):
        raise LedgerError(f"{NO_ADDRESS}: an option after its ? is none") from None
    return parsed


def make_engine(url: URL) -> Engine:
    """Return an engine whose transactions are on the disk when they end.

    SQLite's take its write lock when they begin if the execution option ``writing`` is set. Those
    of PostgreSQL are READ COMMITTED, whatever the server's default is: who waited for the lock of a
    row sees what others wrote before they gave it up.

    Parameters
    ----------
    url : URL
        From `parse_url`.
    """
    sqlite = url.get_backend_name() == "sqlite"
    settings: dict[str, Any] = (
        {"timeout": PATIENCE, "isolation_level": None} if sqlite else {"connect_timeout": 10}
    )
    # SQLite's transactions are serializable, one writer after another.
    isolation: dict[str, Any] = {} if sqlite else {"isolation_level": "READ COMMITTED"}
    # A server may drop a waiting connection: each transaction has its own. The end of the last
    # connection to a file of SQLite empties its log, which takes long: one stays.
    engine = sa.create_engine(
        url, connect_args=settings, poolclass=sa.QueuePool if sqlite else sa.NullPool, **isolation
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


HOME, KEYS, ANCHORS = "CLOAKGP_LEDGER_HOME", "CLOAKGP_LEDGER_KEYS", "CLOAKGP_LEDGER_ANCHORS"


def key_file(url: URL) -> Path:
    """Return the place of a ledger's key.

    Parameters
    ----------
    url : sqlalchemy.URL
        From `parse_url`.
    """
    return _place(url, KEYS, ".key")


def anchor_file(url: URL) -> Path:
    """Return the place of a ledger's anchor.

    Parameters
    ----------
    url : sqlalchemy.URL
        From `parse_url`.
    """
    return _place(url, ANCHORS, ".anchor")


def _place(url: URL, variable: str, suffix: str) -> Path:
    named = os.environ.get(variable) or os.environ.get(HOME)
    if url.get_backend_name() == "sqlite":
        database = Path(url.database or "")
        folder, name = Path(named) if named else database.parent, database.name
    else:
        folder = Path(named) if named else Path.home() / ".local" / "share" / "cloakgp"
        name = _name_on_server(url)
    return folder / (name + suffix)


def _name_on_server(url: URL) -> str:
    place = (url.host or "localhost", str(url.port or 5432), url.database or "")
    schema = str(url.query.get("options", ""))
    marked = hashlib.sha256(schema.encode()).hexdigest()[:8] if schema else ""
    return "-".join(part.replace("/", "_") for part in (*place, marked) if part)


class NewerTablesError(LedgerError):
    """A newer version of this package made the tables."""

    def __init__(self) -> None:
        super().__init__(
            "the database was made by a newer version of cloakgp, and this one cannot read it: "
            "install that version, or a later one"
        )


def upgrade(
    connection: Connection, *, tables: MetaData, migrations: Path, version_table: str
) -> None:
    """Bring tables to the state of this version of the package.

    A new database gets the tables as they are now, with the mark of the newest migration; an older
    one passes through the migrations that it lacks. One process at a time does so: others wait, and
    find it done.

    Parameters
    ----------
    connection : Connection
        Within a transaction.
    tables : MetaData
    migrations : Path
        Folder of the migrations.
    version_table : str
        Name of the table that holds the mark.

    Raises
    ------
    NewerTablesError
        If the mark is of a migration that this version lacks.
    """
    if connection.dialect.name == "postgresql":
        # Of SQLite a transaction that writes is the only one.
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(UPGRADES)))
    script = _migrations_of(migrations)
    context = MigrationContext.configure(connection, opts={"version_table": version_table})
    revision = context.get_current_revision()
    if revision is None:
        tables.create_all(connection)
        context.stamp(script, "head")
        return
    if revision == script.get_current_head():
        return
    config = _config_of(migrations)
    config.attributes["connection"] = connection
    config.attributes["version_table"] = version_table
    try:
        command.upgrade(config, "head")
    except CommandError:
        raise NewerTablesError from None


@cache
def _migrations_of(folder: Path) -> ScriptDirectory:
    # They are part of this package: what was read once stays so.
    return ScriptDirectory.from_config(_config_of(folder))


def _config_of(migrations: Path) -> Config:
    config = Config()
    # Alembic runs `env.py` of this folder.
    config.set_main_option("script_location", _escape(Path(__file__).parent))
    config.set_main_option("version_locations", _escape(migrations))
    config.set_main_option("path_separator", "newline")
    return config


def _escape(path: Path) -> str:
    return str(path).replace("%", "%%")
