"""Measures of requests: how many of which operation, how they ended, and how long they took.

Also the last place where an error can go: of what nobody foresaw, kind and place are noted, and a
constant answer is sent. Its message is shown to nobody, for it might quote a value.
"""

from __future__ import annotations

import json
import logging
import time
import traceback
from collections.abc import Mapping
from pathlib import Path

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("cloakgp.service")
UNFORESEEN = json.dumps(
    {"kind": "unforeseen", "message": "something unforeseen happened: the server's log tells where"}
).encode()


class Measures:
    """Metrics of one application, in a registry of its own."""

    CONTENT = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "cloakgp_requests",
            "Requests by operation and status.",
            ("operation", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "cloakgp_request_seconds",
            "How long requests took, by operation.",
            ("operation",),
            registry=self._registry,
        )
        self._jobs = Gauge("cloakgp_jobs", "Jobs by state.", ("state",), registry=self._registry)

    def note(self, operation: str, *, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(operation, str(status)).inc()
        self._seconds.labels(operation).observe(seconds)

    def text(self, *, jobs: Mapping[str, int]) -> bytes:
        """Return all of it, in Prometheus' format."""
        self._jobs.clear()
        for state, count in jobs.items():
            self._jobs.labels(state).set(count)
        return generate_latest(self._registry)


class Measured:
    """An application whose requests are measured and noted, without what they hold.

    Parameters
    ----------
    app : ASGIApp
    measures : Measures
    """

    def __init__(self, app: ASGIApp, *, measures: Measures) -> None:
        self._app = app
        self._measures = measures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(last.filename).name}:{last.lineno}"
            log.error("unforeseen: %s at %s", type(error).__name__, place)
            if not status:
                await _answer_unforeseen(noting)
        route = scope.get("route")
        operation = str(getattr(route, "name", "none"))
        seconds = time.monotonic() - began
        self._measures.note(operation, status=status, seconds=seconds)
        log.info("%s %s %d %.0f ms", scope["method"], operation, status, 1000 * seconds)


async def _answer_unforeseen(send: Send) -> None:
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 500, "headers": headers})
    await send({"type": "http.response.body", "body": UNFORESEEN})
