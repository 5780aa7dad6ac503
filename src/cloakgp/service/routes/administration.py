"""Routes of administration: people, their tokens and sessions; the ledger, events and health."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from cloakgp import __version__
from cloakgp.service.guards import (
    Working,
    cookie_name,
    open_browser_session,
    service_of,
    take_cookie,
)
from cloakgp.service.health import Readiness
from cloakgp.service.messages import After, Health, Login, Me, Name
from cloakgp.service.metrics import Metrics
from cloakgp.service.operations import audits, people, sessions, tokens
from cloakgp.service.operations.jobs import count_jobs
from cloakgp.service.routes.endpoints import GuardedRoute, add, add_list

people_router = APIRouter(route_class=GuardedRoute, tags=["people"])
ledger_router = APIRouter(route_class=GuardedRoute, tags=["ledger"])
# Without the prefix of the others.
plain = APIRouter(route_class=GuardedRoute, tags=["service"])
MEDIA_TYPES = {"json": "application/json", "csv": "text/csv", "lines": "application/x-ndjson"}

add(people_router, "GET", "/me", people.show_me)
add_list(people_router, "/people", people.list_people, cursor="after", key="name")
add(people_router, "POST", "/people", people.add_person, status=201)
add(people_router, "PATCH", "/people/{person}", people.change_person)
add(people_router, "GET", "/people/{person}", people.show_person)
add(people_router, "POST", "/people/{person}/erase", people.erase_person)
add(people_router, "POST", "/people/{person}/identities", people.link_identity, status=201)
add(people_router, "POST", "/people/{person}/identities/unlink", people.unlink_identity)
add(people_router, "GET", "/people/{person}/tokens", tokens.list_tokens)
add(people_router, "POST", "/people/{person}/tokens", tokens.issue_token, status=201)
add(people_router, "POST", "/tokens/{token}/rotate", tokens.rotate_token, status=201)
add(people_router, "POST", "/me/token/rotate", tokens.rotate_my_token, status=201)
add(people_router, "DELETE", "/tokens/{token}", tokens.revoke_token)
add_list(ledger_router, "/ledger", audits.list_entries, cursor="after", key="number")
add(ledger_router, "POST", "/ledger/verify", audits.verify_ledger)
add_list(ledger_router, "/events", audits.list_events)


@people_router.post("/session", name="log_in", status_code=201)
def log_in(request: Request, response: Response, login: Login) -> Me:
    """Begin a session of a browser: sets its cookie, and returns the token of its forms."""
    opened = open_browser_session(request, response, login.token)
    return Me(
        name=opened.actor.name,
        roles=sorted(opened.actor.roles),
        operations=[],
        form_token=opened.actor.form_token,
    )


@people_router.delete("/session", name="log_out", status_code=204)
def log_out(request: Request, response: Response, work: Working) -> None:
    """End the session."""
    name = cookie_name(service_of(request))
    sessions.log_out(work, request.cookies.get(name, ""))
    take_cookie(response, service_of(request))


@ledger_router.get(
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


@ledger_router.get(
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
