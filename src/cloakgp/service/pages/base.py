"""Requests of pages: readers, forms, and pages of errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast
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
from cloakgp.service.errors import (
    LEDGER_FAILS,
    ForbiddenError,
    ServiceError,
    TooManyError,
    UnknownActorError,
)
from cloakgp.service.guards import (
    actor_of,
    check_form,
    cookie_name,
    service_of,
    take_cookie,
    work_for,
)
from cloakgp.service.pages.fields import FIELD_NAMES, FORM_FIELDS, text_of
from cloakgp.service.pages.rendering import html
from cloakgp.service.rules import rule_in_words
from cloakgp.service.settings import SIGN_IN

Item = TypeVar("Item")
FORM_TOKEN = "form_token"
# The fields of a wide table.
MOST_FIELDS = 20_000
# Items of a list on one page.
SHOWN = 50

TITLES = {
    403: "Not allowed",
    404: "Not found",
    409: "Not now",
    413: "Too large",
    429: "A little slower",
    503: "Not available",
}


@dataclass(frozen=True)
class PageRequest:
    """A request of a page.

    Attributes
    ----------
    request : Request
    actor : Actor
    """

    request: Request
    actor: Actor

    def work(self, operation: str) -> Work:
        """Return the context of an operation, if the reader may call it, and not too often.

        Raises
        ------
        ForbiddenError, TooManyError
        """
        return work_for(self.request, self.actor, operation)

    @property
    def dark(self) -> bool:
        """Whether a picture is asked for on a dark background."""
        return self.request.query_params.get("scheme") == "dark"

    def show(self, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page."""
        path = self.request.url.path
        return html(template, actor=self.actor, path=path, status=status, **values)

    def page_of(self, items: Sequence[Item]) -> tuple[Sequence[Item], Item | None]:
        """Return the items of one page, and the last of them if there are more."""
        return items[:SHOWN], items[SHOWN - 1] if items[SHOWN:] else None


@dataclass(frozen=True)
class FormRequest(PageRequest):
    """A form, from a page of the sender's session.

    Attributes
    ----------
    fields : FormData
    """

    fields: FormData

    def text(self, name: str) -> str:
        """Return a field's text without blanks around it, empty if there is none."""
        return text_of(self.fields, name)


def page_request_of(request: Request) -> PageRequest:
    """Return a request of a page, with its actor.

    Raises
    ------
    UnknownActorError
    """
    page = PageRequest(request=request, actor=actor_of(request))
    request.state.actor = page.actor
    return page


@dataclass(frozen=True)
class FormFor:
    """Dependency of FastAPI that yields a form, whose body is read only if its sender may send it.

    Attributes
    ----------
    operation : str
        The operation of the form.
    """

    operation: str

    async def __call__(self, request: Request) -> AsyncIterator[FormRequest]:
        """Yield the form.

        Raises
        ------
        ForbiddenError
            If no page of the session sent it, or the sender may not send it.
        UnknownActorError
        """
        page = await run_in_threadpool(page_request_of, request)
        if not page.actor.may(self.operation):
            raise ForbiddenError
        async with request.form(max_files=1, max_fields=MOST_FIELDS) as form:
            check_form(request, page.actor, str(form.get(FORM_TOKEN, "")))
            yield FormRequest(request=request, actor=page.actor, fields=form)


Page = Annotated[PageRequest, Depends(page_request_of)]
# Small forms, whose operations check the roles.
Form = Annotated[FormRequest, Depends(FormFor("show_me"))]
TableForm = Annotated[FormRequest, Depends(FormFor("upload_table"))]
RowsForm = Annotated[FormRequest, Depends(FormFor("predict_table"))]


class PageRoute(APIRoute):
    """A route whose errors are pages, and which sends unknown callers to sign in."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of requests."""
        handle = super().get_route_handler()

        async def handle_errors(request: Request) -> Response:
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

        return handle_errors


def problem_page(request: Request, error: Exception) -> HTMLResponse:
    """Return a page about an error."""
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


class Problem(str):
    """What is wrong with a form, in words.

    Attributes
    ----------
    fields : mapping of str to str
        What is wrong with its fields, by their names.
    """

    fields: Mapping[str, str]

    def __new__(cls, text: str, *, fields: Mapping[str, str] | None = None) -> Problem:
        """Make the text, with its fields."""
        made = super().__new__(cls, text)
        made.fields = fields or {}
        return made


def problem_of(error: Exception) -> tuple[int, str]:
    """Return the status of an error, and its public message."""
    if isinstance(error, ServiceError):
        return error.status, Problem(str(error), fields=error.fields)
    if isinstance(error, RequestValidationError | ValidationError):
        return 422, in_words(error)
    if isinstance(error, HTTPException):
        return error.status_code, Problem(str(error.detail))
    # A message of the ledger's database may quote values.
    return 503, Problem(LEDGER_FAILS)


def in_words(error: RequestValidationError | ValidationError) -> Problem:
    """Return the fields of an error and their rules, without their values."""
    problems: list[str] = []
    fields: dict[str, str] = {}
    for each in error.errors()[:10]:
        place = [str(part) for part in each["loc"] if part not in ("query", "path", "body")]
        field = FIELD_NAMES.get(".".join(place), " ".join(place))
        rule = rule_in_words(each)
        problems.append(f"{field}: {rule}")
        fields.setdefault(FORM_FIELDS.get(".".join(place), "_".join(place)), rule)
    return Problem("; ".join(problems), fields=fields)


def varied(page: PageRequest) -> list[str]:
    """Return the inputs of a picture, each once."""
    names = page.request.query_params.getlist("vary")
    return list(dict.fromkeys(name for name in names if name))


def given_in(page: PageRequest) -> FormData:
    """Return the fields that were sent with a form, for the page that shows them again."""
    return page.fields if isinstance(page, FormRequest) else FormData()


def go_to(path: str) -> RedirectResponse:
    """Return a redirection of the browser to another page."""
    return RedirectResponse(path, status_code=303)


def attempt(action: Callable[[], str | Response], retry: Callable[..., Response]) -> Response:
    """Return the page after an action, or the page of its form with a message.

    Parameters
    ----------
    action : callable
        Returns the address of the next page, or that page.
    retry : callable
        Returns the page of the form, given `status` and `problem`.
    """
    try:
        result = action()
    except (ServiceError, ValidationError) as error:
        status, message = problem_of(error)
        return retry(status=status, problem=message)
    return go_to(result) if isinstance(result, str) else result


def _to_sign_in(request: Request) -> Response:
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    plain = request.method != "GET" or wanted == "/"
    answer = go_to(SIGN_IN if plain else f"{SIGN_IN}?next={quote(wanted, safe='')}")
    service = service_of(request)
    # The cookie of an ended session; browsers from another site send none, and keep theirs.
    if cookie_name(service) in request.cookies:
        take_cookie(answer, service)
    return answer
