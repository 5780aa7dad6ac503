"""Application of FastAPI: the routes of programs and pages, headers, and errors.

The routes of programs lie under ``/api``; ``/health`` and ``/metrics`` lie where monitors expect
them.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from cloakgp import __version__
from cloakgp.privacy.spending import SpendingError
from cloakgp.service.confined import prepare_processes
from cloakgp.service.context import Service
from cloakgp.service.demonstration import Demonstration
from cloakgp.service.errors import LEDGER_FAILS, ServiceError, TooManyError, UnknownActorError
from cloakgp.service.health import Readiness, Rounds
from cloakgp.service.messages import ErrorMessage
from cloakgp.service.metrics import Metrics, MetricsMiddleware
from cloakgp.service.operations.jobs import unfinished_jobs
from cloakgp.service.operations.joint_requests import open_joint_requests
from cloakgp.service.pages import audits as audit_pages
from cloakgp.service.pages import budgets, plans, signing
from cloakgp.service.pages import joint_requests as joint_pages
from cloakgp.service.pages import people as people_pages
from cloakgp.service.pages import releases as release_pages
from cloakgp.service.pages import requests as request_pages
from cloakgp.service.pages import tables as table_pages
from cloakgp.service.pages.base import problem_page
from cloakgp.service.routes import administration, joint_requests, releases, requests, tables
from cloakgp.service.rules import problems_in_words
from cloakgp.service.settings import Settings
from cloakgp.service.worker import end_all_by_ledger

PREFIX = "/api"
# Headers of every answer, unless a route has others.
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
    status: {"model": ErrorMessage, "description": description}
    for status, description in (
        (400, "The request cannot be read."),
        (401, "The caller is unknown."),
        (403, "The caller's roles do not allow this."),
        (404, "There is no such thing, or the caller may not see it."),
        (409, "The state of a row does not allow this, or a limit leaves no room."),
        (413, "The request is too large."),
        (422, "The request makes no sense."),
        (429, "There were too many requests in a short time."),
    )
}


def create_app(
    service: Service,
    *,
    begin: Callable[[], None] | None = None,
    demonstration: Demonstration | None = None,
) -> FastAPI:
    """Return the application of a service.

    Parameters
    ----------
    service : Service
        With a dispatcher; the application closes it in the end.
    begin : callable, optional
        Called when the application begins to answer.
    demonstration : Demonstration, optional
        Its people, as any of whom whoever has its link may sign in.
    """
    metrics, readiness = Metrics(), Readiness(service)
    rounds = Rounds(service, metrics, readiness, threading.Event())
    settings = service.settings

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        prepare_processes()
        await run_in_threadpool(end_all_by_ledger, service)
        for job in await run_in_threadpool(unfinished_jobs, service):
            service.dispatcher.submit(job)
        for request in await run_in_threadpool(open_joint_requests, service):
            service.dispatcher.coordinate(request)
        rounds.begin()
        if begin is not None:
            begin()
        yield
        rounds.ended.set()
        await run_in_threadpool(service.close)

    app = FastAPI(
        title="cloakgp",
        version=__version__,
        summary="Releases of a private column under differential privacy, for several people.",
        lifespan=lifespan,
        openapi_url=f"{PREFIX}/openapi.json",
        # These pages fetch scripts from other sites.
        docs_url=None,
        redoc_url=None,
        max_body_size=settings.body,
        generate_unique_id_function=lambda route: route.name,
        responses=PROBLEMS,
    )
    app.state.service, app.state.metrics = service, metrics
    app.state.readiness, app.state.demonstration = readiness, demonstration
    for router in (
        tables.accounts_router,
        administration.people_router,
        tables.router,
        requests.router,
        joint_requests.router,
        releases.router,
        administration.ledger_router,
    ):
        app.include_router(router, prefix=PREFIX)
    app.include_router(_limited(tables.uploads, settings.upload), prefix=PREFIX)
    app.include_router(_limited(joint_requests.files, settings.joint_body), prefix=PREFIX)
    app.include_router(_limited(releases.predictions, settings.predict_body), prefix=PREFIX)
    app.include_router(administration.plain)
    for each in (
        *(signing, budgets, table_pages, plans, request_pages, joint_pages, release_pages),
        audit_pages,
    ):
        app.include_router(each.router, include_in_schema=False)
    app.include_router(people_pages.router, include_in_schema=False)
    app.include_router(_limited(table_pages.uploads, settings.upload), include_in_schema=False)
    predictions = _limited(release_pages.uploads, settings.predict_body)
    app.include_router(predictions, include_in_schema=False)
    for kind in (ServiceError, SpendingError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _refuse)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=_names(settings), www_redirect=False)
    app.add_middleware(_HeaderMiddleware)
    app.add_middleware(MetricsMiddleware, metrics=metrics)
    if settings.proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=list(settings.proxies))
    return app


def _names(settings: Settings) -> list[str]:
    """Return the host names of the service; other names that resolve here are refused."""
    return ["127.0.0.1", "localhost", "[::1]", settings.host, *settings.names]


def _limited(router: APIRouter, size: int) -> APIRouter:
    limited = APIRouter(max_body_size=size)
    limited.include_router(router)
    return limited


class _HeaderMiddleware:
    """Middleware that adds the headers of every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _refuse(request: Request, error: Exception) -> Response:
    # Whoever followed a link in a browser is shown a page, with the way back.
    in_browser = "text/html" in request.headers.get("accept", "")
    if in_browser and not isinstance(error, UnknownActorError):
        return problem_page(request, error)
    headers: dict[str, str] = {}
    match error:
        case ServiceError(status=status, kind=kind):
            message = str(error)
            if isinstance(error, TooManyError):
                headers["Retry-After"] = str(error.seconds)
            if status == 401:
                headers["WWW-Authenticate"] = "Bearer"
        case RequestValidationError():
            status, kind = 422, "invalid"
            message = problems_in_words(error.errors(), body=error.body)
        case HTTPException(status_code=status):
            kind = {404: "not-found", 413: "too-large"}.get(status, "invalid")
            message, headers = str(error.detail), dict(error.headers or {})
        case _:
            # The ledger's own messages hold nothing private, but those of its database may quote
            # values.
            status, kind, message = 503, "unavailable", LEDGER_FAILS
    content = ErrorMessage(kind=kind, message=message).model_dump()
    return JSONResponse(content, status_code=status, headers=headers)
