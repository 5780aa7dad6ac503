"""Audits: the ledger's entries, their verification, and what was done to the service."""

from __future__ import annotations

from itertools import islice
from typing import Literal

from sqlalchemy import select

from cloakgp.ledger.exports import entries_as_csv, entries_as_json
from cloakgp.service.access import operation
from cloakgp.service.context import Work
from cloakgp.service.messages import AuditView, EntryView, EventView, moment
from cloakgp.service.models import Event


@operation
def list_entries(
    work: Work, *, after: int = 0, most: int = 100, account: str | None = None
) -> list[EntryView]:
    """Return entries of the ledger in order.

    Parameters
    ----------
    work : Work
    after : int
        The number that all of them are beyond.
    most : int
    account : str, optional
    """
    entries = work.ledger.entries(account=account, after=after)
    return [
        EntryView(number=entry.number, body=entry.content, digest=entry.digest)
        for entry in islice(entries, most)
    ]


@operation
def export_entries(work: Work, *, form: Literal["json", "csv"], account: str | None = None) -> str:
    """Return all entries with their digests, for whoever checks them elsewhere."""
    export = entries_as_json if form == "json" else entries_as_csv
    return export(work.ledger, account=account)


@operation
def verify_ledger(work: Work) -> AuditView:
    """Check every entry, all that follows from them, and the anchor."""
    found = work.ledger.verify()
    return AuditView(
        sound=found.sound,
        entries=found.entries,
        digest=found.digest,
        findings=list(found.findings),
    )


@operation
def list_events(work: Work, *, before: int | None = None, most: int = 100) -> list[EventView]:
    """Return what was done to the service, the latest first."""
    with work.database.reading() as session:
        query = select(Event).order_by(Event.id.desc()).limit(most)
        if before is not None:
            query = query.where(Event.id < before)
        return [
            EventView(
                id=event.id,
                when=moment(event.created),
                who=event.who,
                what=event.what,
                about=event.about,
            )
            for event in session.scalars(query)
        ]
