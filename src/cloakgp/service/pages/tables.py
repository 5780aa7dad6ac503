"""Pages of tables: what is declared of one, and a wizard by which a custodian adds one."""

from __future__ import annotations

import tempfile
from pathlib import Path
from shutil import copyfileobj
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import ValidationError
from starlette.datastructures import UploadFile

from cloakgp.columns import Schema, schema_from_text
from cloakgp.columns.base import Column
from cloakgp.service.context import Work
from cloakgp.service.errors import InvalidError, ServiceError
from cloakgp.service.messages import Id, Look, Looked, NewAccount, NewTable
from cloakgp.service.operations import accounts, tables
from cloakgp.service.pages.fields import budget_of, number_of
from cloakgp.service.pages.schemas import KINDS, columns_of, schema_text_of
from cloakgp.service.pages.visits import (
    PageRoute,
    Sending,
    Sent,
    Visit,
    Visiting,
    gone_to,
    problem_of,
)

router = APIRouter(route_class=PageRoute)
# Its forms are larger.
uploads = APIRouter(route_class=PageRoute)
Short = Annotated[str, Query(max_length=1000)]


@router.get("/tables/{table}", name="page: table")
def show_table(visit: Visiting, table: Id) -> Response:
    """Show what is declared of a table."""
    work = visit.work("show_table")
    found = tables.show_table(work, table)
    account = next(each for each in accounts.list_accounts(work) if each.name == found.account)
    columns = schema_from_text(found.table_schema).columns
    return visit.show("table.html", table=found, account=account, columns=columns)


@router.post("/tables/{table}/withdraw", name="page: withdraw table")
def withdraw_table(sent: Sending, table: Id) -> Response:
    """Take a table from those of which releases can be asked."""
    tables.withdraw_table(sent.work("withdraw_table"), table)
    return gone_to("/budgets")


@router.get("/add-table", name="page: add table, file")
def show_first_step(visit: Visiting) -> Response:
    """Ask for a file."""
    visit.work("upload_table")
    return visit.show("add_file.html", problem="", folders=bool(_folders(visit)))


@uploads.post("/add-table", name="page: add table, file")
def send_file(sent: Sending) -> Response:
    """Keep a file that was sent, or take the path of one that is there."""
    work = sent.work("upload_table")
    path, file = sent.text("path"), sent.form.get("file")
    try:
        if isinstance(file, UploadFile) and file.filename:
            with tempfile.TemporaryDirectory(dir=work.service.settings.uploads) as folder:
                received = Path(folder) / "body"
                with received.open("wb") as target:
                    copyfileobj(file.file, target)
                made = tables.upload_table(work, file.filename, received=received)
            where = {"upload": made.id, "called": made.name}
        elif path:
            where = {"path": path, "query": sent.text("query"), "called": Path(path).name}
        else:
            raise InvalidError("choose a file, or give the path of one on the server")
        tables.look_at_table(sent.work("look_at_table"), _look(where, []))
    except (ServiceError, ValidationError) as error:
        status, message = problem_of(error)
        folders = bool(_folders(sent))
        return sent.show("add_file.html", status=status, problem=message, folders=folders)
    return gone_to(f"/add-table/column?{urlencode(where)}")


@router.get("/add-table/column", name="page: add table, private column")
def show_second_step(
    visit: Visiting, upload: Short = "", path: Short = "", query: Short = "", called: Short = ""
) -> Response:
    """Ask which column is private; of the table, names of columns alone are looked at."""
    where = {"upload": upload, "path": path, "query": query, "called": called}
    found = tables.look_at_table(visit.work("look_at_table"), _look(where, []))
    return visit.show("add_column.html", where=where, columns=found.columns)


