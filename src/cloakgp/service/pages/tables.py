"""Pages of tables: the declarations of one, and a wizard by which a custodian adds one."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
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
from cloakgp.columns.identifiers import may_name_persons
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
# The choices of an account in the form: names may be any text.
NEW, EXISTING = "new", "="
ColumnName = Annotated[str, StringConstraints(max_length=200)]


class Place(BaseModel):
    """The place of a table in the wizard: an upload, or a path."""

    upload: Short = ""
    path: Short = ""
    query: Short = ""
    called: Short = ""

    def look(
        self, work: Work, *, private: Sequence[str] = (), public: Sequence[str] = ()
    ) -> TablePreview:
        """Return the names of the columns, and what the public ones hold if these are chosen."""
        look = Look(
            upload=self.upload,
            path=self.path,
            query=self.query,
            private=[name for name in private if name],
            public=list(public),
        )
        return tables.look_at_table(work, look)


class Declared(Place):
    """The place of a table, its private column, and the public ones."""

    output: ColumnName = ""
    person: ColumnName = ""
    holds: Literal["numbers", "classes"] = "numbers"
    public: list[ColumnName] = []

    @classmethod
    def of(cls, form: FormRequest) -> Declared:
        """Return what a form says."""
        texts = {name: form.text(name) for name in cls.model_fields if name != "public"}
        public = [each for each in form.fields.getlist("public") if isinstance(each, str)]
        return cls.model_validate({**texts, "public": public})

    @property
    def address(self) -> str:
        """The choices as a query of an address."""
        return urlencode(self.model_dump(), doseq=True)

    def preview(self, work: Work) -> TablePreview:
        """Return what the chosen public columns hold; no other column is read.

        Raises
        ------
        InvalidError
            If no private column is chosen, or no public one.
        """
        wrong = {}
        if not self.output:
            wrong["output"] = "choose the private column first"
        if not self.public:
            wrong["public"] = "tick a public column at least, to predict from"
        elif both := [name for name in self.public if name in (self.output, self.person)]:
            wrong["public"] = f"{', '.join(both)} cannot be public, and private or the person's"
        if wrong:
            raise InvalidError("; ".join(wrong.values()), fields=wrong)
        return self.look(work, private=[self.output, self.person], public=self.public)


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

    return attempt(send, partial(_file_page, form, given=form.fields))


@router.get("/add-table/column", name="page: add table, columns")
def show_second_step(page: Page, declared: Annotated[Declared, Query()]) -> Response:
    """Show the form of the columns; of the table, names of columns alone are read."""
    work = page.work("look_at_table")
    return attempt(lambda: _columns_page(page, declared, work=work), partial(_file_page, page))


@router.get("/add-table/declare", name="page: add table, declarations")
def show_third_step(page: Page, declared: Annotated[Declared, Query()]) -> Response:
    """Show the form of the columns' declarations."""
    work = page.work("look_at_table")
    again = partial(_columns_page, page, declared, work=work)
    return attempt(
        lambda: _declare_page(page, declared, given={}),
        lambda **told: attempt(partial(again, **told), partial(_file_page, page)),
    )


@router.post("/add-table/declare", name="page: add table, declarations")
def register_table(form: Form) -> Response:
    """Register the table, in a new account if it has none."""
    work = form.work("register_table")
    declared = Declared.of(form)

    def register() -> str:
        seen = declared.preview(work).table_schema
        if wrong := _wrong_fields(form, declared):
            raise InvalidError("some fields need another look", fields=wrong)
        new = _new_table(form, declared, schema_text_of(seen, form.fields))
        # An earlier attempt at the table may have opened the account.
        names = [each.name for each in accounts.list_accounts(work)]
        if form.text("account") == NEW and new.account not in names:
            unit = "person" if declared.person else "row"
            accounts.open_account(work, new_account(form, name=new.account, unit=unit))
        return f"/tables/{tables.register_table(work, new).id}"

    def again(**told: Any) -> Response:
        return attempt(
            lambda: _declare_page(form, declared, given=dict(form.fields), **told),
            lambda **worse: attempt(
                partial(_columns_page, form, declared, work=form.work("look_at_table"), **worse),
                partial(_file_page, form),
            ),
        )

    return attempt(register, again)


def _wrong_fields(form: FormRequest, declared: Declared) -> dict[str, str]:
    """Return what can be seen to be wrong with fields without a look at the table."""
    wrong: dict[str, str] = {}

    def number(name: str) -> float | None:
        try:
            return number_of(form.text(name), called=name, field=name)
        except InvalidError as error:
            wrong.update(error.fields)
        return None

    if declared.holds == "classes":
        if len([line for line in form.text("classes").splitlines() if line.strip()]) < 2:
            wrong["classes"] = "name two classes at least"
    else:
        low, high = number("low"), number("high")
        if low is not None and high is not None and not low < high:
            wrong["high"] = "must be more than the lowest value"
    if not form.text("name"):
        wrong["name"] = "must not be empty"
    if not form.text("account"):
        wrong["account"] = "choose an account: is anybody of this table in another one?"
    if form.text("account") == NEW:
        if not form.text("new_name"):
            wrong["new_name"] = "must not be empty"
        if not form.text("limit_epsilon"):
            wrong["limit_epsilon"] = "a new account needs a limit"
    return wrong


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
            number_of(form.text("low"), called="the lowest value", field="low"),
            number_of(form.text("high"), called="the highest value", field="high"),
        )
    missing = form.text("missing_output") or "refuse"
    account = form.text("account")
    return NewTable(
        name=form.text("name"),
        account=form.text("new_name") if account == NEW else account.removeprefix(EXISTING),
        note=form.text("note"),
        table_schema=schema,
        missing_output=form.text("missing_value") if missing == "value" else missing,
        declared_public=[
            name for name in form.fields.getlist("declared_public") if isinstance(name, str)
        ],
        people="disjoint" if form.text("people") == "disjoint" else "overlapping",
        **declared.model_dump(include={"upload", "path", "query", "output", "person"}),
        **output,
    )


def _file_page(
    page: PageRequest,
    *,
    given: Mapping[str, Any] | None = None,
    status: int = 200,
    problem: str = "",
) -> Response:
    settings = page.work("upload_table").service.settings
    return page.show(
        "add_file.html",
        status=status,
        problem=problem,
        folders=settings.tables,
        given=given or page.request.query_params,
    )


def _columns_page(
    page: PageRequest, declared: Declared, *, work: Work, status: int = 200, problem: str = ""
) -> Response:
    columns = [name for name in declared.look(work).columns if name]
    return page.show(
        "add_column.html",
        status=status,
        where=declared,
        columns=columns,
        persons=[name for name in columns if may_name_persons(name)],
        problem=problem,
    )


def _declare_page(
    page: PageRequest,
    declared: Declared,
    *,
    given: dict[str, Any],
    status: int = 200,
    problem: str = "",
) -> Response:
    work = page.work("look_at_table")
    preview = declared.preview(work)
    schema = schema_from_text(preview.table_schema)
    units = ("row", "person") if declared.person else ("row",)
    return page.show(
        "add_declare.html",
        status=status,
        asked=declared,
        preview=preview,
        columns=columns_of(enumerate(schema.columns), given, preview.public),
        kinds=KINDS,
        accounts=[
            (EXISTING + each.name, each.name)
            for each in accounts.list_accounts(work)
            if each.unit in units
        ],
        new=NEW,
        given=given,
        problem=problem,
    )
