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
from cloakgp.service.messages import Id, JobView, NewRequest, PlanRequest, RequestView
from cloakgp.service.models import FINISHED
from cloakgp.service.operations import jobs, plans, requests
from cloakgp.service.routes.endpoints import GuardedRoute, add, add_list

router = APIRouter(route_class=GuardedRoute, tags=["requests"])
# Seconds between two looks at a job, and of the longest stream: a watcher then connects again, so
# that a revoked token does not watch for ever.
LOOK, LONGEST = 0.5, 600.0
PICTURES = {".png": "image/png", ".svg": "image/svg+xml"}
PICTURE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/png": {}, "image/svg+xml": {}}}
}
Idempotency = Annotated[
    str | None,
    Header(max_length=200, description="Key of the caller: a second request with it is the first."),
]

add(router, "POST", "/plans", plans.make_plan)
add_list(router, "/requests", requests.list_requests)
add(router, "GET", "/requests/{request}", requests.show_request)
add(router, "POST", "/requests/{request}/approve", requests.approve_request)
add(router, "POST", "/requests/{request}/reject", requests.reject_request)
add(router, "POST", "/requests/{request}/withdraw", requests.withdraw_request)
add_list(router, "/jobs", jobs.list_jobs)
add(router, "GET", "/jobs/{job}", jobs.show_job)
add(router, "POST", "/jobs/{job}/cancel", jobs.cancel_job)


@router.post("/plans/plot", name="plot_plan", response_class=Response, responses=PICTURE)
def plot_plan(
    work: Working,
    asked: PlanRequest,
    vary: Annotated[list[str], Query(max_length=2)] = [],  # noqa: B006
    suffix: Literal[".png", ".svg"] = ".png",
) -> Response:
    """Draw the expected error of a release over one input or two."""
    content = plans.plot_plan(work, asked, vary=vary, suffix=suffix)
    return Response(content, media_type=PICTURES[suffix])


@router.post("/requests", name="make_request", status_code=201)
def make_request(
    work: Working, new: NewRequest, idempotency_key: Idempotency = None
) -> RequestView:
    """Request a release; its job begins at once, unless it needs approval."""
    return requests.make_request(work, new, idempotency=idempotency_key)


def first_look(work: Working, job: Id) -> JobView:
    """Return a job, before the stream of its answers begins."""
    return jobs.watch_job(work, job)


@router.get("/jobs/{job}/events", name="watch_job", response_class=EventSourceResponse)
async def watch_job(
    work: Working, job: Id, seen: Annotated[JobView, Depends(first_look)]
) -> AsyncIterator[ServerSentEvent]:
    """Send a job at each step, as server-sent events, until it is finished."""
    began = time.monotonic()
    yield ServerSentEvent(data=seen, event="job")
    while seen.state not in FINISHED and time.monotonic() - began < LONGEST:
        await asyncio.sleep(LOOK)
        before, seen = seen, await run_in_threadpool(jobs.watch_job, work, job)
        if seen != before:
            yield ServerSentEvent(data=seen, event="job")
