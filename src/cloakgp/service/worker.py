"""Worker on a job, in a process that may die: each job spends at most once.

A job is one release under one key of the ledger. A process that begins it writes its own name, and
counts up `beats` while it lives; another process takes the job up only after these stand still.

The ledger alone knows what was drawn, and is asked before a job begins and before it ends, whatever
its process went through (`end_by_ledger`): a published release is the job's; if noise was drawn and
no release is kept, the charge stays spent, and the job has failed; a charge without drawn noise is
given back, and the job begins anew, or ends as its process says.

Before noise is drawn the job's state becomes ``drawing``, which a cancelled job cannot: a job is
cancelled or draws, never both. It stays so until the ledger says that nothing was drawn.
"""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import or_, select, update

from cloakgp.ledger import LedgerError, LimitError
from cloakgp.ledger.accounts import KeyedCharge
from cloakgp.ledger.chain import acting_as
from cloakgp.ledger.errors import PrivateInputError
from cloakgp.orders import estimators
from cloakgp.orders.origin import Origin
from cloakgp.orders.progress import Reporter, State
from cloakgp.orders.public_inputs import inputs_named
from cloakgp.orders.visits import VisitOrder, make_visit
from cloakgp.privacy.spending import (
    Budget,
    Charge,
    Cost,
    Keeper,
    Spender,
    SpendingError,
    counted_by,
    keeper_in_force,
)
from cloakgp.release import Release
from cloakgp.service.confined import never
from cloakgp.service.context import Service
from cloakgp.service.credentials import new_file_name
from cloakgp.service.database import note_event
from cloakgp.service.messages import Choices
from cloakgp.service.models import FINISHED, Job, JobState, MadeRelease, Request, Table, now
from cloakgp.service.operations.jobs import NO_LONGER
from cloakgp.service.people import NamedPeople, SharedPeopleError, check_disjoint, others_of
from cloakgp.service.public_columns import fills_of, own_columns, public_columns_of
from cloakgp.service.settings import Settings
from cloakgp.service.visits import asked_of, content_of
from cloakgp.utils.formatting import kind_and_place
from cloakgp.utils.threads import repeated

# Seconds between beats; after so many without one, a process is taken for dead.
BEAT, DEAD = 1.0, 10.0
# Attempts at a job, and at noting its end.
ATTEMPTS = 4
# What a job without a process has no more.
NO_STEP: dict[str, Any] = {"step": "", "share": None}
# Failure of a process → the event for auditors, and what it is about.
NOTED = {
    "person": ("job cancelled", NO_LONGER),
    "people": ("release refused", "people of its table are in another one of {account}"),
    "inputs": ("release refused", "public columns of its table are private ones of {account}"),
}
log = logging.getLogger("cloakgp.service")


class StoppedError(SpendingError):
    """The job was cancelled, or another process has it; nothing was drawn."""


def work_on_job(settings: Settings, job: int, *, ending: Callable[[], bool] = never) -> None:
    """Make the release of a job, in a worker process.

    Never raises: failures are states of the job.

    Parameters
    ----------
    settings : Settings
    job : int
    ending : callable, optional
        As for `run_job`.
    """
    service = Service.open(settings)
    try:
        run_job(service, job, ending=ending)
    finally:
        service.close()


def run_job(service: Service, job: int, *, ending: Callable[[], bool] = never) -> None:
    """Make the release of a job, unless it is finished or another process works on it.

    Parameters
    ----------
    service : Service
    job : int
    ending : callable, optional
        Returns whether this process is about to end: it then leaves the job as it is, unless noise
        was drawn, for another process to take up.
    """
    run = JobRun(service, job, runner=new_file_name(), ending=ending)
    failure = ""
    try:
        if not run.take():
            return
        with run.beating():
            _make(service, run)
    except StoppedError:
        return
    except _NoLongerError:
        failure = "person"
    except LimitError:
        failure = "limit"
    except SharedPeopleError:
        failure = "people"
    except PrivateInputError:
        failure = "inputs"
    except _CrashedError:
        failure = "crashed"
    except Exception as error:
        if run.is_stopped():
            return
        # The message might quote a value: the log has the kind and the place alone.
        log.error("job %d failed: %s", job, kind_and_place(error))
        failure = "failed"
    for _ in range(ATTEMPTS):
        try:
            _end(service, run, failure)
        except Exception as error:
            # The database may be away for a moment; otherwise the next start ends the job.
            log.error("the end of job %d is not noted: %s", job, kind_and_place(error))
            time.sleep(BEAT)
        else:
            return


