"""Columns of which every cell has a type of its own, as workbooks and databases have them.

A cell is kept as its text and its kind, which depend on no other cell: a number stays the number
that it is, in whatever notation its neighbours are written that are text.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.columns.cells import write_cell
from cloakgp.privacy.entries import read_entry
from cloakgp.utils.extras import extra

with extra("tables"):
    import pyarrow as pa
    import pyarrow.compute as pc

# Kinds of cells.
TEXT, NUMBER, TRUTH, TIME = range(4)
# No file has columns of that type.
MIXED = pa.struct([("cloakgp: text", pa.string()), ("cloakgp: kind", pa.int8())])


def mixed_column(cells: Sequence[object]) -> Any:
    """Return a column of cells as Python has them, which may be of any types.

    Parameters
    ----------
    cells : sequence of object

    Examples
    --------
    >>> column = mixed_column([845.125, "845.125", None])
    >>> texts_of(column).to_pylist(), kinds_of(column).tolist()
    (['845.125', '845.125', None], [1, 0, 0])
    """
    texts = pa.array([write_cell(cell) or None for cell in cells], pa.string())
    kinds = pa.array([_kind(cell) for cell in cells], pa.int8())
    return pa.StructArray.from_arrays([texts, kinds], fields=list(MIXED))


def _kind(cell: object) -> int:
    if isinstance(cell, bool):
        return TRUTH
    if isinstance(cell, int | float | Decimal):
        return NUMBER
    return TIME if isinstance(cell, dt.date) else TEXT


def is_mixed(kind: Any) -> bool:
    """Return whether a type is that of `mixed_column`.

    Parameters
    ----------
    kind : pyarrow.DataType

    Examples
    --------
    >>> is_mixed(mixed_column([1]).type), is_mixed(pa.string())
    (True, False)
    """
    return bool(kind == MIXED)


def texts_of(column: Any) -> Any:
    """Return a column with text in the place of cells with a type each; others as they are.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray

    Examples
    --------
    >>> texts_of(mixed_column([True, 2.0])).to_pylist(), texts_of(pa.array([2.0])).to_pylist()
    (['true', '2'], [2.0])
    """
    return pc.struct_field(column, 0) if is_mixed(column.type) else column


def kinds_of(column: Any) -> NDArray[np.int8]:
    """Return the kinds of cells with a type each, shape (n,); of one that is missing, text.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray

    Examples
    --------
    >>> kinds_of(mixed_column([True, 2.0, "2", float("nan")])).tolist()
    [2, 1, 0, 0]
    """
    there = pc.is_valid(pc.struct_field(column, 0)).to_numpy(zero_copy_only=False)
    kinds = pc.struct_field(column, 1).to_numpy(zero_copy_only=False)
    return np.where(there, kinds, TEXT).astype(np.int8)


def objects_of(column: Any) -> list[Any]:
    """Return cells as Python has them.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray

    Examples
    --------
    >>> objects_of(mixed_column([3, 2.5, "2", False, dt.date(2020, 1, 29), None]))
    [3, 2.5, '2', False, datetime.datetime(2020, 1, 29, 0, 0), None]
    """
    if not is_mixed(column.type):
        return list(column.to_pylist())
    texts, kinds = texts_of(column).to_pylist(), kinds_of(column).tolist()
    return [_object(text, kind) for text, kind in zip(texts, kinds, strict=True)]


def _object(text: str, kind: int) -> Any:
    if kind == NUMBER:
        return int(text) if text.removeprefix("-").isdigit() else read_entry(text)
    if kind == TRUTH:
        return text == "true"
    return dt.datetime.fromisoformat(text) if kind == TIME else text
