"""Remarks on declarations: what somebody who checks a schema, or bounds, should know.

Of public columns: levels that become "other", columns that never vary, cells that are empty or hold
something else than the others, how numbers are written, and ids, by public cells, which were read
for the schema. Of the private column: its declared bounds, by these alone.
"""

from __future__ import annotations

import re
from collections import Counter
from math import isfinite
from typing import Any

import numpy as np

from cloakgp.columns.base import Column
from cloakgp.columns.categories import Category
from cloakgp.columns.cells import ISO, Cells, cells_of
from cloakgp.columns.dates import FORMS, Date, forms_of, with_year_first
from cloakgp.columns.identifiers import Identifier, may_name_persons
from cloakgp.columns.notation import are_choices, evidence_of, may_be_choices, texts_alone
from cloakgp.columns.numbers import Number, read_number
from cloakgp.columns.schema import Schema
from cloakgp.utils.formatting import percent

# Of rows, for numbers to be told to name them.
FEW_ROWS = 20
# So many different whole numbers may be codes, if each is in so many rows on average.
FEWEST_CODES, MOST_CODES, ROWS_A_CODE = 3, 24, 10
# Amounts are not written so, and codes such as postcodes are.
PADDED = re.compile(r"0[0-9]+")
# Two different values are an answer, such as yes and no, and name nobody.
FEWEST_PERSONS = 3
# Of different cells that decide in which forms dates are written.
SAMPLE = 200
# What share of cells must be dates, or numbers, for a column of text to be meant as such.
MANY = 0.5
# Signs of decimals and of thousands.
NOTATIONS = ((".", ""), (",", ""), (",", "."), (".", ","))
# Signs around numbers that make text of them.
AROUND = re.compile(r"^[\s%‰€$£¥]+|[\s%‰€$£¥]+$|\s*(?:EUR|USD|GBP|CHF)$|^(?:EUR|USD|GBP|CHF)\s*")
# What text may be meant to be that is read as nothing else, and how to write it instead.
MEANT = (
    (
        re.compile(r"[+-]?[0-9]{1,4}:[0-5][0-9](:[0-5][0-9]([.,][0-9]+)?)?( ?[AaPp][Mm])?"),
        "times of day, or durations: write them as numbers, of minutes or seconds",
    ),
    (
        re.compile(r"[0-9]{4}[ -]?[Qq][1-4]|[Qq][1-4][ -]?[0-9]{4}"),
        "quarters of years: write the first day of each, such as 2026-04-01, to have dates",
    ),
    (
        re.compile(r"[0-9]{4}[ -]?[Ww][0-9]{1,2}|[Ww][0-9]{1,2}[ -]?[0-9]{4}"),
        "weeks of years: write them as 2026-W05, or the first day of each, to have dates",
    ),
)
# Whole numbers that are dates with the year last; with a zero in front, this is lost in numbers.
YEAR_LAST = ("%d%m%Y", "%m%d%Y")
YEAR_LAST_DIGITS = re.compile(r"[0-9]{3,4}(1[89]|20)[0-9]{2}")
FAULTS = {
    "is not a number": "are no numbers",
    "is infinite": "are infinite",
    "is not a date or time": "are no dates or times",
    "is neither yes nor no": "are neither yes nor no",
}


def remarks_on(schema: Schema, table: Any) -> dict[str, tuple[str, ...]]:
    """Return sentences about columns, by their names; those without any are left out.

    Parameters
    ----------
    schema : Schema
    table : mapping of str to columns, or table of pandas, polars or Arrow

    Examples
    --------
    >>> schema = Schema((Number("age", missing="impute"), Category("job", levels=("cook",))))
    >>> told = remarks_on(schema, {"age": ["3", "", "4", "5"], "job": ["cook", "clerk"] * 2})
    >>> told["age"], told["job"]
    (('25 % of its cells are empty',), ('50 % of rows count as "other": their levels are rare',))
    """
    codes = frozenset(schema.missing_values)
    told = {}
    for column in schema.columns:
        if isinstance(column, Identifier):
            told[column.name] = _on_identifier(cells_of(table[column.name]), codes=codes)
            continue
        cells = [cells_of(table[source]) for source in column.sources]
        told[column.name] = _on_column(column, cells, codes=codes)
    return {name: found for name, found in told.items() if found}


