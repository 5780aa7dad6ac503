"""Progress of a plan: what has been done, and who comes next, told by the files that are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

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


def latest_attempt(exchange: Exchange) -> int:
    """Return the number of the latest attempt; 0 before the first."""
    return _count(lambda number: exchange.get(attempt_file(number)) is not None)


def latest_question(exchange: Exchange, attempt: int) -> int:
    """Return the number of the latest question of an attempt; 0 before the first."""
    return _count(lambda number: exchange.get(question_file(attempt, number, REQUEST)) is not None)


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
        missing = tuple(site for site in names if exchange.get(name_of(site)) is None)
        return Progress(stage if missing else "collect", attempt, question, names, missing)

    roster, members = exchange.get(ROSTER), exchange.get(attempt_file(attempt))
    if roster is None:
        return waiting("join", plan.sites, member_file)
    asked = (
        tuple(each.name for each in Roster.from_bytes(roster).members)
        if members is None
        else names_from_bytes(members)
    )
    if exchange.get(RELEASE) is not None:
        return Progress("done", attempt, question, asked)

    def there(what: str) -> bool:
        return exchange.get(question_file(attempt, question, what)) is not None

    if not question or there(TOTAL):
        return Progress("collect", attempt, question, asked)
    stage: Stage = "open" if there(COMPLETE) else "answer"
    of = opening_of if stage == "open" else answer_of
    return waiting(stage, asked, lambda site: question_file(attempt, question, of(site)))


def _count(there: Callable[[int], bool]) -> int:
    latest = 0
    while there(latest + 1):
        latest += 1
    return latest
