"""Tables of any database that SQLAlchemy reaches, by a file that holds its address.

The address is in a file, so that a password is neither in a shell's history nor in the list of
processes. What a database or its driver says may quote a cell: it ends here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from cloakgp.data.formats.base import Rows
from cloakgp.data.formats.queries import select_from_postgresql, select_from_sqlite
from cloakgp.data.formats.rows import RowFormat
from cloakgp.data.limits import UNLIMITED, ReadingLimits, RefusedError
from cloakgp.utils.extras import extra

LONGEST_ADDRESS = 10_000
# Rows that a driver holds at once, where it streams.
FETCHED_ROWS = 2**14
UNTIMED = (
    "here queries are limited in time, which is done for SQLite, and for PostgreSQL by psycopg: "
    "write the table to a file, and take that"
)


class AddressFormat(RowFormat):
    """The result of a query, or the only table, of a database whose address a file holds.

    Parameters
    ----------
    query : str
        If empty, the database's only table.
    limits : ReadingLimits, optional
        With a limit of time, databases are read that keep to one: SQLite, and PostgreSQL through
        psycopg.
    """

    certain_names = True

    def __init__(self, query: str = "", *, limits: ReadingLimits = UNLIMITED) -> None:
        super().__init__(limits=limits)
        self.query = query

    def rows(self, path: Path) -> Iterator[Sequence[Any]]:
        """Yield names and rows; all effects of the query are rolled back."""
        with extra("sql"):
            import sqlalchemy
            from sqlalchemy.exc import SQLAlchemyError
        failed = False
        try:
            address = path.read_text(encoding="utf-8-sig")[:LONGEST_ADDRESS].strip()
            engine = sqlalchemy.create_engine(
                address, hide_parameters=True, poolclass=sqlalchemy.NullPool
            )
            if engine.dialect.name == "sqlite":
                yield from self._of_sqlite(engine)
                return
            query = self.query or _whole_table(engine)
            if (engine.dialect.name, engine.dialect.driver) == ("postgresql", "psycopg"):
                yield from select_from_postgresql(engine, query, limits=self.limits)
                return
            if self.limits.seconds is not None:
                raise RefusedError(UNTIMED)
            streaming = engine.connect().execution_options(
                stream_results=True, max_row_buffer=FETCHED_ROWS
            )
            with streaming as connection:
                found = connection.exec_driver_sql(query)
                yield list(found.keys())
                yield from found
        except (SQLAlchemyError, ImportError):
            failed = True
        if failed:
            raise ValueError("the database does not answer")

    def _of_sqlite(self, engine: Any) -> Iterator[Sequence[Any]]:
        path = Path(engine.url.database or "")
        if not path.is_file():
            raise ValueError("there is no such file")
        yield from select_from_sqlite(path, self.query, limits=self.limits)

    def write(self, tables: Iterator[Rows], file: BinaryIO, *, suffix: str) -> None:
        """Refuse: a database is not a result."""
        del tables, file
        raise ValueError(f"tables are not written as {suffix}: take .csv or .parquet")


def _whole_table(engine: Any) -> str:
    """Return the query for the only table or view of a database."""
    with extra("sql"):
        import sqlalchemy
    inspector = sqlalchemy.inspect(engine)
    names = [*inspector.get_table_names(), *inspector.get_view_names()]
    if len(names) != 1:
        raise ValueError("there are several tables in it")
    quoted = engine.dialect.identifier_preparer.quote_identifier(names[0])
    return f"SELECT * FROM {quoted}"
