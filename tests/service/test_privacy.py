"""Nothing of a private column is in anything that the service says, whatever fails."""

from __future__ import annotations

import logging
import re
import warnings

import pytest
from fastapi.testclient import TestClient
from services import add_people, opened, register, work_as, write_people

from cloakgp.service import worker
from cloakgp.service.access import Role
from cloakgp.service.app import create_app
from cloakgp.service.messages import Choices, NewRequest, NewTable
from cloakgp.service.operations.jobs import FAILURES
from cloakgp.service.operations.requests import make_request, show_request
from cloakgp.service.operations.tables import register_table, upload_table

# Somebody's height, which no other number is, and no digest contains.
SECRET = "173.90846"
SPELLINGS = (SECRET, "173.9084", "173,9084")


@pytest.fixture
def said(url, tmp_path, caplog, capfd):
    """A service with a table that holds the secret; everything that it says is collected."""
    caplog.set_level(logging.DEBUG)
    service = opened(url, tmp_path)
    tokens = add_people(service)
    custodian = work_as(service, tokens[Role.CUSTODIAN])
    register(service, tokens[Role.CUSTODIAN], tmp_path)
    sent = upload_table(
        custodian,
        "people.csv",
        received=write_people(tmp_path / "sent.csv", seed=1, secret=SECRET),
    )
    register_table(
        custodian,
        NewTable(
            name="secret", account="children", upload=sent.id, output="height", bounds=(50, 250)
        ),
    )
    yield service, tokens
    service.close()
    output = capfd.readouterr()
    everything = caplog.text + output.out + output.err
    assert [each for each in SPELLINGS if each in everything] == []


def everything_answered(app, tokens, *, numbers=("1", "2", "3")):
    """What every role gets to see of every list and of all that it names."""
    http = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)
    paths = [path for path, methods in app.openapi()["paths"].items() if "get" in methods]
    named = r"\{(table|request|job|release|person)\}"
    filled = {re.sub(named, number, path) for path in paths for number in numbers}
    answers = []
    for token in tokens.values():
        headers = {"Authorization": f"Bearer {token}"}
        for path in sorted(filled):
            answer = http.get(path, headers=headers)
            answers.append(answer.content + repr(answer.headers).encode())
        for path in ("/api/ledger/verify", "/api/plans"):
            asked = {"table": 2, "choices": {"epsilon": 0.1}}
            answers.append(http.post(path, json=asked, headers=headers).content)
    return answers


def test_nothing_says_a_private_value(said):
    service, tokens = said
    app = create_app(service)
    choices = Choices(epsilon=0.5, delta=1e-6, stages="one", interval="off", learn="none")
    analyst = work_as(service, tokens[Role.ANALYST])
    made = make_request(analyst, NewRequest(table=2, choices=choices, purpose="a test"))
    assert made.state == "approved"
    answers = everything_answered(app, tokens)
    assert len(answers) > 100
    assert [each for each in SPELLINGS if any(each.encode() in one for one in answers)] == []
    # The search can fail: names of columns are found.
    assert any(b"height" in one for one in answers)


def test_jobs_that_fail_say_nothing_of_what_they_read(said, monkeypatch):
    """Whatever quotes a value ends in the worker, and all that is told is constant."""
    service, tokens = said
    analyst = work_as(service, tokens[Role.ANALYST])
    choices = Choices(epsilon=0.5, delta=1e-6)
    kinds = (ValueError, RuntimeError, KeyError, Warning)
    for number, kind in enumerate(kinds, start=1):

        def quoting(*_, kind=kind, **__):
            warnings.warn(f"odd: {SECRET}", UserWarning, stacklevel=1)
            raise kind(f"cannot digest {SECRET}")

        monkeypatch.setattr("cloakgp.orders.estimators.make_release", quoting)
        made = make_request(analyst, NewRequest(table=2, choices=choices, purpose="a test"))
        assert made.id == number
        job = show_request(analyst, made.id).job
        assert (job.state, job.failure in FAILURES.values()) == ("failed", True)
    numbers = [str(number) for number in range(1, len(kinds) + 1)]
    answers = everything_answered(create_app(service), tokens, numbers=numbers)
    failed = b"it failed, and nothing was published"
    assert max(one.count(failed) for one in answers) == len(kinds)
    assert [each for each in SPELLINGS if any(each.encode() in one for one in answers)] == []


def test_an_unforeseen_error_of_a_route_says_nothing(said, monkeypatch):
    service, tokens = said

    def quoting(*_, **__):
        raise RuntimeError(f"cannot digest {SECRET}")

    monkeypatch.setattr("cloakgp.service.operations.releases.describe", quoting)
    monkeypatch.setattr("cloakgp.service.operations.audits.newest", quoting)
    http = TestClient(create_app(service), base_url="http://127.0.0.1")
    headers = {"Authorization": f"Bearer {tokens[Role.AUDITOR]}"}
    answer = http.get("/api/events", headers=headers)
    assert answer.status_code == 500
    assert answer.json()["kind"] == "unforeseen"
    assert SECRET not in answer.text


@pytest.mark.parametrize(
    ("cell", "told"),
    [("17x.90846", "cells that are not numbers"), ("", "empty cells"), ("inf", "infinite cells")],
)
def test_private_cells_are_checked_when_a_table_is_registered(said, tmp_path, cell, told):
    """The custodian hears of the column, and nobody of a cell."""
    service, tokens = said
    http = TestClient(create_app(service), base_url="http://127.0.0.1")
    headers = {"Authorization": f"Bearer {tokens[Role.CUSTODIAN]}"}
    content = write_people(tmp_path / "bad.csv", seed=2, secret=cell).read_bytes()
    sent = http.put("/api/uploads/bad.csv", content=content, headers=headers).json()
    table = {"name": "bad", "account": "children", "upload": sent["id"]}
    answer = http.post(
        "/api/tables", json={**table, "output": "height", "bounds": [50, 250]}, headers=headers
    )
    assert answer.status_code == 422
    assert told in answer.json()["message"]
    assert not cell or cell not in answer.text.replace("infinite", "")
    assert str(tmp_path) not in answer.text


def test_workers_are_sent_no_data(service, monkeypatch):
    """What goes to a worker is the settings and a number."""
    seen = []
    monkeypatch.setattr(worker, "run_job", lambda service, job, **_: seen.append((service, job)))
    worker.work_on_job(service.settings, 7)
    assert [job for _, job in seen] == [7]
