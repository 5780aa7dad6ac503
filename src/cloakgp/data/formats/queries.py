"""Queries of databases: they select, for a limited time, and can do nothing else.

Whoever writes a query need not be whoever owns the machine. SQLite asks about every action of a
statement before it is run, and is answered that it may read and call functions: so a query attaches
no file, writes none and changes no setting. PostgreSQL is asked through a cursor, which takes one
SELECT, in a transaction that only reads. A query that goes on for too long is interrupted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from cloakgp.data.limits import ReadingLimits, RefusedError, Stopwatch
from cloakgp.utils.threads import repeated

ALLOWED = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)
# These load programs, or call what a number points to.
FORBIDDEN = frozenset({"load_extension", "fts3_tokenizer"})
# Said of what is called without knowing by whom: a file may come with triggers and views.
CAREFUL = ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "query_only = ON")
# Bytes of one cell, on the way too.
LONGEST_CELL = 2**26
# Steps of SQLite's machine between two looks at the time: about a millisecond.
STEPS = 20_000
# Rows that are fetched at once.
FETCHED_ROWS = 2**10
# Seconds between two looks at the time, where another process does the work.
LOOK = 0.25
# Seconds after which a server ends a query by itself, beyond those it has.
GRACE = 5.0
ONLY_SELECT = "the query may select, and do nothing else: take one SELECT"


def select_from_sqlite(path: Path, query: str, *, limits: ReadingLimits) -> Iterator[Sequence[Any]]:
    """Yield the names of the columns that a query of an SQLite file selects, then row after row.

    Parameters
    ----------
    path : Path
    query : str
        If empty, all of the file's only table or view.
    limits : ReadingLimits

    Raises
    ------
    RefusedError
        If the query does more than select, or takes too long.
    ValueError, sqlite3.Error
        If it cannot be read; these may quote a cell, and must not reach anybody.
    """
    watch, refused = Stopwatch(limits), False

    def authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        nonlocal refused
        if action in ALLOWED and second not in FORBIDDEN:
            return sqlite3.SQLITE_OK
        del first
        refused = True
        return sqlite3.SQLITE_DENY

    address = f"{path.absolute().as_uri()}?mode=ro"
    # Chunks of a pass are read by one thread after another, never by two at once.
    opened = sqlite3.connect(address, uri=True, check_same_thread=False)
    with closing(opened) as database:
        database.text_factory = bytes
        for setting in CAREFUL:
            database.execute(f"PRAGMA {setting}").close()
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_CELL)
        database.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        database.set_progress_handler(watch.is_over, STEPS)
        asked = query or _only_table(database)
        database.set_authorizer(authorize)
        try:
            with watch.running():
                found = database.execute(asked)
            names = [each[0] for each in found.description or ()]
            if names:
                yield names
                while rows := _fetch(found, watch):
                    yield from rows
                return
        except sqlite3.Error:
            if not (refused or watch.over):
                raise
    raise watch.refusal() if watch.over else RefusedError(ONLY_SELECT)


def _fetch(found: Any, watch: Stopwatch) -> Sequence[Sequence[Any]]:
    with watch.running():
        rows: Sequence[Sequence[Any]] = found.fetchmany(FETCHED_ROWS)
    return rows


def _only_table(database: sqlite3.Connection) -> str:
    listed = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
    found = [row[0].decode() for row in database.execute(listed)]
    names = [name for name in found if not name.startswith("sqlite_")]
    if len(names) != 1:
        raise ValueError("there are several tables in it")
    quoted = names[0].replace('"', '""')
    return f'SELECT * FROM "{quoted}"'


def select_from_postgresql(
    engine: Any, query: str, *, limits: ReadingLimits
) -> Iterator[Sequence[Any]]:
    """Yield the names of the columns that a query of PostgreSQL selects, then row after row.

    Parameters
    ----------
    engine : sqlalchemy.Engine
        With the driver psycopg.
    query : str
    limits : ReadingLimits

    Raises
    ------
    RefusedError
        If it takes too long.
    ValueError
        If it cannot be read, or is no SELECT.
    """
    import psycopg

    watch = Stopwatch(limits)
    reading = engine.connect().execution_options(postgresql_readonly=True)
    with reading as connection, suppress(psycopg.Error):
        if limits.seconds is not None:
            # In case that this process is not there any more to interrupt it.
            most = round(1000 * (limits.seconds + GRACE))
            connection.exec_driver_sql(f"SET LOCAL statement_timeout = {most}")
        driver = connection.connection.driver_connection
        # A named cursor is one of the server's: of its protocol's statements it takes one SELECT.
        with driver.cursor(name="given") as cursor, _interrupted(driver, watch):
            with watch.running():
                cursor.execute(query)
            yield [each.name for each in cursor.description]
            while rows := _fetch(cursor, watch):
                yield from rows
        return
    raise watch.refusal() if watch.is_over() else ValueError("it cannot be read")


@contextmanager
def _interrupted(connection: Any, watch: Stopwatch) -> Iterator[None]:
    """Cancel the query of a connection within a block, once it takes too long."""

    def look() -> None:
        if watch.is_over():
            with suppress(Exception):
                connection.cancel_safe(timeout=5.0)

    with repeated(look, seconds=LOOK, name="query"):
        yield
