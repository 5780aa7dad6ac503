"""Maintenance of a service by its host: administrators, recovery and retention."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from cloakgp.ledger import Ledger
from cloakgp.service.access import Role
from cloakgp.service.database import ServiceDatabase, note_event
from cloakgp.service.messages import NewPerson
from cloakgp.service.models import BrowserSession, Event, Identity, Person, Token, now
from cloakgp.service.operations.people import create_person, erase_name
from cloakgp.service.operations.sessions import end_sessions
from cloakgp.service.operations.tokens import DAY, create_token, revoke_tokens

NAME = "admin"
TOKEN_FILE = "administrator.token"


@dataclass(frozen=True)
class Erased:
    """The result of a retention.

    Attributes
    ----------
    names, addresses : int
        Numbers of erased names and addresses.
    """

    names: int
    addresses: int


def first_token(database: ServiceDatabase, *, days: int) -> str | None:
    """Return a token of a first administrator, or None if there are people already.

    Parameters
    ----------
    database : ServiceDatabase
    days : int
        Length of the token.
    """
    with database.writing() as session:
        if session.scalar(select(Person.id).limit(1)) is not None:
            return None
        admin = _add_administrator(session, who="service")
        return create_token(session, admin, label="first", days=days).token


def recover_administrator(database: ServiceDatabase, *, days: int) -> tuple[str, str]:
    """Return a new token of an administrator, and their name; all their other tokens end.

    For tokens that were lost, have expired, or are in wrong hands. The audit trail notes it.

    Parameters
    ----------
    database : ServiceDatabase
    days : int
        Length of the token.

    Returns
    -------
    token, name : str
    """
    with database.writing() as session:
        people = session.scalars(select(Person).order_by(Person.id))
        administrators = [each for each in people if Role.ADMINISTRATOR in each.roles]
        ended = 0
        for each in administrators:
            ended += revoke_tokens(session, each.id)
            end_sessions(session, each.id)
        active = [each for each in administrators if each.active]
        admin = active[0] if active else _add_administrator(session, who="host")
        issued = create_token(session, admin, label="recovered", days=days)
        note_event(
            session,
            who="host",
            what="administrator recovered",
            about=f"{issued.about.hint}; {ended} tokens of administrators revoked",
            person=admin.id,
        )
        return issued.token, admin.name


def write_token(path: Path, token: str) -> None:
    """Write a token to a file that its owner alone can read.

    Parameters
    ----------
    path : Path
        An older file there is replaced; a link is not followed.
    token : str

    Raises
    ------
    OSError

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / TOKEN_FILE
    ...     write_token(path, "cloakgp_abc")
    ...     oct(path.stat().st_mode & 0o777)
    '0o600'
    """
    # A process that holds an older file open does not read the new token.
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "w") as file:
        file.write(token + "\n")
        file.flush()
        os.fsync(file.fileno())


def revoke_all_tokens(url: str) -> int:
    """Revoke every token, unlink every account and end every session of an older copy.

    In such a copy, tokens that were revoked since are valid again, and so are linked accounts of
    people who have left: the administrator issues and links others.

    Parameters
    ----------
    url : str
        Address of the database.

    Returns
    -------
    int
        Number of revoked tokens.
    """
    database = ServiceDatabase(url)
    try:
        with database.writing() as session:
            session.execute(delete(BrowserSession))
            session.execute(delete(Identity))
            tokens = session.scalars(select(Token).where(Token.revoked.is_(None))).all()
            for token in tokens:
                token.revoked = now()
            note_event(session, who="service", what="all tokens revoked", about="recovery")
            return len(tokens)
    finally:
        database.close()


def apply_retention(ledger: Ledger, database: ServiceDatabase, *, days: int) -> Erased:
    """Erase the names of people who left before some days, and older addresses of events.

    Pseudonyms stay in the place of names, in the ledger as in the service; events and charges stay.

    Parameters
    ----------
    ledger : Ledger
    database : ServiceDatabase
        Of the service, in the same database.
    days : int
        Days for which names and addresses are kept.
    """
    since = now() - days * DAY
    left = select(Person).where(
        Person.active.is_(False), Person.erased.is_(None), Person.left < since
    )
    with database.reading() as session:
        names = [person.name for person in session.scalars(left)]
    # First in the ledger, which knows the name alone.
    ledger.erase(names, reason=f"they left more than {days} days ago")
    with database.writing() as session:
        people = session.scalars(left.where(Person.name.in_(names))).all()
        for person in people:
            erase_name(session, person)
        old = (
            update(Event)
            .where(Event.created < since, Event.address != "")
            .values(address="")
            .returning(Event.id)
        )
        addresses = len(session.scalars(old).all())
        session.execute(delete(BrowserSession).where(BrowserSession.expires <= now()))
        about = f"{len(people)} names, {addresses} addresses, older than {days} days"
        note_event(session, who="host", what="old names erased", about=about)
    return Erased(names=len(people), addresses=addresses)


def _add_administrator(session: Session, *, who: str) -> Person:
    """Add an administrator under a free name."""
    taken = set(session.scalars(select(Person.name)))
    names = (NAME, *(f"{NAME} {number}" for number in range(2, len(taken) + 3)))
    name = next(name for name in names if name not in taken)
    admin = create_person(session, NewPerson(name=name, roles=[Role.ADMINISTRATOR]))
    note_event(session, who=who, what="person added", about="administrator", person=admin.id)
    return admin