def _counted(cells: Cells, *, codes: frozenset[str]) -> Counter[str]:
    """Return the different texts of cells that are not missing, and how many have each."""
    return Counter(text for text in cells.texts().tolist() if text not in codes and text)


def _on_identifier(cells: Cells, *, codes: frozenset[str]) -> tuple[str, ...]:
    counted = _counted(cells, codes=codes)
    if not counted:
        return ("all of its cells are empty",)
    told = [f"taken for an id: {len(counted):,} different values in {cells.count:,} rows"]
    meant = _on_text(cells, codes=codes)
    if len(counted) < counted.total() and not meant:
        told.append(WHOSE)
    return (*told, *meant)


def remark_on_bounds(lo: float, hi: float) -> str:
    """Return a remark on the declared bounds of a column of numbers; empty if there is none.

    Parameters
    ----------
    lo, hi : float

    Examples
    --------
    >>> remark_on_bounds(0, 1).partition(":")[0]
    'the bounds are 0 and 1'
    >>> remark_on_bounds(0, 10)
    ''
    """
    if (lo, hi) != (0, 1):
        return ""
    return (
        "the bounds are 0 and 1: if the private column holds 0 and 1 only, declare classes, of "
        "which probabilities are predicted (--classes 0,1; in Python, DPGPClassifier with "
        "classes=[0, 1])."
    )


def repeats(cells: Cells, *, codes: frozenset[str]) -> str:
    """Return how often the values of a column repeat, in a few words; empty if it names nobody.

    None repeats, or there are two different ones at most.

    Parameters
    ----------
    cells : Cells
    codes : set of str
        Text that means that a cell is missing.

    Examples
    --------
    >>> repeats(cells_of(["a", "a", "b", "c", ""]), codes=frozenset())
    '3 different values in 4 rows'
    """
    counted = _counted(cells, codes=codes)
    different, rows = len(counted), counted.total()
    if not FEWEST_PERSONS <= different < rows:
        return ""
    return f"{different:,} different values in {rows:,} rows"


WHOSE = (
    "some of them repeat: if they say whose rows these are, declare that (on the command line: "
    "--person), so that all rows of a person are protected together"
)


def _on_text(cells: Cells, *, codes: frozenset[str]) -> tuple[str, ...]:
    """Say what else a column of text may be meant to hold: numbers, or dates in several forms."""
    counted = _counted(cells, codes=codes)
    if cells.typed != "text" or not counted:
        return ()
    rows = counted.total()
    # Each different text once: there may be many rows of few.
    numbers = sum(
        count
        for text, count in counted.items()
        if any(isfinite(read_number(text, *how)) for how in NOTATIONS)
    )
    around = sum(
        count
        for text, count in counted.items()
        if (bare := AROUND.sub("", text)) != text
        and any(isfinite(read_number(bare, *how)) for how in NOTATIONS)
    )
    # Blanks that are not of the usual kinds are not in texts any more.
    unread = Counter(cells.texts()[np.isnan(cells.numbers().values)].tolist())
    around += sum(count for text, count in unread.items() if isfinite(read_number(text, ".", "")))
    if around and MANY * rows <= numbers + around:
        return (
            f"{around:,} of its {rows:,} cells are numbers with something around them, such as %, "
            "€ or a special blank, and all are taken as text: write plain numbers",
        )
    if MANY * rows <= numbers < rows:
        return (
            f"{rows - numbers:,} of its {rows:,} cells are no numbers, and all are taken as text",
        )
    for pattern, meant in MEANT:
        if MANY * rows <= sum(count for text, count in counted.items() if pattern.fullmatch(text)):
            return (f"its cells look like {meant}",)
    levels = sorted(counted)
    forms = _forms_of(levels)
    if not forms:
        return ()
    written = ["2026-01-31" if form == ISO else form for form in forms]
    if len(forms) > 1:
        several = ", ".join(written)
        return (f"dates are written in several forms ({several}), and all are taken as text",)
    days = cells_of(np.array(levels, dtype=object)).times(forms[0])[0]
    others = sum(
        counted[text] for text, day in zip(levels, days.tolist(), strict=True) if not isfinite(day)
    )
    year_first = with_year_first(forms[0])
    if year_first is not None and np.isfinite(cells_of(levels).times(year_first)[0]).any():
        return (
            f"its cells look like dates as {forms[0]} or {year_first}, and are taken as text: "
            'declare which they are, with "type": "date" and "format"',
        )
    if not others:
        return (
            f"its cells look like dates as {written[0]}, and are taken as text: if they are, "
            f'declare "type": "date" and "format": "{forms[0]}"',
        )
    return (
        f"{others:,} of its {rows:,} cells are no dates as {written[0]}, and all are taken as text",
    )


