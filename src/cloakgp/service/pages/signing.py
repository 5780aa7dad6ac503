"""Signing in and out, the first page, help, and the files that pages fetch."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from cloakgp.service.errors import (
    NotFoundError,
    ServiceError,
    TooManyError,
    UnknownActorError,
)
from cloakgp.service.guards import actor_of, cookie_name, open_browser_session, service_of
from cloakgp.service.operations.sessions import log_out
from cloakgp.service.pages.glossary import GLOSSARY, ROLES
from cloakgp.service.pages.rendering import MENU, STATIC, html, static_content
from cloakgp.service.pages.visits import (
    SIGN_IN,
    PageRoute,
    Sending,
    Visiting,
    gone_to,
    problem_of,
)

router = APIRouter(route_class=PageRoute)
# Seconds; the address changes with the content.
KEPT = 7 * 24 * 3600
LONGEST_TOKEN = 200


@router.get("/", name="page: first")
def show_first(visit: Visiting) -> Response:
    """Go to the first page that somebody may see."""
    return gone_to(next(address for address, _, needed in MENU if visit.actor.may(needed)))


@router.get(SIGN_IN, name="page: sign in")
def show_sign_in(request: Request, next: Annotated[str, Query(max_length=2000)] = "/") -> Response:
    """Ask for a token."""
    return _sign_in_page(request, next)


@router.post(SIGN_IN, name="page: sign in")
async def sign_in(request: Request) -> Response:
    """Begin a session; there is none yet whose form it could be, but browsers say who sent it."""
    async with request.form(max_files=0, max_fields=10) as form:
        token, wanted = str(form.get("token", "")).strip(), str(form.get("next", "/"))
    answer = gone_to(wanted if _is_ours(wanted) else "/")
    try:
        if len(token) > LONGEST_TOKEN:
            raise UnknownActorError
        await run_in_threadpool(open_browser_session, request, answer, token)
    except (UnknownActorError, TooManyError) as error:
        status, message = problem_of(error)
        if isinstance(error, UnknownActorError):
            message = "This token is not valid, or not any more. Ask your administrator for one."
        return _sign_in_page(request, wanted, status=status, problem=message)
    return answer


@router.post("/sign-out", name="page: sign out")
def sign_out(sent: Sending) -> Response:
    """End the session."""
    name = cookie_name(service_of(sent.request))
    log_out(sent.work("log_out"), sent.request.cookies.get(name, ""))
    answer = gone_to(SIGN_IN)
    answer.delete_cookie(name, path="/")
    return answer


@router.get("/help", name="page: help")
def show_help(request: Request) -> Response:
    """Say in plain words how it works, to anybody."""
    try:
        actor = actor_of(request)
    except ServiceError:
        actor = None
    return html("help.html", actor=actor, path="/help", glossary=GLOSSARY, roles=ROLES)


@router.get("/static/{name}", name="page: file")
def show_file(name: str) -> Response:
    """Send a file that pages fetch."""
    if name not in STATIC:
        raise NotFoundError("file")
    kept = {"Cache-Control": f"public, max-age={KEPT}, immutable"}
    return Response(static_content(name), media_type=STATIC[name], headers=kept)


def _sign_in_page(
    request: Request, wanted: str, *, status: int = 200, problem: str = ""
) -> Response:
    return html(
        "sign_in.html",
        actor=None,
        path=request.url.path,
        status=status,
        next=wanted if _is_ours(wanted) else "/",
        problem=problem,
    )


def _is_ours(address: str) -> bool:
    """Return whether an address is one of this service, whatever browsers make of it."""
    plain = address.isprintable() and "\\" not in address
    return plain and address.startswith("/") and not address.startswith("//")
