"""Routes of plans, requests and jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.sse import EventSourceResponse, ServerSentEvent

from cloakgp.service.guards import Working
from cloakgp.service.messages import (
    Decision,
    Id,
    JobView,
    NewRequest,
    PlanRequest,
    PlanView,
    RequestView,
)
from cloakgp.service.operations import jobs, plans, requests

router = APIRouter()
# Seconds between two looks at a job, and after which whoever watches has to ask anew, so that a
# token that was revoked does not watch for ever.
LOOK, LONGEST = 0.5, 600.0
FINISHED = ("done", "failed", "cancelled")
PICTURES = {".png": "image/png", ".svg": "image/svg+xml"}
PICTURE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/png": {}, "image/svg+xml": {}}}
}
Idempotency = Annotated[
    str | None,
    Header(max_length=200, description="Sent again with it, a request is made once."),
]


@router.post("/plans", name="make_plan", tags=["plans"])
def make_plan(work: Working, asked: PlanRequest) -> PlanView:
    """Plan a release, from public columns alone; spends nothing."""
    return plans.make_plan(work, asked)


@router.post(
    "/plans/plot", name="plot_plan", tags=["plans"], response_class=Response, responses=PICTURE
)
def plot_plan(
    work: Working,
    asked: PlanRequest,
    vary: Annotated[list[str], Query(max_length=2)] = [],  # noqa: B006
    suffix: Literal[".png", ".svg"] = ".png",
) -> Response:
    """Draw the expected error of a release over one input or two."""
    content = plans.plot_plan(work, asked, vary=vary, suffix=suffix)
    return Response(content, media_type=PICTURES[suffix])


@router.get("/requests", name="list_requests", tags=["requests"])
def list_requests(work: Working) -> list[RequestView]:
    """Return one's own requests; to custodians and approvers, those of all."""
    return requests.list_requests(work)


@router.post("/requests", name="make_request", tags=["requests"], status_code=201)
def make_request(
    work: Working, new: NewRequest, idempotency_key: Idempotency = None
) -> RequestView:
    """Ask for a release; if nobody has to approve it, its job begins."""
    return requests.make_request(work, new, idempotency=idempotency_key)


@router.get("/requests/{request}", name="show_request", tags=["requests"])
def show_request(work: Working, request: Id) -> RequestView:
    """Return a request, and what came of it."""
    return requests.show_request(work, request)


@router.post("/requests/{request}/approve", name="approve_request", tags=["requests"])
def approve_request(work: Working, request: Id, decision: Decision) -> RequestView:
    """Approve somebody else's request; its job begins."""
    return requests.approve_request(work, request, decision)


@router.post("/requests/{request}/reject", name="reject_request", tags=["requests"])
def reject_request(work: Working, request: Id, decision: Decision) -> RequestView:
    """Reject somebody else's request."""
    return requests.reject_request(work, request, decision)


@router.post("/requests/{request}/withdraw", name="withdraw_request", tags=["requests"])
def withdraw_request(work: Working, request: Id) -> RequestView:
    """Take one's own request back, before it is decided."""
    return requests.withdraw_request(work, request)


@router.get("/jobs", name="list_jobs", tags=["jobs"])
def list_jobs(work: Working) -> list[JobView]:
    """Return one's own jobs; to custodians and approvers, those of all."""
    return jobs.list_jobs(work)


@router.get("/jobs/{job}", name="show_job", tags=["jobs"])
def show_job(work: Working, job: Id) -> JobView:
    """Return a job."""
    return jobs.show_job(work, job)


def first_look(work: Working, job: Id) -> JobView:
    """Return a job, before anything is answered about it."""
    return jobs.watch_job(work, job)


@router.get(
    "/jobs/{job}/events", name="watch_job", tags=["jobs"], response_class=EventSourceResponse
)
async def watch_job(
    work: Working, job: Id, seen: Annotated[JobView, Depends(first_look)]
) -> AsyncIterator[ServerSentEvent]:
    """Send a job whenever it has come further, as server-sent events, until it is finished."""
    began = time.monotonic()
    yield ServerSentEvent(data=seen, event="job")
    while seen.state not in FINISHED and time.monotonic() - began < LONGEST:
        await asyncio.sleep(LOOK)
        before, seen = seen, await run_in_threadpool(jobs.watch_job, work, job)
        if seen != before:
            yield ServerSentEvent(data=seen, event="job")


@router.post("/jobs/{job}/cancel", name="cancel_job", tags=["jobs"])
def cancel_job(work: Working, job: Id) -> JobView:
    """Cancel a job, unless noise may have been drawn for it."""
    return jobs.cancel_job(work, job)
