"""Pages of tables: the declarations of one, and a wizard by which a custodian adds one."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from shutil import copyfileobj
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, StringConstraints
from starlette.datastructures import UploadFile

from cloakgp.columns import schema_from_text
from cloakgp.service.context import Work
from cloakgp.service.errors import InvalidError
from cloakgp.service.messages import Id, Look, NewTable, TablePreview
from cloakgp.service.operations import accounts, tables
from cloakgp.service.pages.base import (
    Form,
    FormRequest,
    Page,
    PageRequest,
    PageRoute,
    TableForm,
    attempt,
    go_to,
)
from cloakgp.service.pages.budgets import new_account
from cloakgp.service.pages.fields import number_of
from cloakgp.service.pages.plans import table_and_account
from cloakgp.service.pages.schemas import KINDS, columns_of, schema_text_of

router = APIRouter(route_class=PageRoute)
# Its forms are larger.
uploads = APIRouter(route_class=PageRoute)
Short = Annotated[str, StringConstraints(max_length=1000)]
ColumnName = Annotated[str, StringConstraints(max_length=200)]


class Place(BaseModel):
    """The place of a table in the wizard: an upload, or a path."""

    upload: Short = ""
    path: Short = ""
    query: Short = ""
    called: Short = ""

    def look(self, work: Work, *private: str) -> TablePreview:
        """Return the columns of the table, described if the private ones are named."""
        look = Look(
            upload=self.upload,
            path=self.path,
            query=self.query,
            private=[name for name in private if name],
        )
        return tables.look_at_table(work, look)


class Declared(Place):
    """The place of a table, and its private column."""

    output: ColumnName
    person: ColumnName = ""
    holds: Literal["numbers", "classes"] = "numbers"

    def preview(self, work: Work) -> TablePreview:
        """Return the public columns with descriptions: neither the output nor the person."""
        return self.look(work, self.output, self.person)


@router.get("/tables/{table}", name="page: table")
def show_table(page: Page, table: Id) -> Response:
    """Show the declarations of a table."""
    row, account = table_and_account(page.work("show_table"), table)
    columns = schema_from_text(row.table_schema).columns
    return page.show("table.html", table=row, account=account, columns=columns)


@router.post("/tables/{table}/withdraw", name="page: withdraw table")
def withdraw_table(form: Form, table: Id) -> Response:
    """Withdraw a table from new requests."""
    tables.withdraw_table(form.work("withdraw_table"), table)
    return go_to("/budgets")


@router.get("/add-table", name="page: add table, file")
def show_first_step(page: Page) -> Response:
    """Show the form of a file."""
    return _file_page(page)


@uploads.post("/add-table", name="page: add table, file")
def send_file(form: TableForm) -> Response:
    """Keep an uploaded file, or take the path of a file on the server."""
    work = form.work("upload_table")

    def send() -> str:
        place = _sent_place(form, work)
        place.look(form.work("look_at_table"))
        return f"/add-table/column?{urlencode(place.model_dump())}"

    return attempt(send, partial(_file_page, form))


@router.get("/add-table/column", name="page: add table, private column")
def show_second_step(page: Page, place: Annotated[Place, Query()]) -> Response:
    """Show the form of the private column; of the table, names of columns alone are read."""
    columns = place.look(page.work("look_at_table")).columns
    return page.show("add_column.html", where=place, columns=columns)


@router.get("/add-table/declare", name="page: add table, declarations")
def show_third_step(page: Page, declared: Annotated[Declared, Query()]) -> Response:
    """Show the form of the columns' declarations."""
    return _declare_page(page, declared, given={})


@router.post("/add-table/declare", name="page: add table, declarations")
def register_table(form: Form) -> Response:
    """Register the table, in a new account if it has none."""
    work = form.work("register_table")
    declared = Declared.model_validate({name: form.text(name) for name in Declared.model_fields})

    def register() -> str:
        schema = schema_text_of(declared.preview(work).table_schema, form.fields)
        new = _new_table(form, declared, schema)
        # An earlier attempt at the table may have opened the account.
        names = [each.name for each in accounts.list_accounts(work)]
        if form.text("account") == "" and new.account not in names:
            if not form.text("limit_epsilon"):
                raise InvalidError("a new account needs a limit")
            unit = "person" if declared.person else "row"
            accounts.open_account(work, new_account(form, name=new.account, unit=unit))
        return f"/tables/{tables.register_table(work, new).id}"

    return attempt(register, partial(_declare_page, form, declared, given=dict(form.fields)))


def _sent_place(form: FormRequest, work: Work) -> Place:
    path, file = form.text("path"), form.fields.get("file")
    if isinstance(file, UploadFile) and file.filename:
        with tempfile.TemporaryDirectory(dir=work.service.settings.uploads) as folder:
            received = Path(folder) / "body"
            with received.open("wb") as target:
                copyfileobj(file.file, target)
            upload = tables.upload_table(work, file.filename, received=received)
        return Place(upload=upload.id, called=upload.name)
    if path:
        return Place(path=path, query=form.text("query"), called=Path(path).name)
    raise InvalidError("choose a file, or give the path of one on the server")


def _new_table(form: FormRequest, declared: Declared, schema: str) -> NewTable:
    output: dict[str, Any] = {}
    if declared.holds == "classes":
        lines = (line.strip() for line in form.text("classes").splitlines())
        output["classes"] = [line for line in lines if line]
    else:
        output["bounds"] = (
            number_of(form.text("low"), called="the lowest value"),
            number_of(form.text("high"), called="the highest value"),
        )
    missing = form.text("missing_output") or "refuse"
    return NewTable(
        name=form.text("name"),
        account=form.text("account") or form.text("new_name"),
        note=form.text("note"),
        table_schema=schema,
        missing_output=form.text("missing_value") if missing == "value" else missing,
        **declared.model_dump(include={"upload", "path", "query", "output", "person"}),
        **output,
    )


def _file_page(page: PageRequest, *, status: int = 200, problem: str = "") -> Response:
    settings = page.work("upload_table").service.settings
    return page.show("add_file.html", status=status, problem=problem, folders=settings.tables)


def _declare_page(
    page: PageRequest,
    declared: Declared,
    *,
    given: dict[str, Any],
    status: int = 200,
    problem: str = "",
) -> Response:
    work = page.work("look_at_table")
    schema = schema_from_text(declared.preview(work).table_schema)
    units = ("row", "person") if declared.person else ("row",)
    return page.show(
        "add_declare.html",
        status=status,
        asked=declared,
        columns=columns_of(enumerate(schema.columns), given),
        kinds=KINDS,
        accounts=[each for each in accounts.list_accounts(work) if each.unit in units],
        given=given,
        problem=problem,
    )
