"""Layout of the report: items joined with results, as text that pages and documents set alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from experiments.reproduction.items import (
    Cell,
    Computed,
    Item,
    Missing,
    Row,
    Said,
    Source,
    Unsound,
    cells_of,
)
from experiments.reproduction.results import Quantity, Results

TITLE = "Both papers, reproduced"
COLUMNS = ("what", "published", "reproduced", "authors' code", "cloakgp")
WAITING = "not computed yet (run --only {job})"
# Shares of a published figure within which a reproduced one counts as near, and as not far.
NEAR, FAR = 0.05, 0.2
# Rows of a table that is counted apart.
LARGE = 40
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Shown:
    """One line of a cell.

    Attributes
    ----------
    figure : str
        With what stands after ±; empty where there are words alone.
    label : str
        Which way it is of.
    note : str
        Standard error and draws.
    words : str
    kind : {"figure", "words", "missing", "waiting"}
    """

    figure: str = ""
    label: str = ""
    note: str = ""
    words: str = ""
    kind: str = "figure"


@dataclass(frozen=True)
class ShownRow:
    """A row of an item's table, every cell as lines."""

    what: str
    published: str
    reproduced: tuple[Shown, ...]
    authors: str
    ours: tuple[Shown, ...]
    remark: str


@dataclass(frozen=True)
class ShownItem:
    """An item with its rows, and where its pictures lie.

    Attributes
    ----------
    anchor : str
        A name for links.
    item : Item
    rows : tuple of ShownRow
    pictures : tuple of (str, Path)
        What each shows, and its file.
    computed : tuple of str
        Settings of the jobs, and what made their results, in words.
    """

    anchor: str
    item: Item
    rows: tuple[ShownRow, ...]
    pictures: tuple[tuple[str, Path], ...]
    computed: tuple[str, ...]


@dataclass(frozen=True)
class Count:
    """How much of a source is reproduced.

    Attributes
    ----------
    name : str
    rows : int
    published : int
        Rows with a printed figure.
    near, not_far, far : int
        Of those, reproduced within `NEAR`, within `FAR`, and beyond.
    without : int
        Of those, neither reproduced nor waiting: the row says why.
    waiting : int
        Not computed yet.
    """

    name: str
    rows: int
    published: int
    near: int
    not_far: int
    far: int
    without: int
    waiting: int


def shown_row(row: Row, results: Results) -> ShownRow:
    """Join a row with what is kept."""
    return ShownRow(
        what=row.what,
        published=row.published,
        reproduced=shown_cell(row.reproduced, results),
        authors=row.authors,
        ours=shown_cell(row.ours, results),
        remark=row.remark,
    )


def shown_cell(cell: Cell, results: Results) -> tuple[Shown, ...]:
    """Return the lines of a cell.

    Examples
    --------
    >>> shown_cell(Missing("no data"), Results())
    (Shown(figure='', label='', note='', words='no data', kind='missing'),)
    """
    if isinstance(cell, Missing):
        return (Shown(words=cell.why, kind="missing"),)
    if isinstance(cell, Said):
        return (Shown(words=cell.text, kind="words"),)
    return tuple(_shown(one, results) for one in cells_of(cell))


def told(quantity: Quantity, wanted: Computed) -> tuple[str, str]:
    """Return a quantity as a figure with its spread, and its standard error and draws.

    Examples
    --------
    >>> told(Quantity(mean=0.5, error=0.01, draws=9, spread=0.1), Computed("a:b", ".0f", "", 100.0))
    ('50 ± 10', 'se 1, n = 9')
    """
    figure = f"{wanted.scale * quantity.mean:{wanted.form}}"
    if quantity.spread is not None:
        figure += f" ± {wanted.scale * quantity.spread:{wanted.form}}"
    if not quantity.draws:
        return figure, ""
    draws = f"n = {quantity.draws}"
    if quantity.error is None:
        return figure, draws
    return figure, f"se {wanted.scale * quantity.error:.2g}, {draws}"


def _shown(wanted: Computed, results: Results) -> Shown:
    quantity = results.quantity(wanted)
    if quantity is None:
        words = WAITING.format(job=wanted.job)
        return Shown(label=wanted.label, words=words, kind="waiting")
    figure, note = told(quantity, wanted)
    return Shown(figure=figure, label=wanted.label, note=note)


