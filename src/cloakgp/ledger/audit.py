"""Audit of a ledger: edits, gaps and rollbacks.

Every entry's digest must follow from the one before; the tables must be what the entries make when
they are followed anew; and the chain must reach the anchor, which lies outside of the database.
Whoever can write to the database can write a whole chain anew: the anchor, and the receipts and
exports that others hold, are what such a chain cannot meet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cloakgp.ledger import projection, schema
from cloakgp.ledger.chain import GENESIS, linked
from cloakgp.ledger.database import RowsInTables
from cloakgp.ledger.errors import DamagedLedgerError
from cloakgp.ledger.keys import Anchor
from cloakgp.utils.extras import extra

with extra("ledger"):
    from sqlalchemy.engine import Connection

# That many are told, and how many more there are.
MOST_FINDINGS = 20


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Attributes
    ----------
    entries : int
        How many there are.
    digest : str
        Of the last: worth noting elsewhere.
    findings : tuple of str
        What is wrong; empty if nothing is.
    """

    entries: int
    digest: str
    findings: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


def audit(connection: Connection, *, anchor: Anchor) -> Audit:
    """Check a ledger as one transaction sees it.

    Parameters
    ----------
    connection : Connection
    anchor : Anchor
    """
    head = connection.execute(schema.head.select()).mappings().one()
    rows = projection.RowsInMemory()
    number, digest, findings = 0, GENESIS, []
    digests: dict[int, str] = {}
    query = schema.entries.select().order_by(schema.entries.c.number)
    for entry in connection.execute(query.execution_options(yield_per=1000)):
        if entry.number != number + 1:
            findings.append(f"entries {number + 1} to {entry.number - 1} are missing")
        if linked(digest, entry.body) != entry.digest:
            findings.append(f"entry {entry.number} is not what was written, or does not follow")
        findings += _followed(entry.number, entry.body, rows)
        number, digest = entry.number, entry.digest
        digests[number] = digest
    if (number, digest) != (head["number"], head["digest"]):
        findings.append(f"the ledger ends at entry {number}, and should at {head['number']}")
    findings += _differences(rows, RowsInTables(connection))
    findings += _anchored(anchor, digests)
    if len(findings) > MOST_FINDINGS:
        rest = len(findings) - MOST_FINDINGS
        findings = [*findings[:MOST_FINDINGS], f"and {rest} more"]
    return Audit(entries=len(digests), digest=digest, findings=tuple(findings))


def _followed(number: int, body: str, rows: projection.RowsInMemory) -> Iterator[str]:
    try:
        content: Mapping[str, Any] = json.loads(body)
        if content["number"] != number:
            yield f"entry {number} says that it is entry {content['number']}"
        projection.project(content, rows)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        yield f"entry {number} makes no sense after those before it ({error})"


def _differences(made: projection.RowsInMemory, kept: RowsInTables) -> Iterator[str]:
    for table, key in projection.KEYED_BY.items():
        there = {row[key]: row for row in kept.all(table)}
        wanted = made.tables[table]
        for place in sorted(there.keys() | wanted.keys(), key=str):
            if there.get(place) != wanted.get(place):
                yield f"{table}: {place} is not what the entries make it"


def _anchored(anchor: Anchor, digests: Mapping[int, str]) -> Iterator[str]:
    try:
        noted = anchor.read()
    except DamagedLedgerError as error:
        yield str(error)
        return
    if noted is None:
        yield f"there is no anchor at {anchor.path}: whether entries were taken back is not known"
        return
    number, digest = noted
    if number and digests.get(number) != digest:
        yield f"the ledger was put back to before entry {number}, or is another since then"
