"""Cells of Arrow columns as numbers or as text, every cell read on its own.

Which number a cell is, `cloakgp.privacy.entries` decides; most cells of text are plain digits, and
those are converted all together by Arrow, to the same bits. Reading raises for no cell, since an
error could quote it; `check_cells` refuses what public cells must not hold, and names the row.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.columns.cells import read_bytes
from cloakgp.data.mixed import is_mixed, texts_of
from cloakgp.privacy.entries import AROUND, NUMBER, is_missing, read_entry
from cloakgp.privacy.person_ids import TEXT, WHOLE, person_id
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

with extra("tables"):
    import pyarrow as pa
    import pyarrow.compute as pc

# What whole numbers become in a table of pandas that has gaps.
FRACTIONAL = "numbers with a point"
IN_DIGITS = f"^(?:{NUMBER})$"


def as_numbers(column: Any) -> tuple[NDArray[np.bool_], Array]:
    """Return which cells are empty, and all as float64 with NaN for cells that are no numbers.

    Numbers in text and decimals are read to the nearest float64. Dates and durations are no
    numbers: nobody named their unit.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray, of length n
        Of any type.

    Returns
    -------
    missing : array of bool, shape (n,)
    values : array of shape (n,)

    Examples
    --------
    >>> missing, values = as_numbers(pa.array(["3", " 4.5", "tall", None]))
    >>> missing.tolist(), values.tolist()
    ([False, False, False, True], [3.0, 4.5, nan, nan])
    """
    if isinstance(column, pa.ChunkedArray):
        parts = [as_numbers(chunk) for chunk in column.chunks]
        return (
            np.concatenate([missing for missing, _ in parts]),
            np.concatenate([values for _, values in parts]),
        )
    column = texts_of(column)
    kind = column.type
    types = pa.types
    if types.is_dictionary(kind):
        return as_numbers(column.dictionary_decode())
    if types.is_decimal(kind):
        # Arrow's own conversion to float64 is off by a last bit now and then.
        return as_numbers(column.cast(pa.string()))
    if _is_text(kind):
        return _text_numbers(column.cast(pa.large_binary()))
    missing = _as_bools(column.is_null())
    if types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif not (types.is_integer(kind) or types.is_floating(kind)):
        return missing, np.full(len(column), np.nan)
    values = _as_floats(column)
    if types.is_floating(kind):
        missing = np.isnan(values)
    return missing, values


def check_cells(
    name: str, missing: NDArray[np.bool_], values: Array, *, first_row: int = 0, place: str = ""
) -> None:
    """Check that public cells of a column are finite numbers.

    Parameters
    ----------
    name : str
    missing : array of bool, shape (n,)
        Which cells are empty.
    values : array of shape (n,)
        NaN where a cell is no number.
    first_row : int
        How many rows of the table come before these.
    place : str
        Said after the row's number, if there are several files.

    Raises
    ------
    ValueError
        If not. Names the first such row.

    Examples
    --------
    >>> check_cells("age", np.array([False, False]), np.array([30.0, 40.0]))
    """
    faults = {
        "is empty": missing,
        "is not a number": ~missing & np.isnan(values),
        "is infinite": np.isinf(values),
    }
    for fault, rows in faults.items():
        if rows.any():
            raise ValueError(
                f"column {name!r} {fault} in row {first_row + int(np.argmax(rows)) + 1} below the "
                f"header{place}: correct that cell, or leave the row out"
            )


def as_texts(column: Any, *, name: str) -> list[str]:
    """Return cells as text, without blanks around them; text that is empty where they are missing.

    Numbers and truth values are written as Python writes them, and whole numbers without a point.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray, of length n
        Of text, numbers or truth values.
    name : str
        What the error calls it.

    Raises
    ------
    ValueError
        If it holds something else, of which nothing is said.

    Examples
    --------
    >>> as_texts(pa.array([" yes", "01", None]), name="ill")
    ['yes', '01', '']
    """
    column = texts_of(column)
    _check_written(column.type, name=name)
    if pa.types.is_dictionary(column.type):
        return as_texts(column.cast(column.type.value_type), name=name)
    if _is_text(column.type):
        return [_unquoted(cell) for cell in column.cast(pa.large_binary()).to_pylist()]
    return [as_written(cell) for cell in column.to_pylist()]


def as_written(cell: object) -> str:
    """Return a cell as Python writes it, a whole number without a point; empty if it is missing.

    Parameters
    ----------
    cell : object

    Examples
    --------
    >>> as_written(2.0), as_written(True), as_written(None)
    ('2', 'True', '')
    """
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def as_person_ids(column: Any, *, name: str) -> list[str]:
    """Return cells as ids of persons in their canonical form; empty where they are missing.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray, of length n
        Of text or whole numbers.
    name : str
        What the error calls it.

    Raises
    ------
    ValueError
        If it holds something else.

    Examples
    --------
    >>> as_person_ids(pa.array([" eve", "01", None]), name="person")
    ['eve', '01', '']
    """
    check_kinds_of_ids({kind_of_ids(column.type)}, name=name)
    return [person_id(cell) for cell in as_texts(column, name=name)]


def kind_of_ids(kind: Any) -> str:
    """Return the kind of ids in a column of a type, in words; empty if there are none.

    Parameters
    ----------
    kind : pyarrow.DataType

    Examples
    --------
    >>> kind_of_ids(pa.int32()), kind_of_ids(pa.float32())
    ('whole numbers', 'numbers with a point')
    """
    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_null(kind):
        return ""
    if is_mixed(kind) or _is_text(kind):
        return TEXT
    if types.is_integer(kind) or (types.is_decimal(kind) and kind.scale == 0):
        return WHOLE
    return FRACTIONAL if types.is_floating(kind) or types.is_decimal(kind) else str(kind)


def check_kinds_of_ids(kinds: Set[str], *, name: str) -> None:
    """Check that the ids of a column can be distinguished.

    Parameters
    ----------
    kinds : set of str
        What its cells are, from `kind_of_ids`.
    name : str
        What errors call the column.

    Raises
    ------
    ValueError
        If they are neither all text nor all whole numbers.

    Examples
    --------
    >>> check_kinds_of_ids({"text"}, name="person")
    """
    strange = sorted(kinds - {TEXT, WHOLE, ""})
    if strange:
        raise ValueError(
            f"column {name!r} says whose rows they are, and holds {strange[0]}: ids are text or "
            "whole numbers. Write them as text"
        )
    if {TEXT, WHOLE} <= kinds:
        raise ValueError(
            f"column {name!r} says whose rows they are, and holds text in some cells and whole "
            "numbers in others: one person could be in two groups. Write all of them as text"
        )


def _check_written(kind: pa.DataType, *, name: str) -> None:
    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if not (
        _is_text(kind)
        or is_mixed(kind)
        or types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    ):
        raise ValueError(
            f"column {name!r} holds neither text nor numbers nor truth values: write its classes "
            "as text"
        )


def label_places(column: Any, labels: Sequence[object], *, name: str) -> Array:
    """Return which of some labels every cell is: its place among them, from 0, or NaN.

    Labels are written as Python writes them, and whole numbers without a point; a cell, read by
    `as_texts`, matches letter by letter. One that is missing is none.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray, of length n
    labels : sequence of numbers, strings or truth values
    name : str
        What errors call the column.

    Returns
    -------
    array of shape (n,)

    Raises
    ------
    ValueError
        As `check_labels`.

    Examples
    --------
    >>> label_places(pa.array(["1", " 0", "1.0", None]), [0, 1], name="ill")
    array([ 1.,  0., nan, nan])
    """
    check_labels(column.type, labels, name=name)
    place_of = {as_written(label): float(place) for place, label in enumerate(labels)}
    cells = as_texts(column, name=name)
    return np.array([place_of.get(cell, np.nan) if cell else np.nan for cell in cells])


def check_labels(kind: Any, labels: Sequence[object], *, name: str) -> None:
    """Check that every cell can be compared with some labels.

    Parameters
    ----------
    kind : pyarrow.DataType
        Of the column.
    labels : sequence of numbers, strings or truth values
    name : str
        What errors call the column.

    Raises
    ------
    ValueError
        If two labels are written alike, or the column holds neither text, numbers nor truth values.
        Nothing is said of cells.

    Examples
    --------
    >>> check_labels(pa.string(), [1, "1"], name="ill")
    Traceback (most recent call last):
    ...
    ValueError: classes [1, '1'] are not all written differently, as cells of column 'ill' must be
    """
    _check_written(kind, name=name)
    if len(set(map(as_written, labels))) < len(labels):
        raise ValueError(
            f"classes {list(labels)} are not all written differently, as cells of column {name!r} "
            "must be"
        )


def _unquoted(cell: bytes | None) -> str:
    """Return a cell of text without blanks around it.

    A quote after a blank is no quote to Arrow, and is taken off here, with its other end.
    """
    if cell is None:
        return ""
    text = read_bytes(cell)
    inner = text.strip()
    if text[:1].isspace() and len(inner) > 1 and inner[0] == inner[-1] == '"':
        return inner[1:-1].replace('""', '"').strip()
    return inner


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
    )


def _text_numbers(cells: Any) -> tuple[NDArray[np.bool_], Array]:
    """Read text in any encoding that contains ASCII, as bytes."""
    plain = pc.fill_null(pc.match_substring_regex(cells, IN_DIGITS), False)
    in_digits, missing = _as_bools(plain), _as_bools(cells.is_null())
    # With ASCII only from here on, and only what can be converted.
    digits = cells.filter(plain).cast(pa.large_string())
    digits = pc.ascii_ltrim(pc.ascii_trim(digits, AROUND), "+")
    values = np.full(len(cells), np.nan)
    values[in_digits] = _as_floats(digits.cast(pa.float64()))
    others = np.flatnonzero(~in_digits & ~missing)
    for row, cell in zip(others, cells.take(pa.array(others)).to_pylist(), strict=True):
        values[row] = read_entry(cell)
        missing[row] = np.isnan(values[row]) and is_missing(cell)
    return missing, values


def _as_floats(column: Any) -> Array:
    return np.array(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _as_bools(column: Any) -> NDArray[np.bool_]:
    return np.array(column.to_numpy(zero_copy_only=False), dtype=bool)
