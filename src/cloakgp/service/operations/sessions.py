"""Authentication: actors by their tokens, or by the cookies of browser sessions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from cloakgp.service.access import Actor, Role, operation
from cloakgp.service.context import Service, Work
from cloakgp.service.credentials import digest_of, form_token_of, new_token
from cloakgp.service.database import note_event
from cloakgp.service.errors import UnknownActorError
from cloakgp.service.models import BrowserSession, Identity, Person, Token, now
from cloakgp.service.oidc import SignedIn

HOUR = 3600
# Seconds to which the last use of a token is noted, so that reading seldom writes.
USED_EVERY = 3600


@dataclass(frozen=True)
class OpenedSession:
    """A session at its beginning.

    Attributes
    ----------
    cookie : str
        The secret of the browser alone.
    actor : Actor
    seconds : int
        Its length.
    """

    cookie: str
    actor: Actor
    seconds: int


def actor_by_token(service: Service, token: str) -> Actor:
    """Return the actor of a token.

    Raises
    ------
    UnknownActorError
        If it is not valid, or not any more; the message does not tell which.
    """
    with service.database.reading() as session:
        row = _valid(session.scalar(select(Token).where(Token.digest == digest_of(token))))
    if row.used is None or row.used + USED_EVERY < now():
        with service.database.writing() as session:
            used = session.get(Token, row.id)
            assert used is not None
            used.used = now()
    return _actor(row.person, row.roles, token=row.id)


def actor_by_cookie(service: Service, cookie: str) -> Actor:
    """Return the actor of a session.

    Raises
    ------
    UnknownActorError
        If there is none, or it or its token has ended.
    """
    with service.database.reading() as session:
        row = session.get(BrowserSession, digest_of(cookie))
    if row is None or row.expires <= now() or not row.person.active:
        raise UnknownActorError
    roles, token = set(row.roles), 0
    if row.token is not None:
        valid = _valid(row.token)
        roles, token = roles & set(valid.roles), valid.id
    return _actor(row.person, roles, token=token, form_token=form_token_of(cookie))


def log_in(service: Service, token: str) -> OpenedSession:
    """Begin a session of a browser with a token.

    Raises
    ------
    UnknownActorError
        If the token is not valid.
    """
    actor_by_token(service, token)
    with service.database.writing() as session:
        row = _valid(session.scalar(select(Token).where(Token.digest == digest_of(token))))
        return begin_session(
            service, session, row.person, row.roles, token=row.id, method="with a token"
        )


def sign_in(service: Service, account: SignedIn) -> OpenedSession:
    """Begin a session of a browser with an account of the identity provider.

    Raises
    ------
    UnknownActorError
        If the account is linked to no person, or has no role.
    """
    with service.database.writing() as session:
        linked = session.get(Identity, (account.issuer, account.subject))
        if linked is None:
            raise UnknownActorError("with an unlinked account of the identity provider")
        person = linked.person
        for why, so in (
            ("of a person without access", not person.active),
            ("without a role here", account.roles.isdisjoint(person.roles)),
        ):
            if so:
                noted = f"with an account of the identity provider, {why}"
                raise UnknownActorError(noted, person=person.id)
        return begin_session(
            service, session, person, account.roles, method="at the identity provider"
        )


def begin_session(
    service: Service,
    session: Session,
    person: Person,
    roles: Collection[str],
    *,
    token: int | None = None,
    method: str,
) -> OpenedSession:
    """Begin a session of a browser for an authenticated person.

    Parameters
    ----------
    service : Service
    session : Session
        Of the database.
    person : Person
    roles : collection of str
        The most of the person's roles that the session may have.
    token : int, optional
        Number of the token with which it ends.
    method : str
        The way of signing in, for the audit trail.
    """
    cookie, seconds = new_token(), service.settings.session_hours * HOUR
    actor = _actor(person, roles, token=token or 0, form_token=form_token_of(cookie))
    session.execute(delete(BrowserSession).where(BrowserSession.expires <= now()))
    session.add(
        BrowserSession(
            digest=digest_of(cookie),
            person_id=person.id,
            token_id=token,
            roles=sorted(roles),
            expires=now() + seconds,
        )
    )
    note_event(session, who=actor, what="signed in", about=method)
    return OpenedSession(cookie=cookie, actor=actor, seconds=seconds)


@operation
def log_out(work: Work, cookie: str) -> None:
    """End a session."""
    with work.database.writing() as session:
        session.execute(delete(BrowserSession).where(BrowserSession.digest == digest_of(cookie)))
        note_event(session, who=work.actor, what="signed out")


def note_failure(service: Service, error: UnknownActorError, *, address: str) -> None:
    """Note a failed authentication for auditors.

    A flood is noted in part: a number of failures of an address, and of all, in an hour.

    Parameters
    ----------
    service : Service
    error : UnknownActorError
    address : str
        Network address of the caller.
    """
    # The count of all comes last, so that one address does not use it up.
    left = service.rates.left("noted", address)
    in_all = None if left is None else service.rates.left("noted in all", "")
    if left is None or in_all is None:
        return
    about = error.noted
    if not left or not in_all:
        about += "; further ones of this hour are not noted"
    with service.database.writing() as session:
        note_event(
            session,
            who="unknown",
            what="sign-in failed",
            about=about,
            person=error.person,
            address=address,
        )


def end_sessions(session: Session, person: int) -> None:
    """End all sessions of a person.

    Parameters
    ----------
    session : Session
        Of the database.
    person : int
    """
    session.execute(delete(BrowserSession).where(BrowserSession.person_id == person))


def _valid(token: Token | None) -> Token:
    if token is None:
        raise UnknownActorError("with an unknown token")
    ended = (
        ("revoked", token.revoked is not None),
        ("expired", token.expires <= now()),
        ("of a person without access", not token.person.active),
    )
    for why, so in ended:
        if so:
            raise UnknownActorError(f"with the token {token.hint}…, {why}", person=token.person_id)
    return token


def _actor(person: Person, roles: Collection[str], *, token: int, form_token: str = "") -> Actor:
    return Actor(
        id=person.id,
        name=person.name,
        roles=frozenset(Role(role) for role in set(roles) & set(person.roles)),
        token=token,
        form_token=form_token,
    )
