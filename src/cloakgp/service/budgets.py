"""Budgets of accounts: their charges, the room that requests hold, and the shares of analysts.

The ledger alone holds spent budgets, by the key of each request. A caller that decides about a
request holds the account's rules locked, so that two requests never count on the same room. A
request holds room for the most that it may draw: limits, shares and thresholds have room for it
with each of its noises. A request that waits for approval holds room of its analyst's share, and
of the account's limit only from its approval on: so no analyst blocks an account by requests.

Tables of disjoint people are cohorts of their account (`cloakgp.ledger`): what is asked of one does
not count for the people of another, in limits, shares and thresholds alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloakgp.ledger import projection
from cloakgp.ledger.accounts import Standing, standing_of
from cloakgp.ledger.database import TableStore
from cloakgp.privacy.budgets import SMALLEST_EPSILON
from cloakgp.privacy.filters import (
    Amount,
    Costs,
    costs_of_release,
    has_room,
    releases_left,
    used_by,
)
from cloakgp.privacy.spending import Budget
from cloakgp.service.messages import LARGEST_EPSILON, Choices
from cloakgp.service.models import UNFINISHED, Request, Rules, Share, Table
from cloakgp.utils.bisection import bracket
from cloakgp.utils.names import AUTO

# Halvings in the search for the largest ε.
HALVINGS = 24


@dataclass(frozen=True)
class Charges:
    """The charges of several requests together.

    Attributes
    ----------
    spent : Amount
        The sum of the ledger.
    pending : tuple of Costs
        The costs, with each of its noises, of each request that may still draw and is not in the
        ledger.
    """

    spent: Amount
    pending: tuple[Costs, ...]

    def fits(self, limit: Budget, *, beside: Costs | None = None) -> bool:
        """Return whether a limit has room for all of them, and for one request beside."""
        more = () if beside is None else (beside,)
        return has_room(self.spent, [*self.pending, *more], limit=limit)

    def used(self, limit: Budget) -> float:
        """Return the share of a limit that they use, from 0 to 1."""
        return used_by(self.spent, self.pending, limit=limit)

    def releases_left(self, costs: Costs, *, limit: Budget) -> int:
        """Return the number of further releases of one kind for which a limit has room."""
        return releases_left(self.spent, costs, limit=limit, pending=self.pending)


@dataclass(frozen=True)
class CohortCharges:
    """The charges about people of several cohorts: everybody pays for those about their own.

    Attributes
    ----------
    by_cohort : mapping of str to Charges
        For the people of each cohort, those about them and about everybody; "" for all others.
    """

    by_cohort: Mapping[str, Charges]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is charged or pending."""
        return all(not one.pending and one.spent == Amount() for one in self.by_cohort.values())

    def fits(self, limit: Budget, *, beside: Costs | None = None) -> bool:
        """Return whether a limit has room for all of them, and for one request beside."""
        return all(one.fits(limit, beside=beside) for one in self.by_cohort.values())

    def used(self, limit: Budget) -> float:
        """Return the largest share of a limit that is used for anybody, from 0 to 1."""
        return max(one.used(limit) for one in self.by_cohort.values())

    def releases_left(self, costs: Costs, *, limit: Budget) -> int:
        """Return the number of further releases of one kind for which a limit has room."""
        return min(one.releases_left(costs, limit=limit) for one in self.by_cohort.values())


def costs_of(choices: Choices) -> Costs:
    """Return the largest costs of a request, with each noise that its choices leave open.

    Rows that are kept out for margins are asked one question with the whole budget, and no other
    question is about them: it adds nothing.
    """
    return costs_of_release(choices.epsilon, choices.delta, noise=choices.noise)


@dataclass(frozen=True)
class Room:
    """The room that one analyst's next request has.

    Attributes
    ----------
    limit : (float, float)
        Of the account.
    account : CohortCharges
    share : (float, float) or None
        The most that the analyst may spend; None if the account's limit alone counts.
    mine : CohortCharges
        Of the analyst.
    """

    limit: Budget
    account: CohortCharges
    share: Budget | None
    mine: CohortCharges

    @classmethod
    def of(cls, session: Session, rules: Rules, person: int, cohort: str) -> Room:
        """Return the room in an account for a table of a cohort, as the session sees it."""
        return cls(
            limit=standing(session, rules.account).limit,
            account=charges_of_account(session, rules.account, cohort),
            share=share_of(session, rules, person),
            mine=charges_of_person(session, rules.account, person, cohort),
        )

    def in_share(self, costs: Costs) -> bool:
        """Return whether the analyst's share has room for one release."""
        return self.share is None or self.mine.fits(self.share, beside=costs)

    def in_account(self, costs: Costs) -> bool:
        """Return whether the account's limit has room for one release."""
        return self.account.fits(self.limit, beside=costs)

    def choose(self, choices: Choices) -> Choices:
        """Return choices without their δ where that makes room for them, otherwise as they are.

        A request holds room for each noise that its choices leave open. Where there is none for
        noise that spends δ, a δ that is allowed is no reason to refuse noise that needs none:
        without it no other can be drawn, and what is held covers that.

        Parameters
        ----------
        choices : Choices

        Examples
        --------
        >>> nothing = CohortCharges({"": Charges(spent=Amount(), pending=())})
        >>> asked = Choices(epsilon=1.0, delta=1e-6)
        >>> rooms = [Room((1.0, delta), nothing, None, nothing) for delta in (0.0, 1e-6)]
        >>> [room.choose(asked).delta for room in rooms]
        [0.0, 1e-06]
        """

        def fits(one: Choices) -> bool:
            costs = costs_of(one)
            return self.in_share(costs) and self.in_account(costs)

        if choices.noise != AUTO or not choices.delta or fits(choices):
            return choices
        without = choices.model_copy(update={"delta": 0.0})
        return without if fits(without) else choices


