"""Ids of persons, who own groups of rows: one canonical form, by which they are compared.

A guarantee for persons holds if all rows of one person are in one group. Two spellings of one id
would split a person, so ids become text before anything compares them, wherever they come from:

* Text stays as it is written, in Unicode's composed form (NFC) and without blanks around it.
* Whole numbers become their decimal digits.
* Nothing else is an id. A number with a point may be 1, 01 or 1.0 of a file, a missing one equals
  nothing, and of other objects nobody knows when they are equal.
* Ids are all text or all whole numbers. pandas reads a long CSV in pieces and guesses for each: of
  one person's cells 01 it makes the number 1 here and the text 01 there.

Everything else that is written differently is somebody else: 1, 01 and 1.0 as text, Eve and eve.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from typing import Any

import numpy as np

COMPARED = (
    "Ids were compared as text, letter by letter, without blanks around them and in Unicode's "
    "composed form (NFC): 1, 01 and 1.0 are three people, and so are Eve and eve"
)
"""The comparison of ids, in words for readers of a release."""

TEXT, WHOLE = "text", "whole numbers"
MIXED = (
    "partly text and partly whole numbers, as pandas reads a long CSV in pieces: one person could "
    "be in two groups. Read the column as text, pd.read_csv(path, dtype={'person': str})"
)
FRACTIONS = (
    "a number with a point: what is 1.0 here may be 1, 01 or 1.0 in the file. Read the column as "
    "text, pd.read_csv(path, dtype={'person': str})"
)
ADVICE = "ids are text or whole numbers, one for each row, none missing"


def person_id(text: str) -> str:
    """Return the canonical form of an id that is text; empty if it is blank.

    Examples
    --------
    >>> person_id(" Zoe\u0308 ") == person_id("Zoë")
    True
    >>> person_id("01")
    '01'
    """
    # Of a subclass, the letters alone.
    letters = str.strip(text)
    return letters if letters.isascii() else unicodedata.normalize("NFC", letters).strip()


def person_ids(groups: Iterable[Hashable], *, rows: int) -> Iterator[str]:
    """Yield the canonical ids of the owners of rows.

    Parameters
    ----------
    groups : iterable of N texts or whole numbers
        Public: whose row it is.
    rows : int
        N.

    Raises
    ------
    ValueError
        If there are not as many as rows, or one is missing or no id. Raised while they are
        yielded.

    Examples
    --------
    >>> list(person_ids(["eve ", "bob", "eve"], rows=3))
    ['eve', 'bob', 'eve']
    >>> list(person_ids([1, "1"], rows=2))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: groups are partly text and partly whole numbers, as pandas reads ...
    """
    entries = _one_for_each_row(groups, rows=rows)
    first, count = "", 0
    for count, entry in enumerate(entries, start=1):
        if count > rows:
            break
        if isinstance(entry, str):
            kind, found = TEXT, person_id(entry)
        elif isinstance(entry, int | np.integer) and not isinstance(entry, bool):
            kind, found = WHOLE, str(int(entry))
        else:
            kind, found = "", ""
        if not found:
            _refuse(entry, row=count - 1)
        if kind != first:
            if first:
                raise ValueError(f"groups are {MIXED}")
            first = kind
        yield found
    if count != rows:
        more = "more" if count > rows else count
        raise ValueError(f"groups must name a group for each of {rows} rows, got {more}")


def _one_for_each_row(groups: Any, *, rows: int) -> Iterable[object]:
    """Return an iterable in the order of the rows."""
    shape = getattr(groups, "shape", ())
    if isinstance(groups, str | bytes | Mapping | Set) or len(shape) > 1:
        raise ValueError(
            f"groups must name a group for each of {rows} rows, in one dimension and in their "
            "order: a column such as table['person'], an array or a list"
        )
    # Arrow's cells are objects of its own.
    found: Iterable[object] = groups.to_pylist() if hasattr(groups, "to_pylist") else groups
    return found


def _refuse(entry: object, *, row: int) -> None:
    where = f"row {row}, counted from 0"
    if _is_missing(entry):
        raise ValueError(f"groups name none for {where}: {ADVICE}")
    if isinstance(entry, float | np.floating):
        raise ValueError(f"groups hold, in {where}, {FRACTIONS}")
    raise ValueError(f"groups hold an object of type {type(entry).__name__} in {where}: {ADVICE}")


def _is_missing(entry: object) -> bool:
    if entry is None or entry is np.ma.masked or isinstance(entry, str):
        return True
    try:
        return bool(entry != entry)
    except (TypeError, ValueError):
        # Of pandas: what is not known does not compare.
        return type(entry).__name__ == "NAType"
