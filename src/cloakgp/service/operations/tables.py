"""Tables: registered by a custodian, with all that is declared of them.

Here private cells are checked, once, when the custodian registers a table: what is wrong with them
is said to the custodian alone, so that no job of an analyst's fails for what a private cell holds.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from cloakgp.columns import Schema, infer_schema, schema_from_text, schema_to_text
from cloakgp.data.raw import RawRows
from cloakgp.data.schema import ADDRESSES, table_suffix
from cloakgp.data.tables import column_names_of, read_people, read_public
from cloakgp.orders.options import INFERENCE_ROWS, ReleaseOptions, format_of_table
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.fingerprints import fingerprint_column
from cloakgp.privacy.labels import Classes
from cloakgp.service.access import operation
from cloakgp.service.budgets import standing
from cloakgp.service.context import Work
from cloakgp.service.credentials import new_file_name
from cloakgp.service.database import note_event
from cloakgp.service.errors import ConflictError, InvalidError, NotFoundError
from cloakgp.service.messages import Look, Looked, NewTable, TableView, UploadView, moment
from cloakgp.service.models import Rules, Table, Upload, now

# Of a file that holds people: its owner's alone.
PERSONAL = 0o600


@operation
def upload_table(work: Work, name: str, *, received: Path) -> UploadView:
    """Keep a file that a custodian has sent, until it is registered.

    Parameters
    ----------
    work : Work
    name : str
        Of the file, whose end tells the format.
    received : Path
        Is moved.

    Raises
    ------
    InvalidError
        If its name tells no format of tables, or that of a file of addresses.
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
        note_event(session, who=work.actor.name, what="file uploaded", about=plain)
    return UploadView(id=made, name=plain, size=size)


@operation
def look_at_table(work: Work, look: Look) -> Looked:
    """Return a table's columns, and a first schema of those that are public.

    Raises
    ------
    InvalidError, NotFoundError
        If it cannot be read.
    """
    path = _path(work, upload=look.upload, path=look.path)
    try:
        table_format = format_of_table(path, look.query)
        columns = list(dict.fromkeys(column_names_of(path, table_format=table_format)))
        names = [name for name in columns if name and name not in look.private]
        if len(names) == len(columns):
            # Which are private is not said yet: nothing but names is looked at.
            return Looked(columns=columns, table_schema="", described={})
        public = read_public(path, names=names, most=INFERENCE_ROWS, table_format=table_format)
        made = infer_schema(public, names)
    except (ValueError, OSError) as error:
        raise InvalidError(_without_place(error, path)) from None
    return Looked(columns=columns, table_schema=schema_to_text(made), described=_described(made))


@operation
def register_table(work: Work, new: NewTable) -> TableView:
    """Register a table: its private cells are checked, and from now on recognised by the ledger.

    Raises
    ------
    ConflictError
        If there is one of that name, or the private column is another account's.
    InvalidError, NotFoundError
        If the table cannot be read, or what is declared of it makes no sense.
    """
    path = _path(work, upload=new.upload, path=new.path)
    _check_declared(new)
    with work.database.reading() as session:
        _check_name(session, new.name)
        if session.get(Rules, new.account) is None:
            raise NotFoundError("account")
        _check_unit(standing(session, new.account).unit, new)
    try:
        raw, private, rows = _read(new, path)
    except (ValueError, OSError) as error:
        raise InvalidError(_without_place(error, path)) from None
    _attach(work, new, private)
    low, high = new.bounds or (None, None)
    with work.database.writing() as session:
        _check_name(session, new.name)
        made = Table(
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
            missing_output=new.missing_output,
            rows=rows,
            registered_by=work.actor.name,
        )
        session.add(made)
        session.flush()
        note_event(session, who=work.actor.name, what="table registered", about=new.name)
        return _view(made)


@operation
def withdraw_table(work: Work, table: int) -> TableView:
    """Take a table from those of which releases can be asked; its releases stay."""
    with work.database.writing() as session:
        found = found_table(session, table)
        found.withdrawn = found.withdrawn or now()
        note_event(session, who=work.actor.name, what="table withdrawn", about=found.name)
        return _view(found)


@operation
def list_tables(work: Work) -> list[TableView]:
    """Return the tables of which releases can be asked."""
    with work.database.reading() as session:
        query = select(Table).where(Table.withdrawn.is_(None)).order_by(Table.name)
        return [_view(table) for table in session.scalars(query)]