def _forms_of(levels: list[str]) -> list[str]:
    """Return the forms in which most of some different texts are dates; none if most are none.

    That of most of them comes first, and then that of most of the others.
    """
    sample = cells_of(np.array(levels[:: max(1, len(levels) // SAMPLE)], dtype=object))
    read = {form: np.isfinite(sample.times(form)[0]) for form in forms_of(sample.texts().tolist())}
    if not read:
        return []
    left, forms = np.ones(sample.count, dtype=bool), []
    while (best := max(read, key=lambda form: int((read[form] & left).sum()))) not in forms:
        if not (read[best] & left).any():
            break
        forms.append(best)
        left &= ~read[best]
    return forms if left.mean() <= 1 - MANY else []


def on_notation(column: Column, cells: Cells, *, codes: frozenset[str]) -> tuple[str, ...]:
    """Say how numbers and dates are read where they could be read in another way, too.

    Parameters
    ----------
    column : Column
    cells : Cells
        Public.
    codes : set of str
        Text that means that a cell is missing.

    Examples
    --------
    >>> on_notation(Number("age", decimal=","), cells_of(["1,5"]), codes=frozenset())
    ('read with decimal commas: 1,5 is one and a half',)
    """
    if isinstance(column, Date):
        return (*_on_order(column, cells), *_on_years(column, cells))
    return _on_signs(column, cells, codes=codes) if isinstance(column, Number) else ()


def _on_signs(column: Number, cells: Cells, *, codes: frozenset[str]) -> tuple[str, ...]:
    """Say how numbers are read that are not written with a point, or that may be thousands."""
    if cells.typed != "text":
        return ()
    if column.undecided:
        return (
            f"nothing tells whether 1{column.decimal}234 is a little more than one or more than a "
            f"thousand, and it is refused: write {column.either}",
        )
    if (column.decimal, column.thousands) == (".", ""):
        evidence = evidence_of(texts_alone(cells, codes=codes))
        if not evidence.open or evidence.decimals:
            return ()
        return (
            "read with decimal points, though 1.234 may be more than a thousand: if it is, declare "
            '"decimalChar": "," and "groupChar": "."',
        )
    written = f"read {written_with(column.decimal, column.thousands)}"
    if may_be_choices(texts_alone(cells, codes=codes)):
        written += ". If its cells are answers of several choices, such as 1,2, declare a category"
    return (written,)


def written_with(decimal: str, thousands: str) -> str:
    """Return how numbers are written, with an example.

    Parameters
    ----------
    decimal, thousands : str

    Examples
    --------
    >>> written_with(",", ".")
    "with decimal commas, and '.' between thousands: 1,5 is one and a half"
    """
    between = f", and {thousands!r} between thousands" if thousands else ""
    signs = "commas" if decimal == "," else "points"
    return f"with decimal {signs}{between}: 1{decimal}5 is one and a half"


def _on_order(column: Date, cells: Cells) -> tuple[str, ...]:
    """Say that days are taken to come before months where the other order fits all cells, too."""
    other = column.form.replace("%d", "%_").replace("%m", "%d").replace("%_", "%m")
    if cells.typed != "text" or other == column.form or other not in FORMS:
        return ()
    days, swapped = cells.times(column.form)[0], cells.times(other)[0]
    there = np.isfinite(days)
    if not np.isfinite(swapped[there]).all() or (swapped == days)[there].all():
        return ()
    first, second = ("day", "month") if other.startswith("%m") else ("month", "day")
    return (
        f"the {first} is taken to come first, though all of it can be read with the {second} "
        f'first: if that is meant, declare "format": "{other}"',
    )


def _on_years(column: Date, cells: Cells) -> tuple[str, ...]:
    """Say of which centuries years of two digits are taken to be."""
    if cells.typed != "text" or "%y" not in column.form:
        return ()
    return (
        "years have two digits: 69 to 99 are taken for 1969 to 1999, and 00 to 68 for 2000 to 2068",
    )


def _on_column(column: Column, cells: list[Cells], *, codes: frozenset[str]) -> tuple[str, ...]:
    if isinstance(column, Number) and column.undecided:
        return on_notation(column, cells[0], codes=codes)
    found = column.read(cells, codes=codes)
    rows, told = len(found.values), []
    if not rows:
        return ()
    gaps = float(found.missing.mean())
    if gaps:
        told.append(f"{percent(gaps)} of its cells are empty")
    for fault, where in found.faults.items():
        known = next((each for each in FAULTS if fault.startswith(each)), None)
        if known is not None and where.any():
            words = f"{FAULTS[known]}{fault.removeprefix(known)}"
            told.append(f"{int(where.sum()):,} of its {rows:,} cells {words}: they are refused")
    there = found.values[~found.missing & np.isfinite(found.values).all(axis=1)]
    if found.unseen is not None and found.unseen.any() and getattr(column, "other", False):
        share = percent(float(found.unseen.mean()))
        told.append(f'{share} of rows count as "other": their levels are rare')
    elif len(there) > 1 and (there == there[0]).all():
        told.append("the same in every row: nothing can be predicted from it")
    if isinstance(column, Category):
        if not are_choices(texts_alone(cells[0], codes=codes)):
            told += _on_text(cells[0], codes=codes)
        else:
            told.append(
                "taken for answers of several choices, such as 1,2, and no numbers with decimal "
                'commas: if they are numbers, declare these, with "decimalChar": ","'
            )
        if not column.levels:
            told.append("it has no levels")
    told += on_notation(column, cells[0], codes=codes)
    if may_name_persons(column.name) and (often := repeats(cells[0], codes=codes)):
        told.append(f"{often}: {WHOSE}")
    whole = isinstance(column, Number) and bool((there % 1 == 0).all())
    if whole and len(there) == rows >= FEW_ROWS and _counts(there[:, 0]):
        told.append("it counts the rows: an id, perhaps, or their order")
    different = len(np.unique(there)) if whole else 0
    if whole and different >= FEW_ROWS and (form := _year_last(cells[0], codes=codes)):
        told.append(
            f"whole numbers, taken for amounts, that look like dates as {form}: if they are, write "
            "them as 2026-01-31"
        )
    elif whole and any(map(PADDED.fullmatch, texts_alone(cells[0], codes=codes))):
        told.append(
            "whole numbers that begin with 0, as 007 does, are taken for amounts: if they are "
            "codes, declare a category"
        )
    elif FEWEST_CODES <= different <= min(MOST_CODES, len(there) // ROWS_A_CODE):
        told.append(
            f"{different} different whole numbers, taken for amounts: if they are codes without an "
            "order, declare a category"
        )
    return tuple(told)


def _year_last(cells: Cells, *, codes: frozenset[str]) -> str:
    """Return the form in which all of some whole numbers are dates; empty if there is none."""
    texts = sorted(_counted(cells, codes=codes))
    if not all(map(YEAR_LAST_DIGITS.fullmatch, texts)):
        return ""
    padded = cells_of([text.zfill(8) for text in texts])
    return next((form for form in YEAR_LAST if np.isfinite(padded.times(form)[0]).all()), "")


def _counts(numbers: np.ndarray[Any, np.dtype[np.float64]]) -> bool:
    """Return whether whole numbers are all different, and one after the other."""
    return bool(len(np.unique(numbers)) == len(numbers) == np.ptp(numbers) + 1)
