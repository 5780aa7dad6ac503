"""Application: all routes, and what every answer has in common.

The programs' routes lie under ``/api``; ``/health`` and ``/metrics`` are where monitors look for
them. Whoever adds pages includes routers of their own beside these.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cloakgp import __version__
from cloakgp.privacy.spending import SpendingError
from cloakgp.service.context import Service
from cloakgp.service.errors import ServiceError, TooManyError
from cloakgp.service.measuring import Measured, Measures
from cloakgp.service.messages import Problem
from cloakgp.service.operations.jobs import unfinished_jobs
from cloakgp.service.routes import audits, people, releases, requests, tables
from cloakgp.service.settings import Settings
from cloakgp.service.working import give_back_all

PREFIX = "/api"
# Of every answer, unless a route says otherwise.
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": description}
    for status, description in (
        (400, "It cannot be read."),
        (401, "Nobody knows who is asking."),
        (403, "Whoever is asking may not."),
        (404, "There is no such thing, or whoever is asking may not know of it."),
        (409, "Something is not in the state for this, or a limit leaves no room."),
        (413, "The request is too large."),
        (422, "What was asked makes no sense."),
        (429, "Too much was asked in too short a time."),
    )
}


def create_app(
    service: Service, *, pages: Sequence[APIRouter] = (), begin: Callable[[], None] | None = None
) -> FastAPI:
    """Return the application of a service.

    Parameters
    ----------
    service : Service
        With a dispatcher; the application closes it in the end.
    pages : sequence of APIRouter
        Further routes, without a prefix.
    begin : callable, optional
        Called when it begins to answer.
    """
    measures = Measures()
    settings = service.settings

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(give_back_all, service)
        for job in await run_in_threadpool(unfinished_jobs, service):
            service.dispatcher.submit(job)
        if begin is not None:
            begin()
        yield
        await run_in_threadpool(service.close)

    app = FastAPI(
        title="cloakgp",
        version=__version__,
        summary="Releases of a private column under differential privacy, for several people.",
        lifespan=lifespan,
        openapi_url=f"{PREFIX}/openapi.json",
        # These fetch scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        max_body_size=settings.body,
        generate_unique_id_function=lambda route: route.name,
        responses=PROBLEMS,
    )
    app.state.service, app.state.measures = service, measures
    for router in (people.router, tables.router, requests.router, releases.router, audits.router):
        app.include_router(router, prefix=PREFIX)
    app.include_router(_limited(tables.uploads, settings.upload), prefix=PREFIX)
    app.include_router(_limited(releases.predictions, settings.predict_body), prefix=PREFIX)
    app.include_router(audits.plain)
    for page in pages:
        app.include_router(page)
    app.add_exception_handler(ServiceError, _refuse)
    app.add_exception_handler(SpendingError, _refuse_spending)
    app.add_exception_handler(RequestValidationError, _refuse_invalid)
    app.add_exception_handler(HTTPException, _refuse_http)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=_names(settings), www_redirect=False)
    app.add_middleware(_Headed)
    app.add_middleware(Measured, measures=measures)
    return app


def _names(settings: Settings) -> list[str]:
    """Return the host names under which it answers: a page of another that resolves here is not."""
    return ["127.0.0.1", "localhost", "[::1]", settings.host, *settings.names]


def _limited(router: APIRouter, size: int) -> APIRouter:
    limited = APIRouter(max_body_size=size)
    limited.include_router(router)
    return limited


class _Headed:
    """An application whose answers have the headers of all."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def heading(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, heading)


def _refuse(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ServiceError)
    headers = {}
    if isinstance(error, TooManyError):
        headers["Retry-After"] = str(error.seconds)
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return _problem(error.status, error.kind, str(error), headers)


def _refuse_spending(_: Request, error: Exception) -> JSONResponse:
    # The ledger names accounts, limits and numbers of charges, and nothing private; but what its
    # database says may quote what was sent to it.
    del error
    return _problem(503, "unavailable", "the ledger cannot do this now: the auditor should verify")


def _refuse_invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    # Where and what, and not what was sent.
    found = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:10]]
    return _problem(422, "invalid", "; ".join(found))


def _refuse_http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    kind = {404: "not-found", 405: "invalid", 413: "too-large"}.get(error.status_code, "invalid")
    return _problem(error.status_code, kind, str(error.detail), dict(error.headers or {}))


def _problem(
    status: int, kind: str, message: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    content = Problem(kind=kind, message=message).model_dump()
    return JSONResponse(content, status_code=status, headers=headers)
