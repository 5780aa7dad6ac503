"""Sessions: who is asking, by a token or by the cookie of a browser that logged in with one."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, select

from cloakgp.service.access import Actor, Role, operation
from cloakgp.service.context import Service, Work
from cloakgp.service.credentials import digest_of, form_token_of, new_token
from cloakgp.service.database import note_event
from cloakgp.service.errors import UnknownActorError
from cloakgp.service.models import BrowserSession, Token, now

HOUR = 3600
# A token's last use is noted to so many seconds, so that reading does not write.
USED_EVERY = 3600


@dataclass(frozen=True)
class OpenedSession:
    """A session that has begun.

    Attributes
    ----------
    cookie : str
        Nobody but the browser gets to know it.
    actor : Actor
    seconds : int
        How long it lasts.
    """

    cookie: str
    actor: Actor
    seconds: int


def actor_by_token(service: Service, token: str) -> Actor:
    """Return whose token this is.

    Raises
    ------
    UnknownActorError
        If it is none, or not any more; nothing tells which.
    """
    with service.database.reading() as session:
        found = session.scalar(select(Token).where(Token.digest == digest_of(token)))
    actor = _actor(found)
    assert found is not None
    if found.used is None or found.used + USED_EVERY < now():
        with service.database.writing() as session:
            used = session.get(Token, found.id)
            assert used is not None
            used.used = now()
    return actor


def actor_by_cookie(service: Service, cookie: str) -> Actor:
    """Return whose session this is.

    Raises
    ------
    UnknownActorError
        If it is none, or has ended, or its token has.
    """
    with service.database.reading() as session:
        found = session.get(BrowserSession, digest_of(cookie))
    if found is None or found.expires <= now():
        raise UnknownActorError
    return _actor(found.token, form_token=form_token_of(cookie))


def log_in(service: Service, token: str) -> OpenedSession:
    """Begin a session of a browser.

    Raises
    ------
    UnknownActorError
        If the token is not valid.
    """
    actor_by_token(service, token)
    cookie, seconds = new_token(), service.settings.session_hours * HOUR
    with service.database.writing() as session:
        found = session.scalar(select(Token).where(Token.digest == digest_of(token)))
        actor = _actor(found, form_token=form_token_of(cookie))
        session.execute(delete(BrowserSession).where(BrowserSession.expires <= now()))
        session.add(
            BrowserSession(digest=digest_of(cookie), token_id=actor.token, expires=now() + seconds)
        )
        note_event(session, who=actor.name, what="logged in")
    return OpenedSession(cookie=cookie, actor=actor, seconds=seconds)


@operation
def log_out(work: Work, cookie: str) -> None:
    """End a session."""
    with work.database.writing() as session:
        session.execute(delete(BrowserSession).where(BrowserSession.digest == digest_of(cookie)))
        note_event(session, who=work.actor.name, what="logged out")


def _actor(token: Token | None, *, form_token: str = "") -> Actor:
    if token is None or token.revoked is not None or token.expires <= now():
        raise UnknownActorError
    if not token.person.active:
        raise UnknownActorError
    roles = frozenset(Role(role) for role in set(token.roles) & set(token.person.roles))
    return Actor(
        id=token.person.id,
        name=token.person.name,
        roles=roles,
        token=token.id,
        form_token=form_token,
    )