def standing(session: Session, account: str) -> Standing:
    """Return the standing of an account, as the session sees it."""
    return standing_of(account, session.connection())


def requests_of(session: Session, account: str, person: int | None = None) -> list[Request]:
    """Return the requests about an account, of all people or of one."""
    query = select(Request).join(Table).where(Table.account == account).order_by(Request.id)
    if person is not None:
        query = query.where(Request.person_id == person)
    return list(session.scalars(query))


def is_under_way(request: Request) -> bool:
    """Return whether a request is approved and may still spend."""
    job = request.job
    return request.state == "approved" and (job is None or job.state in UNFINISHED)


def charges_of_account(session: Session, account: str, cohort: str = "") -> CohortCharges:
    """Return the charges of an account, and the costs that its approved requests may still have.

    Parameters
    ----------
    session : Session
    account : str
    cohort : str
        About whose people alone; empty for everybody.
    """
    rows = TableStore(session.connection())
    pending = [
        request
        for request in requests_of(session, account)
        if is_under_way(request) and not rows.all("charges", account=account, key=request.key)
    ]
    spent = standing(session, account).spent_by
    return CohortCharges(
        {
            name: Charges(
                spent=spent[name],
                pending=tuple(_costs(one) for one in pending if _is_about(one, name)),
            )
            for name in ([cohort] if cohort else spent)
        }
    )


def charges_of_requests(
    session: Session, requests: list[Request], cohort: str = ""
) -> CohortCharges:
    """Return the charges of requests, and the costs that they may still have, by cohorts."""
    names = [cohort] if cohort else ["", *{one.table.cohort for one in requests} - {""}]
    return CohortCharges(
        {
            name: _charges_of(session, [one for one in requests if _is_about(one, name)])
            for name in names
        }
    )


def _is_about(request: Request, cohort: str) -> bool:
    """Return whether a request asks people of a cohort; of everybody else if it is empty."""
    return request.table.cohort in ("", cohort)


def _charges_of(session: Session, requests: list[Request]) -> Charges:
    rows = TableStore(session.connection())
    spent, pending = Amount(), []
    for request in requests:
        charges = rows.all("charges", account=request.table.account, key=request.key)
        if charges:
            spent += _held_amount(projection.counted(charges[0]), _costs(request))
        elif request.state == "waiting" or is_under_way(request):
            pending.append(_costs(request))
    return Charges(spent=spent, pending=tuple(pending))


def charges_of_person(
    session: Session, account: str, person: int, cohort: str = ""
) -> CohortCharges:
    """Return the charges of one analyst's requests."""
    return charges_of_requests(session, requests_of(session, account, person), cohort)


def share_of(session: Session, rules: Rules, person: int) -> Budget | None:
    """Return the most that one analyst may spend; None if the account's limit alone counts."""
    share = session.get(Share, (rules.account, person))
    if share is not None:
        return share.epsilon, share.delta
    if rules.share_epsilon is None or rules.share_delta is None:
        return None
    return rules.share_epsilon, rules.share_delta


def needs_approval(
    session: Session, rules: Rules, person: int, costs: Costs, cohort: str = ""
) -> bool:
    """Return whether a release needs approval, after all releases without approval."""
    if not rules.approval_epsilon:
        return True
    unseen = [
        request
        for request in requests_of(session, rules.account, person)
        if not request.needs_approval
    ]
    threshold = rules.approval_epsilon, rules.approval_delta
    return not charges_of_requests(session, unseen, cohort).fits(threshold, beside=costs)


def epsilon_left(charges: Charges | CohortCharges, limit: Budget) -> float:
    """Return the largest ε of one more release at the limit's δ and of any noise, rounded down.

    Examples
    --------
    >>> 0.99 < epsilon_left(Charges(spent=Amount(), pending=()), (1.0, 1e-6)) <= 1.0
    True
    """
    low, high = SMALLEST_EPSILON, min(limit[0], LARGEST_EPSILON)

    def fits(epsilon: float) -> bool:
        return charges.fits(limit, beside=costs_of_release(epsilon, limit[1]))

    if not fits(low):
        return 0.0
    return high if fits(high) else bracket(fits, low, high, steps=HALVINGS)[0]


def _held_amount(drawn: Amount, costs: Costs) -> Amount:
    """Return the charge of a request whose noise was drawn: all of the room that it held.

    The drawn amount may depend on answers, and so may the analyst's next request.
    """
    if drawn == Amount():
        return drawn
    alike = [cost for cost in costs if bool(cost.gaussian) == bool(drawn.gaussian)]
    return reduce(Amount.largest, alike or costs, drawn)


def _costs(request: Request) -> Costs:
    return costs_of(Choices.model_validate(request.choices))
