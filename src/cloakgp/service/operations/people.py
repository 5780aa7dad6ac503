"""People and their tokens: operations of the administrator, and what anybody may know of itself."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloakgp.service.access import ACCESS, Role, operation
from cloakgp.service.context import Work
from cloakgp.service.credentials import digest_of, hint_of, new_token
from cloakgp.service.database import ServiceDatabase, note_event
from cloakgp.service.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from cloakgp.service.messages import (
    ChangedPerson,
    IssuedToken,
    Me,
    NewPerson,
    NewToken,
    PersonView,
    TokenView,
    moment,
)
from cloakgp.service.models import Person, Token, now

DAY = 24 * 3600


@operation
def list_people(work: Work) -> list[PersonView]:
    """Return everybody."""
    with work.database.reading() as session:
        return [_view(person) for person in session.scalars(select(Person).order_by(Person.name))]


@operation
def add_person(work: Work, new: NewPerson) -> PersonView:
    """Add somebody.

    Raises
    ------
    ConflictError
        If there is somebody of that name.
    """
    with work.database.writing() as session:
        made = create_person(session, new)
        note_event(session, who=work.actor.name, what="person added", about=_told(made))
        return _view(made)


@operation
def change_person(work: Work, person: int, change: ChangedPerson) -> PersonView:
    """Change somebody's roles, or whether they may use the service at all.

    Raises
    ------
    ForbiddenError
        If it is oneself: nobody gives themselves a role.
    NotFoundError
    """
    if person == work.actor.id:
        raise ForbiddenError("nobody changes their own roles")
    with work.database.writing() as session:
        found = _found(session, person)
        if change.roles is not None:
            found.roles = _checked(change.roles)
        if change.active is not None:
            found.active = change.active
        note_event(session, who=work.actor.name, what="person changed", about=_told(found))
        return _view(found)


@operation
def list_tokens(work: Work, person: int) -> list[TokenView]:
    """Return somebody's tokens, without what makes them."""
    with work.database.reading() as session:
        _found(session, person)
        query = select(Token).where(Token.person_id == person).order_by(Token.id)
        return [_token_view(token) for token in session.scalars(query)]


@operation
def issue_token(work: Work, person: int, new: NewToken) -> IssuedToken:
    """Issue a token for somebody; it is shown this once.

    Raises
    ------
    InvalidError
        If it is to have roles that the person has not.
    NotFoundError
    """
    days = new.days or work.service.settings.token_days
    with work.database.writing() as session:
        found = _found(session, person)
        issued = create_token(session, found, label=new.label, roles=new.roles, days=days)
        about = f"{found.name}: {issued.about.hint}"
        note_event(session, who=work.actor.name, what="token issued", about=about)
        return issued


@operation
def revoke_token(work: Work, token: int) -> TokenView:
    """Revoke a token, and end the sessions that began with it."""
    with work.database.writing() as session:
        found = session.get(Token, token)
        if found is None:
            raise NotFoundError("token")
        found.revoked = found.revoked or now()
        about = f"{found.person.name}: {found.hint}"
        note_event(session, who=work.actor.name, what="token revoked", about=about)
        return _token_view(found)


@operation
def show_me(work: Work) -> Me:
    """Return who is asking, and what they may do."""
    actor = work.actor
    return Me(
        name=actor.name,
        roles=sorted(actor.roles),
        operations=[name for name in ACCESS if actor.may(name)],
        form_token=actor.form_token,
    )


def create_person(session: Session, new: NewPerson) -> Person:
    """Add somebody; for whoever starts the service."""
    if session.scalar(select(Person).where(Person.name == new.name)) is not None:
        raise ConflictError("there is somebody of that name")
    made = Person(name=new.name, roles=_checked(new.roles))
    session.add(made)
    session.flush()
    return made


def create_token(
    session: Session,
    person: Person,
    *,
    label: str = "",
    roles: Sequence[Role] | None = None,
    days: int,
) -> IssuedToken:
    """Issue a token; for whoever starts the service."""
    chosen = person.roles if roles is None else sorted(roles)
    if not set(chosen) <= set(person.roles):
        raise InvalidError("a token has no roles that its person has not")
    token = new_token()
    made = Token(
        person_id=person.id,
        digest=digest_of(token),
        hint=hint_of(token),
        label=label,
        roles=list(chosen),
        expires=now() + days * DAY,
    )
    made.person = person
    session.add(made)
    session.flush()
    return IssuedToken(token=token, about=_token_view(made))


def first_token(database: ServiceDatabase, *, days: int) -> str | None:
    """Return a token of a first administrator, or None if there are people already."""
    with database.writing() as session:
        if session.scalar(select(Person.id).limit(1)) is not None:
            return None
        admin = create_person(session, NewPerson(name="admin", roles=[Role.ADMINISTRATOR]))
        note_event(session, who="service", what="person added", about=_told(admin))
        return create_token(session, admin, label="first", days=days).token


def _checked(roles: Sequence[Role]) -> list[str]:
    chosen = sorted(set(roles))
    if Role.ADMINISTRATOR in chosen and len(chosen) > 1:
        raise InvalidError("an administrator has no other role: whoever gives roles sees no data")
    return [str(role) for role in chosen]


def _found(session: Session, person: int) -> Person:
    found = session.get(Person, person)
    if found is None:
        raise NotFoundError("person")
    return found


def _told(person: Person) -> str:
    state = "" if person.active else ", may not use the service"
    return f"{person.name} ({', '.join(person.roles)}{state})"


def _view(person: Person) -> PersonView:
    return PersonView(
        id=person.id,
        name=person.name,
        roles=[Role(role) for role in person.roles],
        active=person.active,
        created=moment(person.created),
    )


def _token_view(token: Token) -> TokenView:
    return TokenView(
        id=token.id,
        person=token.person.name,
        hint=token.hint,
        label=token.label,
        roles=[Role(role) for role in token.roles],
        created=moment(token.created),
        expires=moment(token.expires),
        revoked=token.revoked is not None,
        used=None if token.used is None else moment(token.used),
    )
