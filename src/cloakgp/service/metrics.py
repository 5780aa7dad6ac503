"""Metrics of requests: their counts, results and durations, by operation.

The middleware also ends unforeseen errors: it logs the kind and the place, and sends a constant
answer. No log and no answer has their message, which might quote a value.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cloakgp.utils.formatting import kind_and_place

log = logging.getLogger("cloakgp.service")
UNFORESEEN = json.dumps(
    {"kind": "unforeseen", "message": "an unforeseen error: the server's log names its place"}
).encode()


class Metrics:
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
            "Durations of requests, by operation.",
            ("operation",),
            registry=self._registry,
        )
        self._sound = Gauge(
            "cloakgp_ledger_sound",
            "Whether the last verification by the service found the ledger sound.",
            registry=self._registry,
        )
        self._verified = Gauge(
            "cloakgp_ledger_verified_seconds",
            "Time of that verification, in seconds since 1970; 0 before the first.",
            registry=self._registry,
        )
        self._jobs = Gauge("cloakgp_jobs", "Jobs by state.", ("state",), registry=self._registry)

    def note_verified(self, *, sound: bool) -> None:
        """Note the result of a verification of the ledger."""
        self._sound.set(sound)
        self._verified.set_to_current_time()

    def note(self, operation: str, *, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(operation, str(status)).inc()
        self._seconds.labels(operation).observe(seconds)

    def text(self, *, jobs: Mapping[str, int]) -> bytes:
        """Return all metrics in the format of Prometheus."""
        self._jobs.clear()
        for state, count in jobs.items():
            self._jobs.labels(state).set(count)
        return generate_latest(self._registry)


class MetricsMiddleware:
    """Middleware that measures and logs requests, without their content.

    Parameters
    ----------
    app : ASGIApp
    metrics : Metrics
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

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
            log.error("unforeseen: %s", kind_and_place(error))
            if not status:
                await _answer_unforeseen(noting)
        route = scope.get("route")
        operation = str(getattr(route, "name", "none"))
        seconds = time.monotonic() - began
        self._metrics.note(operation, status=status, seconds=seconds)
        log.info("%s %s %d %.0f ms", scope["method"], operation, status, 1000 * seconds)


async def _answer_unforeseen(send: Send) -> None:
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 500, "headers": headers})
    await send({"type": "http.response.body", "body": UNFORESEEN})
