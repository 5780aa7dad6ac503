"""Admission of files: what a site may write into an exchange, and when, and what it may read.

In a folder everybody may write everything, and sites and coordinator find what is wrong when they
read it. Whoever keeps the exchange for others asks here first: a file that a site sends is taken if
it is the site's own, about what is asked now, and of the right form. The rules are those by which
the coordinator reads (`cloakgp.custodians.files`); what may be read is what a site goes by.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from cloakgp.custodians.errors import CustodiansError
from cloakgp.custodians.exchange import PLAN, RELEASE, ROSTER, Exchange
from cloakgp.custodians.files import (
    COMPLETE,
    REQUEST,
    attempt_file,
    inputs_file,
    inputs_from_bytes,
    member_file,
    names_from_bytes,
    persons_of,
    question_file,
    read_answer,
    read_opening,
)
from cloakgp.custodians.plan import SITE_NAME, Member, Plan, digest_of
from cloakgp.custodians.progress import latest_attempt
from cloakgp.custodians.request import Request

_SITE = rf"(?P<site>{SITE_NAME.pattern})"
_NUMBER = "[1-9][0-9]{0,5}"
_QUESTION = rf"attempt-(?P<attempt>{_NUMBER})/question-(?P<number>{_NUMBER})"
OF_A_SITE = {
    "inputs": re.compile(rf"sites/{_SITE}\.npy"),
    "member": re.compile(rf"sites/{_SITE}\.json"),
    "answer": re.compile(rf"{_QUESTION}/answers/{_SITE}\.json"),
    "opening": re.compile(rf"{_QUESTION}/openings/{_SITE}\.json"),
}
# What was agreed, and what came of it.
_AGREED = (
    rf"{re.escape(PLAN)}|{re.escape(ROSTER)}|{re.escape(RELEASE)}|attempt-{_NUMBER}/members\.json"
)
OF_ALL = re.compile(
    rf"{_AGREED}"
    rf"|attempt-{_NUMBER}/question-{_NUMBER}/({re.escape(REQUEST)}|{re.escape(COMPLETE)})"
)
LASTING = re.compile(rf"{_AGREED}|sites/{_SITE}\.json")
Kind = Literal["inputs", "member", "answer", "opening"]


@dataclass(frozen=True)
class SiteFile:
    """A file of a site, by its name.

    Attributes
    ----------
    kind : {"inputs", "member", "answer", "opening"}
    site : str
    attempt, number : int
        Of the question that it is about; 0 of files about none.
    """

    kind: Kind
    site: str
    attempt: int = 0
    number: int = 0

    @classmethod
    def named(cls, name: str) -> SiteFile | None:
        """Return the file of a name, None if sites write none of this name.

        Examples
        --------
        >>> SiteFile.named("attempt-1/question-2/answers/north.json")
        SiteFile(kind='answer', site='north', attempt=1, number=2)
        >>> SiteFile.named("roster.json")
        """
        for kind, pattern in OF_A_SITE.items():
            found = pattern.fullmatch(name)
            if found is not None:
                parts = found.groupdict()
                place = (int(parts.get("attempt", 0)), int(parts.get("number", 0)))
                return cls(kind, parts["site"], *place)  # type: ignore[arg-type]
        return None


def may_read(name: str, *, site: str) -> bool:
    """Return whether a site goes by a file: the schedule, the release, and what it wrote.

    Parameters
    ----------
    name : str
    site : str
        Empty for a reader who is none of the sites.

    Examples
    --------
    >>> may_read("plan.json", site=""), may_read("sites/north.json", site="south")
    (True, False)
    """
    own = SiteFile.named(name)
    return OF_ALL.fullmatch(name) is not None or (own is not None and own.site == site)


def is_lasting(name: str) -> bool:
    """Return whether a file says what was agreed, or what came of it, and not how it came about.

    All others can go when the release is there, or the plan is given up: public inputs, questions,
    answers, opened masks and sums. A site that goes on then finds no question, and does nothing;
    what it needs lies in its own folder.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> is_lasting("roster.json"), is_lasting("sites/north.json"), is_lasting("sites/north.npy")
    (True, True, False)
    """
    return LASTING.fullmatch(name) is not None


def admit_file(exchange: Exchange, *, site: str, name: str, content: bytes) -> bool:
    """Write a file that a site sends, and return whether it is new.

    The same file may be sent any number of times, at any time: an answer that was lost on its way
    back is asked for again.

    Parameters
    ----------
    exchange : Exchange
    site : str
        Who sends it, as the plan has it.
    name : str
    content : bytes

    Raises
    ------
    CustodiansError
        If it is not a file of this site, comes too late or too early, is about something else than
        is asked, or was sent before and was another. Nothing is written then.
    """
    sent = SiteFile.named(name)
    if sent is None or sent.site != site:
        raise CustodiansError(f"{name} is no file that {site} writes")
    plan = Plan.from_bytes(exchange.get(PLAN) or b"")
    if site not in plan.sites:
        raise CustodiansError(f"{site} is none of the sites of the plan")
    if exchange.has(name):
        exchange.put(name, content)
        return False
    if exchange.has(RELEASE):
        raise CustodiansError("too late: the release is there, and nothing more is taken")
    if sent.kind in ("inputs", "member"):
        _check_joining(exchange, plan, sent, content)
    else:
        _check_answering(exchange, sent, content)
    exchange.put(name, content)
    return True


def _check_joining(exchange: Exchange, plan: Plan, sent: SiteFile, content: bytes) -> None:
    if exchange.has(ROSTER):
        raise CustodiansError(f"too late: the others go on without {sent.site}")
    if sent.kind == "inputs":
        _check_inputs(content, plan)
        return
    member = Member.from_bytes(content)
    if member.name != sent.site or member.plan != plan.digest:
        raise CustodiansError(f"{sent.site} joined another plan")
    inputs = exchange.get(inputs_file(sent.site))
    if inputs is None or digest_of(inputs) != member.inputs:
        raise CustodiansError(f"the public inputs of {sent.site} are not those it joined with")
    _check_inputs(inputs, plan, rows=member.rows)
    for other in plan.sites:
        known = exchange.get(member_file(other))
        if known is not None and Member.from_bytes(known).point == member.point:
            raise CustodiansError(f"{sent.site} has the key of {other}: each has one of its own")


def _check_inputs(content: bytes, plan: Plan, *, rows: int | None = None) -> None:
    X = inputs_from_bytes(content, columns=plan.sent_columns, rows=rows)
    if plan.grouped:
        persons_of(X)


def _check_answering(exchange: Exchange, sent: SiteFile, content: bytes) -> None:
    latest = latest_attempt(exchange)
    if sent.attempt < latest:
        raise CustodiansError(
            f"too late: the question is void, and attempt {latest} goes on in its place"
        )
    asked = exchange.get(question_file(sent.attempt, sent.number, REQUEST))
    members = exchange.get(attempt_file(sent.attempt))
    if asked is None or members is None:
        raise CustodiansError("there is no such question yet")
    if sent.site not in names_from_bytes(members):
        raise CustodiansError(f"{sent.site} is not asked")
    request, digest = Request.from_bytes(asked), digest_of(asked)
    if sent.kind == "answer":
        read_answer(content, site=sent.site, request=digest, count=request.numbers)
        return
    if not exchange.has(question_file(sent.attempt, sent.number, COMPLETE)):
        raise CustodiansError("not all that were asked have answered: masks stay closed")
    read_opening(content, site=sent.site, request=digest)
