"""Facts as a small table of HTML, for notebooks: no script, no style from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from cloakgp.utils.formatting import printable

# Colours are those of the page around it: a notebook may be dark.
HEAD = "text-align:left;vertical-align:top;font-weight:600;padding:.15em 1em .15em 0"
ALARM = "border-left:.3em solid #c0392b;padding-left:.6em"
CELL = "text-align:left;vertical-align:top;padding:.15em 1em .15em 0"
INSECURE = "INSECURE: the noise came from a fixed seed, so this is NOT PRIVATE. Do not publish."


def html_table(
    title: str,
    facts: Sequence[tuple[str, str]],
    *,
    lead: str = "",
    rows: Sequence[Sequence[str]] = (),
    insecure: bool = False,
) -> str:
    """Return facts as HTML, with a warning above where noise came from a fixed seed.

    Parameters
    ----------
    title : str
    facts : sequence of (str, str)
        What each thing is called, and what is said of it.
    lead : str
        The one sentence before them.
    rows : sequence of sequences of str
        A table below them, its heads first.
    insecure : bool

    Examples
    --------
    >>> "&lt;b&gt;" in html_table("Release", [("output", "<b>")])
    True
    """
    warning = f'<p style="{ALARM}"><strong>{INSECURE}</strong></p>' * insecure
    first = f"<p>{_text(lead)}</p>" * bool(lead)
    told = "".join(
        f'<tr><th scope="row" style="{HEAD}">{_text(label)}</th>'
        f'<td style="{CELL}">{_text(text)}</td></tr>'
        for label, text in facts
    )
    return (
        f'<div>{warning}{first}<table><caption style="{HEAD}">{_text(title)}</caption>'
        f"<tbody>{told}</tbody></table>{_below(rows)}</div>"
    )


def _below(rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    head, *body = rows
    heads = "".join(f'<th scope="col" style="{HEAD}">{_text(cell)}</th>' for cell in head)
    lines = "".join(
        "<tr>" + "".join(f'<td style="{CELL}">{_text(cell)}</td>' for cell in row) + "</tr>"
        for row in body
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"


def _text(text: str) -> str:
    return escape(printable(text))
