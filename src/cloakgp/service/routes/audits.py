"""Routes of the ledger, of events, and of how the service fares."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from cloakgp import __version__
from cloakgp.service.guards import Working, service_of
from cloakgp.service.measuring import Measures
from cloakgp.service.messages import AuditView, EntryView, EventView, Health, Name
from cloakgp.service.operations import audits
from cloakgp.service.operations.jobs import count_jobs

router = APIRouter()
# Without the prefix of the others.
plain = APIRouter()
Many = Annotated[int, Query(ge=1, le=1000)]
Number = Annotated[int, Query(ge=0, le=2**53)]


@router.get("/ledger", name="list_entries", tags=["ledger"])
def list_entries(
    work: Working, after: Number = 0, most: Many = 100, account: Name | None = None
) -> list[EntryView]:
    """Return entries of the ledger in order."""
    return audits.list_entries(work, after=after, most=most, account=account)


@router.get(
    "/ledger/export",
    name="export_entries",
    tags=["ledger"],
    response_class=Response,
    responses={200: {"content": {"application/json": {}, "text/csv": {}}}},
)
def export_entries(
    work: Working, form: Literal["json", "csv"] = "json", account: Name | None = None
) -> Response:
    """Return all entries with their digests, which anybody can check."""
    content = audits.export_entries(work, form=form, account=account)
    return Response(content, media_type="application/json" if form == "json" else "text/csv")


@router.post("/ledger/verify", name="verify_ledger", tags=["ledger"])
def verify_ledger(work: Working) -> AuditView:
    """Check every entry, all that follows from them, and the anchor."""
    return audits.verify_ledger(work)


@router.get("/events", name="list_events", tags=["ledger"])
def list_events(work: Working, before: Number | None = None, most: Many = 100) -> list[EventView]:
    """Return what was done to the service, the latest first."""
    return audits.list_events(work, before=before, most=most)


@plain.get("/health", name="show_health", tags=["service"])
def show_health(request: Request) -> Health:
    """Say that the service and its database answer."""
    service_of(request).ledger.database.head()
    return Health(version=__version__)


@plain.get(
    "/metrics",
    name="show_metrics",
    tags=["service"],
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
)
def show_metrics(request: Request, work: Working) -> Response:
    """Return counts and times of requests, and counts of jobs, as Prometheus reads them."""
    measures: Measures = request.app.state.measures
    content = measures.text(jobs=count_jobs(work.service))
    return Response(content, media_type=Measures.CONTENT)
