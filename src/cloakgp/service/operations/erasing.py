"""Erasure of uploaded and exchanged files, by their custodians or at the end of their retention.

The database forgets a file first, and the folder second: if the service dies between, the file is a
leftover, which `remove_leftovers` takes. Releases stay: they hold no row. Erasure is that of the
file system; copies of the disk, and backups, are for their makers to erase.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from cloakgp.custodians.admission import is_lasting
from cloakgp.custodians.exchange import RELEASE
from cloakgp.data.schema import table_suffix
from cloakgp.service.access import Actor, operation
from cloakgp.service.context import Service, Work
from cloakgp.service.database import note_event, row_of
from cloakgp.service.errors import ConflictError, NotFoundError
from cloakgp.service.messages import Id, Name, TableView
from cloakgp.service.models import (
    UNFINISHED,
    Job,
    JointFile,
    JointRequest,
    Request,
    Table,
    Upload,
    now,
)
from cloakgp.service.operations.tables import view_of_table

DAY = 86_400
# Seconds after which a file that is unknown to the database is a leftover, and no upload.
ABANDONED = DAY


@operation
def erase_table(work: Work, table: Id) -> TableView:
    """Erase the uploaded file of a table of one's own; it is withdrawn, and its releases stay.

    Raises
    ------
    ConflictError
        If a release of it is under way, or its file was not uploaded.
    NotFoundError
        If there is no such table, or its file is another custodian's.
    """
    with work.database.writing() as session:
        row = row_of(session, Table, table, called="table")
        if row.registered_by != work.actor.name:
            raise NotFoundError("file")
        path = Path(row.path)
        if path.parent != work.service.settings.uploads:
            raise ConflictError(
                "this table's file was not sent to the service: withdraw the table, and erase the "
                "file in its own folder"
            )
        upload = session.get(Upload, path.name.partition(".")[0])
        _forget(session, path, upload, who=work.actor)
        view = view_of_table(row)
    path.unlink(missing_ok=True)
    return view


@operation
def erase_upload(work: Work, upload: Name) -> None:
    """Erase an uploaded file of one's own, and withdraw every table that was registered from it.

    Raises
    ------
    ConflictError
        If a release of such a table is under way.
    NotFoundError
    """
    with work.database.writing() as session:
        row = session.get(Upload, upload)
        if row is None or row.person_id != work.actor.id:
            raise NotFoundError("upload")
        path = _path(work.service, row)
        _forget(session, path, row, who=work.actor)
    path.unlink(missing_ok=True)


def erase_old_files(service: Service) -> int:
    """Erase files without a table at the end of their retention, since upload or withdrawal.

    Returns
    -------
    int
        Number of erased files.
    """
    since, erased = _kept_since(service), []
    if since is None:
        return 0
    with service.database.writing() as session:
        for upload in session.scalars(select(Upload).where(Upload.created < since)).all():
            path = _path(service, upload)
            tables = _tables_of(session, path)
            if any(each.withdrawn is None or each.withdrawn >= since for each in tables):
                continue
            if not _jobs_of(session, tables):
                _forget(session, path, upload, who="service")
                erased.append(path)
    for path in erased:
        path.unlink(missing_ok=True)
    return len(erased)


def erase_old_exchanges(service: Service) -> int:
    """Erase what custodians exchanged for a joint request at the end of its retention.

    Since its release was made, or it was closed. What was agreed stays, with who took part, and the
    release; public inputs, questions, answers, opened masks and sums go.

    Returns
    -------
    int
        Number of erased files.
    """
    since, erased = _kept_since(service), 0
    if since is None:
        return 0
    made = select(JointFile.request_id).where(JointFile.name == RELEASE, JointFile.created < since)
    over = select(JointRequest.id).where((JointRequest.closed < since) | JointRequest.id.in_(made))
    with service.database.writing() as session:
        for request in session.scalars(over).all():
            names = session.scalars(
                select(JointFile.name).where(JointFile.request_id == request)
            ).all()
            passing = [name for name in names if not is_lasting(name)]
            if not passing:
                continue
            session.execute(
                delete(JointFile).where(
                    JointFile.request_id == request, JointFile.name.in_(passing)
                )
            )
            about = f"joint request {request}: {len(passing)} files"
            note_event(session, who="service", what="exchanged files erased", about=about)
            erased += len(passing)
    return erased


def _kept_since(service: Service) -> int | None:
    """Return the moment before which files are erased; None if they are kept for ever."""
    days = service.settings.keep_days
    return now() - days * DAY if days else None


def remove_leftovers(service: Service) -> int:
    """Remove files that the database does not know, and that are no uploads under way.

    Returns
    -------
    int
        Number of removed files and folders.
    """
    removed = 0
    for path in service.settings.uploads.iterdir():
        if time.time() - path.stat().st_mtime < ABANDONED:
            continue
        with service.database.reading() as session:
            known = session.get(Upload, path.name.partition(".")[0]) is not None
            if known or _tables_of(session, path):
                continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        removed += 1
    return removed


def _forget(session: Session, path: Path, upload: Upload | None, *, who: Actor | str) -> None:
    """Withdraw the tables of a file, and forget the file."""
    tables = _tables_of(session, path)
    jobs = _jobs_of(session, tables)
    if jobs:
        raise ConflictError(
            f"a release of it is under way: cancel job {jobs[0]}, or wait until it is done"
        )
    for each in tables:
        each.withdrawn = each.withdrawn or now()
    if upload is not None:
        session.delete(upload)
    names = ", ".join(each.name for each in tables) or (upload.name if upload else "")
    note_event(session, who=who, what="file erased", about=names)


def _tables_of(session: Session, path: Path) -> list[Table]:
    return list(session.scalars(select(Table).where(Table.path == str(path))))


def _jobs_of(session: Session, tables: list[Table]) -> list[int]:
    query = select(Job.id).join(Request).where(Job.state.in_(UNFINISHED))
    return list(session.scalars(query.where(Request.table_id.in_([each.id for each in tables]))))


def _path(service: Service, upload: Upload) -> Path:
    return service.settings.uploads / (upload.id + table_suffix(upload.name))
