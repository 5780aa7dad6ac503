"""Kept results in pages: tables and figures that a command wrote, and no hand.

What a command prints can be kept as ``experiments/kept/NAME.json`` (its ``--keep NAME``), with its
settings and the commit that ran. A page shows a kept table between two comments on lines of their
own, and a single figure before a comment that names its cell:

    <!-- begin kept public-help 2 -->
    (the second table that was printed; 2-4: the second to the fourth)
    <!-- end kept public-help 2 -->

    errors fall to .83<!-- kept public-help 2: right, ε = 0.3 --> of those without

Or before one that names a quantity of the report on the papers (`experiments.reproduction`), its
error with ±, and by how much it is multiplied, if it is; the page rounds it:

    | ours | 8.70<!-- reproduced kung-1d-standard: trace --> |
    accuracy of 82.9<!-- reproduced digits: bayes × 100 --> per cent

``python -m experiments pages`` writes tables anew and names figures that differ; the tests do the
same, so that a page that is behind its results fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from experiments.commits import commit_of_sources
from experiments.keeping import write_whole
from experiments.reproduction.items import Computed
from experiments.reproduction.results import Results
from experiments.written import Plain, as_json, plainly

ROOT = Path(__file__).parents[1]
KEPT = Path(__file__).parent / "kept"
BLOCK = re.compile(
    r"(<!-- begin kept (?P<name>[\w-]+) (?P<first>\d+)(?P<upto>-(?P<last>\d+))? -->\n).*?"
    r"(?P<end><!-- end kept (?P=name) (?P=first)(?P=upto)? -->)",
    re.S,
)
FIGURE = re.compile(
    r"(?P<figure>[−+-]?\d*[.,]?\d+)\s?%?<!-- kept (?P<name>[\w-]+) (?P<number>\d+): "
    r"(?P<row>[^>]+?), (?P<column>[^,>]+?) -->"
)
REPRODUCED = re.compile(
    r"(?P<figure>[−+-]?\d*[.,]?\d+)\s?%?<!-- reproduced (?P<job>[\w.-]+): "
    r"(?P<quantity>[^>×±]+?)(?P<error> ±)?(?: × (?P<times>\d+))? -->"
)
NUMBER = re.compile(r"[−+-]?\d[\d,]*\.?\d*|[−+-]?\.\d+")


class StaleFigureError(ValueError):
    """A page says something else than what is kept; names all such places."""


@dataclass(frozen=True)
class Kept:
    """What a command printed.

    Attributes
    ----------
    name : str
    settings : str
        Of the command.
    commit : str
        That ran.
    tables : tuple of Plain
        In the order in which they were printed.
    """

    name: str
    settings: str
    commit: str
    tables: tuple[Plain, ...]

    @classmethod
    def read(cls, name: str, *, folder: Path = KEPT) -> Kept:
        """Read a kept result.

        Raises
        ------
        StaleFigureError
            If nothing is kept under this name.
        """
        path = folder / f"{name}.json"
        if not path.exists():
            raise StaleFigureError(f"nothing is kept as {name}: {path} is not there")
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            name=name,
            settings=found["settings"],
            commit=found["commit"],
            tables=tuple(Plain(**one) for one in found["shown"] if not isinstance(one, str)),
        )

    def table(self, number: int) -> Plain:
        """Return the table of a number, from 1.

        Raises
        ------
        StaleFigureError
            If there is none.
        """
        if not 1 <= number <= len(self.tables):
            raise StaleFigureError(f"{self.name} has {len(self.tables)} tables, and no {number}")
        return self.tables[number - 1]

    def cell(self, number: int, *, row: str, column: str) -> str:
        """Return a cell, by its row's first cell, or several with semicolons, and its column.

        Raises
        ------
        StaleFigureError
            If there is none.
        """
        table = self.table(number)
        heads = [part.strip() for part in row.split(";")]
        for cells in filled_down(table.rows, heads=len(heads)):
            if cells[: len(heads)] == heads and column in table.columns:
                return cells[table.columns.index(column)]
        raise StaleFigureError(f"{self.name} {number} has no cell {row}, {column}")


def keep_tables(
    shown: Iterable[Table | str], *, name: str, settings: str, folder: Path = KEPT
) -> Path:
    """Keep what a command printed, under a name by which pages show it; return the file.

    Parameters
    ----------
    shown : iterable of Table or str
    name : str
    settings : str
        Of the command.
    folder : Path
    """
    path = folder / f"{name}.json"
    write_whole(path, as_json(plainly(shown), settings=settings, commit=commit_of_sources()))
    return path


def filled_down(rows: Iterable[list[str]], *, heads: int) -> Iterator[list[str]]:
    """Yield rows whose empty heads are those above: a group is named once.

    Examples
    --------
    >>> list(filled_down([["a", "x", "1"], ["", "y", "2"]], heads=2))
    [['a', 'x', '1'], ['a', 'y', '2']]
    """
    above: list[str] = []
    for row in rows:
        filled = [
            cell or (above[place] if place < len(above) and place < heads else cell)
            for place, cell in enumerate(row)
        ]
        above = filled[:heads]
        yield filled


def numbers_in(text: str) -> set[float]:
    """Return the numbers in a text, however they are written.

    Examples
    --------
    >>> sorted(numbers_in("0.83, 1.04 (−.5)")), numbers_in("1,200")
    ([-0.5, 0.83, 1.04], {1200.0})
    """
    found = (one.rstrip(",").replace("−", "-") for one in NUMBER.findall(text))
    return {float(re.sub(r",(?=\d{3})", "", one).replace(",", "")) for one in found}


def with_kept_tables(page: str, *, folder: Path = KEPT) -> str:
    """Return a page with every kept table as it is kept.

    Raises
    ------
    StaleFigureError
        If a page names what is not kept.
    """

    def written(match: re.Match[str]) -> str:
        kept = Kept.read(match["name"], folder=folder)
        first, last = int(match["first"]), int(match["last"] or match["first"])
        numbers = range(first, last + 1)
        shown = "\n\n".join(kept.table(number).markdown() for number in numbers)
        return f"{match[1]}{shown}\n{match['end']}"

    return BLOCK.sub(written, page)


def stale_figures(page: str, *, folder: Path = KEPT) -> list[str]:
    """Return what is said of figures in sentences that are not those of the cell they name."""
    found = []
    for match in FIGURE.finditer(page):
        kept = Kept.read(match["name"], folder=folder)
        cell = kept.cell(int(match["number"]), row=match["row"], column=match["column"])
        if not numbers_in(match["figure"]) <= numbers_in(cell):
            found.append(f"{match['figure']} for {cell!r} ({match['name']} {match['row']})")
    return found


def stale_reproductions(page: str, *, results: Results | None = None) -> list[str]:
    """Return what is said of figures in sentences that are not those of the report on the papers.

    Parameters
    ----------
    page : str
    results : Results, optional
        Those of the report, if not given.

    Raises
    ------
    StaleFigureError
        If the report has no such quantity.
    """
    found = []
    for match in REPRODUCED.finditer(page):
        named = f"{match['job']}:{match['quantity']}"
        quantity = (results or Results()).quantity(Computed(named, "", ""))
        value = quantity and (quantity.error if match["error"] else quantity.mean)
        if value is None:
            raise StaleFigureError(f"the report has no {named}")
        figure = match["figure"].replace("−", "-")
        digits = len(figure.partition(".")[2])
        if float(figure) != round(value * float(match["times"] or 1), digits):
            found.append(f"{match['figure']} for {value:.6g} ({named})")
    return found


def pages(root: Path = ROOT) -> Iterator[Path]:
    """Yield the pages that may show kept results."""
    yield root / "README.md"
    yield from sorted((root / "docs").rglob("*.md"))


def check_pages(root: Path = ROOT, *, folder: Path = KEPT, write: bool = False) -> None:
    """Compare all pages with what is kept.

    Parameters
    ----------
    root : Path
    folder : Path
    write : bool
        Whether tables that differ are written anew.

    Raises
    ------
    StaleFigureError
        If tables differ and are not written, or figures in sentences do.
    """
    stale = []
    for path in pages(root):
        text = path.read_text(encoding="utf-8")
        fresh = with_kept_tables(text, folder=folder)
        if fresh != text and write:
            path.write_text(fresh, encoding="utf-8")
        elif fresh != text:
            stale.append(f"{path.relative_to(root)}: tables are behind what is kept")
        behind = (*stale_figures(fresh, folder=folder), *stale_reproductions(fresh))
        stale += [f"{path.relative_to(root)}: {one}" for one in behind]
    if stale:
        raise StaleFigureError("\n".join(stale))