def shown_item(item: Item, results: Results, *, anchor: str) -> ShownItem:
    """Join an item with what is kept."""
    return ShownItem(
        anchor=anchor,
        item=item,
        rows=tuple(shown_row(row, results) for row in item.rows),
        pictures=tuple(_pictures(item, results)),
        computed=tuple(_computed(item, results)),
    )


def shown_items(source: Source, results: Results) -> tuple[ShownItem, ...]:
    """Join the items of a source with what is kept."""
    slug = re.sub(r"[^a-z0-9]+", "-", source.name.lower())
    return tuple(
        shown_item(item, results, anchor=f"{slug}-{number}")
        for number, item in enumerate(source.items, start=1)
    )


def jobs_of(item: Item) -> list[str]:
    """Return the jobs that an item takes figures and pictures from, in their order."""
    cells = (
        one for row in item.rows for cell in (row.reproduced, row.ours) for one in cells_of(cell)
    )
    names = [one.job for one in cells] + [name.partition(":")[0] for name in item.pictures]
    return list(dict.fromkeys(names))


def _pictures(item: Item, results: Results) -> Iterable[tuple[str, Path]]:
    for name in item.pictures:
        job, _, picture = name.partition(":")
        path = results.picture(f"{job}-{picture}.webp")
        if path.exists():
            yield f"{item.place}: {item.title}", path


def _computed(item: Item, results: Results) -> Iterable[str]:
    for name in jobs_of(item):
        kept = results.find(name)
        if kept is not None:
            made = f"{kept.seconds:.0f} s at {kept.commit}, {kept.date}"
            yield f"{name}: {kept.settings} ({made})"


def printed_number(published: str) -> float | None:
    """Return the figure that a printed text begins with, None if it is words.

    Examples
    --------
    >>> printed_number("13.3 ± 3.2"), printed_number("picture"), printed_number("above 70")
    (13.3, None, None)
    """
    found = NUMBER.match(published)
    return None if found is None else float(found.group())


def counts(source: Source, results: Results) -> list[Count]:
    """Count a source, its large tables apart, which would hide all else."""
    large = [item for item in source.items if len(item.rows) >= LARGE]
    rest = replace(source, items=tuple(item for item in source.items if item not in large))
    return [
        count(rest, results),
        *(count(Source(f"{source.name}, {item.place}", "", (item,)), results) for item in large),
    ]


def count(source: Source, results: Results) -> Count:
    """Count what of a source is reproduced, and how nearly."""
    rows = [row for item in source.items for row in item.rows]
    sorts = [_sort_of(row, results) for row in rows]
    numbers = {sort: sorts.count(sort) for sort in ("near", "not far", "far", "without", "waiting")}
    return Count(
        name=source.name,
        rows=len(rows),
        published=sum(numbers.values()),
        near=numbers["near"],
        not_far=numbers["not far"],
        far=numbers["far"],
        without=numbers["without"],
        waiting=numbers["waiting"],
    )


def _sort_of(row: Row, results: Results) -> str:
    printed = printed_number(row.published)
    if printed is None:
        return "words"
    computed = cells_of(row.reproduced)
    if not computed:
        return "without"
    quantity = results.quantity(computed[0])
    if quantity is None:
        return "waiting"
    apart = abs(computed[0].scale * quantity.mean - printed)
    if apart <= max(NEAR * abs(printed), 1e-9):
        return "near"
    return "not far" if apart <= FAR * abs(printed) else "far"


def total(counts: Sequence[Count]) -> Count:
    """Add counts up."""
    sums = {
        name: sum(getattr(one, name) for one in counts)
        for name in ("rows", "published", "near", "not_far", "far", "without", "waiting")
    }
    return Count(name="all", **sums)


def measured(unsound: Unsound, results: Results) -> tuple[Shown, ...]:
    """Return the figures that show that something does not hold."""
    return tuple(_shown(one, results) for one in unsound.measured)


def summary(results: Results) -> str:
    """Say in a sentence what the results are of."""
    kept = [one for one in map(results.find, results.names) if one is not None]
    if not kept:
        return "Nothing is computed yet."
    minutes = sum(one.seconds for one in kept) / 60
    days = sorted({one.date for one in kept})
    between = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    commits = sorted({one.commit for one in kept})
    return (
        f"{len(kept)} jobs took {minutes:.0f} minutes of one core in all, and take some "
        f"{minutes / 2:.0f} on two; computed on {between} at "
        f"{', '.join(commits)} with {kept[0].versions}."
    )
