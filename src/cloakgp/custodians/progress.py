"""Progress of a plan: what has been done, and who comes next, told by the files that are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from cloakgp.custodians.errors import CustodiansError, waiting_for
from cloakgp.custodians.exchange import RELEASE, ROSTER, Exchange
from cloakgp.custodians.files import (
    COMPLETE,
    REQUEST,
    TOTAL,
    answer_of,
    attempt_file,
    member_file,
    names_from_bytes,
    opening_of,
    question_file,
)
from cloakgp.custodians.plan import Plan, Roster

# What sites do next; or the coordinator comes next, or the release is there.
Stage = Literal["join", "answer", "open", "collect", "done"]
TO_DO: Mapping[Stage, str] = {"join": "join", "answer": "answer", "open": "open their masks"}


@dataclass(frozen=True)
class Progress:
    """What has been done, and who comes next.

    Attributes
    ----------
    stage : {"join", "answer", "open", "collect", "done"}
        What sites do next; "collect" if the coordinator comes next, and "done" at the end.
    attempt, question : int
        The latest, from 1; 0 before there is one.
    asked : tuple of str
        The sites that are to do it: those of the plan, and later those of the attempt.
    missing : tuple of str
        Those of them who have not.
    """

    stage: Stage
    attempt: int = 0
    question: int = 0
    asked: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Who comes next, in words.

        Examples
        --------
        >>> Progress("open", 1, 1, ("north", "south"), ("south",)).words
        'waiting for south to open their masks'
        """
        if self.stage == "done":
            return "the release is there"
        if self.stage == "collect":
            return "the coordinator comes next"
        return waiting_for(self.missing, to=TO_DO[self.stage])


def latest_attempt(exchange: Exchange) -> int:
    """Return the number of the latest attempt; 0 before the first."""
    return _count(lambda number: exchange.has(attempt_file(number)))


def latest_question(exchange: Exchange, attempt: int) -> int:
    """Return the number of the latest question of an attempt; 0 before the first."""
    return _count(lambda number: exchange.has(question_file(attempt, number, REQUEST)))


def progress_of(exchange: Exchange, plan: Plan) -> Progress:
    """Return what has been done of a plan, for a reader of all files.

    Parameters
    ----------
    exchange : Exchange
    plan : Plan
    """
    attempt = latest_attempt(exchange)
    question = latest_question(exchange, attempt) if attempt else 0

    def waiting(stage: Stage, asked: Iterable[str], name_of: Callable[[str], str]) -> Progress:
        names = tuple(asked)
        missing = tuple(site for site in names if not exchange.has(name_of(site)))
        return Progress(stage if missing else "collect", attempt, question, names, missing)

    roster, members = exchange.get(ROSTER), exchange.get(attempt_file(attempt))
    if roster is None:
        return waiting("join", plan.sites, member_file)
    asked = (
        tuple(each.name for each in Roster.from_bytes(roster).members)
        if members is None
        else names_from_bytes(members)
    )
    if exchange.has(RELEASE):
        return Progress("done", attempt, question, asked)

    def there(what: str) -> bool:
        return exchange.has(question_file(attempt, question, what))

    if not question or there(TOTAL):
        return Progress("collect", attempt, question, asked)
    stage: Stage = "open" if there(COMPLETE) else "answer"
    of = opening_of if stage == "open" else answer_of
    return waiting(stage, asked, lambda site: question_file(attempt, question, of(site)))


def progress_from(told: Mapping[str, Any]) -> Progress:
    """Return what a service tells of a joint request.

    Parameters
    ----------
    told : mapping
        With the fields of `Progress`, and others.

    Raises
    ------
    CustodiansError
        If the service tells something that this version does not know.
    """
    if told["stage"] not in get_args(Stage):
        raise CustodiansError("the service is of another version of this package")
    return Progress(
        told["stage"],
        told["attempt"],
        told["question"],
        tuple(told["asked"]),
        tuple(told["missing"]),
    )


def _count(there: Callable[[int], bool]) -> int:
    latest = 0
    while there(latest + 1):
        latest += 1
    return latest
