"""Public columns of tables beside the private ones of their account: none may be both.

Releases hold public columns, row by row. So columns are compared when a table is registered, public
ones with the account's private ones and the private one with public ones, and before noise is
drawn, since files change. Whose column is whose matters: a custodian who makes up a table must not
learn a private column of another one by it (`cloakgp.ledger.marks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from numpy.typing import ArrayLike
from sqlalchemy import select
from sqlalchemy.orm import Session

from cloakgp.columns import schema_from_text
from cloakgp.data.limits import ReadingLimits
from cloakgp.data.raw import DROP, REFUSE
from cloakgp.ledger.keys import new_salt
from cloakgp.orders.options import SourceTable
from cloakgp.orders.public_inputs import read_forms
from cloakgp.privacy.fingerprints import fingerprint_column
from cloakgp.service.models import Table


def public_columns_of(table: Table) -> tuple[str, ...]:
    """Return the public columns of a table, all that releases of it may hold."""
    return tuple(schema_from_text(table.schema).sources)


def private_column_of(table: Table) -> str:
    """Return the name with which the ledger knows the private column of a table."""
    return f"{table.name}: {table.output}"


def own_columns(session: Session, account: str, *, who: str) -> frozenset[str]:
    """Return the private columns of an account whose tables one person registered.

    Parameters
    ----------
    session : Session
    account, who : str
    """
    own: set[str] = set()
    others: set[str] = set()
    for table in session.scalars(select(Table).where(Table.account == account)):
        (own if table.registered_by == who else others).add(private_column_of(table))
    # A name of one's own may be that of another table's column, too.
    return frozenset(own - others)


def fills_of(session: Session, account: str, *more: str) -> tuple[str, ...]:
    """Return what empty private cells count as in tables of an account.

    Parameters
    ----------
    session : Session
    account : str
    *more : str
        What they do in a table that is not registered yet.
    """
    query = select(Table.missing_output).where(Table.account == account)
    found = dict.fromkeys([*session.scalars(query), *more])
    return tuple(each for each in found if each not in (REFUSE, DROP))


def source_of(table: Table, *, limits: ReadingLimits) -> SourceTable:
    """Return a table as a source of single columns."""
    return SourceTable(path=Path(table.path), output=table.output, query=table.query, limits=limits)


def equal_columns(
    private: ArrayLike, source: SourceTable, names: Sequence[str], fills: Sequence[str]
) -> list[str]:
    """Return the columns of a table that have the values of a private one, in any order.

    Parameters
    ----------
    private : array-like
    source : SourceTable
    names, fills : sequence of str
        As for `cloakgp.orders.public_inputs.read_forms`.
    """
    key = bytes.fromhex(new_salt())
    wanted = fingerprint_column(private, key=key)
    return [
        name
        for name in names
        if wanted in {fingerprint_column(form, key=key) for form in read_forms(source, name, fills)}
    ]
