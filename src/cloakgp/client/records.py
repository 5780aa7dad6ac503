"""Records: what the service answers, as frozen dataclasses.

Times are text in ISO 8601, as they are sent. What a newer service says besides is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

Record = TypeVar("Record")


def read(kind: type[Record], sent: Mapping[str, Any]) -> Record:
    """Return a record from what was sent.

    Parameters
    ----------
    kind : type
        A dataclass of this module.
    sent : mapping

    Examples
    --------
    >>> read(Budget, {"epsilon": 1.0, "delta": 0.0, "new": None})
    Budget(epsilon=1.0, delta=0.0)
    """
    known = {field.name: sent[field.name] for field in fields(kind)}  # type: ignore[arg-type]
    for name, inner in NESTED.get(kind, {}).items():
        if known[name] is not None:
            known[name] = read(inner, known[name])
    return kind(**known)


@dataclass(frozen=True)
class Budget:
    """A pair (ε, δ)."""

    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class Account:
    """What was spent of an account; amounts are ε at the limit's δ."""

    name: str
    unit: str
    limit: Budget
    spent: float
    held: float
    left: float
    charges: int
    approval: Budget | None
    share: Budget | None
    mine: float | None


@dataclass(frozen=True)
class Table:
    """A table of which releases can be asked."""

    id: int
    name: str
    account: str
    note: str
    output: str
    bounds: tuple[float, float] | None
    classes: list[str]
    inputs: list[str]
    described: dict[str, str]
    table_schema: str
    person: str
    rows: int
    created: str
    withdrawn: bool


@dataclass(frozen=True)
class Plan:
    """A release before it is made: `facts` in words, `plan` as numbers."""

    facts: list[dict[str, str]]
    budgets: list[list[str]]
    plan: dict[str, Any]
    releases_left: int
    mine_left: int | None
    needs_approval: bool


@dataclass(frozen=True)
class Job:
    """The making of a release."""

    id: int
    request: int
    state: str
    step: str
    share: float | None
    failure: str
    attempts: int
    created: str
    finished: str | None


@dataclass(frozen=True)
class Request:
    """A release that was asked for, and what came of it."""

    id: int
    table: int
    table_name: str
    account: str
    person: str
    purpose: str
    choices: dict[str, Any]
    needs_approval: bool
    state: str
    decided_by: str | None
    remark: str
    created: str
    job: Job | None
    release: int | None


@dataclass(frozen=True)
class Release:
    """A release that was made."""

    id: int
    request: int
    table: int
    table_name: str
    output: str
    person: str
    purpose: str
    epsilon: float
    delta: float
    digest: str
    size: int
    charge: int
    created: str


@dataclass(frozen=True)
class Predictions:
    """Predictions: a row for each that was asked; None where there is none."""

    columns: list[str]
    rows: list[list[float | str | None]]


NESTED: dict[type, dict[str, type]] = {
    Account: {"limit": Budget, "approval": Budget, "share": Budget},
    Request: {"job": Job},
}
