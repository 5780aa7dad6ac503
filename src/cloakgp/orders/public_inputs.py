"""Public inputs of a table, as a ledger compares them with private columns.

A ledger recognises a column by its entries in any order. What was attached may have had its empty
cells left out, or counted as a value: an input is compared in these forms, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cloakgp.orders.options import SourceTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

Read = Callable[[], "list[NDArray[Any]]"]


def public_inputs(
    source: SourceTable, *, classes: Sequence[str] = (), others: Sequence[str] = ()
) -> dict[str, Read]:
    """Return functions that read the public columns of a table, by name.

    Parameters
    ----------
    source : SourceTable
    classes, others : sequence of str
        As for `SourceTable.raw_rows`.

    Raises
    ------
    ValueError
        If the table's public columns cannot be read.
    """
    return inputs_named(source, source.raw_rows(classes=classes, others=others).schema.sources)


def inputs_named(
    source: SourceTable, names: Sequence[str], *, fills: Sequence[str] = ()
) -> dict[str, Read]:
    """Return functions that read columns of a table, and its exposure, by name.

    Parameters
    ----------
    source : SourceTable
    names : sequence of str
    fills : sequence of str
        As for `read_forms`.
    """
    taken = [*names, *([source.exposure] if source.exposure else [])]
    return {name: partial(read_forms, source, name, fills) for name in taken}


def read_forms(source: SourceTable, name: str, fills: Sequence[str] = ()) -> list[NDArray[Any]]:
    """Return a column in all forms in which it may have been attached as a private one.

    Parameters
    ----------
    source : SourceTable
    name : str
    fills : sequence of str
        What empty private cells count as in tables of the account.

    Returns
    -------
    list of arrays
        Empty where the column cannot be read as a private one.
    """
    from cloakgp.data.tables import read_private
    from cloakgp.privacy.entries import read_entries

    try:
        cells = read_private(source.path, output=name, table_format=source.table_format)
    except ValueError:
        # It could not have been attached.
        return []
    empty = read_entries(cells).missing.ravel()
    forms = [cells]
    if empty.any():
        forms.append(cells[~empty])
        for fill in fills:
            filled = cells.copy()
            filled[empty] = fill
            forms.append(filled)
    return forms
