"""Answers of the service: records, and errors by the kinds of its refusals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar


class ClientError(ValueError):
    """The service refuses a request, or does not answer.

    Attributes
    ----------
    key : str or None
        Of a request for a release: asked again with it, the same request is never taken twice.
    """

    key: str | None = None


class NoAnswerError(ClientError):
    """The service does not answer, or a proxy answers in its place."""


class InvalidError(ClientError):
    """The request makes no sense."""


class UnknownTokenError(ClientError):
    """The token is not valid, or not any more."""


class ForbiddenError(ClientError):
    """The token's roles do not allow this."""


class NotFoundError(ClientError):
    """There is no such thing."""


class ConflictError(ClientError):
    """A row is not in the state for this."""


class NoRoomError(ClientError):
    """A limit leaves no room."""


class TooManyError(ClientError):
    """There were too many requests in a short time."""


class TooLargeError(ClientError):
    """The request is larger than the service takes."""


class UnavailableError(ClientError):
    """The service cannot do this now."""


class JobFailedError(ClientError):
    """A job has failed, or was cancelled."""


KINDS: dict[str, type[ClientError]] = {
    "invalid": InvalidError,
    "unauthenticated": UnknownTokenError,
    "forbidden": ForbiddenError,
    "not-found": NotFoundError,
    "conflict": ConflictError,
    "no-room": NoRoomError,
    "too-many": TooManyError,
    "too-large": TooLargeError,
    "unavailable": UnavailableError,
}


ANOTHER_VERSION = "take the version of the client that the service has"

Record = TypeVar("Record")
Form = TypeVar("Form")


def read(kind: type[Record], sent: Mapping[str, Any]) -> Record:
    """Return the record of an answer.

    Parameters
    ----------
    kind : type
        A dataclass of this module.
    sent : mapping

    Raises
    ------
    NoAnswerError
        If it lacks a value.

    Examples
    --------
    >>> read(PrivacyBudget, {"epsilon": 1.0, "delta": 0.0, "new": None})
    PrivacyBudget(epsilon=1.0, delta=0.0)
    """
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    if not isinstance(sent, Mapping) or not set(names) <= set(sent):
        raise NoAnswerError(
            f"the service's answer has no {kind.__name__.lower()} as this version knows it: "
            f"{ANOTHER_VERSION}"
        )
    known = {name: sent[name] for name in names}
    for name, inner in NESTED.get(kind, {}).items():
        if isinstance(known[name], list):
            known[name] = [read(inner, each) for each in known[name]]
        elif known[name] is not None:
            known[name] = read(inner, known[name])
    return kind(**known)


def read_all(kind: type[Record], sent: Any) -> list[Record]:
    """Return the records of an answer that lists them.

    Raises
    ------
    NoAnswerError
        If it does not, or one lacks a value.

    Examples
    --------
    >>> read_all(PrivacyBudget, [{"epsilon": 1.0, "delta": 0.0}])
    [PrivacyBudget(epsilon=1.0, delta=0.0)]
    """
    return [read(kind, each) for each in check_form(sent, list)]


def check_form(sent: Any, form: type[Form]) -> Form:
    """Return a part of an answer, if it is of a form.

    Raises
    ------
    NoAnswerError
        If it is not.

    Examples
    --------
    >>> check_form({"id": "a"}, dict)
    {'id': 'a'}
    """
    if isinstance(sent, form):
        return sent
    raise NoAnswerError(
        f"the service's answer has another form than this version knows: {ANOTHER_VERSION}"
    )


@dataclass(frozen=True)
class PrivacyBudget:
    """A pair (ε, δ)."""

    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class Account:
    """An account and the use of its limit.

    Attributes
    ----------
    used, held : float
        Shares of the limit, from 0 to 1, that are used, and reserved for approved requests.
    left : float
        The largest ε of one more release, at the limit's δ and of any noise.
    epsilon_if_fixed : float
        Of all charges, if every price had been fixed before the first answer.
    cohorts : dict of str to float
        Used shares of the limit for the people of each disjoint table.
    mine : float or None
        One's own use of one's own share, or of the limit.
    """

    name: str
    unit: str
    limit: PrivacyBudget
    used: float
    held: float
    left: float
    epsilon_if_fixed: float
    charges: int
    cohorts: dict[str, float]
    approval: PrivacyBudget | None
    share: PrivacyBudget | None
    mine: float | None


@dataclass(frozen=True)
class Table:
    """A table that is open to requests."""

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
    people: str
    rows: int
    created: str
    withdrawn: bool


@dataclass(frozen=True)
class Plan:
    """A plan of a release: `facts` in words, `plan` as numbers, and the choices that have room."""

    facts: list[dict[str, str]]
    budgets: list[list[str]]
    plan: dict[str, Any]
    choices: dict[str, Any]
    releases_left: int
    mine_left: int | None
    needs_approval: bool


@dataclass(frozen=True)
class Job:
    """A job that makes a release."""

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
    """A request for a release, and its result."""

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
class JointSite:
    """A custodian of a joint request."""

    name: str
    person: str
    rows: int | None
    missing: bool


@dataclass(frozen=True)
class JointRequest:
    """A request for one release of several custodians, and who comes next.

    Attributes
    ----------
    stage : str
        "join", "answer" or "open": what sites do next; "collect" if the service comes next, and
        "done" at the end.
    asked, missing : list of str
        The sites that are to do it, and those of them who have not.
    persons : str
        Who is protected, where all rows of a person are together; empty where rows are.
    problem : str
        Why the service cannot go on; empty if it can.
    """

    id: int
    person: str
    purpose: str
    created: str
    closed: bool
    output: str
    inputs: list[str]
    epsilon: float
    delta: float
    colluding: int
    persons: str
    plan_digest: str
    roster_digest: str
    stage: str
    attempt: int
    question: int
    asked: list[str]
    missing: list[str]
    sites: list[JointSite]
    problem: str


@dataclass(frozen=True)
class Release:
    """A published release."""

    id: int
    request: int
    table: int
    table_name: str
    output: str
    person: str
    purpose: str
    epsilon: float
    delta: float
    after: int | None
    digest: str
    size: int
    charge: int
    created: str


@dataclass(frozen=True)
class Predictions:
    """Predictions, one row for each row of the request; None where there is none.

    Remarks are about levels that no row of the table had, rows without a prediction, and numbers
    outside of what was asked.
    """

    columns: list[str]
    rows: list[list[float | str | None]]
    remarks: list[str]


NESTED: dict[type, dict[str, type]] = {
    Account: {"limit": PrivacyBudget, "approval": PrivacyBudget, "share": PrivacyBudget},
    Request: {"job": Job},
    JointRequest: {"sites": JointSite},
}
