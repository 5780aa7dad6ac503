"""Pages of audits: the ledger as a timeline with its verification, and what was done here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response

from cloakgp.service.messages import AuditView, EntryView
from cloakgp.service.operations import accounts, audits
from cloakgp.service.pages.visits import PageRoute, Sending, Visit, Visiting

router = APIRouter(route_class=PageRoute)
# Entries, and events, of a page.
SHOWN = 50
# What each kind of entry says, with its content filled in.
SENTENCES = {
    "ledger": "The ledger was begun.",
    "account": "The account {account} was opened.",
    "limit": "The limit of {account} was changed.",
    "attached": "The column {column} counts for {account}.",
    "reserved": "Room was reserved in {account}.",
    "drawing": "Noise is about to be drawn for charge {charge}.",
    "committed": "Charge {charge} is spent.",
    "failed": "Charge {charge} failed after noise was drawn: what was drawn is spent.",
    "refunded": "Charge {charge} was given back: nothing was drawn.",
    "voided": "Charge {charge} was given back by hand.",
    "imported": "An earlier release was counted for {account}.",
    "published": "The release of charge {charge} was published.",
}
Number = Annotated[int, Query(ge=0, le=2**53)]


@dataclass(frozen=True)
class Shown:
    """An entry as the timeline has it.

    Attributes
    ----------
    entry : EntryView
    sentence : str
    when, who : str
    budgets : str
        ε and δ, where it has some.
    notes : tuple of str
        Purpose and reason.
    content : str
        All of it.
    """

    entry: EntryView
    sentence: str
    when: str
    who: str
    budgets: str
    notes: tuple[str, ...]
    content: str


@router.get("/ledger", name="page: ledger")
def show_ledger(
    visit: Visiting,
    after: Number | None = None,
    account: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Show entries of the ledger, the last ones first."""
    return _ledger_page(visit, after=after, account=account, audit=None)


@router.post("/ledger", name="page: verify ledger")
def verify_ledger(sent: Sending) -> Response:
    """Check every entry, and say what was found."""
    audit = audits.verify_ledger(sent.work("verify_ledger"))
    return _ledger_page(sent, after=None, account="", audit=audit)


@router.get("/events", name="page: events")
def show_events(visit: Visiting, before: Number | None = None) -> Response:
    """Show what was done to the service, the latest first."""
    found = audits.list_events(visit.work("list_events"), before=before, most=SHOWN + 1)
    return visit.show(
        "events.html", events=found[:SHOWN], older=found[SHOWN - 1].id if found[SHOWN:] else None
    )


def _ledger_page(
    visit: Visit, *, after: int | None, account: str, audit: AuditView | None
) -> Response:
    work = visit.work("list_entries")
    last = int(work.ledger.database.head()["number"])
    start = max(0, last - SHOWN) if after is None and not account else after or 0
    found = audits.list_entries(work, after=start, most=SHOWN, account=account or None)
    return visit.show(
        "ledger.html",
        entries=[_shown(entry) for entry in reversed(found)],
        last=last,
        start=start,
        newer=found[-1].number if found and found[-1].number < last else None,
        older=max(0, start - SHOWN) if start else None,
        account=account,
        accounts=[each.name for each in accounts.list_accounts(work)],
        audit=audit,
    )


def _shown(entry: EntryView) -> Shown:
    body = entry.body
    sentence = SENTENCES.get(body["kind"], body["kind"])
    return Shown(
        entry=entry,
        sentence=sentence.format(**{"account": "", "column": "", "charge": "", **body}),
        when=str(body["when"]).replace("T", " ")[:19] + " UTC",
        who=str(body["who"]),
        budgets=_budgets(body),
        notes=tuple(str(body[name]) for name in ("purpose", "reason") if body.get(name)),
        content=json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False),
    )


def _budgets(body: dict[str, Any]) -> str:
    epsilon, delta = body.get("epsilon"), body.get("delta")
    if epsilon is None:
        return ""
    return f"ε = {epsilon}" + ("" if delta is None else f", δ = {delta}")