@router.get("/add-table/declare", name="page: add table, declarations")
def show_third_step(
    visit: Visiting,
    output: Annotated[str, Query(max_length=200)],
    upload: Short = "",
    path: Short = "",
    query: Short = "",
    called: Short = "",
    person: Annotated[str, Query(max_length=200)] = "",
    holds: Annotated[str, Query(pattern="^(numbers|classes)$")] = "numbers",
) -> Response:
    """Ask what is declared of the columns."""
    where = {"upload": upload, "path": path, "query": query, "called": called}
    asked = where | {"output": output, "person": person, "holds": holds}
    return _declare_page(visit, asked, given={})


@router.post("/add-table/declare", name="page: add table, declarations")
def register_table(sent: Sending) -> Response:
    """Register the table, in a new account if there is none for it."""
    asked = {
        name: sent.text(name)
        for name in ("upload", "path", "query", "called", "output", "person", "holds")
    }
    work = sent.work("register_table")
    try:
        looked = tables.look_at_table(work, _look(asked, _private(asked)))
        text = schema_text_of(looked.table_schema, sent.form)
        new = _new_table(sent, asked, text)
        if sent.text("account") == "":
            _open_account(sent, work, new.account)
        made = tables.register_table(work, new)
    except (ServiceError, ValidationError) as error:
        status, message = problem_of(error)
        return _declare_page(sent, asked, given=dict(sent.form), status=status, problem=message)
    return gone_to(f"/tables/{made.id}")


def _new_table(sent: Sent, asked: dict[str, str], schema: str) -> NewTable:
    declared: dict[str, Any] = {}
    if asked["holds"] == "classes":
        lines = (line.strip() for line in sent.text("classes").splitlines())
        declared["classes"] = [line for line in lines if line]
    else:
        declared["bounds"] = (
            number_of(sent.text("low"), called="the lowest value"),
            number_of(sent.text("high"), called="the highest value"),
        )
    missing = sent.text("missing_output") or "refuse"
    if missing == "value":
        missing = sent.text("missing_value")
    return NewTable(
        name=sent.text("name"),
        account=sent.text("account") or sent.text("new_name"),
        note=sent.text("note"),
        upload=asked["upload"],
        path=asked["path"],
        query=asked["query"],
        output=asked["output"],
        table_schema=schema,
        person=asked["person"],
        missing_output=missing,
        **declared,
    )


def _open_account(sent: Sent, work: Work, name: str) -> None:
    """Open an account, unless an earlier attempt at the table has."""
    if any(each.name == name for each in accounts.list_accounts(work)):
        return
    limit = budget_of(sent.form, "limit")
    if limit is None:
        raise InvalidError("a new account needs a limit")
    new = NewAccount(
        name=name,
        unit="person" if sent.text("person") else "row",
        limit=limit,
        approval=budget_of(sent.form, "approval"),
        share=budget_of(sent.form, "share"),
    )
    accounts.open_account(work, new)


def _declare_page(
    visit: Visit,
    asked: dict[str, str],
    *,
    given: dict[str, Any],
    status: int = 200,
    problem: str = "",
) -> Response:
    work = visit.work("look_at_table")
    looked: Looked = tables.look_at_table(work, _look(asked, _private(asked)))
    schema: Schema = schema_from_text(looked.table_schema)
    unit = "person" if asked["person"] else "row"
    fitting = [each for each in accounts.list_accounts(work) if each.unit in ("row", unit)]
    columns: list[tuple[int, Column]] = list(enumerate(schema.columns))
    return visit.show(
        "add_declare.html",
        status=status,
        asked=asked,
        columns=columns_of(columns, given),
        kinds=KINDS,
        accounts=fitting,
        given=given,
        problem=problem,
    )


def _look(where: dict[str, str], private: list[str]) -> Look:
    return Look(
        upload=where.get("upload", ""),
        path=where.get("path", ""),
        query=where.get("query", ""),
        private=private,
    )


def _private(asked: dict[str, str]) -> list[str]:
    """Return the columns that are not described: the private one, and whose rows they are."""
    return [name for name in (asked["output"], asked["person"]) if name]


def _folders(visit: Visit) -> tuple[Path, ...]:
    return visit.request.app.state.service.settings.tables  # type: ignore[no-any-return]
