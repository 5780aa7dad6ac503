"""The whole way over HTTP: a table, a plan, a request, its approval, a release, predictions."""

from __future__ import annotations

from cloakgp.release.open import load
from cloakgp.service.access import Role

CHOICES = {"epsilon": 0.5, "delta": 1e-6}


def test_from_a_request_to_predictions(ask, table, tmp_path):
    planned = ask(Role.ANALYST, "POST", "/api/plans", json={"table": table.id, "choices": CHOICES})
    assert planned.status_code == 200, planned.text
    assert planned.json()["releases_left"] > 3
    asked = ask(
        Role.ANALYST,
        "POST",
        "/api/requests",
        json={"table": table.id, "choices": CHOICES, "purpose": "figure 3"},
    )
    assert asked.status_code == 201, asked.text
    assert asked.json()["state"] == "approved"
    seen = ask(Role.ANALYST, "GET", f"/api/requests/{asked.json()['id']}").json()
    assert seen["job"]["state"] == "done", seen
    release = f"/api/releases/{seen['release']}"
    (tmp_path / "a.cloak").write_bytes(ask(Role.READER, "GET", f"{release}/file").content)
    assert load(tmp_path / "a.cloak").output_name == "height"
    predicted = ask(Role.READER, "POST", f"{release}/predict", json={"rows": [{"age": 9.5}]})
    assert predicted.status_code == 200, predicted.text
    assert predicted.json()["columns"] == ["mean", "sd", "lower", "upper"]
    assert ask(Role.READER, "GET", f"{release}/plot").content.startswith(b"\x89PNG")
    assert ask(Role.READER, "GET", f"{release}/report").json()[0]["title"]
    assert ask(Role.AUDITOR, "GET", f"{release}/receipt").json()["signature"]
    assert ask(Role.AUDITOR, "POST", "/api/ledger/verify").json()["sound"]


def test_what_is_above_the_threshold_waits_for_somebody_else(ask, table):
    big = {"table": table.id, "choices": {"epsilon": 1.5, "delta": 1e-6}, "purpose": "all"}
    asked = ask(Role.ANALYST, "POST", "/api/requests", json=big).json()
    assert (asked["state"], asked["job"]) == ("waiting", None)
    done = ask(Role.APPROVER, "POST", f"/api/requests/{asked['id']}/approve", json={})
    assert done.status_code == 200, done.text
    seen = ask(Role.ANALYST, "GET", f"/api/requests/{asked['id']}").json()
    assert (seen["state"], seen["job"]["state"]) == ("approved", "done")
