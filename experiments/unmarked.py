"""Figures without a source: decimal figures in pages that no kept result stands behind.

A decimal figure in a page is taken for a measurement, and needs a mark that names its result
(`experiments.pages`), unless it is one of `NO_MEASUREMENT`: for a reason that holds for all figures
of the kind, on every page. Whole numbers are not looked for: most of them count or name things.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from experiments.pages import BLOCK, FIGURE, REPRODUCED, ROOT, StaleFigureError, pages

NUMBER = r"\d*[.,]?\d+"
# A comma alone may come before a measurement: "at ε = 1, .83".
LIST = rf"{NUMBER}(?:(?:,\s+{NUMBER})*,?\s+(?:to|and|or)\s+{NUMBER})?"

NO_MEASUREMENT: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        # Tests run them, with what they show (tests/test_docs.py, tests/test_commands.py).
        "programs and commands": re.compile(r"^ *```.*?^ *```", re.S | re.M),
        # Typed, by users or in files.
        "names and values in code": re.compile(r"`[^`]*`"),
        # Compared with what is kept (`experiments.pages`).
        "kept tables": BLOCK,
        "kept figures": FIGURE,
        "figures of the report": REPRODUCED,
        "comments": re.compile(r"<!--.*?-->", re.S),
        "addresses": re.compile(r"\]\([^)]*\)"),
        # Chosen beforehand.
        "budgets": re.compile(r"\(\d*\.?\d+, (?:\d*\.?\d+(?:e-\d+)?|10[⁻⁰-⁹]+)\)"),
        "parameters": re.compile(
            rf"(?:\b[A-Za-z] [=<>≤≥]|[εδμλℓσβ](?: [=<>≤≥]| is| of| from)?|\bquantiles?) {LIST}"
        ),
        "angles": re.compile(rf"{NUMBER}°"),
        # Printed by a paper, and quoted in the report on the papers.
        "published": re.compile(r"^ *\| published[^\n]*|\(published:[^)]*\)", re.M),
        "places in a text": re.compile(
            rf"\b(?:section|theorem|corollary|definition|equation)s? {LIST}", re.I
        ),
        # Of this package (which is 0.x), of a format, of others.
        "versions": re.compile(
            r"\b(?:Python|OpenDP|PyTorch|format) \d+\.\d+|\b(?:[Uu]ntil|[Ff]rom) 1\.0\b"
            r"|\b\d+\.\d+\.\d+\b"
        ),
        # A factor of a symbol or of a root: a formula.
        "formulas": re.compile(rf"{NUMBER}\s?[√δεσμℓNDRK]\b"),
    }
)
# Pages that are made of docstrings and examples when the site is built.
MADE = {"api", "auto_examples", "_templates"}
DECIMAL = re.compile(r"(?<![\w.,⁻])[−+-]?\d*\.\d+")


def check_marks(root: Path = ROOT) -> None:
    """Look for figures without a source on all pages.

    Parameters
    ----------
    root : Path

    Raises
    ------
    StaleFigureError
        If there are such figures; names all of them.
    """
    written = (root / "docs").rglob("*.rst")
    others = [path for path in sorted(written) if not MADE & {*path.parts}]
    found = []
    for path in (*pages(root), *others):
        name = path.relative_to(root).as_posix()
        figures = unmarked_figures(path.read_text(encoding="utf-8"))
        found += [f"{name}:{line}: {figure} has no source" for line, figure in figures]
    if found:
        raise StaleFigureError("\n".join(found))


def unmarked_figures(page: str) -> list[tuple[int, str]]:
    r"""Return the decimal figures of a page that need a mark and have none, each with its line.

    Examples
    --------
    >>> unmarked_figures("At ε = 0.3 errors\nare .83, with `gap=0.1` and Python 3.11.")
    [(2, '.83')]
    >>> unmarked_figures("At ε = 0.1, 0.3 and 1, .83 at δ = 0.001, 57.7 %")
    [(1, '.83'), (1, '57.7')]
    >>> unmarked_figures(".83<!-- kept public-help 2: right, ε = 0.3 -->")
    []
    """
    for pattern in NO_MEASUREMENT.values():
        page = pattern.sub(_blank, page)
    return [
        (number, figure)
        for number, line in enumerate(page.splitlines(), 1)
        for figure in DECIMAL.findall(line)
    ]


def _blank(match: re.Match[str]) -> str:
    """Return as many lines as were matched, so that those after it keep their numbers."""
    return " " + "\n" * match[0].count("\n")
