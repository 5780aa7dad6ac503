"""People: operations of administrators, and each person's view of themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import StringConstraints
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from cloakgp.service.access import ACCESS, Role, operation
from cloakgp.service.context import Work
from cloakgp.service.database import note_event, row_of
from cloakgp.service.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from cloakgp.service.messages import (
    ChangedPerson,
    Id,
    IdentityView,
    Me,
    NewIdentity,
    NewPerson,
    PersonView,
)
from cloakgp.service.models import Event, Identity, Person, Request, Table, Token, now
from cloakgp.service.operations.jobs import stop_requests
from cloakgp.service.operations.sessions import end_sessions
from cloakgp.service.operations.tokens import revoke_tokens

# The beginning of pseudonyms, which no other name has.
ERASED = "erased person"
# The reason in the ledger.
ERASED_WHY = "erased by the service, as they may not use it any more"
AfterName = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]


@operation
def list_people(work: Work, *, after: AfterName = "", most: int = 100) -> list[PersonView]:
    """Return people in the order of their names.

    Parameters
    ----------
    work : Work
    after : str
        The name that all of them come after.
    most : int
    """
    with work.database.reading() as session:
        query = select(Person).where(Person.name > after).order_by(Person.name).limit(most)
        return [_view(session, person) for person in session.scalars(query)]


@operation
def show_person(work: Work, person: Id) -> PersonView:
    """Return a person."""
    with work.database.reading() as session:
        return _view(session, row_of(session, Person, person, called="person"))


@operation
def add_person(work: Work, new: NewPerson) -> PersonView:
    """Add a person.

    Raises
    ------
    ConflictError
        If there is a person of that name.
    """
    with work.database.writing() as session:
        person = create_person(session, new)
        note_event(
            session, who=work.actor, what="person added", about=_text(person), person=person.id
        )
        return _view(session, person)


@operation
def change_person(work: Work, person: Id, change: ChangedPerson) -> PersonView:
    """Change the roles of a person, or whether they may use the service.

    A person who may not use it any more has no valid token left, and none of their requests is
    carried out, unless its noise is drawn already.

    Raises
    ------
    ConflictError
        If their name was erased.
    ForbiddenError
        If it is the actor: no person gives themselves a role.
    NotFoundError
    """
    if person == work.actor.id:
        raise ForbiddenError("people cannot change their own roles")
    with work.database.writing() as session:
        row = row_of(session, Person, person, called="person")
        if row.erased is not None:
            raise ConflictError("the name was erased: add a new person")
        if change.roles is not None:
            row.roles = _check_roles(change.roles)
        if change.active is not None:
            row.left = None if change.active else row.left or now()
            row.active = change.active
        if not row.active:
            revoke_tokens(session, person)
            end_sessions(session, person)
        if not row.may_ask():
            stop_requests(session, person, who=work.actor)
        note_event(session, who=work.actor, what="person changed", about=_text(row), person=person)
        return _view(session, row)


@operation
def link_identity(work: Work, person: Id, new: NewIdentity) -> PersonView:
    """Link an account at an identity provider, by which a person signs in.

    Raises
    ------
    ConflictError
        If the account is linked already.
    NotFoundError
    """
    with work.database.writing() as session:
        row = row_of(session, Person, person, called="person")
        if session.get(Identity, (new.issuer, new.subject)) is not None:
            raise ConflictError("this account is linked to a person already")
        session.add(Identity(issuer=new.issuer, subject=new.subject, person_id=person))
        session.flush()
        about = f"an account of {new.issuer}"
        note_event(session, who=work.actor, what="identity linked", about=about, person=person)
        return _view(session, row)


@operation
def unlink_identity(work: Work, person: Id, old: NewIdentity) -> PersonView:
    """Unlink an account at an identity provider; the person's sessions end.

    Raises
    ------
    NotFoundError
    """
    with work.database.writing() as session:
        row = row_of(session, Person, person, called="person")
        linked = session.get(Identity, (old.issuer, old.subject))
        if linked is None or linked.person_id != person:
            raise NotFoundError("linked account")
        session.delete(linked)
        end_sessions(session, person)
        about = f"an account of {old.issuer}"
        note_event(session, who=work.actor, what="identity unlinked", about=about, person=person)
        return _view(session, row)


@operation
def erase_person(work: Work, person: Id) -> PersonView:
    """Erase the name of a person who may not use the service any more; a pseudonym stays.

    The ledger forgets it, too: its entries name people by marks.

    Raises
    ------
    ConflictError
        If they may still use it.
    NotFoundError
    """
    with work.database.reading() as session:
        row = row_of(session, Person, person, called="person")
        if row.active:
            raise ConflictError("first withdraw their access to the service")
        name = row.name
    # First in the ledger, which knows the name alone: a second call makes up for a failure below.
    with work.acting():
        work.ledger.erase([name], reason=ERASED_WHY)
    with work.database.writing() as session:
        row = row_of(session, Person, person, called="person")
        if row.active:
            raise ConflictError("they may use the service again")
        erase_name(session, row)
        note_event(session, who=work.actor, what="name erased", person=person)
        return _view(session, row)


@operation
def show_me(work: Work) -> Me:
    """Return the caller, and the operations that their roles allow."""
    actor = work.actor
    return Me(
        name=actor.name,
        roles=sorted(actor.roles),
        operations=[name for name in ACCESS if actor.may(name)],
        form_token=actor.form_token,
    )


def create_person(session: Session, new: NewPerson) -> Person:
    """Add a person, for the host of the service."""
    if new.name.startswith(ERASED):
        told = f"{ERASED} is no name of a person: choose another"
        raise InvalidError(told, fields={"name": told})
    if session.scalar(select(Person).where(Person.name == new.name)) is not None:
        told = "there is a person of that name"
        raise ConflictError(told, fields={"name": told})
    person = Person(name=new.name, roles=_check_roles(new.roles))
    session.add(person)
    session.flush()
    return person


def erase_name(session: Session, person: Person) -> None:
    """Put a pseudonym in the place of a person's name, throughout the service.

    Texts that people wrote themselves (purposes, remarks, notes) stay as they are.

    Parameters
    ----------
    session : Session
        Of the database.
    person : Person
        A person who may not use the service any more.
    """
    name, person.name = person.name, f"{ERASED} {person.id}"
    person.erased = person.erased or now()
    for model, column in ((Request, Request.decided_by), (Table, Table.registered_by)):
        session.execute(update(model).where(column == name).values({column.key: person.name}))
    session.execute(delete(Identity).where(Identity.person_id == person.id))
    session.execute(update(Token).where(Token.person_id == person.id).values(label=""))
    session.execute(update(Event).where(Event.person_id == person.id).values(address=""))


def _check_roles(roles: Sequence[Role]) -> list[str]:
    chosen = sorted(set(roles))
    if Role.ADMINISTRATOR in chosen and len(chosen) > 1:
        told = "an administrator has no other role: the person who gives roles sees no data"
        raise InvalidError(told, fields={"roles": told})
    return [str(role) for role in chosen]


def _text(person: Person) -> str:
    return ", ".join(person.roles) + ("" if person.active else "; may not use the service")


def _view(session: Session, person: Person) -> PersonView:
    linked = select(Identity).where(Identity.person_id == person.id)
    identities = [IdentityView.of(each) for each in session.scalars(linked)]
    return PersonView.of(person, erased=person.erased is not None, identities=identities)
