"""Watching: readiness that writes, and rounds that verify."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from services import opened, work_as

from cloakgp.ledger.engines import make_engine, parse_url
from cloakgp.service.access import Role
from cloakgp.service.app import create_app
from cloakgp.service.health import NotReadyError, Readiness, Rounds
from cloakgp.service.metrics import Metrics
from cloakgp.service.models import Probe
from cloakgp.service.operations.audits import list_events


@pytest.fixture
def readiness(service, monkeypatch):
    monkeypatch.setattr("cloakgp.service.health.HOLDS", 0.0)
    return Readiness(service)


def test_readiness_writes(any_service):
    Readiness(any_service).check()
    Readiness(any_service).check()
    with any_service.database.reading() as session:
        (probe,) = session.scalars(sa.select(Probe))
    assert probe.written > 0


def test_a_folder_that_cannot_be_written(service, readiness):
    folder = service.settings.uploads
    folder.rename(folder.with_name("moved"))
    with pytest.raises(NotReadyError, match="folder of uploaded tables cannot be written"):
        readiness.check()
    folder.with_name("moved").rename(folder)
    readiness.check()


def fill(url, size=None):
    """Let a database have no more room, or as much as it likes."""
    engine = make_engine(parse_url(url))
    with engine.begin() as connection:
        if size is None:
            connection.exec_driver_sql("DROP TRIGGER full")
        else:
            connection.exec_driver_sql(
                "CREATE TRIGGER full BEFORE INSERT ON service_probes "
                "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
            )
    engine.dispose()


def test_a_database_that_cannot_be_written(url, readiness, app):
    fill(url, 0)
    with pytest.raises(NotReadyError, match="database cannot be written"):
        readiness.check()
    http = TestClient(app, base_url="http://127.0.0.1")
    # That it answers is another question.
    assert http.get("/health").status_code == 200
    answer = http.get("/ready")
    assert (answer.status_code, answer.json()["kind"]) == (503, "unavailable")
    fill(url)
    readiness.check()


def test_strangers_do_not_make_it_write_all_the_time(service, monkeypatch):
    readiness = Readiness(service)
    readiness.check()
    monkeypatch.setattr(service.database, "writing", None)
    readiness.check()


@pytest.fixture
def rounds(service, readiness):
    return Rounds(service, Metrics(), readiness, threading.Event())


def tamper(url):
    engine = make_engine(parse_url(url))
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE accounts SET unit = 'person'")
    engine.dispose()


@pytest.mark.usefixtures("table")
def test_the_service_verifies_its_ledger_by_itself(url, service, tokens, rounds):
    auditor = work_as(service, tokens[Role.AUDITOR])
    assert b"cloakgp_ledger_verified_seconds 0.0" in rounds.metrics.text(jobs={})
    rounds.make_round()
    assert b"cloakgp_ledger_sound 1.0" in rounds.metrics.text(jobs={})
    (event,) = [each for each in list_events(auditor) if each.what == "ledger verified"]
    assert event.about.startswith("sound, ")
    rounds.readiness.check()
    tamper(url)
    rounds.make_round()
    assert b"cloakgp_ledger_sound 0.0" in rounds.metrics.text(jobs={})
    assert list_events(auditor)[0].about.startswith("NOT SOUND")
    with pytest.raises(NotReadyError, match="not sound"):
        rounds.readiness.check()


def test_nothing_is_verified_if_nobody_wants_it(service, tokens, rounds):
    quiet = replace(service, settings=replace(service.settings, verify_hours=0.0))
    replace(rounds, service=quiet).make_round()
    assert b"cloakgp_ledger_verified_seconds 0.0" in rounds.metrics.text(jobs={})
    auditor = work_as(service, tokens[Role.AUDITOR])
    assert [each for each in list_events(auditor) if each.what == "ledger verified"] == []


def test_a_round_that_fails_is_not_the_last(service, rounds, caplog):
    folder = service.settings.uploads
    folder.rename(folder.with_name("moved"))
    rounds.make_round()
    assert "a round was not finished: FileNotFoundError" in caplog.text
    folder.with_name("moved").rename(folder)


def test_rounds_begin_with_the_application_and_end_with_it(url, tmp_path, monkeypatch, patience):
    monkeypatch.setattr("cloakgp.service.health.FIRST", 0.0)
    made = threading.Event()
    monkeypatch.setattr(Rounds, "make_round", lambda _: made.set())
    with TestClient(create_app(opened(url, tmp_path)), base_url="http://127.0.0.1"):
        assert made.wait(patience)
    for thread in threading.enumerate():
        if thread.name == "rounds":
            thread.join(patience)
            assert not thread.is_alive()
