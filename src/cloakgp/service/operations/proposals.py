"""Proposals: changes of an account that let more be spent, for a second person to confirm.

An analyst does not raise what may be spent, and no person raises it alone: a change of rules or
shares that lets more be spent waits as a proposal until a second person confirms it. A change that
lets less be spent takes effect at once. Budgets are compared by `is_more`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cloakgp.ledger import LedgerError
from cloakgp.privacy.spending import Budget
from cloakgp.service.access import Role, operation
from cloakgp.service.budgets import standing
from cloakgp.service.context import Work
from cloakgp.service.database import lock_rules, newest, note_event, row_of
from cloakgp.service.errors import ConflictError, ForbiddenError
from cloakgp.service.messages import (
    Before,
    ChangeView,
    Id,
    NewLimit,
    NewRules,
    NewShare,
    PrivacyBudget,
    ProposalView,
)
from cloakgp.service.models import Person, Proposal, ProposalKind, Request, Rules, Share, Table, now

NOTHING: Budget = (0.0, 0.0)
EVERYTHING: Budget = (math.inf, math.inf)
# The budgets that each kind may change.
CHANGED: Mapping[ProposalKind, tuple[Literal["limit", "approval", "share"], ...]] = {
    "limit": ("limit",),
    "rules": ("approval", "share"),
    "share": ("share",),
}


@operation
def list_proposals(
    work: Work, *, before: Before = None, most: int = 100, waiting: bool = False
) -> list[ProposalView]:
    """Return proposals, the latest first.

    Parameters
    ----------
    work : Work
    before : int, optional
        The number that all of them come before.
    most : int
    waiting : bool
        Undecided ones alone.
    """
    query = newest(Proposal, before=before, most=most)
    if waiting:
        query = query.where(Proposal.state == "waiting")
    with work.database.reading() as session:
        return [view_of_proposal(each) for each in session.scalars(query)]


@operation
def confirm_proposal(work: Work, proposal: Id) -> ProposalView:
    """Confirm the proposal of another person; it takes effect.

    Raises
    ------
    ConflictError
        If it is decided, or the account has changed since the proposal.
    ForbiddenError
        If it is one's own, or one of both people is an analyst.
    NotFoundError
    """
    with work.database.writing() as session:
        row, rules = _waiting(session, proposal)
        if row.proposed_by_id == work.actor.id:
            raise ForbiddenError("another person has to confirm your proposal")
        check_apart(session, work.actor.id, row.account)
        _check_proposer(session, row)
        if _current(session, rules, row.kind, row.about_id) != row.before:
            row.state = "replaced"
            view = None
        else:
            _decide(session, work, row, confirmed=True)
            _apply(session, rules, row)
            view = view_of_proposal(row)
        content, account, kind = dict(row.content), row.account, row.kind
    if view is None:
        raise ConflictError("the account was changed since: make a new proposal")
    if kind == "limit":
        new = NewLimit.model_validate(content)
        reason = f"{new.reason} (proposal {proposal})"
        try:
            with work.acting():
                work.ledger.change_limit(
                    account, epsilon=new.limit.epsilon, delta=new.limit.delta, reason=reason
                )
        except LedgerError:
            with work.database.writing() as session:
                undone = session.get(Proposal, proposal)
                assert undone is not None
                undone.state, undone.decided_by_id, undone.decided = "waiting", None, None
            raise
    return view


@operation
def reject_proposal(work: Work, proposal: Id) -> ProposalView:
    """Reject the proposal of another person, or take back one's own.

    Raises
    ------
    ConflictError
        If it is decided.
    NotFoundError
    """
    with work.database.writing() as session:
        row, _ = _waiting(session, proposal)
        _decide(session, work, row, confirmed=False)
        return view_of_proposal(row)


def propose(
    session: Session,
    work: Work,
    rules: Rules,
    kind: ProposalKind,
    new: NewLimit | NewRules | NewShare,
    *,
    about: int | None = None,
) -> Proposal:
    """Write a proposal, in the place of one of the same kind that waits.

    Parameters
    ----------
    session : Session
        Of the database.
    work : Work
    rules : Rules
        Of the account, locked.
    kind : {"limit", "rules", "share"}
    new : NewLimit, NewRules or NewShare
    about : int, optional
        The person whose share it changes.
    """
    replace_waiting(session, rules.account, kind, about=about)
    row = Proposal(
        account=rules.account,
        kind=kind,
        content=new.model_dump(mode="json"),
        before=_current(session, rules, kind, about),
        about_id=about,
        proposed_by_id=work.actor.id,
    )
    session.add(row)
    session.flush()
    session.refresh(row)
    note_event(session, who=work.actor, what="change proposed", about=_text(row), person=about)
    return row


def replace_waiting(
    session: Session, account: str, kind: ProposalKind, *, about: int | None = None
) -> None:
    """Close waiting proposals of a kind, which another change replaces.

    Parameters
    ----------
    session : Session
        Of the database.
    account : str
    kind : {"limit", "rules", "share"}
    about : int, optional
        The person whose share they change.
    """
    closed = update(Proposal).where(
        Proposal.account == account,
        Proposal.kind == kind,
        Proposal.state == "waiting",
        Proposal.about_id.is_(None) if about is None else Proposal.about_id == about,
    )
    session.execute(closed.values(state="replaced", decided=now()))


def view_of_proposal(proposal: Proposal) -> ProposalView:
    """Return the view of a proposal."""
    return ProposalView.of(
        proposal,
        person="" if proposal.about is None else proposal.about.name,
        changes=_changes(proposal),
        reason=proposal.content.get("reason", ""),
        proposed_by=proposal.proposed_by.name,
        decided_by=None if proposal.decided_by is None else proposal.decided_by.name,
    )


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


def _waiting(session: Session, proposal: int) -> tuple[Proposal, Rules]:
    row = row_of(session, Proposal, proposal, called="proposal")
    # A second decision at the same time waits here, and then sees the first.
    rules = lock_rules(session, row.account)
    session.refresh(row)
    if row.state != "waiting":
        raise ConflictError(f"the proposal is {row.state}")
    return row, rules


def _check_proposer(session: Session, proposal: Proposal) -> None:
    """Refuse the proposal of a person who might not make it now."""
    by = proposal.proposed_by
    if not by.active or Role.CUSTODIAN not in by.roles:
        raise ConflictError("its proposer may no longer propose it: make a new proposal")
    check_apart(session, by.id, proposal.account)


def _current(
    session: Session, rules: Rules, kind: ProposalKind, about: int | None
) -> dict[str, Any]:
    """Return the present state of the budgets that a proposal would change."""
    if kind == "limit":
        epsilon, delta = standing(session, rules.account).limit
        return {"limit": {"epsilon": epsilon, "delta": delta}}
    if kind == "rules":
        return rules_of(rules).model_dump(mode="json")
    own = session.get(Share, (rules.account, about))
    return {"share": None if own is None else {"epsilon": own.epsilon, "delta": own.delta}}


def _apply(session: Session, rules: Rules, proposal: Proposal) -> None:
    """Change the service's rows; limits are the ledger's."""
    if proposal.kind == "rules":
        set_rules(rules, NewRules.model_validate(proposal.content))
    elif proposal.kind == "share":
        assert proposal.about_id is not None
        new = NewShare.model_validate(proposal.content)
        put_share(session, rules.account, proposal.about_id, new.share)


def _decide(session: Session, work: Work, proposal: Proposal, *, confirmed: bool) -> None:
    proposal.state = "confirmed" if confirmed else "rejected"
    proposal.decided_by = session.get(Person, work.actor.id)
    proposal.decided = now()
    session.flush()
    note_event(
        session,
        who=work.actor,
        what=f"change {proposal.state}",
        about=_text(proposal),
        person=proposal.about_id,
    )


def _changes(proposal: Proposal) -> list[ChangeView]:
    changes = []
    for name in CHANGED[proposal.kind]:
        before, after = (_budget(each.get(name)) for each in (proposal.before, proposal.content))
        if before != after:
            changes.append(ChangeView(what=name, before=before, after=after))
    return changes


def _budget(values: dict[str, float] | None) -> PrivacyBudget | None:
    # A limit of the ledger may be larger or smaller than one that the service takes.
    if values is None:
        return None
    return PrivacyBudget.model_construct(epsilon=values["epsilon"], delta=values["delta"])


def _text(proposal: Proposal) -> str:
    changes = ", ".join(
        f"{each.what} from {budget_text(each.before)} to {budget_text(each.after)}"
        for each in _changes(proposal)
    )
    return f"proposal {proposal.id}, {proposal.account}: {changes}"
