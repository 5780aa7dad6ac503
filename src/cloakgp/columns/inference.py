"""Inference of a schema from public columns: a proposal, to be edited."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.columns.base import Column
from cloakgp.columns.categories import MOST_LEVELS, Category, OrderedCategory
from cloakgp.columns.cells import Cells, cells_of
from cloakgp.columns.dates import COMPACT, Date, forms_of, with_year_first
from cloakgp.columns.identifiers import Identifier
from cloakgp.columns.notation import (
    PLAIN,
    Notation,
    are_choices,
    choose,
    evidence_of,
    fitting,
    may_be_choices,
    texts_alone,
)
from cloakgp.columns.numbers import Boolean, Decimal, Number
from cloakgp.columns.places import Place
from cloakgp.columns.schema import Schema, check_sources
from cloakgp.columns.vectors import Vector
from cloakgp.privacy.entries import EMPTY

# What share of cells must be numbers, or dates, for the others to be mistakes.
MOSTLY = 0.9
# But words, and text that stands in several cells, are what somebody meant in a column of so few
# different ones: of the grades 9, 10, 11, 12 and other, the last is one; 1O is a mistake, and so is
# a mark such as ?.
FEW_LEVELS = 20
WORD = re.compile(r"[^\W\d_]{2,}([ '-][^\W\d_]+)*")
# Text with more different cells than this share of rows names rows.
NAMING = 0.5
# Of rows, for text to be told to name them.
FEW_ROWS = 20
# Of different cells of text that decide whether they are dates.
SAMPLE = 200
# Of different whole numbers like 20260131, to be told from others: of eight digits, one in thirty
# is a date by chance.
FEW_DATES = 5
COMPACT_DATE = re.compile(r"(1[89]|20)[0-9]{6}")

# Text that says what a typed column of truths says. Other tools write one and zero for them.
TRUE, FALSE = ("true", "1"), ("false", "0")
WORDS = (
    (("yes",), ("no",)),
    (("y",), ("n",)),
    (("t",), ("f",)),
    (("ja",), ("nein",)),
    (("oui",), ("non",)),
)
LATITUDE = re.compile(r"(?i)(^|[_. ]|(?<=[a-z]))(lat|latitude)([_. ]|$)")
LONGITUDES = {"lat": ("lon", "lng", "long", "longitude"), "latitude": ("longitude", "lon", "long")}
NUMBERED = re.compile(r"(.*?)[_. -]?([0-9]+)")
# Columns that are numbered one after the other are one vector if they are so many, of one scale.
FEWEST_IN_VECTOR = 16
# How much larger than the median deviation that of one of them may be.
ONE_SCALE = 10.0
KEY = re.compile(r"(?i)(^|[_. ])(id|uuid|guid|key)$")


def infer_schema(
    table: Any,
    names: Sequence[str],
    *,
    missing_values: Sequence[str] = tuple(sorted(EMPTY)),
    beside: Sequence[str] = (),
) -> Schema:
    """Return a schema of public columns.

    Where nothing tells whether a sign stands before decimals or between thousands, it has that sign
    for both, and is refused until it is edited.

    Parameters
    ----------
    table : mapping of str to columns, or table of pandas, polars or Arrow
    names : sequence of str
        Of the public columns: no other is looked at.
    missing_values : sequence of str
    beside : sequence of str
        Names of further public columns, whose numbers show how those of the table are written.

    Raises
    ------
    ValueError
        If a column is not there.

    Examples
    --------
    >>> made = infer_schema({"age": ["3", "", "4"], "job": ["a", "b", "a"]}, ["age", "job"])
    >>> [(column.name, column.kind, column.missing) for column in made.columns]
    [('age', 'number', 'impute'), ('job', 'category', 'refuse')]
    """
    check_sources(table, [*names, *beside])
    codes = frozenset(missing_values)
    cells = {name: cells_of(table[name]) for name in names}
    several: list[Column] = [*_places(names, cells, codes=codes)]
    several += _vectors(names, cells, codes=codes)
    shown = {name: cells_of(table[name]) for name in beside} | cells
    elsewhere = _elsewhere(list(shown), shown, codes=codes)
    columns: list[Column] = []
    for name in names:
        if any(name in column.sources for column in columns):
            continue
        known = next((each for each in several if name in each.sources), None)
        made = known or _infer(name, cells[name], codes=codes, elsewhere=elsewhere[name])
        columns.append(made.with_gaps([cells[each] for each in made.sources], codes=codes))
    return Schema(columns=tuple(columns), missing_values=tuple(missing_values))


def infer_number(table: Any, name: str, *, schema: Schema) -> Number:
    """Return the number that a public column is beside those of a schema, in their notation.

    Parameters
    ----------
    table : mapping of str to columns, or table of pandas, polars or Arrow
    name : str
    schema : Schema
        Inferred or declared.

    Raises
    ------
    ValueError
        If a column is not there.

    Examples
    --------
    >>> table = {"age": ["30,5", "40"], "days": ["4.706", "956"]}
    >>> found = infer_number(table, "days", schema=infer_schema(table, ["age"], beside=["days"]))
    >>> found.decimal, found.thousands
    (',', '.')
    """
    check_sources(table, [*schema.sources, name])
    codes = frozenset(schema.missing_values)
    said = {
        column.name: column.decimal
        for column in schema.used
        if isinstance(column, Number) and (column.decimal, column.thousands) != PLAIN
    }
    others = {each: cells_of(table[each]) for each in schema.sources if each not in said}
    signs = frozenset(said.values()).union(*_proven(list(others), others, codes=codes).values())
    return _number(name, cells_of(table[name]), codes=codes, elsewhere=signs)[0]


def _infer(
    name: str, cells: Cells, *, codes: frozenset[str], elsewhere: frozenset[Decimal]
) -> Column:
    if cells.levels:
        return OrderedCategory(name)
    if cells.typed == "times":
        return Date(name).with_cycles([cells], codes=codes)
    if cells.typed == "truths":
        return Boolean(name, true_values=TRUE, false_values=FALSE)
    compact = _compact_date(name, cells, codes=codes)
    if compact is not None:
        return compact.with_cycles([cells], codes=codes)
    if cells.typed == "numbers":
        numbers = cells.numbers().values
        whole = bool((numbers % 1 == 0).all()) if np.isfinite(numbers).all() else False
        names_rows = whole and len(np.unique(numbers)) == cells.count >= FEW_ROWS
        return Identifier(name) if names_rows and KEY.search(name) else Number(name)
    return _of_text(name, cells, codes=codes, elsewhere=elsewhere)


def _of_text(
    name: str, cells: Cells, *, codes: frozenset[str], elsewhere: frozenset[Decimal]
) -> Column:
    texts = cells.texts()
    there = texts[[text not in codes and text != "" for text in texts.tolist()]]
    if not len(there):
        return Identifier(name)
    levels = np.unique(there.astype(str))
    lowered = {level.lower() for level in levels}
    # Before numbers: they may be read as one and zero.
    if lowered <= {TRUE[0], FALSE[0]}:
        return Boolean(name, true_values=TRUE, false_values=FALSE)
    number, share = _number(name, cells, codes=codes, elsewhere=elsewhere)
    date = _date(name, levels)
    if date is not None and share < 1.0:
        return date.with_cycles([cells], codes=codes)
    if are_choices(levels.tolist()):
        return Category(name)
    if share == 1.0:
        unique = len(levels) == len(there) >= FEW_ROWS
        return Identifier(name) if unique and KEY.search(name) else number
    for true, false in WORDS:
        if lowered == {*true, *false}:
            return Boolean(name, true_values=true, false_values=false)
    if share >= MOSTLY:
        meant = len(levels) <= FEW_LEVELS and _is_meant(number, cells, codes=codes)
        return Category(name) if meant else number
    if len(levels) > MOST_LEVELS and len(levels) > NAMING * len(there):
        return Identifier(name)
    if len(levels) == len(there) >= FEW_ROWS:
        return Identifier(name)
    return Category(name)


def _number(
    name: str,
    cells: Cells,
    *,
    codes: frozenset[str],
    elsewhere: frozenset[Decimal],
) -> tuple[Number, float]:
    """Return the number that a column is most probably, and the share of cells that are one."""
    texts = texts_alone(cells, codes=codes)
    shares = {
        notation: _share(_written(name, notation), cells, codes=codes)
        for notation in fitting(texts)
    }
    best = max(shares.values())
    tied = [notation for notation, share in shares.items() if share == best]
    return _written(name, choose(tied, evidence_of(texts), elsewhere=elsewhere)), best


def _written(name: str, notation: Notation) -> Number:
    decimal, thousands = notation
    return Number(name, decimal=decimal, thousands=thousands)


def check_one_notation(table: Any, schema: Schema, *, beside: Sequence[str] = ()) -> None:
    """Refuse public columns of which some prove decimal commas and some decimal points.

    Nothing would tell how text of the private column is written.

    Parameters
    ----------
    table : mapping of str to columns, or table of pandas, polars or Arrow
    schema : Schema
        Inferred.
    beside : sequence of str
        As for `infer_schema`.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> table = {"age": ["30,5", "40"], "area": ["1.5", "2"]}
    >>> check_one_notation(table, infer_schema(table, ["age", "area"]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: column 'age' has decimal commas and 'area' decimal points: nothing tells ...
    """
    cells = {name: cells_of(table[name]) for name in (*schema.sources, *beside)}
    proven = _proven(list(cells), cells, codes=frozenset(schema.missing_values))
    commas, points = (
        [name for name, signs in proven.items() if sign in signs] for sign in (",", ".")
    )
    if commas and points:
        raise ValueError(
            f"column {commas[0]!r} has decimal commas and {points[0]!r} decimal points: nothing "
            "tells which the private column has. Write the numbers of the table in one way; or, if "
            "its private numbers have commas, declare a schema, which cloakgp schema writes"
        )


def _proven(
    names: Sequence[str], cells: Mapping[str, Cells], *, codes: frozenset[str]
) -> dict[str, frozenset[Decimal]]:
    """Return the signs of decimals that columns of numbers prove, of those that prove one."""
    proven: dict[str, frozenset[Decimal]] = {}
    for name in names:
        texts = texts_alone(cells[name], codes=codes)
        signs = evidence_of(texts).decimals
        if signs and not may_be_choices(texts):
            written = [_written(name, each) for each in fitting(texts)]
            shares = (_share(each, cells[name], codes=codes) for each in written)
            proven[name] = signs if max(shares) == 1.0 else frozenset()
    return proven


def _elsewhere(
    names: Sequence[str], cells: Mapping[str, Cells], *, codes: frozenset[str]
) -> dict[str, frozenset[Decimal]]:
    """Return, of each column, the signs of decimals that other columns of numbers prove."""
    proven = _proven(names, cells, codes=codes)
    return {
        name: frozenset[Decimal]().union(
            *(signs for other, signs in proven.items() if other != name)
        )
        for name in names
    }


def _share(number: Number, cells: Cells, *, codes: frozenset[str]) -> float:
    found = number.read([cells], codes=codes)
    there = int((~found.missing).sum())
    known = int((~found.missing).sum() - found.faults["is not a number"].sum())
    return known / there if there else 0.0


def _is_meant(number: Number, cells: Cells, *, codes: frozenset[str]) -> bool:
    """Return whether all text that is no number is a word, or stands in more than one cell."""
    wrong = number.read([cells], codes=codes).faults["is not a number"]
    found, counts = np.unique(cells.texts()[wrong].astype(str), return_counts=True)
    once = found[counts == 1].tolist()
    return all(WORD.fullmatch(text.strip()) for text in once)


def _date(name: str, levels: NDArray[Any]) -> Date | None:
    """Return the first form in which all different cells are dates, or nearly all.

    None where years of two digits may stand first or last.
    """
    sample = cells_of(levels[:: max(1, len(levels) // SAMPLE)].astype(object))
    best, share = None, MOSTLY
    for form in forms_of(sample.texts().tolist()):
        # Where none of so many is a date, too few of all can be.
        first = cells_of(sample.texts()[: int((1.0 - share) * sample.count) + 1])
        if not np.isfinite(first.times(form)[0]).any():
            continue
        days, _ = sample.times(form)
        read = float(np.isfinite(days).mean())
        if read == 1.0 and np.isfinite(cells_of(levels.astype(object)).times(form)[0]).all():
            best, share = form, read
            break
        if read > share:
            best, share = form, read
    if best is None:
        return None
    other = with_year_first(best)
    if other is not None and np.isfinite(sample.times(other)[0]).mean() >= share:
        return None
    return Date(name, form=best)


def _compact_date(name: str, cells: Cells, *, codes: frozenset[str]) -> Date | None:
    """Return the date that whole numbers are if all are like 20260131, of several days."""
    levels = {text for text in cells.texts().tolist() if text not in codes and text != ""}
    if len(levels) < FEW_DATES or not all(map(COMPACT_DATE.fullmatch, levels)):
        return None
    days, _ = cells_of(sorted(levels)).times(COMPACT)
    return Date(name, form=COMPACT) if np.isfinite(days).all() else None


def _places(
    names: Sequence[str], cells: Mapping[str, Cells], *, codes: frozenset[str]
) -> list[Place]:
    """Return the places that columns are, whichever of their two comes first, each column once."""
    places: list[Place] = []
    free = dict(cells)
    for name in names:
        if name not in free:
            continue
        place = _place(name, free, codes=codes)
        if place is None:
            continue
        taken = {*cells, *(each.name for each in places)}
        called = chain((place.name, "place"), (f"place {number}" for number in count(2)))
        places.append(replace(place, name=next(each for each in called if each not in taken)))
        for source in place.sources:
            del free[source]
    return places


def _place(name: str, cells: Mapping[str, Cells], *, codes: frozenset[str]) -> Place | None:
    """Return the place whose latitude a column is, if there is a longitude of the same name."""
    found = LATITUDE.search(name)
    if found is None:
        return None
    for word in LONGITUDES[found.group(2).lower()]:
        start, end = found.span(2)
        for partner in cells:
            if partner.lower() != (name[:start] + word + name[end:]).lower():
                continue
            left = (name[: found.start(2)] + name[end:]).strip("_. ")
            place = Place(left or "place", latitude=name, longitude=partner)
            read = place.read([cells[name], cells[partner]], codes=codes)
            if not any(mask.any() for mask in read.faults.values()) and not read.missing.all():
                return place
    return None


def _vectors(
    names: Sequence[str], cells: Mapping[str, Cells], *, codes: frozenset[str]
) -> list[Vector]:
    """Return the vectors that numbered columns of one stem are, where all hold numbers."""
    numbered: dict[str, dict[int, str]] = {}
    for name in names:
        found = NUMBERED.fullmatch(name)
        if found is not None:
            numbered.setdefault(found.group(1), {}).setdefault(int(found.group(2)), name)
    vectors = []
    for stem, columns in numbered.items():
        places = sorted(columns)
        if len(places) < FEWEST_IN_VECTOR or places[-1] - places[0] >= len(places):
            continue
        name = stem or "vector"
        vector = Vector(
            name if name not in cells else f"{name} vector",
            columns=tuple(columns[place] for place in places),
        )
        read = vector.read([cells[each] for each in vector.columns], codes=codes)
        if any(mask.any() for mask in read.faults.values()) or read.missing.any():
            continue
        deviations = read.values.std(axis=0)
        varied = deviations[deviations > 0]
        if len(varied) and varied.max() <= ONE_SCALE * np.median(varied):
            vectors.append(vector)
    return vectors


def with_labels(schema: Schema, *, titles: dict[str, str], units: dict[str, str]) -> Schema:
    """Return a schema with titles of its columns, and units.

    Examples
    --------
    >>> made = with_labels(Schema((Number("age"),)), titles={"age": "Age"}, units={"age": "years"})
    >>> made.columns[0].unit
    'years'
    """
    return replace(
        schema,
        columns=tuple(
            replace(
                column,
                title=titles.get(column.name, column.title),
                unit=units.get(column.name, column.unit),
            )
            for column in schema.columns
        ),
    )
