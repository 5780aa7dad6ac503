"""Rendering of pages: templates, filters of numbers, and the policy for browsers."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment
from markupsafe import Markup, escape

from cloakgp.custodians.plan import digits_to_compare
from cloakgp.pages.rendering import environment_of
from cloakgp.service.access import Actor
from cloakgp.utils.formatting import bytes_in_words, ceiling, percent

# Nothing from other sites, no inline script or style, and no form or request to other sites.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
STATIC = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
# Folders of pages that belong to another entry of the menu.
ELSEWHERE = {"/tables": "/budgets", "/add-table": "/budgets", "/joint-requests": "/requests"}
# The menu in its order: address, label, and operation that a reader must be allowed.
MENU = (
    ("/budgets", "Budgets", "list_accounts"),
    ("/requests", "Requests", "list_requests"),
    ("/releases", "Releases", "list_releases"),
    ("/ledger", "Ledger", "list_entries"),
    ("/events", "Events", "list_events"),
    ("/people", "People", "list_people"),
    ("/help", "Help", "show_me"),
)


def html(
    template: str,
    *,
    actor: Actor | None,
    path: str,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **values: Any,
) -> HTMLResponse:
    """Return a page, with its policy.

    Parameters
    ----------
    template : str
    actor : Actor or None
        Its reader.
    path : str
        Its address.
    status : int
    headers : mapping, optional
    **values
        Values of the template.
    """
    first = f"/{path.split('/')[1]}"
    menu = [
        (address, name, address == ELSEWHERE.get(first, first))
        for address, name, operation in MENU
        if actor is not None and actor.may(operation)
    ]
    content = (
        _environment()
        .get_template(template)
        .render(
            actor=actor,
            may=_nothing if actor is None else actor.may,
            form_token="" if actor is None else actor.form_token,
            menu=menu,
            **values,
        )
    )
    return HTMLResponse(
        content, status_code=status, headers={"Content-Security-Policy": POLICY, **(headers or {})}
    )


def static_content(name: str) -> bytes:
    """Return a static file.

    Parameters
    ----------
    name : str
        In `STATIC`.
    """
    return files("cloakgp.service.pages").joinpath("static", name).read_bytes()


@cache
def static_address(name: str) -> str:
    """Return the address of a static file, which changes with its content.

    Examples
    --------
    >>> static_address("page.css").partition("?")[0]
    '/static/page.css'
    """
    return f"/static/{name}?{hashlib.sha256(static_content(name)).hexdigest()[:12]}"


def less(value: float) -> str:
    """Return a number with three digits, rounded down, for the room of a limit.

    Examples
    --------
    >>> less(0.99999), less(2.0), less(0.0)
    ('0.999', '2', '0')
    """
    if value <= 0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    # The tolerance keeps a number that is exact except its last binary digits.
    return f"{math.floor(value / step * (1 + 1e-12)) * step:.3g}"


def _environment() -> Environment:
    made = environment_of("cloakgp.service.pages")
    made.globals["static"] = static_address
    made.filters |= {
        "more": ceiling,
        "less": less,
        "percent": percent,
        "digits": digits_to_compare,
        "bytes": bytes_in_words,
        "number": lambda value: f"{value:g}",
        "exact": _exact,
        "when": _when,
        "day": lambda moment: f"{moment:%Y-%m-%d}",
    }
    # A message may be one about fields of a form: `cloakgp.service.pages.base.Problem`.
    made.filters["wrong_fields"] = _wrong_fields
    return made


def _when(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _exact(text: object) -> Markup:
    """Return a value that a form sends back unchanged, with line ends and invisible signs."""
    return escape(str(text))


def _wrong_fields(problem: object) -> Mapping[str, str]:
    found: Mapping[str, str] = getattr(problem, "fields", {})
    return found


def _nothing(_: str) -> bool:
    return False
