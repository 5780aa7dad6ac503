"""Work on a job, in a process that may die: each job spends at most once.

A job is one release under one key of the ledger. Whoever begins it writes that it is theirs and
counts up `beats` while alive; whoever takes it up later waits until these stand still. What a dead
process has left is then known from the ledger: a charge for which nothing was drawn is given back,
and the job begins anew; a release that was published is the job's; and if noise was drawn and its
release was lost, that stays spent, and the job has failed.

Before noise is drawn the job's state becomes ``drawing``, which a cancelled job cannot: a job is
cancelled or draws, never both.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import select, update

from cloakgp.ledger import LedgerError, LimitError, projection
from cloakgp.ledger.chain import acting_as
from cloakgp.ledger.database import RowsInTables
from cloakgp.orders.origin import Origin
from cloakgp.orders.progress import Reporter, State
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
from cloakgp.service.asking import order_of
from cloakgp.service.context import Service
from cloakgp.service.credentials import new_file_name
from cloakgp.service.messages import Choices
from cloakgp.service.models import Job, JobState, MadeRelease, Request, now
from cloakgp.service.settings import Settings

# Seconds between beats; after so many without one, a process is taken for dead.
BEAT, DEAD = 1.0, 10.0
# So often a job is begun.
ATTEMPTS = 4
FINISHED = ("done", "failed", "cancelled")
log = logging.getLogger("cloakgp.service")


class StoppedError(SpendingError):
    """The job was cancelled, or somebody else has it now; nothing was drawn."""


def work_on_job(settings: Settings, job: int) -> None:
    """Make the release of a job; called in a worker process.

    Never raises: what went wrong is the job's state.

    Parameters
    ----------
    settings : Settings
    job : int
    """
    service = Service.open(settings)
    try:
        run_job(service, job)
    finally:
        service.close()


def run_job(service: Service, job: int) -> None:
    """Make the release of a job, unless it is finished or somebody else is at it."""
    hand = _Hand(service, job, runner=new_file_name())
    failure = ""
    try:
        if not hand.take():
            return
        with hand.beating():
            _make(service, hand)
    except StoppedError:
        return
    except LimitError:
        failure = "limit"
    except _LostError:
        failure = "lost"
    except _CrashedError:
        failure = "crashed"
        give_back(service, hand.job)
    except Exception as error:
        # Its message might quote a value: its kind and its place are noted, and nothing else.
        last = traceback.extract_tb(error.__traceback__)[-1]
        kind, place = type(error).__name__, f"{Path(last.filename).name}:{last.lineno}"
        log.error("job %d failed: %s at %s", job, kind, place)
        failure = "failed"
    if failure:
        hand.finish("failed", failure=failure)


def give_back(service: Service, job: int) -> None:
    """Give back what a job that has ended holds, if nothing was drawn for it."""
    with service.database.reading() as session:
        found = session.get(Job, job)
        request = None if found is None else found.request
    if request is not None:
        with suppress(_LostError):
            _clear(service, request)


def give_back_all(service: Service) -> None:
    """Give back what jobs hold that have ended though their process could not say so."""
    with service.database.reading() as session:
        ended = session.scalars(select(Job.id).where(Job.state.in_(("cancelled", "failed"))))
        jobs = list(ended)
    for job in jobs:
        give_back(service, job)


class _LostError(Exception):
    """Noise was drawn, and what came of it is lost."""


class _CrashedError(Exception):
    """The job was begun too often."""


@dataclass
class _Hand:
    """One process's hand on a job."""

    service: Service
    job: int
    runner: str
    _told: float = 0.0
    _lost: threading.Event = field(default_factory=threading.Event)

    def take(self) -> bool:
        """Take the job, when nobody alive has it; return whether there is anything to do."""
        seen, since = (None, time.monotonic())
        while True:
            with self.service.database.reading() as session:
                found = session.get(Job, self.job)
            if found is None or found.state in FINISHED:
                return False
            mark = (found.state, found.runner, found.beats)
            if mark != seen:
                seen, since = mark, time.monotonic()
            if found.state == "queued" or time.monotonic() - since > DEAD:
                if found.attempts >= ATTEMPTS:
                    self.runner = found.runner
                    raise _CrashedError
                if self._taken_over(found):
                    return True
            time.sleep(BEAT / 2)

    def _taken_over(self, found: Job) -> bool:
        return self._change(
            Job.state == found.state,
            Job.runner == found.runner,
            Job.beats == found.beats,
            state="running",
            runner=self.runner,
            attempts=found.attempts + 1,
            beats=found.beats + 1,
        )

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Count up while the block runs, and notice if the job is somebody else's."""
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(BEAT):
                try:
                    if not self._is_mine(beats=Job.beats + 1):
                        self._lost.set()
                except Exception:
                    # The database may be away for a moment.
                    log.warning("job %d: a beat was missed", self.job)

        thread = threading.Thread(target=beat, name="beats", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def tell(self, state: State) -> None:
        """Note how far the job has come, at most once in a while; or stop."""
        if self._lost.is_set():
            raise StoppedError("the job was cancelled, or taken by another process")
        if time.monotonic() - self._told < BEAT:
            return
        self._told = time.monotonic()
        share = None
        if state.done is not None and state.total:
            share = min(1.0, float(state.done) / float(state.total))
        if not self._is_mine(step=state.text, share=share):
            raise StoppedError("the job was cancelled, or taken by another process")

    def begin_drawing(self) -> None:
        """Say that noise is about to be drawn, or stop: from now on nobody can cancel."""
        mine = self._change(
            Job.runner == self.runner,
            Job.state.in_(("running", "drawing")),
            state="drawing",
            step="asking the private column, and learning from the noisy answers",
            share=None,
        )
        if not mine:
            raise StoppedError("the job was cancelled, or taken by another process")

    def finish(self, state: JobState, *, failure: str = "") -> None:
        """Say how the job ended, unless it has ended."""
        self._change(
            Job.runner == self.runner,
            Job.state.not_in(FINISHED),
            state=state,
            failure=failure,
            step="",
            share=None,
            finished=now(),
        )

    def _is_mine(self, **values: Any) -> bool:
        return self._change(
            Job.runner == self.runner, Job.state.in_(("running", "drawing")), **values
        )

    def _change(self, *where: Any, **values: Any) -> bool:
        with self.service.database.writing() as session:
            changed = update(Job).where(Job.id == self.job, *where).values(**values)
            return session.scalar(changed.returning(Job.id)) is not None


def _make(service: Service, hand: _Hand) -> None:
    """Publish the release of a job under its request's key, and note it."""
    with service.database.reading() as session:
        found = session.get(Job, hand.job)
        assert found is not None
        request = found.request
    _clear(service, request)
    purpose = f"{request.purpose} ({request.key}"
    purpose += f", approved by {request.decided_by})" if request.decided_by else ")"
    order = order_of(
        request.table,
        Choices.model_validate(request.choices),
        memory=service.settings.memory,
        origin=Origin(purpose=request.purpose, by=request.person.name),
    )
    account = service.ledger.account(request.table.account, purpose=purpose)
    reporter = Reporter(show=hand.tell, target=order.options.gap)

    def make() -> Release:
        keeper = keeper_in_force()
        assert keeper is not None
        with counted_by(_Gate(keeper, hand)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return order.make(reporter)

    with acting_as(request.person.name):
        made = account.publish(make, key=request.key)
    content = made.to_bytes()
    with service.database.writing() as session:
        charges = RowsInTables(session.connection()).all(
            "charges", account=account.name, key=request.key
        )
        if session.scalar(select(MadeRelease).where(MadeRelease.request_id == request.id)) is None:
            session.add(
                MadeRelease(
                    request_id=request.id,
                    digest=hashlib.sha256(content).hexdigest(),
                    size=len(content),
                    charge=charges[0]["number"],
                )
            )
    hand.finish("done")


def _clear(service: Service, request: Request) -> None:
    """Give back what a process that died has reserved, if nothing was drawn for it.

    Raises
    ------
    _LostError
        If something was.
    """
    with service.ledger.database.reading() as connection:
        charges = RowsInTables(connection).all(
            "charges", account=request.table.account, key=request.key
        )
    for charge in charges:
        if charge["state"] == projection.OPEN:
            try:
                with acting_as("cloakgp service"):
                    service.ledger.void(charge["number"], reason="the process of its job died")
            except LedgerError:
                raise _LostError from None
        elif charge["release"] is None:
            raise _LostError


@dataclass(frozen=True)
class _Gate:
    """A keeper that asks a job's state before noise is drawn."""

    keeper: Keeper
    hand: _Hand

    def open_charge(self, spender: Spender) -> Charge:
        return _GatedCharge(self.keeper.open_charge(spender), self.hand)


@dataclass(frozen=True)
class _GatedCharge:
    """A charge of which nothing is drawn once the job is cancelled."""

    charge: Charge
    hand: _Hand

    def hold(self, budgets: Sequence[Budget]) -> None:
        self.charge.hold(budgets)

    def reserve(self, cost: Cost) -> None:
        self.hand.begin_drawing()
        self.charge.reserve(cost)

    def drawn(self, digest: str | None) -> None:
        self.charge.drawn(digest)

    def close(self, *, failed: bool) -> None:
        self.charge.close(failed=failed)
