"""Rules and shares of accounts, and the order of budgets by which a change lets more be spent.

An analyst does not raise what may be spent, and no person raises it alone: a change that lets more
be spent waits as a proposal until a second person confirms it. A change that lets less be spent
takes effect at once.
"""

from __future__ import annotations

import math

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloakgp.privacy.spending import Budget
from cloakgp.service.access import Role
from cloakgp.service.errors import ForbiddenError
from cloakgp.service.messages import NewRules, PrivacyBudget
from cloakgp.service.models import Person, Request, Rules, Share, Table

NOTHING: Budget = (0.0, 0.0)
EVERYTHING: Budget = (math.inf, math.inf)


def is_more(before: Budget, after: Budget) -> bool:
    """Return whether a budget allows a cost that another does not.

    Examples
    --------
    >>> is_more((1.0, 1e-6), (0.5, 1e-6)), is_more((1.0, 1e-6), (0.5, 1e-5))
    (False, True)
    """
    return after[0] > before[0] or after[1] > before[1]


def lets_more(before: NewRules, after: NewRules) -> bool:
    """Return whether other rules let more be spent without approval, or at all.

    Examples
    --------
    >>> some = PrivacyBudget(epsilon=1.0)
    >>> lets_more(NewRules(), NewRules(approval=some)), lets_more(NewRules(), NewRules(share=some))
    (True, False)
    """
    return is_more(pair_of(before.approval, NOTHING), pair_of(after.approval, NOTHING)) or is_more(
        pair_of(before.share, EVERYTHING), pair_of(after.share, EVERYTHING)
    )


def pair_of(budget: PrivacyBudget | None, default: Budget) -> Budget:
    """Return a budget's pair, or the meaning of a missing one."""
    return default if budget is None else budget.pair


def budget_text(budget: PrivacyBudget | None) -> str:
    """Return a budget as the audit trail writes it.

    Examples
    --------
    >>> budget_text(PrivacyBudget(epsilon=0.5)), budget_text(None)
    ('(0.5, 0)', 'none')
    """
    return "none" if budget is None else f"({budget.epsilon:g}, {budget.delta:g})"


def rules_of(rules: Rules) -> NewRules:
    """Return the rules of a row as a message."""
    approval, share = None, None
    if rules.approval_epsilon:
        approval = PrivacyBudget(epsilon=rules.approval_epsilon, delta=rules.approval_delta)
    if rules.share_epsilon is not None and rules.share_delta is not None:
        share = PrivacyBudget(epsilon=rules.share_epsilon, delta=rules.share_delta)
    return NewRules(approval=approval, share=share)


def set_rules(rules: Rules, new: NewRules) -> None:
    """Write rules to a row."""
    approval, share = new.approval, new.share
    rules.approval_epsilon, rules.approval_delta = approval.pair if approval else NOTHING
    rules.share_epsilon, rules.share_delta = share.pair if share else (None, None)


def put_share(session: Session, account: str, person: int, budget: PrivacyBudget | None) -> None:
    """Give a person a share of their own; None for the share of all."""
    share = session.get(Share, (account, person))
    if share is not None:
        session.delete(share)
        session.flush()
    if budget is not None:
        epsilon, delta = budget.pair
        session.add(Share(account=account, person_id=person, epsilon=epsilon, delta=delta))


def check_apart(session: Session, person: int, account: str | None = None) -> None:
    """Refuse an analyst.

    The roles of the person count, and not those of the token by which they came.

    Parameters
    ----------
    session : Session
        Of the database.
    person : int
    account : str, optional
        Account of which they must not have requested a release either.

    Raises
    ------
    ForbiddenError
    """
    row = session.get(Person, person)
    assert row is not None
    is_analyst = Role.ANALYST in row.roles
    if not is_analyst and account is not None:
        query = select(Request.id).join(Table).where(Table.account == account)
        is_analyst = session.scalar(query.where(Request.person_id == person).limit(1)) is not None
    if is_analyst:
        raise ForbiddenError(
            "a person who requests releases cannot decide about budgets: another person, without "
            "the role of an analyst, has to"
        )