def _end(service: Service, run: JobRun, failure: str) -> None:
    """End a job as the ledger says; if nothing was drawn for it, by the failure of its process."""
    if failure and not run.is_mine(step=""):
        return
    if end_by_ledger(service, run.job):
        return
    if failure == "person":
        run.finish("cancelled")
    else:
        run.finish("failed", failure=failure)
    if failure in NOTED:
        with service.database.writing() as session:
            account = session.get_one(Job, run.job).request.table.account
            what, about = NOTED[failure]
            about = f"job {run.job}: {about.format(account=account)}"
            note_event(session, who="service", what=what, about=about)


def end_by_ledger(service: Service, job: int) -> bool:
    """End a job for which noise may have been drawn, whatever was noted of it; or free its room.

    Parameters
    ----------
    service : Service
    job : int

    Returns
    -------
    bool
        Whether it has ended: False if nothing was drawn for it, and nothing is held any more.
    """
    with service.database.reading() as session:
        request = session.get_one(Job, job).request
    charge = _charge_of(service, request)
    if charge is None:
        return False
    kept = charge.release
    failure = "" if kept else "lost" if charge.open else "drawn"
    with service.database.writing() as session:
        made = select(MadeRelease).where(MadeRelease.request_id == request.id)
        if kept and session.scalar(made) is None:
            size = len(content_of(session, kept))
            session.add(
                MadeRelease(request_id=request.id, digest=kept, size=size, charge=charge.number)
            )
        state: JobState = "done" if kept else "failed"
        session.execute(
            update(Job)
            .where(Job.id == job, or_(Job.state != state, Job.failure != failure))
            .values(state=state, failure=failure, finished=now(), **NO_STEP)
        )
    return True


def end_all_by_ledger(service: Service) -> None:
    """Correct the ends of jobs whose process, or the ledger, could not be asked."""
    with service.database.reading() as session:
        ended = session.scalars(select(Job.id).where(Job.state.in_(("cancelled", "failed"))))
        jobs = list(ended)
    for job in jobs:
        end_by_ledger(service, job)


def _charge_of(service: Service, request: Request) -> KeyedCharge | None:
    """Return the charge of a request, if noise may have been drawn; else give back its hold."""
    account = service.ledger.account(request.table.account)
    charge = account.find(request.key)
    if charge is None or not charge.open or charge.drawn:
        return charge
    with acting_as("cloakgp service"), suppress(LedgerError):
        service.ledger.void(charge.number, reason="the process of its job died")
    # At the same moment, it may have been drawn for after all, or closed.
    return account.find(request.key)


class _NoLongerError(Exception):
    """The person who asked may no longer do so."""


class _CrashedError(Exception):
    """The job had too many attempts."""


@dataclass
class JobRun:
    """One process's run of a job."""

    service: Service
    job: int
    runner: str
    ending: Callable[[], bool] = never
    _drawing: bool = False
    _reported: float = 0.0
    _lost: threading.Event = field(default_factory=threading.Event)

    def take(self) -> bool:
        """Take the job when no living process has it; return whether there is work to do."""
        seen, since = (None, time.monotonic())
        while True:
            with self.service.database.reading() as session:
                row = session.get(Job, self.job)
            if row is None or row.state in FINISHED:
                return False
            mark = (row.state, row.runner, row.beats)
            if mark != seen:
                seen, since = mark, time.monotonic()
            if row.state == "queued" or time.monotonic() - since > DEAD:
                if row.attempts >= ATTEMPTS:
                    self.runner = row.runner
                    raise _CrashedError
                if self._take_over(row):
                    return True
            if self.ending():
                return False
            time.sleep(BEAT / 2)

    def is_stopped(self) -> bool:
        """Return whether this process leaves the job, which it can before noise is drawn."""
        return self._lost.is_set() or (self.ending() and not self._drawing)

    def _take_over(self, row: Job) -> bool:
        return self._change(
            Job.state == row.state,
            Job.runner == row.runner,
            Job.beats == row.beats,
            # Noise may have been drawn, until the ledger is asked.
            state="drawing" if row.state == "drawing" else "running",
            runner=self.runner,
            attempts=row.attempts + 1,
            beats=row.beats + 1,
        )

    def beating(self) -> AbstractContextManager[None]:
        """Count up while a block runs, and notice the loss of the job to another process."""

        def beat() -> None:
            try:
                if not self.is_mine(beats=Job.beats + 1):
                    self._lost.set()
            except Exception:
                # The database may be away for a moment.
                log.warning("job %d: a beat was missed", self.job)

        return repeated(beat, seconds=BEAT, name="beats")

    def report(self, state: State) -> None:
        """Note the progress of the job, at most once a beat; or stop."""
        if self.is_stopped():
            raise StoppedError("the job was cancelled, or taken by another process")
        if time.monotonic() - self._reported < BEAT:
            return
        self._reported = time.monotonic()
        share = None
        if state.done is not None and state.total:
            share = min(1.0, float(state.done) / float(state.total))
        if not self.is_mine(step=state.text, share=share):
            raise StoppedError("the job was cancelled, or taken by another process")

    def begin(self) -> None:
        """Note that nothing was drawn, so that the job can be cancelled; or stop."""
        if not self.is_mine(state="running", **NO_STEP):
            raise StoppedError("the job was cancelled, or taken by another process")

    def begin_drawing(self) -> None:
        """Note that noise is about to be drawn, which ends cancellation; or stop."""
        step = "asking the private column, and learning from the noisy answers"
        if not self.is_mine(state="drawing", step=step, share=None):
            raise StoppedError("the job was cancelled, or taken by another process")
        self._drawing = True

    def finish(self, state: JobState, *, failure: str = "") -> None:
        """Note the end of the job, unless it has ended."""
        self._change(
            Job.runner == self.runner,
            Job.state.not_in(FINISHED),
            state=state,
            failure=failure,
            finished=now(),
            **NO_STEP,
        )

    def is_mine(self, **values: Any) -> bool:
        """Return whether the job is unfinished and this process's, and set values if so."""
        return self._change(
            Job.runner == self.runner, Job.state.in_(("running", "drawing")), **values
        )

    def _change(self, *where: Any, **values: Any) -> bool:
        with self.service.database.writing() as session:
            changed = update(Job).where(Job.id == self.job, *where).values(**values)
            return session.scalar(changed.returning(Job.id)) is not None


