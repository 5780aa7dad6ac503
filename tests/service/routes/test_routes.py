"""Routes: sizes, hosts, headers, streams and what is measured."""

from __future__ import annotations

import json

import pytest
from fastapi.testclient import TestClient
from services import add_people, opened

from cloakgp.service.access import Role
from cloakgp.service.app import HEADERS, create_app
from cloakgp.service.measuring import Measures


@pytest.fixture
def small(url, tmp_path):
    """A service that takes small requests alone, and its people's tokens."""
    service = opened(url, tmp_path, body=1000, predict_body=2000, upload=3000)
    yield TestClient(create_app(service), base_url="http://127.0.0.1"), add_people(service)
    service.close()


@pytest.mark.parametrize(
    ("role", "method", "path", "most"),
    [
        (Role.ANALYST, "POST", "/api/requests", 1000),
        (Role.READER, "POST", "/api/releases/1/predict", 2000),
        (Role.READER, "POST", "/api/releases/1/predict-table", 2000),
        (Role.CUSTODIAN, "PUT", "/api/uploads/a.csv", 3000),
    ],
)
@pytest.mark.parametrize("announced", [True, False])
def test_requests_have_a_size(small, role, method, path, most, announced):
    http, tokens = small
    headers = {"Authorization": f"Bearer {tokens[role]}"}
    for size, refused in ((most - 10, False), (most + 10, True)):
        content = b"a" * size
        body = content if announced else iter([content[:500], content[500:]])
        answer = http.request(method, path, content=body, headers=headers)
        assert (answer.status_code == 413) == refused, answer.text


def test_pages_of_other_names_that_resolve_here_are_not_served(http):
    assert http.get("/health").status_code == 200
    assert http.get("/health", headers={"Host": "evil.example"}).status_code == 400


def test_every_answer_has_the_headers_of_all(http, ask):
    answers = [
        http.get("/health"),
        http.get("/nothing"),
        http.get("/api/me"),
        ask(Role.READER, "GET", "/api/me"),
        ask(Role.ANALYST, "POST", "/api/plans", json={}),
    ]
    assert [answer.status_code for answer in answers] == [200, 404, 401, 200, 422]
    for answer in answers:
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert "server" not in answer.headers


def test_nothing_is_said_of_what_was_sent(ask):
    answer = ask(Role.ANALYST, "POST", "/api/plans", json={"table": "a secret", "more": "hidden"})
    assert answer.status_code == 422
    assert "a secret" not in answer.text
    assert "hidden" not in answer.text


def test_there_are_no_pages_with_outside_assets(http):
    for path in ("/docs", "/redoc", "/api/docs"):
        assert http.get(path).status_code == 404


def test_a_job_is_watched_until_it_is_finished(ask, table):
    choices = {"epsilon": 0.5, "delta": 1e-6, "stages": "one", "interval": "off", "learn": "none"}
    asked = {"table": table.id, "choices": choices, "purpose": "a test"}
    job = ask(Role.ANALYST, "POST", "/api/requests", json=asked).json()["job"]["id"]
    answer = ask(Role.ANALYST, "GET", f"/api/jobs/{job}/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in answer.text.splitlines() if line.startswith("data: ")]
    assert json.loads(lines[-1].removeprefix("data: "))["state"] == "done"
    missing = ask(Role.ANALYST, "GET", "/api/jobs/99/events")
    assert (missing.status_code, missing.json()["kind"]) == (404, "not-found")


def test_a_table_is_sent_and_predicted_for(ask, table):
    choices = {"epsilon": 0.5, "delta": 1e-6, "stages": "one", "interval": "off", "learn": "none"}
    asked = {"table": table.id, "choices": choices, "purpose": "a test"}
    ask(Role.ANALYST, "POST", "/api/requests", json=asked)
    path = "/api/releases/1/predict-table"
    answer = ask(Role.READER, "POST", path, content=b"age\n3\n9\n")
    assert answer.status_code == 200, answer.text
    assert answer.text.splitlines()[0] == "age,mean,sd,lower,upper"
    wrong = ask(Role.READER, "POST", path, params={"name": "a.sqlite"}, content=b"age\n3\n")
    assert wrong.status_code == 422


def test_measures_count_operations_and_name_nobody(ask, http):
    ask(Role.READER, "GET", "/api/releases")
    http.get("/api/releases")
    text = ask(Role.AUDITOR, "GET", "/metrics").text
    assert 'cloakgp_requests_total{operation="list_releases",status="200"} 1.0' in text
    assert 'cloakgp_requests_total{operation="list_releases",status="401"} 1.0' in text
    assert "reader" not in text


def test_measures_say_how_many_jobs_there_are():
    measures = Measures()
    assert b'cloakgp_jobs{state="done"} 3.0' in measures.text(jobs={"done": 3})
    assert b'state="done"' not in measures.text(jobs={"running": 1})
