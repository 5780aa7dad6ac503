"""Requests for releases, within limits, and the decisions of approvers."""

from __future__ import annotations

from typing import Literal

from sqlalchemy import not_, or_, select
from sqlalchemy.orm import Session

from cloakgp.privacy.filters import Costs
from cloakgp.service import budgets
from cloakgp.service.access import operation
from cloakgp.service.context import Work
from cloakgp.service.database import lock_rules, newest, note_event
from cloakgp.service.errors import ConflictError, ForbiddenError, NoRoomError, NotFoundError
from cloakgp.service.messages import Before, Choices, Decision, Id, NewRequest, RequestView
from cloakgp.service.models import (
    UNFINISHED,
    Job,
    MadeRelease,
    Request,
    RequestState,
    Rules,
    Table,
    now,
)
from cloakgp.service.operations.jobs import NO_LONGER, view_of_job
from cloakgp.service.operations.plans import check_choices
from cloakgp.service.operations.tables import usable_table
from cloakgp.service.visits import asked_of

NO_ROOM = "the account's limit leaves no room for this"


@operation
def make_request(work: Work, new: NewRequest, *, idempotency: str | None = None) -> RequestView:
    """Request a release; its job begins at once, unless it needs approval.

    Parameters
    ----------
    work : Work
    new : NewRequest
    idempotency : str, optional
        A key of the caller: a second call with it returns the same request.

    Raises
    ------
    ConflictError
        If the table is withdrawn, or the key belongs to another request.
    InvalidError
        If the choices make no sense, or a later visit does not go with its release: for all that
        its plan refuses, in the plan's words.
    NoRoomError
        If the account's limit, or the analyst's share, leaves no room.
    NotFoundError
    TooManyError
        If too many plans are under way.
    """
    with work.database.reading() as session:
        table = usable_table(session, new.table)
        asked_of(work.service, session, table, new.choices)
        # As it will be chosen again, when nobody else can take the room.
        rules = session.get_one(Rules, table.account)
        room = budgets.Room.of(session, rules, work.actor.id, table.cohort)
        foreseen = room.choose(new.choices)
        known = _of_key(session, work, idempotency) is not None
        if not known:
            _check_left(room, budgets.costs_of(foreseen))
        order = asked_of(work.service, session, table, foreseen)
    if not known:
        # Outside of what is locked: public columns are read.
        check_choices(work, table, order, foreseen)
    choices = new.choices.model_dump(mode="json")
    with work.database.writing() as session:
        rules = lock_rules(session, table.account)
        if idempotency is not None:
            before = _of_key(session, work, idempotency)
            if before is not None:
                # Of the same choices, room may have been left without δ alone.
                alike = before.choices in (choices, choices | {"delta": 0.0})
                if not alike or (before.table_id, before.purpose) != (new.table, new.purpose):
                    raise ConflictError("this key belongs to another request")
                return _view(session, before)
        room = budgets.Room.of(session, rules, work.actor.id, table.cohort)
        chosen = room.choose(new.choices)
        costs = budgets.costs_of(chosen)
        _check_left(room, costs)
        asks = budgets.needs_approval(session, rules, work.actor.id, costs, table.cohort)
        row = Request(
            table_id=table.id,
            person_id=work.actor.id,
            idempotency=idempotency,
            purpose=new.purpose,
            choices=chosen.model_dump(mode="json"),
            epsilon=chosen.epsilon,
            delta=chosen.delta,
            needs_approval=asks,
            state="waiting" if asks else "approved",
        )
        session.add(row)
        session.flush()
        job = None if asks else _begin(session, row)
        about = f"request {row.id}: ({row.epsilon:g}, {row.delta:g}) of {table.name}"
        note_event(session, who=work.actor, what="release requested", about=about)
        view = _view(session, row)
    if job is not None:
        work.service.dispatcher.submit(job)
    return view


@operation
def list_requests(
    work: Work,
    *,
    before: Before = None,
    most: int = 100,
    state: Literal["open", "closed"] | None = None,
) -> list[RequestView]:
    """Return one's own requests, the latest first; to custodians and approvers, those of all.

    Parameters
    ----------
    work : Work
    before : int, optional
        The number that all of them come before.
    most : int
    state : {"open", "closed"}, optional
        Requests that wait or are under way, or all others.
    """
    under_way = or_(Request.state == "waiting", Request.job.has(Job.state.in_(UNFINISHED)))
    query = newest(Request, before=before, most=most)
    if state is not None:
        query = query.where(under_way if state == "open" else not_(under_way))
    if not work.actor.oversees:
        query = query.where(Request.person_id == work.actor.id)
    with work.database.reading() as session:
        return [_view(session, request) for request in session.scalars(query)]