def _make(service: Service, run: JobRun) -> None:
    """Publish the release of a job under its request's key, unless noise was drawn for that."""
    with service.database.reading() as session:
        row = session.get(Job, run.job)
        assert row is not None
        request = row.request
    if end_by_ledger(service, run.job):
        return
    run.begin()
    if not request.person.may_ask():
        # They lost their role after the request or its approval.
        raise _NoLongerError
    with service.database.reading() as session:
        order = asked_of(
            service,
            session,
            request.table,
            Choices.model_validate(request.choices),
            origin=Origin(purpose=request.purpose, by=request.person.name),
            stopped=run.is_stopped,
        )
        own = own_columns(session, request.table.account, who=request.table.registered_by)
        fills = fills_of(session, request.table.account)
    _check_people(service, request.table)
    account = service.ledger.account(
        request.table.account,
        purpose=f"{request.purpose} ({request.key})",
        approved_by=request.decided_by or "",
        cohort=request.table.cohort,
    )
    # All public columns, whichever were chosen: no choices tell which of them is refused.
    account = account.with_inputs(
        inputs_named(order.source, public_columns_of(request.table), fills=fills),
        declared_public=request.table.declared_public,
        own=own,
    )
    reporter = Reporter(show=run.report, target=order.gap)

    def make() -> Release:
        keeper = keeper_in_force()
        assert keeper is not None
        with counted_by(_Gate(keeper, run)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if isinstance(order, VisitOrder):
                return make_visit(order, reporter=reporter)
            return estimators.make_release(order, reporter=reporter)

    with acting_as(request.person.name):
        account.publish(make, key=request.key)


def _check_people(service: Service, table: Table) -> None:
    """Refuse a table whose people came into another one since both were registered."""
    if table.cohort and table.person:
        with service.database.reading() as session:
            others = others_of(session, table.account, but=table.name)
        own = NamedPeople(Path(table.path), table.person, table.query)
        check_disjoint(own, others, limits=service.settings.table_limits)


@dataclass(frozen=True)
class _Gate:
    """A keeper that checks the job's state before noise is drawn."""

    keeper: Keeper
    run: JobRun

    def open_charge(self, spender: Spender) -> Charge:
        return _GatedCharge(self.keeper.open_charge(spender), self.run)


@dataclass(frozen=True)
class _GatedCharge:
    """A charge that draws no noise once the job is cancelled."""

    charge: Charge
    run: JobRun

    def hold(self, budgets: Sequence[Cost | Budget]) -> None:
        self.charge.hold(budgets)

    def reserve(self, cost: Cost) -> None:
        self.run.begin_drawing()
        self.charge.reserve(cost)

    def drawn(self, digest: str | None) -> None:
        self.charge.drawn(digest)

    def close(self, *, failed: bool) -> None:
        self.charge.close(failed=failed)
