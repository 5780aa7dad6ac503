"""Pages of requests, with the inbox of approvers and the jobs under way."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from cloakgp.service.access import Actor
from cloakgp.service.messages import Before, Decision, Id, RequestView
from cloakgp.service.models import UNFINISHED
from cloakgp.service.operations import accounts, jobs, requests, tables
from cloakgp.service.pages.base import (
    SHOWN,
    Form,
    FormRequest,
    Page,
    PageRoute,
    go_to,
)
from cloakgp.service.pages.plans import plan_table

router = APIRouter(route_class=PageRoute)
# Requests on one page that wait or are under way.
MOST_OPEN = 1000


@router.get("/requests", name="page: requests")
def show_requests(page: Page, before: Before = None) -> Response:
    """List requests in groups: waiting for the reader, waiting for others, under way, decided."""
    work = page.work("list_requests")
    closed = requests.list_requests(work, before=before, most=SHOWN + 1, state="closed")
    decided, last = page.page_of(closed)
    # Waiting requests stand on the first page, before decided ones.
    shown = requests.list_requests(work, most=MOST_OPEN, state="open") if before is None else []
    groups: dict[str, list[RequestView]] = {
        "Waiting for you": [],
        "Waiting for another person": [],
        "Under way": [],
        "Decided": [],
    }
    for request in [*shown, *decided]:
        groups[_group(request, page.actor)].append(request)
    return page.show(
        "requests.html", groups=groups, older=last and last.id, earlier=before is not None
    )


@router.get("/requests/{request}", name="page: request")
def show_request(page: Page, request: Id) -> Response:
    """Show a request and its result, and its public parts to an approver."""
    work = page.work("show_request")
    row = requests.show_request(work, request)
    table = tables.show_table(work, row.table)
    account = next(each for each in accounts.list_accounts(work) if each.name == row.account)
    decides = _group(row, page.actor) == "Waiting for you"
    return page.show(
        "request.html",
        asked=row,
        table=table,
        account=account,
        decides=decides,
        planned=plan_table(work, table, row.choices) if decides else None,
        mine=row.person == page.actor.name,
        under_way=row.job is not None and row.job.state in UNFINISHED,
    )


@router.post("/requests/{request}/approve", name="page: approve")
def approve_request(form: Form, request: Id) -> Response:
    """Approve the request of another person."""
    requests.approve_request(form.work("approve_request"), request, _decision(form))
    return go_to(f"/requests/{request}")


@router.post("/requests/{request}/reject", name="page: reject")
def reject_request(form: Form, request: Id) -> Response:
    """Reject the request of another person."""
    requests.reject_request(form.work("reject_request"), request, _decision(form))
    return go_to(f"/requests/{request}")


@router.post("/requests/{request}/withdraw", name="page: withdraw request")
def withdraw_request(form: Form, request: Id) -> Response:
    """Take one's own request back."""
    requests.withdraw_request(form.work("withdraw_request"), request)
    return go_to(f"/requests/{request}")


@router.post("/requests/{request}/jobs/{job}/cancel", name="page: cancel job")
def cancel_job(form: Form, request: Id, job: Id) -> Response:
    """Cancel a job, unless noise may have been drawn for it."""
    jobs.cancel_job(form.work("cancel_job"), job)
    return go_to(f"/requests/{request}")


def _decision(form: FormRequest) -> Decision:
    return Decision(remark=form.text("remark"))


def _group(request: RequestView, actor: Actor) -> str:
    if request.state == "waiting":
        decides = actor.may("approve_request") and request.person != actor.name
        return "Waiting for you" if decides else "Waiting for another person"
    if request.job is not None and request.job.state in UNFINISHED:
        return "Under way"
    return "Decided"
