"""Accounts: the limit of all that is ever spent about a population, and rules under it."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloakgp.ledger import LedgerError
from cloakgp.ledger.accounts import Standing
from cloakgp.service.access import Actor, operation
from cloakgp.service.budgets import epsilon_left, held, requests_of, standing, total
from cloakgp.service.context import Work
from cloakgp.service.database import locked_rules, note_event
from cloakgp.service.errors import ConflictError, InvalidError, NotFoundError
from cloakgp.service.messages import AccountView, Budget, NewAccount, NewLimit, NewRules
from cloakgp.service.models import Person, Rules, Share


@operation
def list_accounts(work: Work) -> list[AccountView]:
    """Return what was spent of every account that the service knows."""
    with work.database.reading() as session:
        query = select(Rules).order_by(Rules.account)
        return [_view(session, rules, work.actor) for rules in session.scalars(query)]


@operation
def open_account(work: Work, new: NewAccount) -> AccountView:
    """Open an account, or take up one that the ledger has already.

    Raises
    ------
    ConflictError
        If the service knows it, or the ledger has it with another limit or unit.
    """
    with work.database.reading() as session:
        if session.get(Rules, new.name) is not None:
            raise ConflictError("there is an account of that name")
    there = {each.name: each for each in work.ledger.standings()}.get(new.name)
    if there is None:
        try:
            with work.acting():
                work.ledger.open_account(
                    new.name, epsilon=new.limit.epsilon, delta=new.limit.delta, unit=new.unit
                )
        except LedgerError as error:
            raise InvalidError(str(error)) from None
    elif (there.unit, there.limit) != (new.unit, new.limit.pair):
        raise ConflictError("the ledger has this account with another unit or limit")
    with work.database.writing() as session:
        rules = Rules(account=new.name)
        _set_rules(rules, NewRules(approval=new.approval, share=new.share))
        session.add(rules)
        session.flush()
        note_event(session, who=work.actor.name, what="account opened", about=new.name)
        return _view(session, rules, work.actor)


@operation
def change_limit(work: Work, account: str, new: NewLimit) -> AccountView:
    """Change the limit of an account; what was spent stays spent."""
    with work.database.reading() as session:
        _found(session, account)
    with work.acting():
        work.ledger.change_limit(
            account, epsilon=new.limit.epsilon, delta=new.limit.delta, reason=new.reason
        )
    with work.database.reading() as session:
        return _view(session, _found(session, account), work.actor)


@operation
def change_rules(work: Work, account: str, new: NewRules) -> AccountView:
    """Change what needs approval, and what one analyst may spend at all."""
    with work.database.writing() as session:
        rules = _found(session, account)
        _set_rules(rules, new)
        told = f"{account}: approval above {_told(new.approval)}, share {_told(new.share)}"
        note_event(session, who=work.actor.name, what="rules changed", about=told)
        return _view(session, rules, work.actor)


@operation
def set_share(work: Work, account: str, person: str, budget: Budget | None) -> AccountView:
    """Say what one analyst may spend of an account; None for what all may."""
    with work.database.writing() as session:
        rules = _found(session, account)
        somebody = session.scalar(select(Person).where(Person.name == person))
        if somebody is None:
            raise NotFoundError("person")
        own = session.get(Share, (account, somebody.id))
        if own is not None:
            session.delete(own)
            session.flush()
        if budget is not None:
            session.add(
                Share(
                    account=account,
                    person_id=somebody.id,
                    epsilon=budget.epsilon,
                    delta=budget.delta,
                )
            )
        told = f"{account}, {person}: {_told(budget)}"
        note_event(session, who=work.actor.name, what="share set", about=told)
        return _view(session, rules, work.actor)


def _found(session: Session, account: str) -> Rules:
    rules = locked_rules(session, account)
    if rules is None:
        raise NotFoundError("account")
    return rules


def _set_rules(rules: Rules, new: NewRules) -> None:
    approval, share = new.approval, new.share
    rules.approval_epsilon, rules.approval_delta = approval.pair if approval else (0.0, 0.0)
    rules.share_epsilon, rules.share_delta = share.pair if share else (None, None)


def _told(budget: Budget | None) -> str:
    return "none" if budget is None else f"({budget.epsilon:g}, {budget.delta:g})"


def _view(session: Session, rules: Rules, actor: Actor) -> AccountView:
    found: Standing = standing(session, rules.account)
    waiting = held(session, rules.account)
    delta = found.limit[1]
    mine = requests_of(session, rules.account, actor.id)
    approval, share = None, None
    if rules.approval_epsilon:
        approval = Budget(epsilon=rules.approval_epsilon, delta=rules.approval_delta)
    if rules.share_epsilon is not None and rules.share_delta is not None:
        share = Budget(epsilon=rules.share_epsilon, delta=rules.share_delta)
    return AccountView(
        name=found.name,
        unit=found.unit,
        limit=Budget(epsilon=found.limit[0], delta=delta),
        spent=found.epsilon,
        held=(found.spent + waiting).epsilon_at(delta) - found.epsilon,
        left=epsilon_left(found.spent + waiting, found.limit),
        charges=found.charges,
        open=list(found.open),
        approval=approval,
        share=share,
        mine=total(session, mine).epsilon_at(delta) if mine else None,
    )
