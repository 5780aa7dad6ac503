"""Routes of tables and uploads."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool

from cloakgp.service.guards import Working
from cloakgp.service.messages import Name, UploadView
from cloakgp.service.operations import erasing, tables
from cloakgp.service.routes.endpoints import GuardedRoute, add, received

router = APIRouter(route_class=GuardedRoute, tags=["tables"])
# Its bodies are larger.
uploads = APIRouter(route_class=GuardedRoute, tags=["tables"])
FILE = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}

add(router, "POST", "/tables/look", tables.look_at_table)
add(router, "GET", "/tables", tables.list_tables)
add(router, "POST", "/tables", tables.register_table, status=201)
add(router, "GET", "/tables/{table}", tables.show_table)
add(router, "DELETE", "/tables/{table}", tables.withdraw_table)
add(router, "DELETE", "/tables/{table}/file", erasing.erase_table)
add(router, "DELETE", "/uploads/{upload}", erasing.erase_upload, status=204)


@uploads.put("/uploads/{name}", name="upload_table", status_code=201, openapi_extra=FILE)
async def upload_table(request: Request, work: Working, name: Name) -> UploadView:
    """Upload the file of a table, for its owner alone until it is registered."""
    async with received(request, folder=work.service.settings.uploads) as path:
        return await run_in_threadpool(tables.upload_table, work, name, received=path)
