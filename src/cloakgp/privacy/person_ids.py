"""Ids of persons, who own groups of rows: one canonical form, by which they are compared.

A guarantee for persons holds if all rows of one person are in one group. Two spellings of one id
would split a person, so ids become text before anything compares them, wherever they come from:

* Text stays as it is written, in Unicode's composed form (NFC) and without blanks around it.
* Whole numbers become their decimal digits.
* Nothing else is an id. A number with a point may be 1, 01 or 1.0 of a file, a missing one equals
  nothing, and of other objects nobody knows when they are equal.
* Ids are all text or all whole numbers. pandas reads a long CSV in pieces and guesses for each: of
  one person's cells 01 it makes the number 1 here and the text 01 there.

* So are those of all tables that are compared (`one_kind`): of the cells 001 and 002 pandas makes
  numbers, and text as soon as one cell of the table is A7. Text and whole numbers go together
  where all of the text is as whole numbers are written, without a zero before them: whoever is
  written as text in one table and read as a number in another has the same digits then.

Everything else that is written differently is somebody else: 1, 01 and 1.0 as text, Eve and eve.
"""

from __future__ import annotations

import re
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
# Text, all of it as whole numbers are written.
DIGITS = "text of whole numbers"
_AS_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
MIXED = (
    "partly text and partly whole numbers, as pandas reads a long CSV in pieces: one person could "
    "be in two groups. Read the column as text, pd.read_csv(path, dtype={'person': str})"
)
FRACTIONS = (
    "a number with a point: what is 1.0 here may be 1, 01 or 1.0 in the file. Read the column as "
    "text, pd.read_csv(path, dtype={'person': str})"
)
APART = (
    "one person could be 001 here and 1 there, and be taken for two people. Make the column text "
    "in all tables: write it as text, or read it so, pd.read_csv(path, dtype={'person': str})"
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
    yield from (found for _, found in _read(groups, rows=rows))


class PersonIds(list[str]):
    """Canonical ids of the owners of rows, which know what they were made of.

    Attributes
    ----------
    kind : str
        `WHOLE`, `DIGITS` or `TEXT`; empty of no ids. See `one_kind`.

    Examples
    --------
    >>> PersonIds.of([1, 2], rows=2).kind, PersonIds.of(["1", "02"], rows=2).kind
    ('whole numbers', 'text')
    """

    def __init__(self, ids: Iterable[str], *, whole: bool = False) -> None:
        super().__init__(ids)
        if whole or not self:
            self.kind = WHOLE if self else ""
        else:
            self.kind = DIGITS if all(map(_AS_WHOLE.fullmatch, self)) else TEXT

    @classmethod
    def of(cls, groups: Iterable[Hashable], *, rows: int) -> PersonIds:
        """Return the ids of `person_ids`; those that are such already as they are.

        Parameters
        ----------
        groups, rows
            As for `person_ids`.

        Raises
        ------
        ValueError
            As there.
        """
        read = list(_read(groups, rows=rows))
        if isinstance(groups, PersonIds):
            return groups
        return cls((one for _, one in read), whole=any(kind == WHOLE for kind, _ in read))


def one_kind(kinds: Mapping[str, str]) -> str:
    """Return the kind of the ids of several tables together.

    Parameters
    ----------
    kinds : mapping of str to str
        Kinds of `PersonIds` by the names of their tables.

    Raises
    ------
    ValueError
        If a person could be written in two ways: in one table as a whole number, and as text in
        another that has text which is no whole number.

    Examples
    --------
    >>> one_kind({"january": WHOLE, "february": DIGITS})
    'whole numbers'
    >>> one_kind({"january": WHOLE, "february": TEXT})
    Traceback (most recent call last):
    ...
    ValueError: ids are whole numbers in january and text in february: one person could be 001 ...
    """
    first = {kind: name for name, kind in reversed(list(kinds.items()))}
    if WHOLE in first and TEXT in first:
        raise ValueError(f"ids are {WHOLE} in {first[WHOLE]} and {TEXT} in {first[TEXT]}: {APART}")
    return next((kind for kind in (WHOLE, TEXT, DIGITS) if kind in first), "")


def _read(groups: Iterable[Hashable], *, rows: int) -> Iterator[tuple[str, str]]:
    """Yield what each id is, text or a whole number, and its canonical form."""
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
        yield kind, found
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
