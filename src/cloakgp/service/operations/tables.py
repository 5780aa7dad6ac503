"""Tables: their upload, inspection, registration and withdrawal by custodians.

Registration checks the private cells, once: errors in them are for the custodian alone, so that no
job of an analyst fails for the content of a private cell.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from cloakgp.columns import Schema, infer_schema, schema_from_text, schema_to_text
from cloakgp.columns.cells import cells_of
from cloakgp.columns.remarks import remarks_on
from cloakgp.data.formats import format_of
from cloakgp.data.limits import ReadingLimits
from cloakgp.data.raw import RawRows, RawTable
from cloakgp.data.schema import ADDRESSES, check_header, table_suffix
from cloakgp.data.tables import column_names_of, read_people, read_public
from cloakgp.ledger.errors import OthersColumnError, PrivateInputError
from cloakgp.ledger.marks import ReadInputs, is_guessable
from cloakgp.orders.options import INFERENCE_ROWS, SourceTable, format_of_table
from cloakgp.orders.public_inputs import read_forms
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.questions.classes import Classes
from cloakgp.service.access import operation
from cloakgp.service.budgets import standing
from cloakgp.service.context import Work
from cloakgp.service.credentials import new_file_name
from cloakgp.service.database import note_event, row_of
from cloakgp.service.errors import ConflictError, InvalidError, NotFoundError, TooManyError
from cloakgp.service.files import find_file, note_look
from cloakgp.service.messages import (
    ColumnPreview,
    Id,
    Look,
    NewTable,
    TablePreview,
    TableView,
    UploadView,
)
from cloakgp.service.models import Rules, Table, Upload, now
from cloakgp.service.people import SHARED, NamedPeople, are_apart, others_of
from cloakgp.service.public_columns import (
    equal_columns,
    fills_of,
    own_columns,
    private_column_of,
    public_columns_of,
    source_of,
)
from cloakgp.utils.files import PERSONAL

# Public cells of each column that a custodian sees before a table is registered.
SHOWN_CELLS = 5
# What tells custodians something of others' tables, and is limited by the day.
PEOPLE, OF_OTHERS, COMPARED = "people in two tables", "columns of others", "compared columns"
GUESSED = {
    PEOPLE: "too many of your tables had people of other tables, and no more of them are compared "
    "today: leave out that its people are in no other, or wait",
    OF_OTHERS: "too many of your tables had private columns of other custodians among their public "
    "ones, and no more of them are compared today: declare which columns everybody may know, or "
    "wait",
    COMPARED: "too many public columns of yours were compared with private ones of other "
    "custodians today: declare which columns everybody may know, or wait",
}
LEAVE_OUT = "Leave it out; or, if everybody may know it, declare that it is public"


@operation
def upload_table(work: Work, name: str, *, received: Path) -> UploadView:
    """Keep an uploaded file of a custodian, until its registration.

    Parameters
    ----------
    work : Work
    name : str
        Name of the file, whose end tells the format.
    received : Path
        The file, which is moved.

    Raises
    ------
    InvalidError
        If its name tells no format of tables, or the format of addresses.
    """
    plain = Path(name).name
    try:
        suffix = table_suffix(plain)
    except ValueError as error:
        raise InvalidError(str(error)) from None
    if suffix in ADDRESSES:
        raise InvalidError("an address of a database is not uploaded: it is registered by its path")
    made = new_file_name()
    target = work.service.settings.uploads / (made + suffix)
    size = received.stat().st_size
    received.chmod(PERSONAL)
    shutil.move(received, target)
    with work.database.writing() as session:
        session.add(Upload(id=made, person_id=work.actor.id, name=plain, size=size))
        note_event(session, who=work.actor, what="file uploaded", about=plain)
    return UploadView(id=made, name=plain, size=size)


@operation
def look_at_table(work: Work, look: Look) -> TablePreview:
    """Return a table's columns, and a first schema of the public ones if the private are named.

    Raises
    ------
    InvalidError, NotFoundError
        If it cannot be read, or is another custodian's.
    """
    path = find_file(work, upload=look.upload, path=look.path)
    if look.path:
        note_look(work, path)
    limits = work.service.settings.table_limits
    try:
        return work.service.reading.call(_preview, work.stopped, look, path, limits=limits)
    except (ValueError, OSError) as error:
        raise InvalidError(_without_place(error, path)) from None


@operation
def register_table(work: Work, new: NewTable) -> TableView:
    """Register a table: its private cells are checked, and the ledger recognises them from now on.

    Raises
    ------
    ConflictError
        If there is a table of that name.
    InvalidError, NotFoundError
        If the table cannot be read, or its declarations make no sense.
    """
    path = find_file(work, upload=new.upload, path=new.path)
    _check_declared(new)
    with work.database.reading() as session:
        _check_name(session, new.name)
        if session.get(Rules, new.account) is None:
            raise NotFoundError("account")
        _check_unit(standing(session, new.account).unit, new)
    try:
        raw, private, rows = work.service.reading.call(
            _read, work.stopped, new, path, limits=work.service.settings.table_limits
        )
    except (ValueError, OSError) as error:
        raise InvalidError(_without_place(error, path)) from None
    _check_people(work, new, path)
    low, high = new.bounds or (None, None)
    table = Table(
        name=new.name,
        account=new.account,
        note=new.note,
        path=str(path),
        query=new.query,
        schema=schema_to_text(raw.schema),
        output=new.output,
        low=low,
        high=high,
        classes=list(new.classes),
        person=new.person,
        people=new.people,
        declared_public=list(new.declared_public),
        missing_output=new.missing_output,
        rows=rows,
        registered_by=work.actor.name,
    )
    _check_private(work, table, private)
    _attach(work, table, private)
    with work.database.writing() as session:
        _check_name(session, new.name)
        session.add(table)
        session.flush()
        note_event(session, who=work.actor, what="table registered", about=new.name)
        return view_of_table(table)


@operation
def withdraw_table(work: Work, table: Id) -> TableView:
    """Withdraw a table from new requests; its releases stay."""
    with work.database.writing() as session:
        row = row_of(session, Table, table, called="table")
        row.withdrawn = row.withdrawn or now()
        note_event(session, who=work.actor, what="table withdrawn", about=row.name)
        return view_of_table(row)


@operation
def list_tables(work: Work) -> list[TableView]:
    """Return the tables that are open to requests."""
    with work.database.reading() as session:
        query = select(Table).where(Table.withdrawn.is_(None)).order_by(Table.name)
        return [view_of_table(table) for table in session.scalars(query)]


@operation
def show_table(work: Work, table: Id) -> TableView:
    """Return a table."""
    with work.database.reading() as session:
        return view_of_table(row_of(session, Table, table, called="table"))


def usable_table(session: Session, table: int) -> Table:
    """Return the row of a table that is open to requests.

    Raises
    ------
    ConflictError
        If it is withdrawn.
    NotFoundError
    """
    row = row_of(session, Table, table, called="table")
    if row.withdrawn is not None:
        raise ConflictError("the table is withdrawn")
    return row


def _check_declared(new: NewTable) -> None:
    if (new.bounds is None) == (not new.classes):
        raise InvalidError("give either bounds, of a private number, or classes")
    if any("," in name or name != name.strip() for name in new.classes):
        raise InvalidError("classes have no commas, and no blanks around them")
    try:
        if new.bounds is not None:
            OutputBounds.checked(new.bounds)
        else:
            Classes.checked(new.classes)
    except ValueError as error:
        raise InvalidError(str(error)) from None


def _check_unit(unit: str, new: NewTable) -> None:
    if unit not in ("row", "person"):
        raise InvalidError("releases made here protect outputs, and this account whole rows")
    if unit == "person" and not new.person:
        raise InvalidError("this account protects persons: name the column of each row's person")


def _check_name(session: Session, name: str) -> None:
    if session.scalar(select(Table).where(Table.name == name)) is not None:
        raise ConflictError("there is a table of that name", fields={"name": "is taken"})


def _preview(look: Look, path: Path, *, limits: ReadingLimits) -> TablePreview:
    table_format = format_of_table(path, look.query, limits=limits)
    columns = list(dict.fromkeys(column_names_of(path, table_format=table_format)))
    if unknown := [name for name in (*look.private, *look.public) if name not in columns]:
        raise ValueError(f"there is no column {', '.join(unknown)}")
    if both := [name for name in look.public if name in look.private]:
        raise ValueError(f"{', '.join(both)} cannot be private and public")
    names = look.public or [name for name in columns if name and name not in look.private]
    if len(names) == len(columns):
        # The private columns are not named yet: nothing but names is read.
        return TablePreview(columns=columns, table_schema="", described={})
    public = read_public(path, names=names, most=INFERENCE_ROWS, table_format=table_format)
    made = infer_schema(public, names)
    rows = public.shape[0]
    return TablePreview(
        columns=columns,
        table_schema=schema_to_text(made),
        described=_described(made),
        rows=rows,
        complete=rows < INFERENCE_ROWS,
        public=_previews(made, public),
    )


def _previews(schema: Schema, public: RawTable) -> dict[str, ColumnPreview]:
    """Return what a custodian sees of public columns: of a place, of both together."""
    remarks, codes = remarks_on(schema, public), set(schema.missing_values)
    found = {}
    for column in schema.columns:
        # An identifier is no source of predictions.
        sources = column.sources or (column.name,)
        texts = [cells_of(public[source]).texts().tolist() for source in sources]
        cells = [", ".join(parts) for parts in zip(*texts, strict=True)]
        empty = [any(part in codes or not part for part in row) for row in zip(*texts, strict=True)]
        found[column.name] = ColumnPreview(
            described=column.describe(),
            gaps=sum(empty) / len(empty) if empty else 0.0,
            remarks=list(remarks.get(column.name, ())),
            cells=cells[:SHOWN_CELLS],
        )
    return found


def _read(new: NewTable, path: Path, *, limits: ReadingLimits) -> tuple[RawRows, NDArray[Any], int]:
    """Return the schema, the private column and the number of rows, after checking every cell."""
    table_format = format_of_table(path, new.query, limits=limits)
    declared: Schema | None = None
    names = list(new.inputs)
    if new.table_schema:
        declared = schema_from_text(new.table_schema)
    elif not names:
        there = column_names_of(path, table_format=table_format)
        # No input is asked for by name: names that come from the header vouch for no header.
        asked = [name for name in (new.output, new.person) if name]
        certain = (table_format or format_of(path)).certain_names
        check_header(path, there, names=asked, certain=certain)
        names = [name for name in dict.fromkeys(there) if name and name not in asked]
    source = SourceTable(
        path=path,
        inputs=names,
        chosen=bool(new.inputs),
        output=new.output,
        schema=declared,
        person=new.person,
        missing_output=new.missing_output,
        query=new.query,
        limits=limits,
    )
    raw = source.raw_rows(classes=new.classes)
    people = read_people(
        path, raw=raw, output=new.output, groups=new.person or None, table_format=table_format
    )
    raw.schema.encode(people.columns)
    return raw, people.private, len(people.private)


def _check_people(work: Work, new: NewTable, path: Path) -> None:
    """Refuse a table of people who are in another that was said to have none of them.

    A refusal tells that somebody is: it is noted, and after so many the same day nothing is told.

    Raises
    ------
    InvalidError
        If they are, or cannot be read.
    TooManyError
        If there were too many such refusals.
    """
    if new.people != "disjoint" or not new.person:
        return
    with work.database.reading() as session:
        others = others_of(session, new.account)
    own, limits = NamedPeople(path, new.person, new.query), work.service.settings.table_limits
    _check_guesses(work, PEOPLE)
    try:
        apart = work.service.reading.call(are_apart, work.stopped, own, others, limits=limits)
    except (ValueError, OSError) as error:
        raise InvalidError(_without_place(error, path)) from None
    # Others that were compared at the same time may have been the last.
    _check_guesses(work, PEOPLE)
    if apart:
        return
    with work.database.writing() as session:
        about = f"{new.name}: people of another table of {new.account}, as people of no other"
        note_event(session, who=work.actor, what="table refused", about=about)
    _check_guesses(work, PEOPLE, counted=1)
    raise InvalidError(SHARED, fields={"people": "are in another table"})


def _check_guesses(work: Work, kind: str, *, counted: int = 0) -> None:
    """Refuse to compare for whoever was told too much the same day, the counted included."""
    rates, who = work.service.rates, str(work.actor.id)
    try:
        if counted:
            rates.count(kind, who, many=counted)
        else:
            rates.check(kind, who)
    except TooManyError as error:
        raise TooManyError(error.seconds, GUESSED[kind]) from None


def _check_private(work: Work, table: Table, private: NDArray[Any]) -> None:
    """Refuse a private column that is a public one of the account's open tables, or of its own.

    Of other custodians' tables, columns of few different values may be the same by chance: auditors
    alone see it.

    Raises
    ------
    InvalidError
    """
    with work.database.reading() as session:
        query = select(Table).where(Table.account == table.account, Table.withdrawn.is_(None))
        tables = [*session.scalars(query), table]
        fills = fills_of(session, table.account, table.missing_output)
    guessable = is_guessable(private)
    for each in tables:
        names = [name for name in public_columns_of(each) if name not in each.declared_public]
        source = source_of(each, limits=work.service.settings.table_limits)
        try:
            found = work.service.reading.call(
                equal_columns, work.stopped, private, source, names, fills
            )
        except (ValueError, OSError, InvalidError):
            # Another custodian's table that cannot be read, or not in time, keeps nobody from
            # registering theirs: its jobs compare its columns, if they can read them.
            continue
        if not found:
            continue
        listed, noted = ", ".join(found), f"{table.name}: its private column is the public"
        own = each.registered_by == work.actor.name
        with work.database.writing() as session:
            what = "table refused" if own or not guessable else "column noted"
            about = f"{noted} {listed} of {each.name}"
            note_event(session, who=work.actor, what=what, about=about)
        if each is table:
            raise InvalidError(
                f"{listed} cannot be public: the private column has the same values. {LEAVE_OUT}",
                fields={"declared_public": f"{listed}: the private column has the same values"},
            )
        if own or not guessable:
            raise InvalidError(
                f"{table.output} cannot be private: releases of the table {each.name} hold the "
                f"public {listed}, with the same values. Withdraw that table first; register it "
                "again without this column, or with the word that everybody may know it"
            )


def _attach(work: Work, table: Table, private: NDArray[Any]) -> None:
    """Attach the column to the ledger; auditors alone learn whether it was attached before.

    Raises
    ------
    InvalidError
        If a public column is a private one of the account.
    TooManyError
        If too many were compared with private columns of other custodians, or refused for these.
    """
    inputs, declared = _inputs(work, table), table.declared_public
    if unknown := [name for name in declared if name not in inputs]:
        raise InvalidError(
            f"{', '.join(unknown)} cannot be declared public: it is no public column",
            fields={"declared_public": "are not all public columns"},
        )
    with work.database.reading() as session:
        own = own_columns(session, table.account, who=work.actor.name)
    of_others = any(
        column["account"] == table.account and column["name"] not in own
        for column in work.ledger.columns()
    )
    guesses = len(set(inputs) - set(declared)) if of_others else 0
    if guesses:
        _check_guesses(work, OF_OTHERS)
        _check_guesses(work, COMPARED, counted=guesses)
    try:
        with work.acting():
            account = work.ledger.account(table.account)
            account = account.with_inputs(inputs, declared_public=declared, own=own)
            account.attach(private, column=private_column_of(table), cohort=table.cohort)
    except PrivateInputError as error:
        names = ", ".join(error.names)
        # It tells the custodian that the values are attached: whoever guesses leaves a trace.
        with work.database.writing() as session:
            about = f"{table.name}: {names}, a private column of {table.account}, as a public one"
            note_event(session, who=work.actor, what="table refused", about=about)
        if isinstance(error, OthersColumnError):
            _check_guesses(work, OF_OTHERS, counted=1)
            raise InvalidError(
                "one of the public columns has the same values as a private column of somebody "
                "else in this account, and is no public one. Leave out columns that not everybody "
                "may know; or declare of those that everybody may know that they are public",
                fields={"declared_public": "a private column of others has the values of one"},
            ) from None
        raise InvalidError(
            f"{names} cannot be public: a private column of the account has the same values. "
            f"{LEAVE_OUT}",
            fields={"declared_public": f"{names}: a private column has the same values"},
        ) from None


def _inputs(work: Work, table: Table) -> ReadInputs:
    """Return functions that read public columns, one at a time, as private ones are attached."""
    with work.database.reading() as session:
        fills = fills_of(session, table.account, table.missing_output)
    source = source_of(table, limits=work.service.settings.table_limits)
    return {
        name: partial(work.service.reading.call, read_forms, work.stopped, source, name, fills)
        for name in public_columns_of(table)
    }


def _without_place(error: Exception, path: Path) -> str:
    """Return the message of an error, without the place of the file on the server."""
    if isinstance(error, OSError) and error.strerror:
        return f"the table cannot be read: {error.strerror}"
    return str(error).replace(str(path), "the table")


def _described(schema: Schema) -> dict[str, str]:
    return {column.name: column.describe() for column in schema.columns}


def view_of_table(table: Table) -> TableView:
    """Return the view of a table."""
    schema = schema_from_text(table.schema)
    return TableView.of(
        table,
        bounds=None if table.low is None or table.high is None else (table.low, table.high),
        inputs=list(schema.sources),
        described=_described(schema),
        table_schema=table.schema,
        withdrawn=table.withdrawn is not None,
    )
