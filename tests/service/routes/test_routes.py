"""Routes: sizes, hosts, headers, streams and what is measured."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient
from services import add_people, opened

from cloakgp.service.access import Role
from cloakgp.service.app import HEADERS, create_app
from cloakgp.service.metrics import Metrics


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


@pytest.mark.parametrize(
    ("role", "method", "path", "status"),
    [
        (Role.AUDITOR, "POST", "/api/requests", 403),
        (Role.AUDITOR, "POST", "/api/releases/1/predict", 403),
        (Role.CUSTODIAN, "POST", "/api/releases/1/predict-table", 403),
        (Role.READER, "PUT", "/api/uploads/a.csv", 403),
        (None, "POST", "/api/releases/1/predict", 401),
        (None, "PUT", "/api/uploads/a.csv", 401),
        (Role.READER, "POST", "/add-table", 403),
        (Role.CUSTODIAN, "POST", "/releases/1/table", 403),
        (None, "POST", "/add-table", 303),
    ],
)
def test_no_body_is_read_of_those_who_may_not(service, tokens, role, method, path, status):
    """Tens of megabytes of JSON were parsed before their sender was refused."""
    token = [] if role is None else [(b"authorization", f"Bearer {tokens[role]}".encode())]
    app = create_app(service)
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), *token]
    # A loop of its own: a browser of other tests may have one in this thread.
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(lambda: asyncio.run(asked_of(app, method, path, headers))).result()
    assert found == (status, 0)


async def asked_of(app, method, path, headers):
    """How an application answers, and how many pieces of a body it has read before that."""
    pieces, answers = 0, []

    async def receive():
        nonlocal pieces
        pieces += 1
        return {"type": "http.request", "body": b"[" * 1000, "more_body": pieces < 5}

    async def send(message):
        answers.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    await app(scope, receive, send)
    return answers[0]["status"], pieces


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


@pytest.mark.parametrize(
    ("role", "path", "sent", "told"),
    [
        (Role.ANALYST, "plans", {"choices": {"epsilon": 1}}, "table is missing"),
        (
            Role.ANALYST,
            "plans",
            {"table": 1, "choices": {"epsilon": "CANARY", "learn": "CANARY"}},
            "choices.epsilon must be a number; choices.learn must be 'map', 'average' or 'none'",
        ),
        (
            Role.ANALYST,
            "plans",
            {"table": 1, "choices": {"epsilon": 1, "inducing": "CANARY"}},
            "choices.inducing must be a whole number or 'auto'",
        ),
        (
            Role.CUSTODIAN,
            "tables",
            {"name": "a", "account": "b", "output": "c", "bounds": ["CANARY", 5]},
            "bounds[0] must be a number",
        ),
        (
            Role.CUSTODIAN,
            "tables",
            {"name": "a/CANARY", "account": "b", "output": "c", "odd": "CANARY"},
            "name has signs that it cannot have; odd is no field of this request",
        ),
        (
            Role.READER,
            "releases/1/predict",
            {"rows": [{"age": ["CANARY"]}]},
            "rows[0].age must be text or a number or a whole number or true or false",
        ),
        (Role.READER, "releases/CANARY/predict", {"rows": [{"age": 1}]}, "release must be a"),
        (Role.ANALYST, "plans", ["CANARY"], "the body must be an object with names and values"),
        (Role.ANALYST, "plans", "CANARY", "the body must be an object with names and values"),
    ],
)
def test_what_is_wrong_is_said_in_words_as_requests_name_it(ask, role, path, sent, told):
    answer = ask(role, "POST", f"/api/{path}", json=sent)
    assert answer.status_code == 422
    assert answer.json()["message"].startswith(told)
    assert "CANARY" not in answer.text


def test_what_is_no_json_is_said_to_be_none(ask):
    headers = {"Content-Type": "application/json"}
    answer = ask(Role.ANALYST, "POST", "/api/plans", content=b'{"table": CANARY', headers=headers)
    assert (answer.status_code, answer.json()["message"]) == (422, "the body is no JSON")


@pytest.mark.parametrize(
    "choices",
    [
        {"lengthscale": [1.0, 2.0, 3.0]},
        {"exposure": "age"},
        {"signal_variance": 1e150},
        {"criterion": "best"},
        {"noise": "loud"},
        {"counts": True, "transform": "log"},
    ],
)
def test_no_option_of_the_command_line_is_in_an_answer(ask, table, choices):
    asked = {"table": table.id, "choices": {"epsilon": 0.5, **choices}, "purpose": "a test"}
    for path, sent in (("requests", asked), ("plans", {**asked, "purpose": None})):
        sent = {name: value for name, value in sent.items() if value is not None}
        answer = ask(Role.ANALYST, "POST", f"/api/{path}", json=sent)
        assert answer.status_code == 422, answer.text
        assert "--" not in answer.text
        assert any(name in answer.text for name in choices)


def test_columns_and_classes_have_any_printable_names(ask, table, tmp_path):
    """Of columns and classes no address is made, in which a slash would be another place."""
    heads = "age (y/o),kg/m² <i>,mg/dl"
    rows = "".join(f"{n},{n % 7},{'low/none' if n % 2 else 'high'}\n" for n in range(30))
    (tmp_path / "tables" / "units.csv").write_text(f"{heads}\n{rows}")
    looked = ask(
        Role.CUSTODIAN, "POST", "/api/tables/look", json={"path": "units.csv", "private": ["mg/dl"]}
    )
    declared = {
        "name": "units",
        "account": table.account,
        "path": "units.csv",
        "output": "mg/dl",
        "classes": ["low/none", "high"],
        "inputs": ["age (y/o)", "kg/m² <i>"],
    }
    made = ask(Role.CUSTODIAN, "POST", "/api/tables", json=declared)
    assert made.status_code == 201, made.text
    assert made.json()["inputs"] == ["age (y/o)", "kg/m² <i>"]
    asked = {
        "table": made.json()["id"],
        "choices": {"epsilon": 0.5, "stages": "auto", "inputs": ["kg/m² <i>"]},
        "purpose": "a test",
    }
    done = ask(Role.ANALYST, "POST", "/api/requests", json=asked)
    assert done.status_code == 201, done.text
    seen = ask(Role.ANALYST, "GET", f"/api/requests/{done.json()['id']}").json()
    release = f"/api/releases/{seen['release']}"
    predicted = ask(Role.READER, "POST", f"{release}/predict", json={"rows": [{"kg/m² <i>": 3}]})
    assert predicted.status_code == 200, predicted.text
    assert predicted.json()["columns"] == ["predicted", "p_low/none", "p_high"]
    assert ask(Role.READER, "GET", f"{release}/plot").status_code == 200
    assert looked.status_code == 200, looked.text


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
    assert "Cloakgp-Remarks" not in answer.headers
    answer = ask(Role.READER, "POST", path, content=b"age\n3\n500\n")
    (remark,) = json.loads(answer.headers["Cloakgp-Remarks"])
    assert "in 1 row. Nothing was asked there" in remark
    more = {"interval": 0.9, "quantiles": [0.1, 0.9], "above": [100, 120]}
    answer = ask(Role.READER, "POST", path, params=more, content=b"age\n3\n9\n")
    head = "age,mean,sd,lower,upper,lo_90,hi_90,q_10,q_90,above_100,above_120"
    assert answer.text.splitlines()[0] == head
    for bad in ({"interval": 90}, {"quantiles": [0.5, 1]}, {"above": "nan"}):
        assert ask(Role.READER, "POST", path, params=bad, content=b"age\n3\n").status_code == 422
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
    metrics = Metrics()
    assert b'cloakgp_jobs{state="done"} 3.0' in metrics.text(jobs={"done": 3})
    assert b'state="done"' not in metrics.text(jobs={"running": 1})


def followed(http, path, headers):
    """All items of a list, however many pages it takes."""
    found, pages = [], 0
    while path:
        answer = http.get(path, headers=headers)
        assert answer.status_code == 200, answer.text
        found, pages = found + answer.json(), pages + 1
        path = answer.links.get("next", {}).get("url")
    return found, pages


def test_lists_come_in_pages_with_links(http, ask, tokens, table, service):
    service.dispatcher.at_once = False
    choices = {"epsilon": 0.01, "delta": 1e-6, "stages": "one", "interval": "off", "learn": "none"}
    for number in range(5):
        new = {"table": table.id, "choices": choices, "purpose": f"a & b {number}"}
        assert ask(Role.ANALYST, "POST", "/api/requests", json=new).status_code == 201
    service.dispatcher.work()
    for role, path, expected in (
        (Role.ANALYST, "/api/requests", 5),
        (Role.ANALYST, "/api/requests?state=closed", 5),
        (Role.ANALYST, "/api/requests?state=open", 0),
        (Role.ANALYST, "/api/jobs", 5),
        (Role.READER, "/api/releases", 5),
        (Role.ADMINISTRATOR, "/api/people", len(Role)),
        (Role.AUDITOR, "/api/events", None),
        (Role.AUDITOR, "/api/ledger", None),
    ):
        headers = {"Authorization": f"Bearer {tokens[role]}"}
        whole = http.get(path, headers=headers).json()
        assert expected is None or len(whole) == expected
        glue = "&" if "?" in path else "?"
        found, pages = followed(http, f"{path}{glue}most=2", headers)
        assert found == whole
        assert pages == max(1, -(-len(whole) // 2)), path
    assert ask(Role.ADMINISTRATOR, "GET", "/api/people?most=0").status_code == 422


def test_events_are_exported_as_lines(ask, table, monkeypatch):
    monkeypatch.setattr("cloakgp.service.operations.audits.CHUNK", 1)
    answer = ask(Role.AUDITOR, "GET", "/api/events/export")
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    events = [json.loads(line) for line in answer.text.splitlines()]
    assert events == ask(Role.AUDITOR, "GET", "/api/events").json()[::-1]
    assert [event["what"] for event in events] == [
        "account opened",
        "file uploaded",
        "table registered",
    ]
    assert table.registered_by == events[-1]["who"]
    later = ask(Role.AUDITOR, "GET", f"/api/events/export?after={events[0]['id']}")
    assert [json.loads(line) for line in later.text.splitlines()] == events[1:]
    assert ask(Role.READER, "GET", "/api/events/export").status_code == 403


def test_what_lets_more_be_spent_is_answered_with_a_proposal(ask, table):
    path = f"/api/accounts/{table.account}/limit"
    more, less = (
        {"limit": {"epsilon": epsilon, "delta": 1e-6}, "reason": "a test"} for epsilon in (4, 2)
    )
    answer = ask(Role.CUSTODIAN, "PUT", path, json=more)
    assert (answer.status_code, answer.json()["account"]["limit"]["epsilon"]) == (202, 3)
    proposal = f"/api/proposals/{answer.json()['proposal']['id']}"
    assert ask(Role.CUSTODIAN, "POST", f"{proposal}/confirm").status_code == 403
    assert ask(Role.ANALYST, "POST", f"{proposal}/confirm").status_code == 403
    assert ask(Role.APPROVER, "POST", f"{proposal}/confirm").json()["state"] == "confirmed"
    assert len(ask(Role.AUDITOR, "GET", "/api/proposals").json()) == 1
    answer = ask(Role.CUSTODIAN, "PUT", path, json=less)
    assert (answer.status_code, answer.json()["proposal"]) == (200, None)
