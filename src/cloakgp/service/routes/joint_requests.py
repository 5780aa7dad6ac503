"""Routes of joint requests, and of the files that their custodians exchange."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from fastapi.concurrency import run_in_threadpool

from cloakgp.service.guards import Working
from cloakgp.service.messages import Id
from cloakgp.service.operations import joint_requests
from cloakgp.service.routes.endpoints import GuardedRoute, add, add_list
from cloakgp.service.routes.releases import BINARY
from cloakgp.service.routes.tables import FILE

router = APIRouter(route_class=GuardedRoute, tags=["joint requests"])
# Its bodies are larger.
files = APIRouter(route_class=GuardedRoute, tags=["joint requests"])
FileName = Annotated[
    str, Path(max_length=200, description="As `cloakgp.custodians.exchange` names it.")
]

add_list(router, "/joint-requests", joint_requests.list_joint_requests)
add(router, "POST", "/joint-requests", joint_requests.begin_joint_request, status=201)
add(router, "GET", "/joint-requests/{request}", joint_requests.show_joint_request)
add(router, "POST", "/joint-requests/{request}/continue", joint_requests.continue_joint_request)
add(router, "POST", "/joint-requests/{request}/close", joint_requests.close_joint_request)


@router.get(
    "/joint-requests/{request}/files/{name:path}",
    name="read_joint_file",
    response_class=Response,
    responses={200: {"content": {BINARY: {}}}},
)
def read_joint_file(work: Working, request: Id, name: FileName) -> Response:
    """Return a file of a joint request: of the schedule, the release, or one's own."""
    return Response(joint_requests.read_joint_file(work, request, name), media_type=BINARY)


@files.put(
    "/joint-requests/{number}/files/{name:path}",
    name="send_joint_file",
    status_code=204,
    openapi_extra=FILE,
)
async def send_joint_file(request: Request, work: Working, number: Id, name: FileName) -> None:
    """Take a file of the caller's own site."""
    content = await request.body()
    await run_in_threadpool(joint_requests.send_joint_file, work, number, name, content=content)
