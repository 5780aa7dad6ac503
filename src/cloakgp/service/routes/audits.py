"""Routes of the ledger, of events, and of health and metrics."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from cloakgp import __version__
from cloakgp.service.guards import Working, service_of
from cloakgp.service.health import Readiness
from cloakgp.service.messages import After, Health, Name
from cloakgp.service.metrics import Metrics
from cloakgp.service.operations import audits
from cloakgp.service.operations.jobs import count_jobs
from cloakgp.service.routes.endpoints import GuardedRoute, add, add_list

router = APIRouter(route_class=GuardedRoute, tags=["ledger"])
# Without the prefix of the others.
plain = APIRouter(route_class=GuardedRoute, tags=["service"])
MEDIA_TYPES = {"json": "application/json", "csv": "text/csv", "lines": "application/x-ndjson"}


add_list(router, "/ledger", audits.list_entries, cursor="after", key="number")
add(router, "POST", "/ledger/verify", audits.verify_ledger)
add_list(router, "/events", audits.list_events)


@router.get(
    "/ledger/export",
    name="export_entries",
    response_class=Response,
    responses={200: {"content": {kind: {} for kind in MEDIA_TYPES.values()}}},
)
def export_entries(
    work: Working,
    form: audits.ExportForm = "json",
    account: Name | None = None,
    after: After = 0,
) -> Response:
    """Return all entries with their digests, for anyone to check.

    As lines, those after a known number: for programs that watch the ledger.
    """
    content = audits.export_entries(work, form=form, account=account, after=after)
    return Response(content, media_type=MEDIA_TYPES[form])


@router.get(
    "/events/export",
    name="export_events",
    response_class=StreamingResponse,
    responses={200: {"content": {MEDIA_TYPES["lines"]: {}}}},
)
def export_events(work: Working, after: After = 0) -> StreamingResponse:
    """Return the events after a known one, a line of JSON for each."""
    return StreamingResponse(
        audits.export_events(work, after=after), media_type=MEDIA_TYPES["lines"]
    )


@plain.get("/health", name="show_health")
def show_health(request: Request) -> Health:
    """Check that the service and its database answer, and that the ledger can count."""
    service_of(request).ledger.check()
    return Health(version=__version__)


@plain.get("/ready", name="show_ready")
def show_ready(request: Request) -> Health:
    """Check that the service can write to its database and to its folder."""
    readiness: Readiness = request.app.state.readiness
    readiness.check()
    return Health(version=__version__)


@plain.get(
    "/metrics",
    name="show_metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
)
def show_metrics(request: Request, work: Working) -> Response:
    """Return counts and durations of requests, and counts of jobs, for Prometheus."""
    metrics: Metrics = request.app.state.metrics
    content = metrics.text(jobs=count_jobs(work.service))
    return Response(content, media_type=Metrics.CONTENT)
