"""Proposals: changes of an account that let more be spent, for a second person to confirm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from sqlalchemy import update
from sqlalchemy.orm import Session

from cloakgp.ledger import LedgerError
from cloakgp.service.access import Role, operation
from cloakgp.service.budgets import standing
from cloakgp.service.changes import budget_text, check_apart, put_share, rules_of, set_rules
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
from cloakgp.service.models import Person, Proposal, ProposalKind, Rules, Share, now

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


def _waiting(session: Session, proposal: int) -> tuple[Proposal, Rules]:
    row = row_of(session, Proposal, proposal, called="proposal")
    # A second decision at the same time waits here, and then sees the first.
    rules = lock_rules(session, row.account)
    assert rules is not None
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
