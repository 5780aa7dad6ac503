"""Joint requests: one release of the rows of several custodians, who keep their tables.

The service is the coordinator of `cloakgp.custodians`, and keeps the files of the exchange for all.
A custodian sends and reads files as the site that the request names them; what they may write, and
when, is said by `cloakgp.custodians.admission`, and nothing else is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from cloakgp.custodians import Coordinator, CustodiansError, WaitingError
from cloakgp.custodians.admission import admit_file, may_read
from cloakgp.custodians.exchange import PLAN, RELEASE, ROSTER
from cloakgp.custodians.files import member_file
from cloakgp.custodians.plan import Member, Plan, Roster
from cloakgp.custodians.progress import progress_of
from cloakgp.service.access import Role, operation
from cloakgp.service.context import Service, Work
from cloakgp.service.coordinator import DatabaseExchange, lock_joint_request
from cloakgp.service.database import newest, note_event
from cloakgp.service.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from cloakgp.service.messages import (
    LARGEST_EPSILON,
    MOST_INDUCING,
    Before,
    Id,
    JointRequestView,
    JointSiteView,
    NewJointRequest,
    WithoutSites,
)
from cloakgp.service.models import JointRequest, JointSite, Person, now

MOST_SITES = 100
NO_PART = "you are none of the custodians of this request"
CLOSED = "the request is closed: nothing more is taken"


@operation
def begin_joint_request(work: Work, new: NewJointRequest) -> JointRequestView:
    """Begin a request for one release of several custodians; nothing is asked until all join.

    The same plan sent twice is one request, while that is open.

    Raises
    ------
    InvalidError
        If the plan makes no sense, or its sites are not different custodians of the service.
    """
    try:
        plan = Plan.from_bytes(new.plan.encode())
    except CustodiansError as error:
        raise InvalidError(str(error), fields={"plan": "makes no sense"}) from None
    _check_size(plan)
    with work.database.writing() as session:
        people = _people(session, plan, new.people)
        for row in session.scalars(_open_of(work.actor.id, plan.digest)):
            if {site.name: site.person_id for site in row.sites} == people:
                return _view(session, row)
        row = JointRequest(
            person_id=work.actor.id, purpose=new.purpose, digest=plan.digest, closed=None
        )
        session.add(row)
        session.flush()
        for name, person in people.items():
            session.add(JointSite(request_id=row.id, name=name, person_id=person))
        DatabaseExchange(session, row.id).put(PLAN, plan.to_bytes())
        session.refresh(row)
        note_event(
            session, who=work.actor, what="joint request begun", about=f"joint request {row.id}"
        )
        return _view(session, row)


@operation
def list_joint_requests(
    work: Work, *, before: Before = None, most: int = 100
) -> list[JointRequestView]:
    """Return joint requests, the latest first: one's own; to custodians and approvers, all.

    Parameters
    ----------
    work : Work
    before : int, optional
        The number that all of them come before.
    most : int
    """
    query = newest(JointRequest, before=before, most=most)
    if not work.actor.oversees:
        query = query.where(JointRequest.person_id == work.actor.id)
    with work.database.reading() as session:
        return [_view(session, row) for row in session.scalars(query)]


@operation
def show_joint_request(work: Work, request: Id) -> JointRequestView:
    """Return a joint request: who has answered, who is missing, and who comes next."""
    with work.database.reading() as session:
        return _view(session, _check_seen(work, session.get(JointRequest, request)))


@operation
def continue_joint_request(work: Work, request: Id, choice: WithoutSites) -> JointRequestView:
    """Go on with one's own joint request, if need be without some sites.

    Before all have joined, the others are asked without them; before all have answered, the
    others are asked anew. After that, masks may be open, and nobody can be left out.

    Raises
    ------
    ConflictError
        If it is closed, or the others cannot go on without these sites now.
    NotFoundError
    """
    with work.database.writing() as session:
        row = _own(session, work, request)
        if choice.without:
            coordinator = Coordinator(DatabaseExchange(session, request))
            try:
                if coordinator.roster is None:
                    coordinator.close_roster(without=choice.without)
                elif not coordinator.attempt:
                    # The worker writes the first attempt with its first question.
                    raise CustodiansError("the first question is not there yet: wait a little")
                else:
                    coordinator.begin_without(choice.without)
            except (CustodiansError, WaitingError) as error:
                raise ConflictError(str(error)) from None
            about = f"joint request {request}: {', '.join(choice.without)}"
            note_event(session, who=work.actor, what="sites left out", about=about)
        row.problem = ""
        view = _view(session, row)
    work.service.dispatcher.coordinate(request)
    return view


@operation
def close_joint_request(work: Work, request: Id) -> JointRequestView:
    """Close one's own joint request: no file is taken any more.

    Raises
    ------
    ConflictError
        If its release is there, or it is closed.
    NotFoundError
    """
    with work.database.writing() as session:
        row = _own(session, work, request)
        row.closed = now()
        about = f"joint request {request}"
        note_event(session, who=work.actor, what="joint request closed", about=about)
        return _view(session, row)


@operation
def read_joint_file(work: Work, request: Id, name: str) -> bytes:
    """Return a file of a joint request: of the schedule, the release, or one's own.

    Raises
    ------
    NotFoundError
        If there is none yet, or it is another's.
    ForbiddenError
        If one does not take part.
    """
    with work.database.reading() as session:
        row = _check_part(work, session.get(JointRequest, request))
        own = [site.name for site in row.sites if site.person_id == work.actor.id]
        content = None
        if any(may_read(name, site=site) for site in own or [""]):
            content = DatabaseExchange(session, request).get(name)
    if content is None:
        raise NotFoundError("file")
    return content


@operation
def send_joint_file(work: Work, request: Id, name: str, *, content: bytes) -> None:
    """Take a file of one's own site; what is complete by it goes on at once.

    Parameters
    ----------
    work : Work
    request : int
    name : str
    content : bytes

    Raises
    ------
    ConflictError
        If it is refused: it is another's, damaged, about another question, too late, or was sent
        before and was another.
    ForbiddenError
        If one is none of the custodians.
    NotFoundError
    """
    with work.database.writing() as session:
        row = _check_part(work, lock_joint_request(session, request))
        own = [site.name for site in row.sites if site.person_id == work.actor.id]
        if not own:
            raise ForbiddenError(NO_PART)
        exchange = DatabaseExchange(session, request)
        # What was taken before the end may be sent again, as an answer may be lost on its way.
        if row.closed is not None and exchange.get(name) != content:
            raise ConflictError(CLOSED)
        try:
            new = admit_file(exchange, site=own[0], name=name, content=content)
            progress = progress_of(exchange, _plan(exchange))
        except CustodiansError as error:
            raise ConflictError(str(error)) from None
    if new and progress.stage == "collect":
        work.service.dispatcher.coordinate(request)


def open_joint_requests(service: Service) -> list[int]:
    """Return the joint requests with which the service goes on, for its start."""
    with service.database.reading() as session:
        rows = session.scalars(select(JointRequest).where(JointRequest.closed.is_(None)))
        found = [(row.id, DatabaseExchange(session, row.id)) for row in rows]
        return [
            number
            for number, exchange in found
            if progress_of(exchange, _plan(exchange)).stage == "collect"
        ]


def _check_size(plan: Plan) -> None:
    """Refuse a plan that takes more than the service gives to any release."""
    inducing = plan.settings["inducing"]
    if plan.budget[0] > LARGEST_EPSILON or (type(inducing) is int and inducing > MOST_INDUCING):
        raise InvalidError(
            f"the service takes plans of ε = {LARGEST_EPSILON:g} and {MOST_INDUCING:,} inducing "
            "inputs at most"
        )
    if len(plan.sites) > MOST_SITES:
        raise InvalidError(f"the service takes plans of {MOST_SITES} sites at most")


def _people(session: Session, plan: Plan, named: Mapping[str, str]) -> dict[str, int]:
    """Return who each site is: different people, who are custodians."""
    if unknown := sorted(set(named) - set(plan.sites)):
        raise InvalidError(f"the plan has no site {', '.join(unknown)}")
    found: dict[str, int] = {}
    for site in plan.sites:
        name = named.get(site, site)
        person = session.scalar(select(Person).where(Person.name == name))
        if person is None or not person.active or Role.CUSTODIAN not in person.roles:
            raise InvalidError(f"there is no custodian {name!r}: say who the site {site} is")
        if person.id in found.values():
            raise InvalidError(
                f"{name!r} is two sites: they would know the shares of both, and are one"
            )
        found[site] = person.id
    return found


def _open_of(person: int, digest: str) -> Select[Any]:
    return select(JointRequest).where(
        JointRequest.person_id == person,
        JointRequest.digest == digest,
        JointRequest.closed.is_(None),
    )


def _check_seen(work: Work, row: JointRequest | None) -> JointRequest:
    if row is None or not (work.actor.oversees or row.person_id == work.actor.id):
        raise NotFoundError("joint request")
    return row


def _check_part(work: Work, row: JointRequest | None) -> JointRequest:
    seen = _check_seen(work, row)
    if work.actor.id not in (seen.person_id, *(site.person_id for site in seen.sites)):
        raise ForbiddenError(NO_PART)
    return seen


def _own(session: Session, work: Work, request: int) -> JointRequest:
    """Return one's own request, locked, if it can still change."""
    row = _check_seen(work, lock_joint_request(session, request))
    if row.person_id != work.actor.id:
        raise NotFoundError("joint request")
    if row.closed is not None:
        raise ConflictError(CLOSED)
    if DatabaseExchange(session, request).has(RELEASE):
        raise ConflictError("the release is there")
    return row


def _plan(exchange: DatabaseExchange) -> Plan:
    return Plan.from_bytes(exchange.get(PLAN) or b"")


def _view(session: Session, row: JointRequest) -> JointRequestView:
    exchange = DatabaseExchange(session, row.id)
    plan, roster = _plan(exchange), exchange.get(ROSTER)
    progress = progress_of(exchange, plan)
    sites = []
    for site in row.sites:
        joined = exchange.get(member_file(site.name))
        sites.append(
            JointSiteView(
                name=site.name,
                person=site.person.name,
                rows=None if joined is None else Member.from_bytes(joined).rows,
                missing=site.name in progress.missing,
            )
        )
    epsilon, delta = plan.budget
    return JointRequestView.of(
        row,
        person=row.person.name,
        closed=row.closed is not None,
        output=", ".join(plan.output_names),
        inputs=list(plan.public_columns),
        epsilon=epsilon,
        delta=delta,
        colluding=plan.colluding,
        persons=plan.persons,
        plan_digest=plan.digest,
        roster_digest="" if roster is None else Roster.from_bytes(roster).digest,
        stage=progress.stage,
        attempt=progress.attempt,
        question=progress.question,
        asked=list(progress.asked),
        missing=list(progress.missing),
        sites=sites,
    )
