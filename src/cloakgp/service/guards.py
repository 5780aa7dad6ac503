"""Guards of routes: authentication, authorization, rate limits, and protection of forms.

A program sends a token in ``Authorization: Bearer …``. A browser has a session's cookie, which it
also sends with requests that other sites forge: every change therefore needs the session's form
token, which no other site can read, in the header ``X-Form-Token`` or in a field of a page's form
(`check_form`).
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal, TypedDict

from anyio import from_thread
from fastapi import Depends, Request, Response
from fastapi.security import HTTPBearer

from cloakgp.service.access import ACCESS, Actor
from cloakgp.service.context import Service, Work
from cloakgp.service.credentials import is_form_token
from cloakgp.service.errors import ForbiddenError, UnknownActorError
from cloakgp.service.operations.sessions import (
    OpenedSession,
    actor_by_cookie,
    actor_by_token,
    note_failure,
)
from cloakgp.service.operations.sessions import (
    log_in as begin_session,
)

HEADER = "X-Form-Token"
READING = frozenset({"GET", "HEAD", "OPTIONS"})
BEARER = "bearer "
# Rates of operations, where they are not "default".
RATE_OF = {
    "make_plan": "plan",
    "plot_plan": "plan",
    "predict_release": "predict",
    "predict_table": "predict",
    "plot_release": "predict",
    "combine_releases": "predict",
    "upload_table": "upload",
    "look_at_table": "upload",
    "register_table": "upload",
    "verify_ledger": "plan",
}


class Attributes(TypedDict):
    """Attributes of cookies, besides name and value."""

    httponly: bool
    samesite: Literal["strict", "lax"]
    secure: bool
    path: str


# For the OpenAPI document; `actor_of` reads the header.
bearer = HTTPBearer(auto_error=False, description="A token of this service.")


def service_of(request: Request) -> Service:
    """Return the service of an application."""
    service: Service = request.app.state.service
    return service


def cookie_name(service: Service) -> str:
    """Return the name of session cookies, with a prefix that demands TLS where it is on."""
    return "__Host-cloakgp" if service.settings.secure else "cloakgp"


def address_of(request: Request) -> str:
    """Return the network address of the caller."""
    return request.client.host if request.client else "unknown"


def actor_of(request: Request) -> Actor:
    """Return the caller, by a token or a session.

    A valid token is taken however many wrong ones came from the same address; and the end of a
    session is no failed attempt.

    Raises
    ------
    TooManyError
        If the token is wrong, after too many wrong ones from the address.
    UnknownActorError
    """
    service = service_of(request)
    header = request.headers.get("authorization", "")
    cookie = request.cookies.get(cookie_name(service), "")
    if header[: len(BEARER)].lower() == BEARER:
        try:
            return actor_by_token(service, header[len(BEARER) :].strip())
        except UnknownActorError as error:
            count_failure(request, error)
            raise
    if cookie:
        return actor_by_cookie(service, cookie)
    raise UnknownActorError


def count_failure(request: Request, error: UnknownActorError) -> None:
    """Count a failed authentication, and note it.

    Raises
    ------
    TooManyError
        If there were too many from the address.
    """
    service, address = service_of(request), address_of(request)
    service.rates.count("failed", address)
    note_failure(service, error, address=address)


def check_form(request: Request, actor: Actor, token: str) -> None:
    """Refuse a change that no page of the session sent.

    Parameters
    ----------
    request : Request
    actor : Actor
    token : str
        The form token of the request.

    Raises
    ------
    ForbiddenError
    """
    if request.method in READING or not actor.form_token:
        return
    cookie = request.cookies.get(cookie_name(service_of(request)), "")
    if request.headers.get("sec-fetch-site") == "cross-site" or not is_form_token(
        token, session=cookie
    ):
        raise ForbiddenError("this was not sent by a page of the session: send its form token")


def work_for(request: Request, actor: Actor, operation: str) -> Work:
    """Return the context of an operation, if the actor may call it, and not too often.

    Raises
    ------
    ForbiddenError, TooManyError
    """
    service = service_of(request)
    service.rates.count(RATE_OF.get(operation, "default"), str(actor.id))
    if not actor.may(operation):
        raise ForbiddenError
    return Work(service=service, actor=actor, stopped=partial(from_thread.run, _has_left, request))


async def _has_left(request: Request) -> bool:
    return await request.is_disconnected()


def admit(request: Request) -> None:
    """Admit a caller to a route of an operation's name, before its body is read.

    Raises
    ------
    ForbiddenError, TooManyError, UnknownActorError
    """
    actor = actor_of(request)
    operation: str = request.scope["route"].name
    assert operation in ACCESS
    check_form(request, actor, request.headers.get(HEADER, ""))
    request.state.work = work_for(request, actor, operation)


def work_of(request: Request, _: Annotated[object, Depends(bearer)]) -> Work:
    """Return the context of a route, for an admitted caller."""
    if not hasattr(request.state, "work"):
        admit(request)
    work: Work = request.state.work
    return work


def open_browser_session(request: Request, response: Response, token: str) -> OpenedSession:
    """Begin a session with a token, and set its cookie.

    Raises
    ------
    ForbiddenError
        If another site sent the request.
    TooManyError, UnknownActorError
    """
    service = service_of(request)
    if request.headers.get("sec-fetch-site") == "cross-site":
        raise ForbiddenError("another site sent this")
    try:
        opened = begin_session(service, token)
    except UnknownActorError as error:
        count_failure(request, error)
        raise
    give_cookie(response, service, opened)
    return opened


def give_cookie(response: Response, service: Service, opened: OpenedSession) -> None:
    """Set the cookie of a session."""
    response.set_cookie(
        cookie_name(service),
        opened.cookie,
        max_age=opened.seconds,
        **attributes_of_cookies(service),
    )


def take_cookie(response: Response, service: Service) -> None:
    """Delete the cookie of a session."""
    response.delete_cookie(cookie_name(service), **attributes_of_cookies(service))


def attributes_of_cookies(service: Service) -> Attributes:
    """Return the attributes of cookies, by which browsers also delete them."""
    return {
        "httponly": True,
        "samesite": "strict",
        "secure": service.settings.secure,
        "path": "/",
    }


Working = Annotated[Work, Depends(work_of)]
