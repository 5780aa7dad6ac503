"""Jobs: the progress of releases under way, and their cancellation until noise is drawn."""

from __future__ import annotations

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from cloakgp.service.access import Actor, Role, operation
from cloakgp.service.context import Service, Work
from cloakgp.service.database import newest, note_event
from cloakgp.service.errors import ConflictError, NotFoundError
from cloakgp.service.messages import Before, Id, JobView
from cloakgp.service.models import UNFINISHED, Job, Request, now
from cloakgp.service.people import SHARED

NO_LONGER = "the person who asked may no longer do so"
CANCELLABLE = ("queued", "running")
# The only public account of a failure: its cause may be private.
FAILURES = {
    "": "",
    "limit": "the account's limit leaves no room: nothing was spent",
    "people": SHARED,
    "inputs": "public columns of its table have the values of private ones of the account: nothing "
    "was drawn. Its custodian withdraws the table, and registers it again without them",
    "failed": "it failed, and nothing was published: the server's log names the place",
    # A charge that its process left open may be voided later.
    "lost": "its process died after noise was drawn: all of its budget counts as spent, unless its "
    "charge in the ledger was voided. Make a new request",
    "drawn": "it failed after noise was drawn, and nothing was published: what was drawn stays "
    "spent. Make a new request",
    "crashed": "its process died again and again: nothing was published",
}


@operation
def list_jobs(work: Work, *, before: Before = None, most: int = 100) -> list[JobView]:
    """Return one's own jobs, the latest first; to custodians and approvers, those of all.

    Parameters
    ----------
    work : Work
    before : int, optional
        The number that all of them come before.
    most : int
    """
    query = newest(Job, before=before, most=most).join(Request)
    if not work.actor.oversees:
        query = query.where(Request.person_id == work.actor.id)
    with work.database.reading() as session:
        return [view_of_job(job) for job in session.scalars(query)]


@operation
def show_job(work: Work, job: Id) -> JobView:
    """Return a job."""
    with work.database.reading() as session:
        return view_of_job(_visible(session, work, job))


@operation
def watch_job(work: Work, job: Id) -> JobView:
    """Return a job as it is now, for a caller that watches it."""
    with work.database.reading() as session:
        return view_of_job(_visible(session, work, job))


@operation
def cancel_job(work: Work, job: Id) -> JobView:
    """Cancel a job, unless noise may have been drawn for it.

    Raises
    ------
    ConflictError
        If it is too late.
    NotFoundError
    """
    with work.database.writing() as session:
        row = _visible(session, work, job)
        if row.request.person_id != work.actor.id and Role.CUSTODIAN not in work.actor.roles:
            raise NotFoundError("job")
        # Its process may begin to draw at the same moment: one of both finds a row to change.
        changed = session.scalar(
            update(Job)
            .where(Job.id == job, Job.state.in_(CANCELLABLE))
            .values(state="cancelled", finished=now())
            .returning(Job.id)
        )
        session.refresh(row)
        if changed is None:
            raise ConflictError(f"it is too late to cancel: the job is {row.state}")
        note_event(session, who=work.actor, what="job cancelled", about=f"job {job}")
        return view_of_job(row)


def stop_requests(session: Session, person: int, *, who: Actor) -> None:
    """Withdraw a person's waiting requests, and cancel their jobs.

    Parameters
    ----------
    session : Session
        Of the database.
    person : int
        Number of a person who is an analyst no longer.
    who : Actor
        The administrator.
    """
    requests = select(Request.id).where(Request.person_id == person)
    withdrawn = session.scalars(
        update(Request)
        .where(Request.person_id == person, Request.state == "waiting")
        .values(state="withdrawn", remark=NO_LONGER, decided_by=who.name, decided=now())
        .returning(Request.id)
    ).all()
    cancelled = session.scalars(
        update(Job)
        .where(Job.request_id.in_(requests), Job.state.in_(CANCELLABLE))
        .values(state="cancelled", finished=now())
        .returning(Job.id)
    ).all()
    for number in withdrawn:
        about = f"request {number}: {NO_LONGER}"
        note_event(session, who=who, what="request withdrawn", about=about)
    for number in cancelled:
        about = f"job {number}: {NO_LONGER}"
        note_event(session, who=who, what="job cancelled", about=about)


def unfinished_jobs(service: Service) -> list[int]:
    """Return the unfinished jobs, for a start of the service to take up."""
    with service.database.reading() as session:
        query = select(Job.id).where(Job.state.in_(UNFINISHED)).order_by(Job.id)
        return list(session.scalars(query))


def count_jobs(service: Service) -> dict[str, int]:
    """Return the number of jobs in each state."""
    with service.database.reading() as session:
        query = select(Job.state, func.count()).group_by(Job.state)
        return {str(row[0]): row[1] for row in session.execute(query)}


def view_of_job(job: Job) -> JobView:
    """Return the view of a job."""
    return JobView.of(job, request=job.request_id, failure=FAILURES[job.failure])


def _visible(session: Session, work: Work, job: int) -> Job:
    row = session.get(Job, job)
    if row is None or not (work.actor.oversees or row.request.person_id == work.actor.id):
        raise NotFoundError("job")
    return row
