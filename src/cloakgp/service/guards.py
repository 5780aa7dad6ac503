"""Guards: who is asking, whether they may, how often they did, and whether a page sent them.

A program sends a token in ``Authorization: Bearer …``. A browser has a session's cookie, which it
sends along with requests that other sites have it make: whatever changes something needs the
session's form token too, which no other site can read, in the header ``X-Form-Token`` or (of pages)
in a form's field, for which `check_form` is.
"""

from __future__ import annotations

from typing import Annotated

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
)
from cloakgp.service.operations.sessions import (
    log_in as begin_session,
)

HEADER = "X-Form-Token"
READING = frozenset({"GET", "HEAD", "OPTIONS"})
BEARER = "bearer "
# Of what is limited otherwise than by the rate "default".
RATE_OF = {
    "make_plan": "plan",
    "plot_plan": "plan",
    "predict_release": "predict",
    "predict_table": "predict",
    "plot_release": "predict",
    "upload_table": "upload",
    "look_at_table": "upload",
    "register_table": "upload",
    "verify_ledger": "plan",
}
# For the OpenAPI document; what is sent is read below.
bearer = HTTPBearer(auto_error=False, description="A token of this service.")


def service_of(request: Request) -> Service:
    """Return the service of an application."""
    service: Service = request.app.state.service
    return service


def cookie_name(service: Service) -> str:
    """Return the name of sessions' cookies: with a prefix that holds browsers to TLS, if it is."""
    return "__Host-cloakgp" if service.settings.secure else "cloakgp"


def address_of(request: Request) -> str:
    """Return from where somebody asks."""
    return request.client.host if request.client else "unknown"


def actor_of(request: Request) -> Actor:
    """Return who is asking, by a token or a session.

    Raises
    ------
    TooManyError
        If wrong tokens came too often from there.
    UnknownActorError
    """
    service, address = service_of(request), address_of(request)
    service.rates.check("failed", address)
    given = request.headers.get("authorization", "")
    cookie = request.cookies.get(cookie_name(service), "")
    try:
        if given[: len(BEARER)].lower() == BEARER:
            return actor_by_token(service, given[len(BEARER) :].strip())
        if cookie:
            return actor_by_cookie(service, cookie)
    except UnknownActorError:
        service.rates.count("failed", address)
        raise
    raise UnknownActorError


def check_form(request: Request, actor: Actor, given: str) -> None:
    """Refuse what changes something and was not sent by a page of the session.

    Parameters
    ----------
    request : Request
    actor : Actor
    given : str
        The form token that was sent.

    Raises
    ------
    ForbiddenError
    """
    if request.method in READING or not actor.form_token:
        return
    cookie = request.cookies.get(cookie_name(service_of(request)), "")
    if request.headers.get("sec-fetch-site") == "cross-site" or not is_form_token(
        given, session=cookie
    ):
        raise ForbiddenError("this was not sent by a page of the session: send its form token")


def work_for(request: Request, actor: Actor, operation: str) -> Work:
    """Return what an operation works with, if the actor may, and not too often.

    Raises
    ------
    ForbiddenError, TooManyError
    """
    service = service_of(request)
    service.rates.count(RATE_OF.get(operation, "default"), str(actor.id))
    if not actor.may(operation):
        raise ForbiddenError
    return Work(service=service, actor=actor)


def work_of(request: Request, _: Annotated[object, Depends(bearer)]) -> Work:
    """Return what a route works with; the route's name is the operation's."""
    actor = actor_of(request)
    operation: str = request.scope["route"].name
    assert operation in ACCESS
    check_form(request, actor, request.headers.get(HEADER, ""))
    return work_for(request, actor, operation)


def open_browser_session(request: Request, response: Response, token: str) -> OpenedSession:
    """Begin a session, and give its cookie to the browser.

    Raises
    ------
    ForbiddenError
        If another site sent this.
    TooManyError, UnknownActorError
    """
    service, address = service_of(request), address_of(request)
    if request.headers.get("sec-fetch-site") == "cross-site":
        raise ForbiddenError("another site sent this")
    service.rates.check("failed", address)
    try:
        opened = begin_session(service, token)
    except UnknownActorError:
        service.rates.count("failed", address)
        raise
    response.set_cookie(
        cookie_name(service),
        opened.cookie,
        max_age=opened.seconds,
        httponly=True,
        samesite="strict",
        secure=service.settings.secure,
        path="/",
    )
    return opened


Working = Annotated[Work, Depends(work_of)]
