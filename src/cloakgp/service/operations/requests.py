"""Requests: releases that analysts ask for, within limits, and what approvers say of them."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloakgp.ledger.amounts import Amount
from cloakgp.service import budgets
from cloakgp.service.access import Role, operation
from cloakgp.service.asking import order_of
from cloakgp.service.context import Work
from cloakgp.service.database import locked_rules, note_event
from cloakgp.service.errors import ConflictError, ForbiddenError, NoRoomError, NotFoundError
from cloakgp.service.messages import Choices, Decision, NewRequest, RequestView, moment
from cloakgp.service.models import Job, MadeRelease, Request, RequestState, Rules, now
from cloakgp.service.operations.jobs import view_of_job
from cloakgp.service.operations.tables import found_table

# Who sees the requests of all.
OVERSEERS = frozenset({Role.CUSTODIAN, Role.APPROVER})


@operation
def make_request(work: Work, new: NewRequest, *, idempotency: str | None = None) -> RequestView:
    """Ask for a release; if nobody has to approve it, its job begins.

    Parameters
    ----------
    work : Work
    new : NewRequest
    idempotency : str, optional
        Whoever asks again with it gets the same request.

    Raises
    ------
    ConflictError
        If the table is withdrawn, or something else was asked with this key.
    InvalidError
        If the choices make no sense.
    NoRoomError
        If the account's limit, or the analyst's share, leaves no room.
    NotFoundError
    """
    with work.database.reading() as session:
        table = found_table(session, new.table, usable=True)
    order_of(table, new.choices, memory=work.service.settings.memory)
    choices = new.choices.model_dump(mode="json")
    with work.database.writing() as session:
        rules = locked_rules(session, table.account)
        assert rules is not None
        if idempotency is not None:
            query = select(Request).where(
                Request.person_id == work.actor.id, Request.idempotency == idempotency
            )
            before = session.scalar(query)
            if before is not None:
                same = (before.table_id, before.choices, before.purpose)
                if same != (new.table, choices, new.purpose):
                    raise ConflictError("something else was asked with this key")
                return _view(session, before)
        budget = new.choices.epsilon, new.choices.delta
        _check_room(session, rules, work.actor.id, budget)
        asks = budgets.needs_approval(session, rules, work.actor.id, budget)
        made = Request(
            table_id=table.id,
            person_id=work.actor.id,
            idempotency=idempotency,
            purpose=new.purpose,
            choices=choices,
            epsilon=budget[0],
            delta=budget[1],
            needs_approval=asks,
            state="waiting" if asks else "approved",
        )
        session.add(made)
        session.flush()
        job = None if asks else _begin(session, made)
        told = f"request {made.id}: ({budget[0]:g}, {budget[1]:g}) of {table.name}"
        note_event(session, who=work.actor.name, what="release requested", about=told)
        seen = _view(session, made)
    if job is not None:
        work.service.dispatcher.submit(job)
    return seen


@operation
def list_requests(work: Work) -> list[RequestView]:
    """Return the requests of whoever asks; to custodians and approvers, of all."""
    with work.database.reading() as session:
        query = select(Request).order_by(Request.id.desc())
        if work.actor.roles.isdisjoint(OVERSEERS):
            query = query.where(Request.person_id == work.actor.id)
        return [_view(session, request) for request in session.scalars(query)]


@operation
def show_request(work: Work, request: int) -> RequestView:
    """Return a request."""
    with work.database.reading() as session:
        return _view(session, found_request(session, work, request))


@operation
def approve_request(work: Work, request: int, decision: Decision) -> RequestView:
    """Approve somebody else's request; its job begins.

    Raises
    ------
    ConflictError
        If it is decided.
    ForbiddenError
        If it is one's own.
    NotFoundError
    """
    with work.database.writing() as session:
        found = _undecided(session, work, request)
        found_table(session, found.table_id, usable=True)
        _decide(session, work, found, state="approved", remark=decision.remark)
        job = _begin(session, found)
        seen = _view(session, found)
    work.service.dispatcher.submit(job)
    return seen


@operation
def reject_request(work: Work, request: int, decision: Decision) -> RequestView:
    """Reject somebody else's request.

    Raises
    ------
    ConflictError, ForbiddenError, NotFoundError
        As `approve_request`.
    """
    with work.database.writing() as session:
        found = _undecided(session, work, request)
        _decide(session, work, found, state="rejected", remark=decision.remark)
        return _view(session, found)


@operation
def withdraw_request(work: Work, request: int) -> RequestView:
    """Take one's own request back, before it is decided."""
    with work.database.writing() as session:
        found = _locked(session, work, request)
        if found.person_id != work.actor.id:
            raise NotFoundError("request")
        _check_waiting(found)
        _decide(session, work, found, state="withdrawn", remark="")
        return _view(session, found)


def found_request(session: Session, work: Work, request: int) -> Request:
    """Return a request that whoever asks may see.

    Raises
    ------
    NotFoundError
        If there is none, or it is somebody else's.
    """
    found = session.get(Request, request)
    strange = work.actor.roles.isdisjoint(OVERSEERS)
    if found is None or (strange and found.person_id != work.actor.id):
        raise NotFoundError("request")
    return found


def _check_room(session: Session, rules: Rules, person: int, budget: tuple[float, float]) -> None:
    new = Amount.held([budget])
    share = budgets.share_of(session, rules, person)
    if share is not None:
        mine = budgets.total(session, budgets.requests_of(session, rules.account, person))
        if not (mine + new).fits(share):
            raise NoRoomError("your share of the account leaves no room for this")
    account = budgets.standing(session, rules.account)
    spent = account.spent + budgets.held(session, rules.account)
    if not (spent + new).fits(account.limit):
        raise NoRoomError("the account's limit leaves no room for this")


def _locked(session: Session, work: Work, request: int) -> Request:
    found = found_request(session, work, request)
    # Whoever decides at the same time waits, and then sees what was decided.
    locked_rules(session, found.table.account)
    session.refresh(found)
    return found


def _undecided(session: Session, work: Work, request: int) -> Request:
    found = _locked(session, work, request)
    if found.person_id == work.actor.id:
        raise ForbiddenError("nobody decides about their own request")
    _check_waiting(found)
    return found


def _check_waiting(request: Request) -> None:
    if request.state != "waiting":
        raise ConflictError(f"the request is {request.state}")


def _decide(
    session: Session, work: Work, found: Request, *, state: RequestState, remark: str
) -> None:
    found.state, found.remark = state, remark
    found.decided_by, found.decided = work.actor.name, now()
    note_event(session, who=work.actor.name, what=f"request {state}", about=f"request {found.id}")


def _begin(session: Session, request: Request) -> int:
    job = Job(request_id=request.id, state="queued")
    job.request = request
    session.add(job)
    session.flush()
    return job.id


def _view(session: Session, request: Request) -> RequestView:
    release = session.scalar(select(MadeRelease.id).where(MadeRelease.request_id == request.id))
    job = session.scalar(select(Job).where(Job.request_id == request.id))
    return RequestView(
        id=request.id,
        table=request.table_id,
        table_name=request.table.name,
        account=request.table.account,
        person=request.person.name,
        purpose=request.purpose,
        choices=Choices.model_validate(request.choices),
        needs_approval=request.needs_approval,
        state=request.state,
        decided_by=request.decided_by,
        decided=None if request.decided is None else moment(request.decided),
        remark=request.remark,
        created=moment(request.created),
        job=None if job is None else view_of_job(job),
        release=release,
    )