@operation
def show_request(work: Work, request: Id) -> RequestView:
    """Return a request, and its result."""
    with work.database.reading() as session:
        return _view(session, _visible(session, work, request))


@operation
def approve_request(work: Work, request: Id, decision: Decision) -> RequestView:
    """Approve the request of another person; its job begins.

    Raises
    ------
    ConflictError
        If it is decided, or its analyst may no longer make it.
    ForbiddenError
        If it is one's own.
    NoRoomError
        If the account's limit leaves no room by now.
    NotFoundError
    """
    with work.database.writing() as session:
        row = _undecided(session, work, request)
        table = usable_table(session, row.table_id)
        if not row.person.may_ask():
            raise ConflictError(NO_LONGER)
        # While it waited, it held nothing of the account's limit.
        choices = Choices.model_validate(row.choices)
        _check_room(session, table, budgets.costs_of(choices))
        _decide(session, work, row, state="approved", remark=decision.remark)
        job = _begin(session, row)
        view = _view(session, row)
    work.service.dispatcher.submit(job)
    return view


@operation
def reject_request(work: Work, request: Id, decision: Decision) -> RequestView:
    """Reject the request of another person.

    Raises
    ------
    ConflictError, ForbiddenError, NotFoundError
        As `approve_request`.
    """
    with work.database.writing() as session:
        row = _undecided(session, work, request)
        _decide(session, work, row, state="rejected", remark=decision.remark)
        return _view(session, row)


@operation
def withdraw_request(work: Work, request: Id) -> RequestView:
    """Take one's own request back, before it is decided."""
    with work.database.writing() as session:
        row = _locked(session, work, request)
        if row.person_id != work.actor.id:
            raise NotFoundError("request")
        _check_waiting(row)
        _decide(session, work, row, state="withdrawn", remark="")
        return _view(session, row)


def _visible(session: Session, work: Work, request: int) -> Request:
    row = session.get(Request, request)
    if row is None or not (work.actor.oversees or row.person_id == work.actor.id):
        raise NotFoundError("request")
    return row


def _of_key(session: Session, work: Work, idempotency: str | None) -> Request | None:
    """Return the request that the caller made with a key, if any."""
    if idempotency is None:
        return None
    query = select(Request).where(
        Request.person_id == work.actor.id, Request.idempotency == idempotency
    )
    return session.scalar(query)


def _check_left(room: budgets.Room, costs: Costs) -> None:
    if not room.in_share(costs):
        raise NoRoomError("your share of the account leaves no room for this")
    if not room.in_account(costs):
        raise NoRoomError(NO_ROOM)


def _check_room(session: Session, table: Table, costs: Costs) -> None:
    limit = budgets.standing(session, table.account).limit
    charges = budgets.charges_of_account(session, table.account, table.cohort)
    if not charges.fits(limit, beside=costs):
        raise NoRoomError(NO_ROOM)


def _locked(session: Session, work: Work, request: int) -> Request:
    row = _visible(session, work, request)
    # A second decision at the same time waits here, and then sees the first.
    lock_rules(session, row.table.account)
    session.refresh(row)
    return row


def _undecided(session: Session, work: Work, request: int) -> Request:
    row = _locked(session, work, request)
    if row.person_id == work.actor.id:
        raise ForbiddenError("another person has to decide about your request")
    _check_waiting(row)
    return row


def _check_waiting(request: Request) -> None:
    if request.state != "waiting":
        raise ConflictError(f"the request is {request.state}")


def _decide(
    session: Session, work: Work, row: Request, *, state: RequestState, remark: str
) -> None:
    row.state, row.remark = state, remark
    row.decided_by, row.decided = work.actor.name, now()
    note_event(session, who=work.actor, what=f"request {state}", about=f"request {row.id}")


def _begin(session: Session, request: Request) -> int:
    job = Job(request_id=request.id, state="queued")
    job.request = request
    session.add(job)
    session.flush()
    return job.id


def _view(session: Session, request: Request) -> RequestView:
    release = session.scalar(select(MadeRelease.id).where(MadeRelease.request_id == request.id))
    job = session.scalar(select(Job).where(Job.request_id == request.id))
    return RequestView.of(
        request,
        table=request.table_id,
        table_name=request.table.name,
        account=request.table.account,
        person=request.person.name,
        job=None if job is None else view_of_job(job),
        release=release,
    )
