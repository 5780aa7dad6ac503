"""Accounts: the limit of all charges about a population, and the rules under it."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloakgp.ledger import LedgerError
from cloakgp.ledger.texts import known_name
from cloakgp.service.access import Actor, operation
from cloakgp.service.budgets import (
    charges_of_account,
    charges_of_person,
    epsilon_left,
    share_of,
    standing,
)
from cloakgp.service.context import Work
from cloakgp.service.database import lock_rules, note_event, row_of
from cloakgp.service.errors import ConflictError, InvalidError, NotFoundError
from cloakgp.service.messages import (
    AccountChange,
    AccountView,
    Name,
    NewAccount,
    NewLimit,
    NewRules,
    NewShare,
    PrivacyBudget,
)
from cloakgp.service.models import Person, Proposal, Rules
from cloakgp.service.operations.proposals import (
    EVERYTHING,
    budget_text,
    check_apart,
    is_more,
    lets_more,
    pair_of,
    propose,
    put_share,
    replace_waiting,
    rules_of,
    set_rules,
    view_of_proposal,
)


@operation
def list_accounts(work: Work) -> list[AccountView]:
    """Return all accounts of the service, with the use of their limits."""
    with work.database.reading() as session:
        query = select(Rules).order_by(Rules.account)
        return [_view(session, rules, work.actor) for rules in session.scalars(query)]


@operation
def open_account(work: Work, new: NewAccount) -> AccountView:
    """Open an account of a population, or take up one of the ledger's.

    Raises
    ------
    ConflictError
        If the service has it, or the ledger has it with another limit or unit.
    ForbiddenError
        If the actor is an analyst.
    """
    standings = {each.name: each for each in work.ledger.standings()}
    name = known_name(new.name, standings)
    with work.database.reading() as session:
        check_apart(session, work.actor.id)
        if session.get(Rules, name) is not None:
            raise ConflictError("there is an account of that name")
    in_ledger = standings.get(name)
    if in_ledger is None:
        try:
            with work.acting():
                work.ledger.open_account(
                    name, epsilon=new.limit.epsilon, delta=new.limit.delta, unit=new.unit
                )
        except LedgerError as error:
            raise InvalidError(str(error)) from None
    elif (in_ledger.unit, in_ledger.limit) != (new.unit, new.limit.pair):
        raise ConflictError("the ledger has this account with another unit or limit")
    with work.database.writing() as session:
        rules = Rules(account=name)
        set_rules(rules, NewRules(approval=new.approval, share=new.share))
        session.add(rules)
        session.flush()
        note_event(session, who=work.actor, what="account opened", about=name)
        return _view(session, rules, work.actor)


@operation
def change_limit(work: Work, account: str, new: NewLimit) -> AccountChange:
    """Lower the limit of an account, or propose a higher one; spent privacy stays spent.

    Raises
    ------
    ForbiddenError
        If an analyst would raise it.
    NotFoundError
    """
    with work.database.writing() as session:
        rules = lock_rules(session, account)
        if is_more(standing(session, account).limit, new.limit.pair):
            check_apart(session, work.actor.id, account)
            return _proposed(session, work, rules, propose(session, work, rules, "limit", new))
        replace_waiting(session, account, "limit")
    with work.acting():
        work.ledger.change_limit(
            account, epsilon=new.limit.epsilon, delta=new.limit.delta, reason=new.reason
        )
    with work.database.reading() as session:
        rules = row_of(session, Rules, account, called="account")
        return AccountChange(account=_view(session, rules, work.actor))


@operation
def change_rules(work: Work, account: str, new: NewRules) -> AccountChange:
    """Change the threshold of approval and the share of each analyst, or propose to.

    Raises
    ------
    ForbiddenError
        If an analyst would let more be spent.
    NotFoundError
    """
    with work.database.writing() as session:
        rules = lock_rules(session, account)
        if lets_more(rules_of(rules), new):
            check_apart(session, work.actor.id, account)
            return _proposed(session, work, rules, propose(session, work, rules, "rules", new))
        replace_waiting(session, account, "rules")
        set_rules(rules, new)
        approval, share = budget_text(new.approval), budget_text(new.share)
        about = f"{account}: approval above {approval}, share {share}"
        note_event(session, who=work.actor, what="rules changed", about=about)
        return AccountChange(account=_view(session, rules, work.actor))


@operation
def set_share(
    work: Work, account: Name, person: Name, budget: PrivacyBudget | None = None
) -> AccountChange:
    """Set the share of one analyst, or propose a larger one; without a budget, the share of all.

    Raises
    ------
    ForbiddenError
        If an analyst would let more be spent.
    NotFoundError
    """
    with work.database.writing() as session:
        rules = lock_rules(session, account)
        analyst = session.scalar(select(Person).where(Person.name == person))
        if analyst is None:
            raise NotFoundError("person", field="person")
        before = share_of(session, rules, analyst.id) or EVERYTHING
        if is_more(before, pair_of(budget or rules_of(rules).share, EVERYTHING)):
            check_apart(session, work.actor.id, account)
            new = NewShare(share=budget)
            proposal = propose(session, work, rules, "share", new, about=analyst.id)
            return _proposed(session, work, rules, proposal)
        replace_waiting(session, account, "share", about=analyst.id)
        put_share(session, account, analyst.id, budget)
        about = f"{account}: {budget_text(budget)}"
        note_event(session, who=work.actor, what="share set", about=about, person=analyst.id)
        return AccountChange(account=_view(session, rules, work.actor))


def _proposed(session: Session, work: Work, rules: Rules, proposal: Proposal) -> AccountChange:
    account = _view(session, rules, work.actor)
    return AccountChange(account=account, proposal=view_of_proposal(proposal))


def _view(session: Session, rules: Rules, actor: Actor) -> AccountView:
    now = standing(session, rules.account)
    mine = charges_of_person(session, rules.account, actor.id)
    has_requests = not mine.is_empty
    share = share_of(session, rules, actor.id) or now.limit
    budgets = rules_of(rules)
    charges = charges_of_account(session, rules.account)
    return AccountView.of(
        now,
        limit=PrivacyBudget(epsilon=now.limit[0], delta=now.limit[1]),
        held=charges.used(now.limit) - now.used,
        beyond=sorted(now.beyond),
        cohorts={name: now.used_by(name) for name in now.spent_by if name},
        left=epsilon_left(charges, now.limit),
        approval=budgets.approval,
        share=budgets.share,
        mine=mine.used(share) if has_requests else None,
    )
