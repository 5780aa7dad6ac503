"""Jobs: how far the making of a release has come, and cancelling it until noise is drawn."""

from __future__ import annotations

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cloakgp.service.access import Role, operation
from cloakgp.service.context import Service, Work
from cloakgp.service.database import note_event
from cloakgp.service.errors import ConflictError, NotFoundError
from cloakgp.service.messages import JobView, moment
from cloakgp.service.models import Job, Request, now

UNFINISHED = ("queued", "running", "drawing")
OVERSEERS = frozenset({Role.CUSTODIAN, Role.APPROVER})
# All that anybody is told of a job that failed: why it did may be private.
FAILURES = {
    "": "",
    "limit": "the account's limit leaves no room: nothing was spent",
    "failed": "it failed, and nothing was published: the server's log tells where",
    "lost": "its process died after noise was drawn: what was drawn stays spent. Ask anew",
    "crashed": "its process died again and again: nothing was published",
}


@operation
def list_jobs(work: Work) -> list[JobView]:
    """Return the jobs of whoever asks; to custodians and approvers, of all."""
    with work.database.reading() as session:
        query = select(Job).join(Request).order_by(Job.id.desc())
        if work.actor.roles.isdisjoint(OVERSEERS):
            query = query.where(Request.person_id == work.actor.id)
        return [view_of_job(job) for job in session.scalars(query)]


@operation
def show_job(work: Work, job: int) -> JobView:
    """Return a job."""
    with work.database.reading() as session:
        return view_of_job(_found(session, work, job))


@operation
def watch_job(work: Work, job: int) -> JobView:
    """Return a job, now; whoever watches calls this again and again."""
    with work.database.reading() as session:
        return view_of_job(_found(session, work, job))


@operation
def cancel_job(work: Work, job: int) -> JobView:
    """Cancel a job, unless noise may have been drawn for it.

    Raises
    ------
    ConflictError
        If it is too late.
    NotFoundError
    """
    with work.database.writing() as session:
        found = _found(session, work, job)
        if found.request.person_id != work.actor.id and Role.CUSTODIAN not in work.actor.roles:
            raise NotFoundError("job")
        # At the same moment its process may begin to draw: one of both finds a row to change.
        changed = session.scalar(
            update(Job)
            .where(Job.id == job, Job.state.in_(("queued", "running")))
            .values(state="cancelled", finished=now())
            .returning(Job.id)
        )
        session.refresh(found)
        if changed is None:
            raise ConflictError(f"it is too late to cancel: the job is {found.state}")
        note_event(session, who=work.actor.name, what="job cancelled", about=f"job {job}")
        return view_of_job(found)


def unfinished_jobs(service: Service) -> list[int]:
    """Return the jobs that nobody has finished; whoever starts the service takes them up."""
    with service.database.reading() as session:
        query = select(Job.id).where(Job.state.in_(UNFINISHED)).order_by(Job.id)
        return list(session.scalars(query))


def count_jobs(service: Service) -> dict[str, int]:
    """Return how many jobs are in which state."""
    with service.database.reading() as session:
        counts: dict[str, int] = {}
        for state in session.scalars(select(Job.state)):
            counts[state] = counts.get(state, 0) + 1
        return counts


def view_of_job(job: Job) -> JobView:
    """Return a job as it may be seen."""
    return JobView(
        id=job.id,
        request=job.request_id,
        state=job.state,
        step=job.step,
        share=job.share,
        failure=FAILURES[job.failure],
        attempts=job.attempts,
        created=moment(job.created),
        finished=None if job.finished is None else moment(job.finished),
    )


def _found(session: Session, work: Work, job: int) -> Job:
    found = session.get(Job, job)
    strange = work.actor.roles.isdisjoint(OVERSEERS)
    if found is None or (strange and found.request.person_id != work.actor.id):
        raise NotFoundError("job")
    return found
