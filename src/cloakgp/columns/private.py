"""Private columns as numbers: by what is declared alone, and every row by itself.

Where inputs are private, nothing about their columns is taken from cells: levels, ranges and what
stands for missing cells are declared, or follow from what is. A cell is read without a look at any
other, and a row becomes the same numbers wherever it stands and whatever the others hold, to the
last bit. No message tells which cell is at fault, what it holds, or how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cloakgp.columns.base import Coded, Column
from cloakgp.columns.categories import Category, OrderedCategory
from cloakgp.columns.cells import ArrayCells, cells_of
from cloakgp.columns.schema import Schema, check_sources
from cloakgp.models.axes import Axis
from cloakgp.models.features import InputBox
from cloakgp.utils.arrays import Array

# From here on, a float may stand for several whole numbers.
INEXACT = 2.0**53
HIDDEN = "which it is is private, and not shown here"


def private_schema(schema: Schema) -> Schema:
    """Return a schema of private inputs with its open parts taken from what it declares.

    Parameters
    ----------
    schema : Schema

    Raises
    ------
    ValueError
        If a level or a range is not declared, or rows that lack something are to be left out.

    Examples
    --------
    >>> from cloakgp.columns import Number
    >>> private_schema(Schema((Number("age", ranges=((0.0, 100.0),)),))).columns[0].ranges
    ((0.0, 100.0),)
    """
    for column in schema.used:
        if column.missing == "drop":
            raise ValueError(
                f"column {column.name!r} is a private input, and rows that lack it cannot be left "
                "out: how many remain would tell of them. Let missing be refuse, impute or category"
            )
    made = replace(schema, columns=tuple(column.take_declared() for column in schema.used))
    made.validate()
    return made


def axes_of(schema: Schema) -> tuple[Axis, ...]:
    """Return what the numbers of a declared schema say.

    Examples
    --------
    >>> from cloakgp.columns import Category, Number
    >>> ages, jobs = Number("age", ranges=((0.0, 100.0),)), Category("job", levels=("cook",))
    >>> axes_of(Schema((ages, jobs)))
    (Line(column=0), Levels(places=(1, 2)))
    """
    axes: list[Axis] = []
    for column, start in _with_places(schema):
        axes += column.all_axes(start)
    return tuple(axes)


def box_of(schema: Schema) -> InputBox:
    """Return the ranges of the numbers of a declared schema.

    Examples
    --------
    >>> from cloakgp.columns import Number
    >>> box_of(Schema((Number("age", ranges=((0.0, 100.0),)),)))
    InputBox(lo=(0.0,), hi=(100.0,))
    """
    return InputBox.checked([pair for column in schema.used for pair in column.all_ranges])


def encode_private(schema: Schema, table: Any) -> Array:
    """Return the numbers of private columns, shape (N, D).

    Parameters
    ----------
    schema : Schema
        Declared.
    table : mapping of str to columns, or table of pandas, polars or Arrow
        Private. Other columns are passed over.

    Raises
    ------
    ValueError
        If a column is missing, or a cell is at fault. No message tells which.

    Examples
    --------
    >>> from cloakgp.columns import Category, Number
    >>> ages = Number("age", ranges=((0.0, 100.0),))
    >>> jobs = Category("job", levels=("clerk", "cook"), other=False)
    >>> table = {"age": [30, "40"], "job": ["cook", "clerk"]}
    >>> encode_private(Schema((ages, jobs)), table).round(2)
    array([[30.  ,  0.  ,  0.71],
           [40.  ,  0.71,  0.  ]])
    """
    check_sources(table, schema.sources)
    codes = frozenset(schema.missing_values)
    parts = []
    for column in schema.used:
        known: dict[tuple[Any, ...], Array] = {}
        coded = [
            _encoded(column, row, codes=codes, known=known)
            for row in _rows([table[source] for source in column.sources])
        ]
        if not coded:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        parts.append(np.vstack(coded))
    if len({len(part) for part in parts}) != 1:
        raise ValueError("the columns of a table must have as many rows each")
    return np.ascontiguousarray(np.hstack(parts))


def _with_places(schema: Schema) -> Iterator[tuple[Column, int]]:
    """Yield the columns that are used, each with the place of its first number."""
    place = 0
    for column in schema.used:
        yield column, place
        place += sum(map(len, column.blocks))


def _rows(columns: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the cells of each row; times as Python has them."""
    lists = []
    for column in columns:
        cells = cells_of(column)
        if not isinstance(cells, ArrayCells):
            raise TypeError("private columns are arrays, or columns of a table")
        times = cells.values.dtype.kind == "M"
        values = cells.values.astype("datetime64[us]") if times else cells.values
        lists.append(values.tolist())
    if len({len(each) for each in lists}) != 1:
        raise ValueError("the columns of a table must have as many rows each")
    yield from zip(*lists, strict=True)


def _encoded(
    column: Column,
    row: tuple[Any, ...],
    *,
    codes: frozenset[str],
    known: dict[tuple[Any, ...], Array],
) -> Array:
    """Return the numbers of one row; of equal text they are computed once."""
    text = all(isinstance(cell, str) for cell in row)
    if text and row in known:
        return known[row]
    _check_written(column, row)
    coded = column.encode([_alone(cell) for cell in row], codes=codes)
    _check(column, coded)
    found: Array = coded.X[0]
    if text:
        known[row] = found
    return found


def _alone(cell: Any) -> ArrayCells:
    values = np.empty(1, dtype=object)
    values[0] = cell
    return ArrayCells(values)


def _check_written(column: Column, row: tuple[Any, ...]) -> None:
    """Refuse a level that was a whole number and became a float that stands for several.

    A column of pandas does where another row lacks the number.
    """
    if not isinstance(column, Category | OrderedCategory):
        return
    for cell in row:
        if isinstance(cell, float) and cell.is_integer() and abs(cell) >= INEXACT:
            raise ValueError(
                f"column {column.name!r} has a float so large that nobody knows which whole number "
                f"it was: hand over text or whole numbers ({HIDDEN})"
            )


def _check(column: Column, coded: Coded) -> None:
    for fault, found in coded.faults.items():
        if found.any():
            raise ValueError(
                f"column {column.name!r} has a cell that {fault}: correct it, or declare what it "
                f"means ({HIDDEN})"
            )
