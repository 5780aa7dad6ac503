"""Database of the service: the ledger's own, by sessions of SQLAlchemy.

Transactions are short: SQLite has one writer, and the ledger writes in the same file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Select, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from cloakgp.ledger.engines import make_engine, parse_url, upgrade
from cloakgp.service.access import Actor
from cloakgp.service.errors import NotFoundError, ServiceError
from cloakgp.service.models import Base, Event, Numbered, Rules

VERSION_TABLE = "service_version"
Row = TypeVar("Row", bound=Base)
NumberedRow = TypeVar("NumberedRow", bound=Numbered)


class UnavailableError(ServiceError):
    """The database fails; the cause is not for callers."""

    status, kind = 503, "unavailable"

    def __init__(self) -> None:
        super().__init__("the service's database does not answer: try again later")


class ServiceDatabase:
    """Transactions of the service's tables.

    Parameters
    ----------
    url : str
        Address of the ledger, whose database holds them.
    """

    def __init__(self, url: str) -> None:
        self._engine = make_engine(parse_url(url))
        # The rows of a transaction stay readable after its end.
        self._sessions = sessionmaker(expire_on_commit=False)

    @property
    def is_shared(self) -> bool:
        """Whether several servers may use it, for which a file is not made."""
        return self._engine.dialect.name == "postgresql"

    def prepare(self) -> None:
        """Make the tables, or bring them up to date."""
        with self._engine.execution_options(writing=True).begin() as connection:
            upgrade(
                connection,
                tables=Base.metadata,
                migrations=Path(__file__).parent / "migrations",
                version_table=VERSION_TABLE,
            )

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Read the state of one moment."""
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
        if not writing and self.is_shared:
            # Otherwise each query sees the state at its own beginning.
            engine = engine.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        try:
            with self._sessions(bind=engine) as session, session.begin():
                yield session
        except SQLAlchemyError:
            # The message of a driver may quote values.
            failed = True
        if failed:
            raise UnavailableError


def row_of(session: Session, model: type[Row], key: object, *, called: str) -> Row:
    """Return the row of a key.

    Parameters
    ----------
    session : Session
    model : type
    key : object
    called : str
        The word for such a row in the message.

    Raises
    ------
    NotFoundError
    """
    row = session.get(model, key)
    if row is None:
        raise NotFoundError(called)
    return row


def newest(model: type[NumberedRow], *, before: int | None, most: int) -> Select[Any]:
    """Return the query for the newest rows.

    Parameters
    ----------
    model : type
    before : int or None
        The number that all of them come before.
    most : int
    """
    query = select(model).order_by(model.id.desc()).limit(most)
    return query if before is None else query.where(model.id < before)


def lock_rules(session: Session, account: str) -> Rules:
    """Return the rules of an account, locked for all others until the session ends.

    Raises
    ------
    NotFoundError
    """
    rules = session.get(Rules, account, with_for_update=True)
    if rules is None:
        raise NotFoundError("account")
    return rules


def note_event(
    session: Session,
    *,
    who: Actor | str,
    what: str,
    about: str = "",
    person: int | None = None,
    address: str = "",
) -> None:
    """Write an event of the audit trail.

    Parameters
    ----------
    session : Session
    who : Actor or str
        The actor; or "service", "host" or "unknown".
    what, about : str
        Without names of people, which could not be erased there.
    person : int, optional
        The person whom it is about.
    address : str
        Network address of the caller, if that matters.
    """
    session.add(
        Event(
            who="" if isinstance(who, Actor) else who,
            who_id=who.id if isinstance(who, Actor) else None,
            what=what,
            about=about,
            person_id=person,
            address=address,
        )
    )
