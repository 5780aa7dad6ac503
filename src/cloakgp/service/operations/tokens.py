"""Tokens: their issue, replacement and revocation."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cloakgp.service.access import Role, operation
from cloakgp.service.context import Work
from cloakgp.service.credentials import digest_of, hint_of, new_token
from cloakgp.service.database import note_event, row_of
from cloakgp.service.errors import ConflictError, ForbiddenError, InvalidError
from cloakgp.service.messages import Id, IssuedToken, NewToken, RotatedToken, TokenView
from cloakgp.service.models import Person, Token, now

HOUR, DAY = 3600, 24 * 3600


@operation
def list_tokens(work: Work, person: Id) -> list[TokenView]:
    """Return a person's tokens, without their secrets."""
    with work.database.reading() as session:
        row_of(session, Person, person, called="person")
        query = select(Token).where(Token.person_id == person).order_by(Token.id)
        return [_view(token) for token in session.scalars(query)]


@operation
def issue_token(work: Work, person: Id, new: NewToken) -> IssuedToken:
    """Issue a token for a person; it is shown once.

    Raises
    ------
    ConflictError
        If they may not use the service.
    InvalidError
        If it would have roles that the person lacks.
    NotFoundError
    """
    days = new.days or work.service.settings.token_days
    with work.database.writing() as session:
        row = row_of(session, Person, person, called="person")
        if not row.active:
            raise ConflictError("they may not use the service: no token is issued for them")
        issued = create_token(session, row, label=new.label, roles=new.roles, days=days)
        about = issued.about.hint
        note_event(session, who=work.actor, what="token issued", about=about, person=person)
        return issued


@operation
def rotate_token(work: Work, token: Id, replacement: RotatedToken) -> IssuedToken:
    """Issue a token in place of another, which ends at once or after some hours.

    The new one has the roles and the label of the other, and the length of a new one.

    Raises
    ------
    ConflictError
        If the other has ended.
    NotFoundError
    """
    days = replacement.days or work.service.settings.token_days
    with work.database.writing() as session:
        row = row_of(session, Token, token, called="token")
        return _replace(session, work, row, replacement, expires=now() + days * DAY)


@operation
def rotate_my_token(work: Work, replacement: RotatedToken) -> IssuedToken:
    """Issue a token in place of one's own, with the same end.

    An administrator alone extends the time of a token.

    Raises
    ------
    ForbiddenError
        If the actor did not come by a token, or asks for another length.
    """
    if replacement.days is not None:
        raise ForbiddenError("only an administrator sets the lifetime of a token")
    with work.database.writing() as session:
        row = session.get(Token, work.actor.token)
        if row is None:
            raise ForbiddenError("your session does not come from a token that could be replaced")
        return _replace(session, work, row, replacement, expires=row.expires)


@operation
def revoke_token(work: Work, token: Id) -> TokenView:
    """Revoke a token, and end the sessions that began with it."""
    with work.database.writing() as session:
        row = row_of(session, Token, token, called="token")
        row.revoked = row.revoked or now()
        note_event(
            session,
            who=work.actor,
            what="token revoked",
            about=row.hint,
            person=row.person_id,
        )
        return _view(row)


def create_token(
    session: Session,
    person: Person,
    *,
    label: str = "",
    roles: Sequence[Role] | None = None,
    days: int,
) -> IssuedToken:
    """Issue a token, for the host of the service."""
    return _issue(session, person, label=label, roles=roles, expires=now() + days * DAY)


def revoke_tokens(session: Session, person: int) -> int:
    """Revoke all tokens of a person, which ends their sessions; return their number.

    Parameters
    ----------
    session : Session
        Of the database.
    person : int
    """
    ended = update(Token).where(Token.person_id == person, Token.revoked.is_(None))
    return len(session.scalars(ended.values(revoked=now()).returning(Token.id)).all())


def _issue(
    session: Session,
    person: Person,
    *,
    label: str,
    roles: Sequence[Role] | None,
    expires: int,
) -> IssuedToken:
    chosen = person.roles if roles is None else sorted(roles)
    if not set(chosen) <= set(person.roles):
        raise InvalidError("a token has no roles that its person lacks")
    token = new_token()
    made = Token(
        person_id=person.id,
        digest=digest_of(token),
        hint=hint_of(token),
        label=label,
        roles=list(chosen),
        expires=expires,
    )
    made.person = person
    session.add(made)
    session.flush()
    return IssuedToken(token=token, about=_view(made))


def _replace(
    session: Session, work: Work, row: Token, replacement: RotatedToken, *, expires: int
) -> IssuedToken:
    if row.revoked is not None or row.expires <= now() or not row.person.active:
        raise ConflictError("this token has ended: issue a new one")
    # Roles that the person has lost meanwhile stay lost.
    roles = [Role(role) for role in row.roles if role in row.person.roles]
    issued = _issue(session, row.person, label=row.label, roles=roles, expires=expires)
    if replacement.grace_hours:
        row.expires = min(row.expires, now() + replacement.grace_hours * HOUR)
    else:
        row.revoked = now()
    ends = f"after {replacement.grace_hours} hours" if replacement.grace_hours else "at once"
    note_event(
        session,
        who=work.actor,
        what="token replaced",
        about=f"{issued.about.hint} in place of {row.hint}, which ends {ends}",
        person=row.person_id,
    )
    return issued


def _view(token: Token) -> TokenView:
    return TokenView.of(token, person=token.person.name, revoked=token.revoked is not None)
