"""Pages of sign-in and sign-out, the first page, help, and static files."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote, unquote

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from cloakgp.service.context import Service
from cloakgp.service.credentials import derived, is_same, new_token
from cloakgp.service.demonstration import Demonstration
from cloakgp.service.errors import (
    NotFoundError,
    ServiceError,
    TooManyError,
    UnknownActorError,
)
from cloakgp.service.guards import (
    Attributes,
    actor_of,
    address_of,
    attributes_of_cookies,
    cookie_name,
    count_failure,
    give_cookie,
    open_browser_session,
    service_of,
    take_cookie,
)
from cloakgp.service.oidc import STATE, ProviderClient, ProviderError, SignedIn
from cloakgp.service.operations.sessions import log_out
from cloakgp.service.operations.sessions import sign_in as begin_session_of
from cloakgp.service.pages.base import (
    Form,
    Page,
    PageRoute,
    go_to,
    problem_of,
)
from cloakgp.service.pages.glossary import GLOSSARY, ROLES
from cloakgp.service.pages.rendering import MENU, STATIC, html, static_content
from cloakgp.service.settings import CALLBACK, SIGN_IN

router = APIRouter(route_class=PageRoute)
# Seconds for which browsers keep static files, whose addresses change with their content.
KEPT = 7 * 24 * 3600
LONGEST_TOKEN = 200
# Seconds of a sign-in at the identity provider.
SIGNING_IN = 600


@router.get("/", name="page: first")
def show_first(page: Page) -> Response:
    """Go to the first page that the reader may see."""
    return go_to(next(address for address, _, needed in MENU if page.actor.may(needed)))


@router.get(SIGN_IN, name="page: sign in")
def show_sign_in(
    request: Request,
    next: Annotated[str, Query(max_length=2000)] = "/",
    demonstration: Annotated[str, Query(max_length=LONGEST_TOKEN)] = "",
) -> Response:
    """Ask for a token; or, with the link of a demonstration, as whom to enter it."""
    return _sign_in_page(request, next, demonstration=demonstration)


@router.post(SIGN_IN, name="page: sign in")
async def sign_in(request: Request) -> Response:
    """Begin a session with a token; the browser's headers protect this form, before a session."""
    async with request.form(max_files=0, max_fields=10) as form:
        token, wanted = str(form.get("token", "")).strip(), str(form.get("next", "/"))
    answer = go_to(wanted if _is_ours(wanted) else "/")
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


@router.get(f"{SIGN_IN}/provider", name="page: provider")
def begin_at_provider(
    request: Request, next: Annotated[str, Query(max_length=1000)] = "/"
) -> Response:
    """Send a browser to the identity provider."""
    service = service_of(request)
    provider = _provider(service)
    secret = new_token()
    try:
        answer = go_to(provider.address(secret))
    except ProviderError as error:
        return _sign_in_page(request, next, status=error.status, problem=str(error))
    wanted = next if _is_ours(next) else "/"
    answer.set_cookie(
        _begun_name(service),
        f"{secret}.{quote(wanted, safe='')}",
        max_age=SIGNING_IN,
        **_of_begun(service),
    )
    return answer


@router.get(CALLBACK, name="page: callback")
def come_back(
    request: Request,
    code: Annotated[str, Query(max_length=4000)] = "",
    state: Annotated[str, Query(max_length=200)] = "",
    iss: Annotated[str, Query(max_length=1000)] = "",
) -> Response:
    """Begin a session after a sign-in at the identity provider."""
    service = service_of(request)
    provider = _provider(service)
    service.rates.count("callback", address_of(request))
    secret, _, wanted = request.cookies.get(_begun_name(service), "").partition(".")
    account = None
    try:
        if not secret or not is_same(state, derived(secret, STATE)):
            raise UnknownActorError("at the identity provider, not begun in this browser")
        if iss not in ("", provider.provider.issuer):
            raise UnknownActorError("with an answer of another identity provider")
        account = provider.signed_in(secret, code=code)
        opened = begin_session_of(service, account)
    except ServiceError as error:
        answer = _not_signed_in(request, error, account)
    else:
        # A page that goes on by itself: a redirection would still be on the way from another site,
        # on which browsers send no cookie that is this site's alone.
        onward = unquote(wanted)
        onward = onward if _is_ours(onward) else "/"
        answer = html("signed_in.html", actor=None, path=CALLBACK, next=onward)
        give_cookie(answer, service, opened)
    answer.delete_cookie(_begun_name(service), **_of_begun(service))
    return answer


@router.post("/sign-out", name="page: sign out")
def sign_out(form: Form) -> Response:
    """End the session."""
    name = cookie_name(service_of(form.request))
    log_out(form.work("log_out"), form.request.cookies.get(name, ""))
    answer = go_to(SIGN_IN)
    take_cookie(answer, service_of(form.request))
    return answer


@router.get("/help", name="page: help")
def show_help(request: Request) -> Response:
    """Show the help, to everyone."""
    try:
        actor = actor_of(request)
    except ServiceError:
        actor = None
    return html("help.html", actor=actor, path="/help", glossary=GLOSSARY, roles=ROLES)


@router.get("/static/{name}", name="page: file")
def show_file(name: str) -> Response:
    """Send a static file."""
    if name not in STATIC:
        raise NotFoundError("file")
    kept = {"Cache-Control": f"public, max-age={KEPT}, immutable"}
    return Response(static_content(name), media_type=STATIC[name], headers=kept)


def _not_signed_in(request: Request, error: ServiceError, account: SignedIn | None) -> Response:
    status, message = problem_of(error)
    if isinstance(error, UnknownActorError):
        message = "This did not sign you in. Begin anew; if it fails again, ask your administrator."
        if account is not None:
            message = (
                "This account is not linked to a person here. To link it, your administrator "
                f"needs its subject: {account.subject}"
            )
        try:
            count_failure(request, error)
        except TooManyError as often:
            status, message = problem_of(often)
    return _sign_in_page(request, "/", status=status, problem=message)


def _provider(service: Service) -> ProviderClient:
    if service.provider is None:
        raise NotFoundError("way to sign in")
    return service.provider


def _begun_name(service: Service) -> str:
    """Return the name of the cookie of a sign-in at the provider."""
    return f"{cookie_name(service)}-sign-in"


def _of_begun(service: Service) -> Attributes:
    # The browser sends it on the way back from another site.
    return {**attributes_of_cookies(service), "samesite": "lax"}


def _sign_in_page(
    request: Request, wanted: str, *, status: int = 200, problem: str = "", demonstration: str = ""
) -> Response:
    shown: Demonstration | None = request.app.state.demonstration
    return html(
        "sign_in.html",
        actor=None,
        path=request.url.path,
        status=status,
        next=wanted if _is_ours(wanted) else "/",
        problem=problem,
        provider=service_of(request).settings.provider,
        people=() if shown is None else shown.people_for(demonstration),
    )


def _is_ours(address: str) -> bool:
    """Return whether an address belongs to this service, for every browser."""
    plain = address.isprintable() and "\\" not in address
    return plain and address.startswith("/") and not address.startswith("//")
