"""Pages of joint requests: who has answered, who is missing, and what to run next."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter
from fastapi.responses import Response

from cloakgp.service.messages import Before, Id, WithoutSites
from cloakgp.service.operations import joint_requests
from cloakgp.service.pages.base import (
    SHOWN,
    Form,
    Page,
    PageRequest,
    PageRoute,
    attempt,
)

router = APIRouter(route_class=PageRoute)


@router.get("/joint-requests", name="page: joint requests")
def show_joint_requests(page: Page, before: Before = None) -> Response:
    """List joint requests, the latest first."""
    work = page.work("list_joint_requests")
    found = joint_requests.list_joint_requests(work, before=before, most=SHOWN + 1)
    shown, last = page.page_of(found)
    return page.show(
        "joint_requests.html",
        requests=shown,
        older=last and last.id,
        earlier=before is not None,
        address=_address(page),
    )


@router.get("/joint-requests/{request}", name="page: joint request")
def show_joint_request(page: Page, request: Id) -> Response:
    """Show a joint request, and what its custodians run next."""
    return _show(page, request)


@router.post("/joint-requests/{request}/continue", name="page: continue joint request")
def continue_joint_request(form: Form, request: Id) -> Response:
    """Go on with a joint request, if need be without some of its custodians."""
    work = form.work("continue_joint_request")

    def go_on() -> str:
        without = [str(name) for name in form.fields.getlist("without")]
        joint_requests.continue_joint_request(
            work, request, WithoutSites.model_validate({"without": without})
        )
        return f"/joint-requests/{request}"

    return attempt(go_on, partial(_show, form, request))


@router.post("/joint-requests/{request}/close", name="page: close joint request")
def close_joint_request(form: Form, request: Id) -> Response:
    """Close a joint request."""
    work = form.work("close_joint_request")

    def close() -> str:
        joint_requests.close_joint_request(work, request)
        return f"/joint-requests/{request}"

    return attempt(close, partial(_show, form, request))


def _show(page: PageRequest, request: int, *, status: int = 200, problem: str = "") -> Response:
    row = joint_requests.show_joint_request(page.work("show_joint_request"), request)
    return page.show(
        "joint_request.html",
        status=status,
        asked=row,
        mine=row.person == page.actor.name,
        own=next((site for site in row.sites if site.person == page.actor.name), None),
        address=f"{_address(page)}/joint-requests/{row.id}",
        problem=problem,
    )


def _address(page: PageRequest) -> str:
    """Return the address by which the reader came here."""
    return str(page.request.base_url).rstrip("/")
