"""Files of custodians: each is theirs who sent it, or who registered it first.

A file of the shared folders is open to every custodian until a table of it is registered; from then
on it is its custodian's alone, also when the table is withdrawn. To all others it is not found, as
if there were none, whatever name leads to it. Nobody can say of columns which are private in
somebody else's table: a query calls them as it likes.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloakgp.data.schema import table_suffix
from cloakgp.service.context import Work
from cloakgp.service.database import note_event
from cloakgp.service.errors import InvalidError, NotFoundError
from cloakgp.service.models import Table, Upload


def find_file(work: Work, *, upload: str, path: str) -> Path:
    """Return the place of a custodian's own upload, or of a file of the shared folders.

    Parameters
    ----------
    work : Work
    upload : str
        The id of an upload; or empty.
    path : str
        Of a file in one of the folders that the service may read; or empty.

    Raises
    ------
    InvalidError
        If not one of both is given, or the path is in none of the folders.
    NotFoundError
        If there is no such file, or it is another custodian's.
    """
    if bool(upload) == bool(path):
        raise InvalidError("give either an upload or a path")
    return _find_upload(work, upload) if upload else _find_shared(work, path)


def note_look(work: Work, place: Path) -> None:
    """Note that a file of the shared folders is looked at."""
    with work.database.writing() as session:
        about = _shown(work, place)
        note_event(session, who=work.actor, what="file looked at", about=about)


def _find_upload(work: Work, upload: str) -> Path:
    with work.database.reading() as session:
        row = session.get(Upload, upload)
        if row is None or row.person_id != work.actor.id:
            raise NotFoundError("upload")
        return work.service.settings.uploads / (row.id + table_suffix(row.name))


def _find_shared(work: Work, path: str) -> Path:
    folders, wanted = _folders(work), Path(path)
    place = (wanted if wanted.is_absolute() or not folders else folders[0] / wanted).resolve()
    if not any(map(place.is_relative_to, folders)) or _is_of_the_service(work, place):
        raise InvalidError(
            "this path is in none of the folders that the service may read (cloakgp serve "
            "--tables): upload the file instead"
        )
    with work.database.reading() as session:
        owner = _owner_of(session, place)
    if owner not in ("", work.actor.name):
        with work.database.writing() as session:
            about = f"{_shown(work, place)}: another custodian has registered it"
            note_event(session, who=work.actor, what="file refused", about=about)
        raise NotFoundError("file")
    try:
        place.stat()
    except OSError:
        raise NotFoundError("file") from None
    return place


def _is_of_the_service(work: Work, place: Path) -> bool:
    """Return whether a file is one of the service's own, whose folder may lie in a shared one."""
    database = work.ledger.database
    own = [work.service.settings.uploads]
    own += [Path(database.url.database or "")] if database.is_file else []
    return any(place.is_relative_to(each.resolve()) for each in own)


def _owner_of(session: Session, place: Path) -> str:
    """Return who registered a file first, by any of its names; empty if nobody did."""
    query = select(Table.path, Table.registered_by).order_by(Table.id)
    return next((who for path, who in session.execute(query) if _is_same(path, place)), "")


def _is_same(path: str, place: Path) -> bool:
    if path == str(place):
        return True
    try:
        return place.samefile(path)
    except OSError:
        # One of them is not there.
        return False


def _folders(work: Work) -> list[Path]:
    return [folder.resolve() for folder in work.service.settings.tables]


def _shown(work: Work, place: Path) -> str:
    """Return the name of a file within its shared folder."""
    names = [place.relative_to(each) for each in _folders(work) if place.is_relative_to(each)]
    return str(names[0])
