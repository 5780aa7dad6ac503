"""Rates that several servers share through PostgreSQL."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient
from services import add_people, opened

from cloakgp.ledger import Ledger
from cloakgp.service.access import Role
from cloakgp.service.app import create_app
from cloakgp.service.context import Service
from cloakgp.service.database import ServiceDatabase
from cloakgp.service.errors import TooManyError
from cloakgp.service.rates import Rates, SharedCounters


@pytest.fixture
def database(schema, tmp_path, monkeypatch):
    monkeypatch.setenv("CLOAKGP_LEDGER_HOME", str(tmp_path / "home"))
    Ledger.create(schema).close()
    made = ServiceDatabase(schema)
    made.prepare()
    yield made
    made.close()


def test_several_servers_count_as_one(schema, tmp_path, monkeypatch):
    monkeypatch.setenv("CLOAKGP_LEDGER_HOME", str(tmp_path / "home"))
    service = opened(schema, tmp_path, rates={"default": "5/hour"})
    token = add_people(service)[Role.READER]
    other = Service.open(service.settings)
    codes = []
    for number in range(8):
        app = create_app((service, other)[number % 2])
        http = TestClient(app, base_url="http://127.0.0.1")
        answer = http.get("/api/me", headers={"Authorization": f"Bearer {token}"})
        codes.append(answer.status_code)
    assert codes == [200] * 5 + [429] * 3
    other.close()
    service.close()


def test_at_the_same_moment_no_more_than_the_rate_is_let_through(database):
    rates = [Rates({"plan": "20/hour"}, SharedCounters(database)) for _ in range(4)]

    def let_through(number):
        try:
            rates[number % 4].count("plan", "anna")
        except TooManyError:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(let_through, range(60))) == 20


def test_a_window_ends(database, monkeypatch):
    counters = SharedCounters(database)
    assert [counters.incr("a", 60) for _ in range(3)] == [1, 2, 3]
    assert counters.incr("b", 60, amount=2) == 2
    assert counters.get("a") == 3
    later = time.time() + 61
    assert counters.get_expiry("a") < later
    monkeypatch.setattr("cloakgp.service.rates.time.time", lambda: later)
    assert counters.get("a") == 0
    assert counters.incr("a", 60) == 1
    # Once in a while what has ended is forgotten.
    monkeypatch.setattr("cloakgp.service.rates.CLEANED_EVERY", -1.0)
    counters.incr("a", 60)
    assert counters.check()
    assert counters.reset() == 1


def test_a_count_is_forgotten(database):
    counters = SharedCounters(database)
    counters.incr("a", 60)
    counters.clear("a")
    assert counters.get("a") == 0
    assert counters.get_expiry("a") <= time.time()


def test_a_file_is_not_for_several_servers(service):
    assert not service.database.is_shared
