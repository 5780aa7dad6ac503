"""Pages of requests: one's own, the inbox of approvers, and jobs under way."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from cloakgp.service.access import Actor
from cloakgp.service.messages import Decision, Id, RequestView
from cloakgp.service.operations import accounts, jobs, requests, tables
from cloakgp.service.pages.plans import planned_of
from cloakgp.service.pages.visits import PageRoute, Sending, Sent, Visiting, gone_to

router = APIRouter(route_class=PageRoute)
UNDER_WAY = ("queued", "running", "drawing")


@router.get("/requests", name="page: requests")
def show_requests(visit: Visiting) -> Response:
    """List requests: those that wait for whoever looks, those under way, and the others."""
    found = requests.list_requests(visit.work("list_requests"))
    groups: dict[str, list[RequestView]] = {
        "Waiting for you": [],
        "Waiting for somebody else": [],
        "Being made": [],
        "Decided": [],
    }
    for request in found:
        groups[_group(request, visit.actor)].append(request)
    return visit.show("requests.html", groups=groups)


@router.get("/requests/{request}", name="page: request")
def show_request(visit: Visiting, request: Id) -> Response:
    """Show a request, what came of it, and to whoever decides what it would make public."""
    work = visit.work("show_request")
    found = requests.show_request(work, request)
    table = tables.show_table(work, found.table)
    account = next(each for each in accounts.list_accounts(work) if each.name == found.account)
    decides = _group(found, visit.actor) == "Waiting for you"
    return visit.show(
        "request.html",
        asked=found,
        table=table,
        account=account,
        decides=decides,
        planned=planned_of(work, table, found.choices) if decides else None,
        mine=found.person == visit.actor.name,
        under_way=found.job is not None and found.job.state in UNDER_WAY,
    )


@router.post("/requests/{request}/approve", name="page: approve")
def approve_request(sent: Sending, request: Id) -> Response:
    """Approve somebody else's request."""
    requests.approve_request(sent.work("approve_request"), request, _decision(sent))
    return gone_to(f"/requests/{request}")


@router.post("/requests/{request}/reject", name="page: reject")
def reject_request(sent: Sending, request: Id) -> Response:
    """Reject somebody else's request."""
    requests.reject_request(sent.work("reject_request"), request, _decision(sent))
    return gone_to(f"/requests/{request}")


@router.post("/requests/{request}/withdraw", name="page: withdraw request")
def withdraw_request(sent: Sending, request: Id) -> Response:
    """Take one's own request back."""
    requests.withdraw_request(sent.work("withdraw_request"), request)
    return gone_to(f"/requests/{request}")


@router.post("/requests/{request}/jobs/{job}/cancel", name="page: cancel job")
def cancel_job(sent: Sending, request: Id, job: Id) -> Response:
    """Cancel a job, unless noise may have been drawn for it."""
    jobs.cancel_job(sent.work("cancel_job"), job)
    return gone_to(f"/requests/{request}")


def _decision(sent: Sent) -> Decision:
    return Decision(remark=sent.text("remark"))


def _group(request: RequestView, actor: Actor) -> str:
    if request.state == "waiting":
        decides = actor.may("approve_request") and request.person != actor.name
        return "Waiting for you" if decides else "Waiting for somebody else"
    if request.job is not None and request.job.state in UNDER_WAY:
        return "Being made"
    return "Decided"