@operation
def show_table(work: Work, table: int) -> TableView:
    """Return a table."""
    with work.database.reading() as session:
        return _view(found_table(session, table))


def found_table(session: Session, table: int, *, usable: bool = False) -> Table:
    """Return the row of a table.

    Raises
    ------
    NotFoundError
    ConflictError
        If it is withdrawn and should be usable.
    """
    found = session.get(Table, table)
    if found is None:
        raise NotFoundError("table")
    if usable and found.withdrawn is not None:
        raise ConflictError("the table is withdrawn")
    return found


def _path(work: Work, *, upload: str, path: str) -> Path:
    """Return where a file is, if it is one that may be read."""
    if bool(upload) == bool(path):
        raise InvalidError("give either an upload or a path")
    settings = work.service.settings
    if upload:
        with work.database.reading() as session:
            found = session.get(Upload, upload)
            if found is None or found.person_id != work.actor.id:
                raise NotFoundError("upload")
            return settings.uploads / (found.id + table_suffix(found.name))
    folders = [folder.resolve() for folder in settings.tables]
    wanted = Path(path)
    resolved = (wanted if wanted.is_absolute() or not folders else folders[0] / wanted).resolve()
    if not any(resolved.is_relative_to(folder) for folder in folders):
        raise InvalidError(
            "this path is in none of the folders that the service may read (cloakgp serve "
            "--tables): upload the file instead"
        )
    return resolved


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
        raise InvalidError("this account protects persons: say which column tells whose rows are")


def _check_name(session: Session, name: str) -> None:
    if session.scalar(select(Table).where(Table.name == name)) is not None:
        raise ConflictError("there is a table of that name")


def _read(new: NewTable, path: Path) -> tuple[RawRows, NDArray[Any], int]:
    """Return the schema, the private column and the number of rows, after checking every cell."""
    table_format = format_of_table(path, new.query)
    declared: Schema | None = None
    names = list(new.inputs)
    if new.table_schema:
        declared = schema_from_text(new.table_schema)
    elif not names:
        there = dict.fromkeys(column_names_of(path, table_format=table_format))
        names = [name for name in there if name and name not in (new.output, new.person)]
    options = ReleaseOptions(
        table=path,
        inputs=names,
        output=new.output,
        epsilon=1.0,
        delta=0.0,
        noise="auto",
        schema=declared,
        person=new.person,
        missing_output=new.missing_output,
        query=new.query,
    )
    raw = options.raw_rows(classes=new.classes)
    people = read_people(
        path, raw=raw, output=new.output, groups=new.person or None, table_format=table_format
    )
    raw.schema.encode(people.columns)
    return raw, people.private, len(people.private)


def _attach(work: Work, new: NewTable, private: NDArray[Any]) -> None:
    """Have the ledger recognise the column, so that no copy of it counts for another account."""
    fingerprint = fingerprint_column(private, key=work.ledger.key.columns)
    attached = {row["fingerprint"]: row["account"] for row in work.ledger.columns()}
    if fingerprint in attached:
        if attached[fingerprint] != new.account:
            raise ConflictError("this private column counts for another account already")
        return
    with work.acting():
        work.ledger.account(new.account).attach(private, column=f"{new.name}: {new.output}")


def _without_place(error: Exception, path: Path) -> str:
    """Return what is wrong with a file, without telling where the service keeps it."""
    if isinstance(error, OSError) and error.strerror:
        return f"the table cannot be read: {error.strerror}"
    return str(error).replace(str(path), "the table")


def _described(schema: Schema) -> dict[str, str]:
    return {column.name: column.describe() for column in schema.columns}


def _view(table: Table) -> TableView:
    schema = schema_from_text(table.schema)
    bounds = None if table.low is None or table.high is None else (table.low, table.high)
    return TableView(
        id=table.id,
        name=table.name,
        account=table.account,
        note=table.note,
        output=table.output,
        bounds=bounds,
        classes=list(table.classes),
        inputs=list(schema.sources),
        described=_described(schema),
        table_schema=table.schema,
        person=table.person,
        missing_output=table.missing_output,
        rows=table.rows,
        registered_by=table.registered_by,
        created=moment(table.created),
        withdrawn=table.withdrawn is not None,
    )
