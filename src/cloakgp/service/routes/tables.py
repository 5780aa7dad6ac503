"""Routes of tables and accounts."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool

from cloakgp.service.guards import Working
from cloakgp.service.messages import (
    AccountView,
    Budget,
    Id,
    Look,
    Looked,
    Name,
    NewAccount,
    NewLimit,
    NewRules,
    NewTable,
    TableView,
    UploadView,
)
from cloakgp.service.operations import accounts, tables
from cloakgp.service.routes.receiving import received

router = APIRouter()
# Its bodies are larger.
uploads = APIRouter()
FILE = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@uploads.put(
    "/uploads/{name}", name="upload_table", tags=["tables"], status_code=201, openapi_extra=FILE
)
async def upload_table(request: Request, work: Working, name: Name) -> UploadView:
    """Send the file of a table; it is kept for its owner alone until it is registered."""
    async with received(request, folder=work.service.settings.uploads) as path:
        return await run_in_threadpool(tables.upload_table, work, name, received=path)


@router.post("/tables/look", name="look_at_table", tags=["tables"])
def look_at_table(work: Working, look: Look) -> Looked:
    """Return a table's columns, and once the private are named, a first schema of the others."""
    return tables.look_at_table(work, look)


@router.get("/tables", name="list_tables", tags=["tables"])
def list_tables(work: Working) -> list[TableView]:
    """Return the tables of which releases can be asked."""
    return tables.list_tables(work)


@router.post("/tables", name="register_table", tags=["tables"], status_code=201)
def register_table(work: Working, new: NewTable) -> TableView:
    """Register a table: private cells are checked, and from now on recognised by the ledger."""
    return tables.register_table(work, new)


@router.get("/tables/{table}", name="show_table", tags=["tables"])
def show_table(work: Working, table: Id) -> TableView:
    """Return a table as everybody may know it who may ask for releases of it."""
    return tables.show_table(work, table)


@router.delete("/tables/{table}", name="withdraw_table", tags=["tables"])
def withdraw_table(work: Working, table: Id) -> TableView:
    """Take a table from those of which releases can be asked; its releases stay."""
    return tables.withdraw_table(work, table)


@router.get("/accounts", name="list_accounts", tags=["accounts"])
def list_accounts(work: Working) -> list[AccountView]:
    """Return what was spent of every account, what is held, and what is left."""
    return accounts.list_accounts(work)


@router.post("/accounts", name="open_account", tags=["accounts"], status_code=201)
def open_account(work: Working, new: NewAccount) -> AccountView:
    """Open an account of a population."""
    return accounts.open_account(work, new)


@router.put("/accounts/{account}/limit", name="change_limit", tags=["accounts"])
def change_limit(work: Working, account: Name, new: NewLimit) -> AccountView:
    """Change the limit of an account; what was spent stays spent."""
    return accounts.change_limit(work, account, new)


@router.put("/accounts/{account}/rules", name="change_rules", tags=["accounts"])
def change_rules(work: Working, account: Name, new: NewRules) -> AccountView:
    """Change what needs approval, and what one analyst may spend at all."""
    return accounts.change_rules(work, account, new)


@router.put("/accounts/{account}/shares/{person}", name="set_share", tags=["accounts"])
def set_share(
    work: Working, account: Name, person: Name, budget: Budget | None = None
) -> AccountView:
    """Say what one analyst may spend of an account; what all may if nothing is sent."""
    return accounts.set_share(work, account, person, budget)
