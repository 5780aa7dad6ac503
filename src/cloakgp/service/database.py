"""Database of the service: the ledger's own, by sessions of SQLAlchemy.

Transactions are short: SQLite has one writer, and the ledger writes in the same file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from cloakgp.ledger.database import make_engine, parse_url
from cloakgp.ledger.upgrading import upgrade
from cloakgp.service.errors import ServiceError
from cloakgp.service.models import Event, Rules

VERSION_TABLE = "service_version"


class UnavailableError(ServiceError):
    """The database does not do what it should; why is not for whoever is asking."""

    status, kind = 503, "unavailable"

    def __init__(self) -> None:
        super().__init__("the service's database does not answer: try again later")


class ServiceDatabase:
    """Transactions of the service's tables.

    Parameters
    ----------
    url : str
        Of the ledger, whose tables are there.
    """

    def __init__(self, url: str) -> None:
        self._engine = make_engine(parse_url(url))
        # What a transaction has read stays readable when it has ended.
        self._sessions = sessionmaker(expire_on_commit=False)

    def prepare(self) -> None:
        """Make the tables, or bring them up to date."""
        with self._engine.execution_options(writing=True).begin() as connection:
            migrations = Path(__file__).parent / "migrations"
            upgrade(connection, migrations=migrations, version_table=VERSION_TABLE)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Read what was there at one moment."""
        with self._session(writing=False) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Write; all of it is on the disk when the block ends, or nothing."""
        with self._session(writing=True) as session:
            yield session

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    @contextmanager
    def _session(self, *, writing: bool) -> Iterator[Session]:
        failed = False
        engine = self._engine.execution_options(writing=writing)
        try:
            with self._sessions(bind=engine) as session, session.begin():
                yield session
        except SQLAlchemyError:
            # What a driver says may quote what was sent.
            failed = True
        if failed:
            raise UnavailableError


def locked_rules(session: Session, account: str) -> Rules | None:
    """Return the rules of an account, which nobody else can count under until the session ends."""
    return session.get(Rules, account, with_for_update=True)


def note_event(session: Session, *, who: str, what: str, about: str = "") -> None:
    """Write down that something was done."""
    session.add(Event(who=who, what=what, about=about))
