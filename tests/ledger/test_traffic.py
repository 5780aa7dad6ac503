"""Verification while others write: what changes meanwhile is no damage."""

from __future__ import annotations

import time
from contextlib import contextmanager
from multiprocessing import get_context

import pytest
from spenders import charge, gaussian

from cloakgp.ledger import Ledger

# Seconds between charges of one writer.
PAUSE = 0.02


def write_on(url, ended):
    """Charge, a little each, until told to end."""
    account = Ledger(url).account("people")
    while not ended.wait(PAUSE):
        charge(account, gaussian(1e-6))


@contextmanager
def writers(url, count):
    context = get_context("fork")
    ended = context.Event()
    processes = [context.Process(target=write_on, args=(url, ended)) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        ended.set()
        for process in processes:
            process.join()
    assert [process.exitcode for process in processes] == [0] * count


def alarms(url, runs):
    """What so many verifications find, while two others write."""
    ledger = Ledger.create(url)
    ledger.open_account("people", epsilon=1.0, delta=1e-6)
    found, entries = [], set()
    with writers(url, 2):
        while ledger.account("people").standing.charges < 2:
            time.sleep(0.01)
        for _ in range(runs):
            audit = ledger.verify()
            entries.add(audit.entries)
            found += audit.findings
    ledger.close()
    # There was traffic.
    assert len(entries) > runs / 10
    return found


def test_no_alarm_while_others_write(url):
    assert alarms(url, 8) == []


@pytest.mark.slow
@pytest.mark.parametrize("tenth", range(10), indirect=True)
@pytest.mark.usefixtures("tenth")
def test_no_alarm_in_500_verifications_while_others_write(url):
    """In ten parts, so that the chain stays short: each verification follows all of it."""
    assert alarms(url, 50) == []


@pytest.fixture
def tenth(request):
    return request.param
