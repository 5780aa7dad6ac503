"""Visits: who looks at a page or sends a form, and what they are shown when it cannot be done."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any, cast
from urllib.parse import quote

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException

from cloakgp.privacy.spending import SpendingError
from cloakgp.service.access import Actor
from cloakgp.service.context import Work
from cloakgp.service.errors import ServiceError, TooManyError, UnknownActorError
from cloakgp.service.guards import actor_of, check_form, work_for
from cloakgp.service.pages.fields import FIELD_NAMES, text_of
from cloakgp.service.pages.rendering import html

FORM_TOKEN = "form_token"
# Of a wide table's wizard.
MOST_FIELDS = 20_000
SIGN_IN = "/sign-in"
TITLES = {
    403: "Not allowed",
    404: "Not found",
    409: "Not now",
    413: "Too large",
    429: "A little slower",
    503: "Not available",
}


@dataclass(frozen=True)
class Visit:
    """Somebody at a page.

    Attributes
    ----------
    request : Request
    actor : Actor
    """

    request: Request
    actor: Actor

    def work(self, operation: str) -> Work:
        """Return what an operation works with, if whoever visits may, and not too often.

        Raises
        ------
        ForbiddenError, TooManyError
        """
        return work_for(self.request, self.actor, operation)

    def show(self, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page."""
        path = self.request.url.path
        return html(template, actor=self.actor, path=path, status=status, **values)


@dataclass(frozen=True)
class Sent(Visit):
    """Somebody who sent a form, from a page of their session.

    Attributes
    ----------
    form : FormData
    """

    form: FormData

    def text(self, name: str) -> str:
        """Return a field's text without blanks around it, empty if there is none."""
        return text_of(self.form, name)


def visit_of(request: Request) -> Visit:
    """Return who looks at a page.

    Raises
    ------
    UnknownActorError
    """
    visit = Visit(request=request, actor=actor_of(request))
    request.state.actor = visit.actor
    return visit


async def sent_by(request: Request) -> AsyncIterator[Sent]:
    """Yield who sent a form, and the form; of strangers no body is read.

    Raises
    ------
    ForbiddenError
        If no page of the session sent it.
    UnknownActorError
    """
    visit = await run_in_threadpool(visit_of, request)
    async with request.form(max_files=1, max_fields=MOST_FIELDS) as form:
        check_form(request, visit.actor, str(form.get(FORM_TOKEN, "")))
        yield Sent(request=request, actor=visit.actor, form=form)


Visiting = Annotated[Visit, Depends(visit_of)]
Sending = Annotated[Sent, Depends(sent_by)]


class PageRoute(APIRoute):
    """A route whose errors are pages, and which asks strangers to sign in."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handle = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await handle(request)
            except UnknownActorError:
                return _to_sign_in(request)
            except (
                ServiceError,
                SpendingError,
                RequestValidationError,
                ValidationError,
                HTTPException,
            ) as error:
                return problem_page(request, error)

        return answered


def problem_page(request: Request, error: Exception) -> HTMLResponse:
    """Return a page about what went wrong."""
    status, message = problem_of(error)
    headers = {"Retry-After": str(error.seconds)} if isinstance(error, TooManyError) else None
    return html(
        "problem.html",
        actor=cast(Actor | None, getattr(request.state, "actor", None)),
        path=request.url.path,
        status=status,
        headers=headers,
        title=TITLES.get(status, "This did not work"),
        message=message,
    )


def problem_of(error: Exception) -> tuple[int, str]:
    """Return the status of an error, and what may be said of it."""
    if isinstance(error, ServiceError):
        return error.status, str(error)
    if isinstance(error, RequestValidationError | ValidationError):
        return 422, in_words(error)
    if isinstance(error, HTTPException):
        return error.status_code, str(error.detail)
    # As of the programs' routes: what the ledger's database says may quote what was sent to it.
    return 503, "the ledger cannot do this now: the auditor should verify"


def in_words(error: RequestValidationError | ValidationError) -> str:
    """Return what is wrong with which field, and not what was sent."""
    found = []
    for each in error.errors()[:10]:
        place = [str(part) for part in each["loc"] if part not in ("query", "path", "body")]
        field = FIELD_NAMES.get(".".join(place), " ".join(place))
        found.append(f"{field}: {each['msg'][:1].lower()}{each['msg'][1:]}")
    return "; ".join(found)


def varied(visit: Visit) -> list[str]:
    """Return the inputs that a picture is to be drawn over, each once."""
    asked = visit.request.query_params.getlist("vary")
    return list(dict.fromkeys(name for name in asked if name))


def gone_to(path: str) -> RedirectResponse:
    """Return that a browser shall get another page next."""
    return RedirectResponse(path, status_code=303)


def _to_sign_in(request: Request) -> Response:
    if request.method != "GET":
        return gone_to(SIGN_IN)
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return gone_to(SIGN_IN if wanted == "/" else f"{SIGN_IN}?next={quote(wanted, safe='')}")
