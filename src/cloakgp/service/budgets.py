"""Budgets of accounts: what was spent, what is held for requests, and what one analyst may spend.

The ledger alone says what was spent, by the key of each request; whoever calls these holds the
account's rules locked, so that two requests never count on the same room.
"""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloakgp.ledger import projection
from cloakgp.ledger.accounts import Standing, standing_of
from cloakgp.ledger.amounts import Amount
from cloakgp.ledger.database import RowsInTables
from cloakgp.privacy.spending import Budget
from cloakgp.service.models import Job, Request, Rules, Share, Table

# Of an ε that there is room for: so many halvings.
HALVINGS = 24
LARGEST_EPSILON = 100.0
# A job in these states may still spend.
UNDER_WAY = ("queued", "running", "drawing")


def standing(session: Session, account: str) -> Standing:
    """Return what was spent of an account, as the session sees it."""
    return standing_of(account, session.connection())


def requests_of(session: Session, account: str, person: int | None = None) -> list[Request]:
    """Return the requests about an account, or one person's."""
    query = select(Request).join(Table).where(Table.account == account).order_by(Request.id)
    if person is not None:
        query = query.where(Request.person_id == person)
    return list(session.scalars(query))


def amount_of(session: Session, request: Request) -> Amount:
    """Return for how much a request counts: what its charge does, or what it may still spend."""
    rows = RowsInTables(session.connection())
    charges = rows.all("charges", account=request.table.account, key=request.key)
    if charges:
        return projection.counted(charges[0])
    return Amount.held([(request.epsilon, request.delta)]) if is_open(request) else Amount()


def is_open(request: Request) -> bool:
    """Return whether a request may still spend."""
    if request.state == "waiting":
        return True
    job: Job | None = request.job
    return request.state == "approved" and (job is None or job.state in UNDER_WAY)


def held(session: Session, account: str) -> Amount:
    """Return what requests may still spend that the ledger does not count yet."""
    rows = RowsInTables(session.connection())
    total = Amount()
    for request in requests_of(session, account):
        if is_open(request) and not rows.all("charges", account=account, key=request.key):
            total += Amount.held([(request.epsilon, request.delta)])
    return total


def share_of(session: Session, rules: Rules, person: int) -> Budget | None:
    """Return what one analyst's requests may add up to; None if only the account's limit does."""
    own = session.get(Share, (rules.account, person))
    if own is not None:
        return own.epsilon, own.delta
    if rules.share_epsilon is None or rules.share_delta is None:
        return None
    return rules.share_epsilon, rules.share_delta


def total(session: Session, requests: list[Request]) -> Amount:
    """Return what requests count for together."""
    amount = Amount()
    for request in requests:
        amount += amount_of(session, request)
    return amount


def needs_approval(session: Session, rules: Rules, person: int, budget: Budget) -> bool:
    """Return whether somebody else must approve a release, after all that needed no approval."""
    if not rules.approval_epsilon:
        return True
    unseen = [
        request
        for request in requests_of(session, rules.account, person)
        if not request.needs_approval
    ]
    amount = total(session, unseen) + Amount.held([budget])
    return not amount.fits((rules.approval_epsilon, rules.approval_delta))


def epsilon_left(spent: Amount, limit: Budget) -> float:
    """Return the ε of one more release at the limit's δ that there is room for, rounded down.

    Examples
    --------
    >>> 0.99 < epsilon_left(Amount(), (1.0, 1e-6)) <= 1.0
    True
    """
    low, high = 0.0, min(limit[0], LARGEST_EPSILON)
    if (spent + Amount.held([(high, limit[1])])).fits(limit):
        return high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        fits = (spent + Amount.held([(middle, limit[1])])).fits(limit)
        low, high = (middle, high) if fits else (low, middle)
    return low
