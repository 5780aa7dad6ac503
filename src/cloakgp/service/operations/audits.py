"""Audits: the ledger's entries, their verification, and the service's audit trail."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Literal

from sqlalchemy import select

from cloakgp.ledger.exports import entries_as_csv, entries_as_json, entries_as_lines
from cloakgp.service.access import operation
from cloakgp.service.context import Work
from cloakgp.service.database import ServiceDatabase, newest
from cloakgp.service.messages import After, AuditView, Before, EntryView, EventView, Name
from cloakgp.service.models import Event

ExportForm = Literal["json", "csv", "lines"]
# Events that an export reads at a time.
CHUNK = 1000


@operation
def list_entries(
    work: Work, *, after: After = 0, most: int = 100, account: Name | None = None
) -> list[EntryView]:
    """Return entries of the ledger in order.

    Parameters
    ----------
    work : Work
    after : int
        The number that all of them come after.
    most : int
    account : str, optional
    """
    entries = work.ledger.entries(account=account, after=after)
    names = work.ledger.names()
    return [
        EntryView(
            number=entry.number,
            who=names.get(entry.content["who"], entry.content["who"]),
            body=entry.content,
            digest=entry.digest,
            signature=entry.signature,
        )
        for entry in islice(entries, most)
    ]


@operation
def export_entries(
    work: Work, *, form: ExportForm, account: str | None = None, after: int = 0
) -> str:
    """Return all entries with their digests, for checks elsewhere.

    Entries name people by marks, so that names can be erased.

    Parameters
    ----------
    work : Work
    form : {"json", "csv", "lines"}
    account : str, optional
    after : int
        Of lines, the number that all of them come after.
    """
    if form == "lines":
        return "".join(entries_as_lines(work.ledger, account=account, after=after))
    export = entries_as_json if form == "json" else entries_as_csv
    return export(work.ledger, account=account)


@operation
def verify_ledger(work: Work) -> AuditView:
    """Check every entry, the tables that follow from them, and the anchor."""
    return AuditView.of(work.ledger.verify())


@operation
def list_events(work: Work, *, before: Before = None, most: int = 100) -> list[EventView]:
    """Return the events of the audit trail, the latest first."""
    with work.database.reading() as session:
        return [_view(event) for event in session.scalars(newest(Event, before=before, most=most))]


@operation
def export_events(work: Work, *, after: int = 0) -> Iterator[str]:
    """Yield the audit trail from its beginning, a line of JSON for each event.

    Parameters
    ----------
    work : Work
    after : int
        The number that all of them come after.
    """
    return events_as_lines(work.database, after=after)


def events_as_lines(database: ServiceDatabase, *, after: int = 0) -> Iterator[str]:
    """Yield events as lines of JSON, for the host of the service.

    Parameters
    ----------
    database : ServiceDatabase
    after : int
        The number that all of them come after.
    """
    last = after
    while True:
        with database.reading() as session:
            query = select(Event).where(Event.id > last).order_by(Event.id).limit(CHUNK)
            events = [_view(event) for event in session.scalars(query)]
        if not events:
            return
        yield from (event.model_dump_json() + "\n" for event in events)
        last = events[-1].id


def _view(event: Event) -> EventView:
    return EventView.of(
        event,
        when=event.created,
        who=event.who if event.actor is None else event.actor.name,
        person="" if event.person is None else event.person.name,
    )
