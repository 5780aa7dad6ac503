"""Routers of all pages, in the sizes that a service allows."""

from __future__ import annotations

from fastapi import APIRouter

from cloakgp.service.pages import (
    audits,
    budgets,
    people,
    plans,
    releases,
    requests,
    signing,
    tables,
)
from cloakgp.service.settings import Settings


def page_routers(settings: Settings) -> list[APIRouter]:
    """Return the routers of pages, for `create_app`.

    Parameters
    ----------
    settings : Settings

    Examples
    --------
    >>> from pathlib import Path
    >>> len(page_routers(Settings(ledger="people.db", data=Path("data"))))
    3
    """
    plain = APIRouter(include_in_schema=False)
    for each in (signing, budgets, tables, plans, requests, releases, audits, people):
        plain.include_router(each.router)
    sending = APIRouter(include_in_schema=False, max_body_size=settings.upload)
    sending.include_router(tables.uploads)
    predicting = APIRouter(include_in_schema=False, max_body_size=settings.predict_body)
    predicting.include_router(releases.uploads)
    return [plain, sending, predicting]
