"""Remarks on public columns: what somebody who checks a schema should know of each.

Levels that become "other", columns that never vary, cells that are empty, and numbers that may name
rows: of public cells, which were read for the schema.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cloakgp.columns.base import Column
from cloakgp.columns.categories import Category
from cloakgp.columns.cells import Cells, cells_of
from cloakgp.columns.identifiers import Identifier
from cloakgp.columns.numbers import Number
from cloakgp.columns.schema import Schema
from cloakgp.utils.formatting import percent

# Of rows, for numbers to be told to name them.
FEW_ROWS = 20


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


def _on_identifier(cells: Cells, *, codes: frozenset[str]) -> tuple[str, ...]:
    texts = [text for text in cells.texts().tolist() if text not in codes and text]
    if not texts:
        return ("all of its cells are empty",)
    different = len(set(texts))
    return (f"taken for an id: {different:,} different values in {cells.count:,} rows",)


def _on_column(column: Column, cells: list[Cells], *, codes: frozenset[str]) -> tuple[str, ...]:
    found = column.read(cells, codes=codes)
    rows, told = len(found.values), []
    if not rows:
        return ()
    gaps = float(found.missing.mean())
    if gaps:
        told.append(f"{percent(gaps)} of its cells are empty")
    there = found.values[~found.missing & np.isfinite(found.values).all(axis=1)]
    if found.unseen is not None and found.unseen.any() and getattr(column, "other", False):
        share = percent(float(found.unseen.mean()))
        told.append(f'{share} of rows count as "other": their levels are rare')
    elif len(there) > 1 and (there == there[0]).all():
        told.append("the same in every row: nothing can be predicted from it")
    if isinstance(column, Category) and not column.levels:
        told.append("it has no levels")
    whole = isinstance(column, Number) and bool((there % 1 == 0).all())
    if whole and len(there) == rows >= FEW_ROWS and _counts(there[:, 0]):
        told.append("it counts the rows: an id, perhaps, or their order")
    return tuple(told)


def _counts(numbers: np.ndarray[Any, np.dtype[np.float64]]) -> bool:
    """Return whether whole numbers are all different, and one after the other."""
    return bool(len(np.unique(numbers)) == len(numbers) == np.ptp(numbers) + 1)
