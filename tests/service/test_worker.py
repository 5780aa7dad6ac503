"""Jobs: whatever dies when, no request spends twice, and what was drawn counts."""

from __future__ import annotations

import multiprocessing
import os
import signal
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient
from services import on_postgresql_slowly, waiting, write_people
from sqlalchemy import select

from cloakgp.ledger import marks, projection
from cloakgp.ledger.database import TableStore
from cloakgp.ledger.errors import LedgerError
from cloakgp.privacy import sampler
from cloakgp.privacy.filters import Amount
from cloakgp.privacy.spending import Cost
from cloakgp.service import worker
from cloakgp.service.app import create_app
from cloakgp.service.database import UnavailableError
from cloakgp.service.errors import ConflictError, NoRoomError
from cloakgp.service.messages import Choices, NewRequest
from cloakgp.service.models import Event, Job, MadeRelease, Request, Table
from cloakgp.service.operations.accounts import list_accounts
from cloakgp.service.operations.jobs import FAILURES, cancel_job, show_job, unfinished_jobs
from cloakgp.service.operations.releases import list_releases
from cloakgp.service.operations.requests import make_request, show_request
from cloakgp.service.people import SharedPeopleError

pytestmark = pytest.mark.usefixtures("all_in_this_process")


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    monkeypatch.setattr(worker, "BEAT", 0.05)
    monkeypatch.setattr(worker, "DEAD", 0.4)


@pytest.fixture
def place(any_url, tmp_path):
    """A service whose jobs wait, its analyst, and a table."""
    with waiting(any_url, tmp_path) as made:
        yield made


def asked(work, table):
    choices = Choices(epsilon=0.5, delta=1e-6, stages="one", interval="off", learn="none")
    return make_request(work, NewRequest(table=table.id, choices=choices, purpose="a test"))


def charges(service):
    with service.ledger.database.reading() as connection:
        return TableStore(connection).all("charges")


def spent(service):
    return service.ledger.account("children").standing.epsilon_if_fixed


def dying(settings, job, moment):
    """Work on a job in a process that is killed at a moment."""

    def die(*_, **__):
        os.kill(os.getpid(), signal.SIGKILL)

    if moment == "designing":
        worker.JobRun.report = die
    elif moment == "holding":
        worker.JobRun.begin_drawing = die
    elif moment == "drawing":
        sampler_draw = sampler.spend
        sampler.spend = lambda cost, _: sampler_draw(cost, die)
    elif moment == "drawn":
        worker._GatedCharge.close = die
    elif moment == "between two draws":
        reserve = worker._GatedCharge.reserve
        reserved = []

        def reserve_once(charge, cost):
            if reserved:
                die()
            reserved.append(cost)
            reserve(charge, cost)

        worker._GatedCharge.reserve = reserve_once
    elif moment == "published":
        worker._end = die
    worker.work_on_job(settings, job)


