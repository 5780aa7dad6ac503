"""Routes of tables, of accounts, and of proposals to let more be spent."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from cloakgp.service.guards import Working
from cloakgp.service.messages import (
    AccountChange,
    Name,
    NewLimit,
    NewRules,
    PrivacyBudget,
    UploadView,
)
from cloakgp.service.operations import accounts, erasing, proposals, tables
from cloakgp.service.routes.endpoints import GuardedRoute, add, add_list, received

router = APIRouter(route_class=GuardedRoute, tags=["tables"])
# Its bodies are larger.
uploads = APIRouter(route_class=GuardedRoute, tags=["tables"])
accounts_router = APIRouter(route_class=GuardedRoute, tags=["accounts"])
FILE = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
PROPOSED: dict[int | str, dict[str, Any]] = {
    202: {"model": AccountChange, "description": "More could be spent: a person must confirm it."}
}

add(router, "POST", "/tables/look", tables.look_at_table)
add(router, "GET", "/tables", tables.list_tables)
add(router, "POST", "/tables", tables.register_table, status=201)
add(router, "GET", "/tables/{table}", tables.show_table)
add(router, "DELETE", "/tables/{table}", tables.withdraw_table)
add(router, "DELETE", "/tables/{table}/file", erasing.erase_table)
add(router, "DELETE", "/uploads/{upload}", erasing.erase_upload, status=204)
add(accounts_router, "GET", "/accounts", accounts.list_accounts)
add(accounts_router, "POST", "/accounts", accounts.open_account, status=201)
add_list(accounts_router, "/proposals", proposals.list_proposals)
add(accounts_router, "POST", "/proposals/{proposal}/confirm", proposals.confirm_proposal)
add(accounts_router, "POST", "/proposals/{proposal}/reject", proposals.reject_proposal)


@uploads.put("/uploads/{name}", name="upload_table", status_code=201, openapi_extra=FILE)
async def upload_table(request: Request, work: Working, name: Name) -> UploadView:
    """Upload the file of a table, for its owner alone until it is registered."""
    async with received(request, folder=work.service.settings.uploads) as path:
        return await run_in_threadpool(tables.upload_table, work, name, received=path)


@accounts_router.put("/accounts/{account}/limit", name="change_limit", responses=PROPOSED)
def change_limit(work: Working, response: Response, account: Name, new: NewLimit) -> AccountChange:
    """Lower the limit of an account, or propose a higher one; spent privacy stays spent."""
    return _answer(response, accounts.change_limit(work, account, new))


@accounts_router.put("/accounts/{account}/rules", name="change_rules", responses=PROPOSED)
def change_rules(work: Working, response: Response, account: Name, new: NewRules) -> AccountChange:
    """Change the threshold of approval and the share of each analyst, or propose to."""
    return _answer(response, accounts.change_rules(work, account, new))


@accounts_router.put("/accounts/{account}/shares/{person}", name="set_share", responses=PROPOSED)
def set_share(
    work: Working,
    response: Response,
    account: Name,
    person: Name,
    budget: PrivacyBudget | None = None,
) -> AccountChange:
    """Set the share of one analyst, or propose a larger one; without a budget, the share of all."""
    return _answer(response, accounts.set_share(work, account, person, budget))


def _answer(response: Response, change: AccountChange) -> AccountChange:
    if change.proposal is not None:
        response.status_code = 202
    return change
