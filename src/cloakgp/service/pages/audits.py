"""Pages of audits: the ledger as a timeline, its verification, and the audit trail."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response

from cloakgp.service.messages import After, AuditView, Before, EntryView
from cloakgp.service.operations import accounts, audits
from cloakgp.service.pages.base import SHOWN, Form, Page, PageRequest, PageRoute

router = APIRouter(route_class=PageRoute)
# The sentence of each kind of entry, with its content filled in.
SENTENCES = {
    "ledger": "The ledger was begun.",
    "account": "The account {account} was opened.",
    "limit": "The limit of {account} was changed.",
    "attached": "The column {column} was attached to {account}.",
    "reserved": "Room was reserved in {account}.",
    "drawing": "Noise is about to be drawn for charge {charge}.",
    "committed": "Charge {charge} is spent.",
    "failed": "Charge {charge} failed after noise was drawn: the drawn noise is spent.",
    "refunded": "Charge {charge} was given back: nothing was drawn.",
    "voided": "Charge {charge} was given back by hand.",
    "imported": "An earlier release was counted for {account}.",
    "published": "The release of charge {charge} was published.",
    "noted": "Answers that follow from those of charge {charge} were noted.",
    "recovering": "An older copy of the ledger was put back.",
    "recovered": "All charges missing in the older copy are counted.",
    "rebuilt": "Tables were made anew from the entries.",
    "rotated": "Another key signs from now on.",
    "erased": "Names of persons were erased.",
}


@dataclass(frozen=True)
class Shown:
    """An entry of the timeline.

    Attributes
    ----------
    entry : EntryView
    sentence : str
    when, who : str
    budgets : str
        ε and δ, where it has them.
    notes : tuple of str
        Its purpose and its reason.
    content : str
        Its body as JSON.
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
    page: Page,
    after: After | None = None,
    account: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Show entries of the ledger, the last ones first."""
    return _ledger_page(page, after=after, account=account, audit=None)


@router.post("/ledger", name="page: verify ledger")
def verify_ledger(form: Form) -> Response:
    """Check every entry, and show the result."""
    audit = audits.verify_ledger(form.work("verify_ledger"))
    return _ledger_page(form, after=None, account="", audit=audit)


@router.get("/events", name="page: events")
def show_events(page: Page, before: Before = None) -> Response:
    """Show the audit trail, the latest events first."""
    events = audits.list_events(page.work("list_events"), before=before, most=SHOWN + 1)
    shown, last = page.page_of(events)
    return page.show("events.html", events=shown, older=last and last.id)


def _ledger_page(
    page: PageRequest, *, after: int | None, account: str, audit: AuditView | None
) -> Response:
    work = page.work("list_entries")
    last = int(work.ledger.database.head()["number"])
    start = max(0, last - SHOWN) if after is None and not account else after or 0
    entries = audits.list_entries(work, after=start, most=SHOWN, account=account or None)
    return page.show(
        "ledger.html",
        entries=[_shown(entry) for entry in reversed(entries)],
        last=last,
        start=start,
        newer=entries[-1].number if entries and entries[-1].number < last else None,
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
        who=entry.who,
        budgets=_budgets(body),
        notes=tuple(str(body[name]) for name in ("purpose", "reason") if body.get(name)),
        content=json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False),
    )


def _budgets(body: dict[str, Any]) -> str:
    epsilon, delta = body.get("epsilon"), body.get("delta")
    if epsilon is None:
        return ""
    return f"ε = {epsilon}" + ("" if delta is None else f", δ = {delta}")