def killed(service, job, moment):
    process = multiprocessing.get_context("fork").Process(
        target=dying, args=(service.settings, job, moment)
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL, moment


@pytest.mark.parametrize(
    ("moment", "state"),
    [
        ("designing", "done"),
        ("holding", "done"),
        ("drawing", "failed"),
        ("drawn", "failed"),
        ("published", "done"),
    ],
)
def test_a_job_whose_process_is_killed_spends_once(place, moment, state):
    service, work, table = place
    request = asked(work, table)
    killed(service, request.job.id, moment)
    assert unfinished_jobs(service) == [request.job.id]
    service.dispatcher.work()
    seen = show_request(work, request.id)
    assert seen.job.state == state, seen.job
    assert seen.job.attempts == 2
    assert len(list_releases(work)) == (state == "done")
    # One draw of noise is counted, whether its release was lost or not.
    counted = [row for row in charges(service) if projection.counted(row) != Amount()]
    assert len(counted) == 1
    assert spent(service) == pytest.approx(0.5, rel=1e-3)
    assert service.ledger.verify().sound
    # And again: nothing is left to do.
    worker.run_job(service, request.job.id)
    assert spent(service) == pytest.approx(0.5, rel=1e-3)


TWO_DRAWS = Choices(epsilon=0.5, noise="laplace", learn="none")


def beats(service, job):
    with service.database.reading() as session:
        return session.get(Job, job).beats


def test_all_of_the_budget_of_a_lost_job_is_spent_until_it_is_voided(place):
    """Also of a process that died between two draws: who knows what was seen of the first?"""
    service, work, table = place
    choices = TWO_DRAWS
    request = make_request(work, NewRequest(table=table.id, choices=choices, purpose="a test"))
    killed(service, request.job.id, "between two draws")
    service.dispatcher.work()
    lost = show_request(work, request.id).job
    assert (lost.state, lost.failure) == ("failed", FAILURES["lost"])
    (charge,) = charges(service)
    # A part of it was drawn, and all of it is counted.
    whole = Amount.of(Cost("laplace", epsilon=0.5)).laplace
    drawn, counted = projection.drawn_of(charge).laplace, projection.counted(charge).laplace
    assert 0 < drawn / whole < 0.5
    assert counted / whole == pytest.approx(1, rel=1e-3)
    (account,) = list_accounts(work)
    assert account.used == pytest.approx(0.5 / 3, rel=0.01)
    assert account.mine == pytest.approx(0.5 / 2, rel=0.01)
    # It stays so when the service starts again, and for the next request.
    with TestClient(create_app(service), base_url="http://127.0.0.1"):
        assert list_accounts(work) == [account]
    service.ledger.change_limit("children", epsilon=0.9, delta=0.0, reason="less")
    with pytest.raises(NoRoomError):
        make_request(
            work,
            NewRequest(
                table=table.id, choices=choices.model_copy(update={"epsilon": 0.45}), purpose="more"
            ),
        )
    with pytest.raises(LedgerError, match="it stays spent"):
        service.ledger.void(charge["number"], reason="a test")
    # What was said of it stays true when somebody knows that nobody has seen it.
    service.ledger.void(charge["number"], reason="nobody saw it", although_drawn=True)
    assert spent(service) == 0.0
    said = show_request(work, request.id).job.failure
    assert "counts as spent, unless its charge in the ledger was voided" in said


class DiedError(BaseException):
    """The process of a job dies."""


def died(service, monkeypatch, job, name="_end"):
    """Work on a job in a process that dies where a function of the worker is called."""

    def die(*_, **__):
        raise DiedError

    with monkeypatch.context() as patched:
        patched.setattr(f"cloakgp.service.worker.{name}", die)
        with pytest.raises(DiedError):
            worker.run_job(service, job)


def lose_role(service, request):
    with service.database.writing() as session:
        session.get(Request, request.id).person.roles = ["reader"]


def find_people(monkeypatch):
    def found(*_):
        raise SharedPeopleError

    monkeypatch.setattr(worker, "_check_people", found)


@on_postgresql_slowly
@pytest.mark.parametrize("later", ["role lost", "people in two tables", "cancelled", "crashed"])
def test_a_published_release_is_its_jobs_whatever_comes_after(place, monkeypatch, later):
    """The process died after the ledger had the release, before the service had noted it."""
    service, work, table = place
    request = asked(work, table)
    died(service, monkeypatch, request.job.id)
    assert show_job(work, request.job.id).state == "drawing"
    if later == "role lost":
        lose_role(service, request)
    elif later == "people in two tables":
        find_people(monkeypatch)
    elif later == "crashed":
        with service.database.writing() as session:
            session.get(Job, request.job.id).attempts = worker.ATTEMPTS
    else:
        take = worker.JobRun.take

        def take_and_cancel(run):
            assert take(run)
            with pytest.raises(ConflictError, match="too late"):
                cancel_job(work, request.job.id)
            return True

        monkeypatch.setattr(worker.JobRun, "take", take_and_cancel)
    service.dispatcher.work()
    seen = show_job(work, request.job.id)
    assert (seen.state, seen.failure) == ("done", "")
    assert len(list_releases(work)) == 1
    assert len(charges(service)) == 1


@on_postgresql_slowly
@pytest.mark.parametrize("later", ["role lost", "people in two tables"])
def test_noise_that_was_drawn_is_told_whatever_comes_after(place, monkeypatch, later):
    service, work, table = place
    request = asked(work, table)
    died(service, monkeypatch, request.job.id, "_GatedCharge.close")
    if later == "role lost":
        lose_role(service, request)
    else:
        find_people(monkeypatch)
    service.dispatcher.work()
    seen = show_job(work, request.job.id)
    assert (seen.state, seen.failure) == ("failed", FAILURES["lost"])


@on_postgresql_slowly
def test_a_database_that_was_away_for_a_moment_costs_no_release(place, monkeypatch):
    service, work, table = place
    request = asked(work, table)
    end, away = worker.end_by_ledger, [False, True, True, False]

    def ended(*given):
        if away.pop(0):
            raise UnavailableError
        return end(*given)

    monkeypatch.setattr(worker, "end_by_ledger", ended)
    service.dispatcher.work()
    assert away == []
    assert show_request(work, request.id).job.state == "done"
    assert len(list_releases(work)) == 1


@on_postgresql_slowly
@pytest.mark.parametrize("cause", ["limit", "failed"])
def test_what_fails_between_two_draws_says_that_the_first_stays_spent(place, monkeypatch, cause):
    service, work, table = place
    request = make_request(work, NewRequest(table=table.id, choices=TWO_DRAWS, purpose="a test"))
    reserve = worker._GatedCharge.reserve
    reserved = []

    def reserve_once(charge, cost):
        if reserved and cause == "failed":
            raise ValueError("another number of rows")
        reserve(charge, cost)
        if not reserved:
            service.ledger.change_limit("children", epsilon=0.3, delta=1e-6, reason="less")
        reserved.append(cost)

    monkeypatch.setattr(worker._GatedCharge, "reserve", reserve_once)
    service.dispatcher.work()
    seen = show_job(work, request.job.id)
    assert (seen.state, seen.failure) == ("failed", FAILURES["drawn"])
    assert [row["state"] for row in charges(service)] == [projection.FAILED]
    assert spent(service) > 0


@on_postgresql_slowly
def test_a_job_whose_process_died_before_it_drew_can_be_cancelled_again(place, monkeypatch):
    service, work, table = place
    request = asked(work, table)
    died(service, monkeypatch, request.job.id, "_GatedCharge.hold")
    with service.database.writing() as session:
        session.get(Job, request.job.id).state = "drawing"
    monkeypatch.setattr(worker, "_check_people", lambda *_: cancel_job(work, request.job.id))
    service.dispatcher.work()
    assert show_job(work, request.job.id).state == "cancelled"
    assert spent(service) == 0
    assert list_releases(work) == []


@on_postgresql_slowly
@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_a_wrong_end_is_corrected_when_the_service_starts(place, state):
    service, work, table = place
    request = asked(work, table)
    service.dispatcher.work()
    with service.database.writing() as session:
        session.delete(session.scalar(select(MadeRelease)))
        job = session.get(Job, request.job.id)
        job.state, job.failure = state, "failed" if state == "failed" else ""
    with TestClient(create_app(service), base_url="http://127.0.0.1"):
        assert show_job(work, request.job.id).state == "done"
        assert len(list_releases(work)) == 1


def test_a_job_that_somebody_alive_has_is_left_to_them(place, monkeypatch, wait_until):
    service, work, table = place
    job = asked(work, table).job.id
    hand = worker.JobRun(service, job, runner="another")
    assert hand.take()
    passed = []

    def pass_by(_):
        """Most of the time after which somebody is dead passes between two beats."""
        before = beats(service, job)
        wait_until(lambda: beats(service, job) > before)
        passed.append(0.9 * worker.DEAD)
        if len(passed) == 10:
            assert show_job(work, job).attempts == 1
            hand.finish("cancelled")

    clock = SimpleNamespace(sleep=pass_by, monotonic=lambda: sum(passed))
    with hand.beating():
        monkeypatch.setattr(worker, "time", clock)
        worker.run_job(service, job)
    assert len(passed) == 10
    assert show_job(work, job).attempts == 1
    assert charges(service) == []


def test_whoever_lost_a_job_draws_nothing(place):
    service, work, table = place
    request = asked(work, table)
    slow = worker.JobRun(service, request.job.id, runner="slow")
    assert slow.take()
    quick = worker.JobRun(service, request.job.id, runner="quick")
    assert quick.take()
    with pytest.raises(worker.StoppedError):
        slow.begin_drawing()
    slow.finish("failed", failure="failed")
    assert show_job(work, request.job.id).state == "running"


@on_postgresql_slowly
def test_a_job_is_cancelled_until_it_draws(place):
    service, work, table = place
    request = asked(work, table)
    assert cancel_job(work, request.job.id).state == "cancelled"
    service.dispatcher.work()
    assert charges(service) == []
    with pytest.raises(ConflictError):
        cancel_job(work, request.job.id)


def test_a_job_that_is_cancelled_on_its_way_spends_nothing(place, monkeypatch):
    service, work, table = place
    request = asked(work, table)
    begin = worker.JobRun.begin_drawing

    def late(hand):
        cancel_job(work, request.job.id)
        begin(hand)

    monkeypatch.setattr(worker.JobRun, "begin_drawing", late)
    service.dispatcher.work()
    assert show_job(work, request.job.id).state == "cancelled"
    assert spent(service) == 0
    assert list_releases(work) == []


def test_nobody_cancels_while_noise_is_drawn(place, monkeypatch):
    service, work, table = place
    request = asked(work, table)
    begin, refused = worker.JobRun.begin_drawing, []

    def early(hand):
        begin(hand)
        with pytest.raises(ConflictError) as error:
            cancel_job(work, request.job.id)
        refused.append(str(error.value))

    monkeypatch.setattr(worker.JobRun, "begin_drawing", early)
    service.dispatcher.work()
    assert "it is too late" in refused[0]
    assert show_job(work, request.job.id).state == "done"


def test_a_job_that_always_kills_its_process_ends(place):
    service, work, table = place
    request = asked(work, table)
    for _ in range(worker.ATTEMPTS):
        killed(service, request.job.id, "holding")
    service.dispatcher.work()
    seen = show_job(work, request.job.id)
    assert (seen.state, seen.attempts) == ("failed", worker.ATTEMPTS)
    assert "again and again" in seen.failure
    assert spent(service) == 0


def test_what_a_dead_process_held_for_a_cancelled_job_is_given_back(place):
    service, work, table = place
    request = asked(work, table)
    killed(service, request.job.id, "holding")
    cancel_job(work, request.job.id)
    (charge,) = charges(service)
    # As a process leaves it that dies after it has held its budget.
    assert charge["state"] == projection.OPEN
    with TestClient(create_app(service), base_url="http://127.0.0.1"):
        assert {row["state"] for row in charges(service)} <= {"voided", "refunded"}
    assert spent(service) == 0


@on_postgresql_slowly
def test_whatever_is_unfinished_is_taken_up_at_the_start(place):
    service, work, table = place
    request = asked(work, table)
    service.dispatcher.waiting.clear()
    service.dispatcher.at_once = True
    with TestClient(create_app(service), base_url="http://127.0.0.1"):
        assert show_job(work, request.job.id).state == "done"


@on_postgresql_slowly
def test_what_the_ledger_refuses_fails(place):
    service, work, table = place
    request = asked(work, table)
    service.ledger.change_limit("children", epsilon=0.1, delta=1e-6, reason="less")
    service.dispatcher.work()
    seen = show_job(work, request.job.id)
    assert seen.state == "failed"
    assert "no room" in seen.failure
    assert spent(service) == 0


def attach_ages(service, folder, *, column):
    """The public column of the table, attached after the table was registered."""
    rows = write_people(folder / "again.csv").read_text().split()[1:]
    ages = [float(row.partition(",")[0]) for row in rows]
    service.ledger.account("children").attach(ages, column=column)


@on_postgresql_slowly
@pytest.mark.parametrize("inputs", [[], ["age"]])
def test_no_job_publishes_a_private_column_of_the_account(place, tmp_path, inputs):
    service, work, table = place
    choices = TWO_DRAWS.model_copy(update={"inputs": inputs})
    request = make_request(work, NewRequest(table=table.id, choices=choices, purpose="a test"))
    attach_ages(service, tmp_path, column="heights: height")
    service.dispatcher.work()
    seen = show_job(work, request.job.id)
    assert (seen.state, seen.failure) == ("failed", FAILURES["inputs"])
    assert charges(service) == []
    with service.database.reading() as session:
        event = session.scalars(select(Event).order_by(Event.id.desc())).first()
    about = f"job {request.job.id}: public columns of its table are private ones of children"
    assert (event.what, event.about) == ("release refused", about)


@on_postgresql_slowly
def test_a_job_publishes_what_is_declared_public(place, tmp_path):
    service, work, table = place
    with service.database.writing() as session:
        session.get(Table, table.id).declared_public = ["age"]
    request = asked(work, table)
    attach_ages(service, tmp_path, column="heights: height")
    service.dispatcher.work()
    assert show_job(work, request.job.id).state == "done"


@on_postgresql_slowly
@pytest.mark.parametrize(("guessable", "state"), [(64, "done"), (2, "failed")])
def test_a_job_tells_of_others_columns_what_nobody_guesses(
    place, tmp_path, monkeypatch, guessable, state
):
    service, work, table = place
    monkeypatch.setattr(marks, "GUESSABLE", guessable)
    request = asked(work, table)
    attach_ages(service, tmp_path, column="another: age")
    service.dispatcher.work()
    assert show_job(work, request.job.id).state == state
    if state == "done":
        (note,) = service.ledger.verify().notes
        assert "takes 'age' to be public, and the same few values are attached" in note


@on_postgresql_slowly
def test_entries_say_who_asked_and_who_approved_and_what_for(place):
    service, work, table = place
    request = asked(work, table)
    with service.database.writing() as session:
        session.get(Request, request.id).decided_by = "Ada Lovelace"
    service.dispatcher.work()
    (made,) = (entry.content for entry in service.ledger.entries() if "call" in entry.content)
    names = service.ledger.names()
    assert (names[made["who"]], names[made["approved_by"]]) == ("analyst", "Ada Lovelace")
    assert made["purpose"] == "a test (service request 1)"
    written = "".join(entry.body for entry in service.ledger.entries())
    assert "Ada Lovelace" not in written


@on_postgresql_slowly
def test_progress_is_told(place):
    service, work, table = place
    request = asked(work, table)
    hand = worker.JobRun(service, request.job.id, runner="it")
    assert hand.take()
    hand.report(worker.State("rows", "reading: 1 of 2 rows", 1, 2))
    seen = show_job(work, request.job.id)
    assert (seen.step, seen.share) == ("reading: 1 of 2 rows", 0.5)
    with service.database.reading() as session:
        assert session.get(Job, request.job.id).runner == "it"
