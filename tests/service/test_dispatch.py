"""Jobs in worker processes on Dask, and in a thread."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from dask import config
from services import begin_joint, joint_sites, waiting, work_as

from cloakgp.service.access import Role
from cloakgp.service.dispatch import DaskDispatcher, ThreadDispatcher, dispatcher_of
from cloakgp.service.messages import Choices, NewRequest, NewTable
from cloakgp.service.operations.jobs import cancel_job, show_job
from cloakgp.service.operations.joint_requests import show_joint_request
from cloakgp.service.operations.requests import make_request
from cloakgp.service.operations.tables import register_table

QUICK = Choices(epsilon=0.5, delta=1e-6, stages="one", interval="off", learn="none")


@pytest.fixture
def place(url, tmp_path):
    """A service whose jobs wait, its analyst, and a table."""
    with waiting(url, tmp_path) as made:
        yield made


def asked(work, table, choices=QUICK):
    return make_request(work, NewRequest(table=table.id, choices=choices, purpose="a test")).job.id


@pytest.fixture
def wait_for(wait_until):
    """Wait until a job is in one of some states; return it."""

    def wait(work, job, *states):
        wait_until(
            lambda: show_job(work, job).state in states, told=lambda: str(show_job(work, job))
        )
        return show_job(work, job)

    return wait


def test_a_thread_does_jobs(place, wait_for):
    service, work, table = place
    dispatcher = dispatcher_of(service.settings)
    assert isinstance(dispatcher, ThreadDispatcher)
    job = asked(work, table)
    dispatcher.submit(job)
    assert wait_for(work, job, "done", "failed").state == "done"
    dispatcher.close()


@pytest.mark.parametrize("workers", [0, 1], ids=["a thread", "a worker"])
def test_joint_requests_go_on(service, tokens, tmp_path, workers, wait_until):
    """Anywhere: what is new of one comes from its files, and goes there."""
    service.dispatcher.at_once = False
    view, owners = begin_joint(service, tokens[Role.ANALYST])
    sites = joint_sites(service, view.id, owners, tmp_path)
    analyst = work_as(service, tokens[Role.ANALYST])
    dispatcher = dispatcher_of(replace(service.settings, workers=workers))
    try:
        for stage in ("answer", "open", "done"):
            for site in sites.values():
                site.step()
            assert show_joint_request(analyst, view.id).stage == "collect"
            dispatcher.coordinate(view.id)
            wait_until(
                lambda stage=stage: show_joint_request(analyst, view.id).stage == stage,
                told=lambda: str(show_joint_request(analyst, view.id)),
            )
    finally:
        dispatcher.close()


SLOW = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < (SELECT most FROM "
    "until)) SELECT age, height FROM people, (SELECT count(*) AS steps FROM n) WHERE steps > 0"
)


@pytest.fixture
def endless(place):
    """A table whose query went fast when it was registered, and now has no end."""
    service, work, _ = place
    path = service.settings.tables[0] / "people.db"
    numbers = np.random.default_rng(1)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE until (most REAL)")
        database.execute("INSERT INTO until VALUES (1)")
        database.execute("CREATE TABLE people (age REAL, height REAL)")
        rows = [(age, 100 + 5 * age) for age in numbers.uniform(1, 18, 30).round(1)]
        database.executemany("INSERT INTO people VALUES (?, ?)", rows)
    custodian = replace(work, actor=replace(work.actor, roles=frozenset({Role.CUSTODIAN})))
    new = NewTable(
        name="endless",
        account="children",
        path=str(path),
        query=SLOW,
        output="height",
        bounds=(50, 250),
    )
    table = register_table(custodian, new)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE until SET most = 1e15")
    return service, work, table


@pytest.mark.parametrize("how", ["cancelled", "the service ends"])
def test_a_job_in_an_endless_query_ends(endless, wait_for, how, patience, monkeypatch):
    # A request whose plan takes too long is taken; nobody waits for that here.
    monkeypatch.setattr("cloakgp.service.operations.requests.check_choices", lambda *_: None)
    service, work, table = endless
    dispatcher = ThreadDispatcher(service.settings)
    job = asked(work, table)
    dispatcher.submit(job)
    wait_for(work, job, "running")
    if how == "cancelled":
        cancel_job(work, job)
        # The one thread takes something else up when the job has ended.
        dispatcher._pool.submit(int).result(timeout=patience)
    # Waits for its thread.
    dispatcher.close()
    # Of a service that ends, the next one takes it up.
    assert show_job(work, job).state == ("cancelled" if how == "cancelled" else "running")
    assert service.ledger.account("children").standing.charges == 0


def test_workers_keep_the_memory_that_they_use_again(place, monkeypatch):
    service, _, _ = place
    seen = []

    def cluster(**_):
        seen.append(dict(config.get("distributed.nanny.pre-spawn-environ")))
        return SimpleNamespace(scheduler=None, sync=lambda *_: None)

    monkeypatch.setattr("cloakgp.service.dispatch.dask.LocalCluster", cluster)
    monkeypatch.setattr("cloakgp.service.dispatch.dask.Client", lambda _: None)
    DaskDispatcher(replace(service.settings, workers=1))
    assert seen[0]["MALLOC_TRIM_THRESHOLD_"] == 2**27
    assert config.get("distributed.nanny.pre-spawn-environ") != seen[0]


def listening(process):
    """Where a process and its children accept connections, and what each answers to HTTP."""
    found = {}
    for each in (process, *process.children(recursive=True)):
        for connection in each.net_connections(kind="tcp"):
            if connection.status == psutil.CONN_LISTEN:
                host, port = connection.laddr
                with suppress(OSError), socket.create_connection((host, port), 3) as asking:
                    asking.settimeout(3)
                    asking.sendall(b"GET /health HTTP/1.0\r\n\r\n")
                    with suppress(OSError):
                        found[host, port] = asking.recv(100)
    return found


@pytest.mark.slow
def test_dask_shows_nothing_to_whoever_is_on_this_machine(place):
    service, _, _ = place
    before = set(listening(psutil.Process()))
    dispatcher = DaskDispatcher(replace(service.settings, workers=1))
    try:
        after = listening(psutil.Process())
        opened = {place: answer for place, answer in after.items() if place not in before}
        assert all(host == "127.0.0.1" for host, _ in opened)
        assert [answer for answer in opened.values() if b"200 OK" in answer] == []
        ports = dispatcher._cluster.scheduler.http_server._sockets.values()
        assert all(port.fileno() < 0 for port in ports)
    finally:
        dispatcher.close()


@pytest.mark.slow
def test_workers_do_jobs_and_one_that_is_killed_spends_once(place, wait_for):
    service, work, table = place
    dispatcher = DaskDispatcher(replace(service.settings, workers=1))
    # Both together need nobody's approval.
    half = QUICK.model_copy(update={"epsilon": QUICK.epsilon / 2, "delta": QUICK.delta / 2})
    first = asked(work, table, half)
    dispatcher.submit(first)
    assert wait_for(work, first, "done", "failed").state == "done"
    once = service.ledger.account("children").standing.spent
    second = asked(work, table, half)
    (worker,) = dispatcher._cluster.workers.values()
    dispatcher.submit(second)
    wait_for(work, second, "running", "drawing", "done")
    os.kill(worker.pid, signal.SIGKILL)
    seen = wait_for(work, second, "done", "failed")
    # Whenever it was hit, the account has two releases' worth, and no third.
    assert seen.state == "done" or "noise was drawn" in seen.failure
    found = service.ledger.account("children").standing
    assert found.charges <= 3
    assert found.spent == once + once
    assert service.ledger.verify().sound
    dispatcher.close()
