"""Jobs in worker processes on Dask, and in a thread."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

import pytest
from dask import config
from services import waiting

from cloakgp.service.dispatch import DaskDispatcher, ThreadDispatcher, dispatcher_of
from cloakgp.service.messages import Choices, NewRequest
from cloakgp.service.operations.jobs import show_job
from cloakgp.service.operations.requests import make_request

QUICK = Choices(epsilon=0.5, delta=1e-6, stages="one", interval="off", learn="none")


@pytest.fixture
def place(url, tmp_path):
    """A service whose jobs wait, its analyst, and a table."""
    with waiting(url, tmp_path) as made:
        yield made


def asked(work, table):
    return make_request(work, NewRequest(table=table.id, choices=QUICK, purpose="a test")).job.id


def wait_for(work, job, *states, seconds=120):
    began = time.monotonic()
    while show_job(work, job).state not in states:
        assert time.monotonic() - began < seconds, show_job(work, job)
        time.sleep(0.05)
    return show_job(work, job)


def test_a_thread_does_jobs(place):
    service, work, table = place
    dispatcher = dispatcher_of(service.settings)
    assert isinstance(dispatcher, ThreadDispatcher)
    job = asked(work, table)
    dispatcher.submit(job)
    assert wait_for(work, job, "done", "failed").state == "done"
    dispatcher.close()


def test_workers_keep_the_memory_that_they_use_again(place, monkeypatch):
    service, _, _ = place
    seen = []

    def cluster(**_):
        seen.append(dict(config.get("distributed.nanny.pre-spawn-environ")))

    monkeypatch.setattr("cloakgp.service.dispatch.dask.LocalCluster", cluster)
    monkeypatch.setattr("cloakgp.service.dispatch.dask.Client", lambda _: None)
    DaskDispatcher(replace(service.settings, workers=1))
    assert seen[0]["MALLOC_TRIM_THRESHOLD_"] == 2**27
    assert config.get("distributed.nanny.pre-spawn-environ") != seen[0]


@pytest.mark.slow
def test_workers_do_jobs_and_one_that_is_killed_spends_once(place):
    service, work, table = place
    dispatcher = DaskDispatcher(replace(service.settings, workers=1))
    first = asked(work, table)
    dispatcher.submit(first)
    assert wait_for(work, first, "done", "failed").state == "done"
    second = asked(work, table)
    (worker,) = dispatcher._cluster.workers.values()
    dispatcher.submit(second)
    wait_for(work, second, "running", "drawing", "done")
    os.kill(worker.pid, signal.SIGKILL)
    seen = wait_for(work, second, "done", "failed")
    # Whenever it was hit, the account has two releases' worth, and no third.
    assert seen.state == "done" or "noise was drawn" in seen.failure
    spent = service.ledger.account("children").standing
    assert spent.charges <= 3
    assert 0.5 < spent.epsilon < 1.01
    assert service.ledger.verify().sound
    dispatcher.close()
