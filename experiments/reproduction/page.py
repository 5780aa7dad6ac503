"""The report as one page of HTML, and in pieces for the documentation."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from experiments.reproduction import layout
from experiments.reproduction.items import Source
from experiments.reproduction.results import Results
from experiments.reproduction.sources import SOURCES, UNSOUND

# Nothing is fetched from anywhere, and nothing runs.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def introduction(results: Results) -> tuple[str, ...]:
    """Return what is said before anything else."""
    return (
        "Tables, figures and quoted numbers of both papers, the supplement, the talk and the "
        "note on the Laplace mechanism, in their order. Published: as printed. Reproduced: the "
        "papers' mechanism with the papers' settings, run here, with the noise at the optimum "
        "that their descent looks for. Authors' code: their package dp4gp, run for this project, "
        "where it was. cloakgp: this package at the same (ε, δ).",
        "What stands after ± is a standard deviation over folds, or over releases where the "
        "settings say so. n counts draws: of the noise, of rows, or of both, as the settings of "
        "each item say; standard errors (se) are over these, and are told from five on. Figures "
        "without n are computed exactly, nothing being drawn. In the count below, a row is near "
        "if its first reproduced figure is.",
        layout.summary(results),
    )


def page_html(results: Results) -> str:
    """Return the whole report as one page that needs nothing else."""
    return environment().get_template("page.html").render(**everything(results), source_of=embedded)


def everything(results: Results) -> dict[str, Any]:
    """Return what templates fill in."""
    counts = [one for source in SOURCES for one in layout.counts(source, results)]
    return {
        "title": layout.TITLE,
        "introduction": introduction(results),
        "counts": [*counts, layout.total(counts)],
        "near": f"{100 * layout.NEAR:g}",
        "far": f"{100 * layout.FAR:g}",
        "columns": layout.COLUMNS,
        "unsound": [(one, layout.measured(one, results)) for one in UNSOUND],
        "sources": [(source, layout.shown_items(source, results)) for source in SOURCES],
        "policy": POLICY,
        "css": Markup(css()),
    }


def css() -> str:
    """Return the style of tables and pictures."""
    text, _, _ = environment().loader.get_source(environment(), "report.css")  # type: ignore[union-attr]
    return text


def embedded(path: Path) -> str:
    """Return a picture as data."""
    content = base64.b64encode(path.read_bytes()).decode("ascii")
    return f"data:image/webp;base64,{content}"


def pieces(
    results: Results, *, source_of: Callable[[Path], str] = embedded
) -> dict[str, str | list[tuple[Source, list[tuple[str, str]]]]]:
    """Return the parts of the page as HTML: the count, what does not hold, and every item.

    Parameters
    ----------
    results : Results
    source_of : callable
        From the file of a picture to its address.
    """
    filled = everything(results)
    template = environment().get_template("parts.html")
    parts: Any = template.make_module(filled)
    return {
        "counted": str(parts.counted(filled["counts"])),
        "unsound": str(parts.unsound(filled["unsound"])),
        "sources": [
            (
                source,
                [
                    (f"{shown.item.place}: {shown.item.title}", str(parts.item(shown, source_of)))
                    for shown in items
                ],
            )
            for source, items in filled["sources"]
        ],
    }


@cache
def environment() -> Environment:
    """Return how templates are filled in: everything is escaped."""
    return Environment(
        loader=PackageLoader("experiments.reproduction"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
