"""Signing in and out: cookies, strangers, and where one is led."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from services import work_as
from visitors import Page, Visitor

from cloakgp.service.access import Role
from cloakgp.service.operations.sessions import actor_by_token
from cloakgp.service.operations.tokens import revoke_token


@pytest.fixture
def stranger(app):
    return Visitor(TestClient(app, base_url="http://127.0.0.1"))


def test_everybody_is_led_to_what_they_may_see(visit):
    firsts = {
        Role.CUSTODIAN: "/budgets",
        Role.APPROVER: "/budgets",
        Role.ANALYST: "/budgets",
        Role.READER: "/releases",
        Role.AUDITOR: "/budgets",
        Role.ADMINISTRATOR: "/people",
    }
    answers = {role: visit(role).get("/") for role in Role}
    assert {answer.status_code for answer in answers.values()} == {200}
    assert {role: answer.url.path for role, answer in answers.items()} == firsts


def test_the_cookie_is_the_browser_s_alone(app, tokens):
    http = TestClient(app, base_url="http://127.0.0.1", follow_redirects=False)
    answer = http.post("/sign-in", data={"token": f" {tokens[Role.READER]} "})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert tokens[Role.READER] not in cookie


def test_wrong_tokens_are_refused(stranger):
    for token in ("", "cloakgp_wrong", "x" * 5000):
        answer = stranger.sign_in(token)
        assert answer.status_code == 401
        assert "This token is not valid" in answer.text
        assert stranger.client.cookies.get("cloakgp") is None


def test_guessing_tokens_is_slow(stranger, tokens):
    answers = [stranger.sign_in("cloakgp_wrong").status_code for _ in range(22)]
    assert answers[-1] == 429
    # And hinders nobody who has one.
    assert stranger.sign_in(tokens[Role.READER]).url.path == "/releases"


def test_another_site_signs_nobody_in(stranger, tokens):
    answer = stranger.client.post(
        "/sign-in",
        data={"token": tokens[Role.READER]},
        headers={"Sec-Fetch-Site": "cross-site"},
    )
    assert answer.status_code == 403


def test_strangers_sign_in_and_go_on(stranger, tokens):
    asked = stranger.get("/requests?x=1")
    assert asked.url.path == "/sign-in"
    (form,) = Page(asked.text).forms
    assert form["fields"]["next"] == "/requests?x=1"
    answer = stranger.sign_in(tokens[Role.ANALYST], next=form["fields"]["next"])
    assert (answer.url.path, answer.url.query) == ("/requests", b"x=1")


def test_nobody_is_led_elsewhere(app, tokens):
    places = ("//evil.example", "https://evil.example", "/\\evil.example", "\t//evil", "evil")
    for wanted in places:
        http = TestClient(app, base_url="http://127.0.0.1", follow_redirects=False)
        answer = http.post("/sign-in", data={"token": tokens[Role.READER], "next": wanted})
        assert answer.headers["location"] == "/"
        assert wanted not in str(Page(http.get("/sign-in", params={"next": wanted}).text).forms)


def test_sign_out_ends_the_session(visit):
    visitor = visit(Role.READER)
    cookie = visitor.client.cookies["cloakgp"]
    assert visitor.send("/sign-out").url.path == "/sign-in"
    visitor.client.cookies.set("cloakgp", cookie)
    assert visitor.get("/releases").url.path == "/sign-in"


def test_a_revoked_token_ends_its_sessions(visit, service, tokens):
    visitor = visit(Role.READER)
    token = actor_by_token(service, tokens[Role.READER]).token
    revoke_token(work_as(service, tokens[Role.ADMINISTRATOR]), token)
    assert visitor.get("/releases").url.path == "/sign-in"
    assert visitor.send("/sign-out").url.path == "/sign-in"


def test_help_is_for_all(stranger, visit):
    assert "ε (epsilon)" in stranger.get("/help").text
    assert "Sign out" not in stranger.get("/help").text
    assert "Sign out" in visit(Role.READER).get("/help").text


def test_only_known_files_are_sent(stranger):
    assert stranger.get("/static/page.css").status_code == 200
    assert stranger.get("/static/page.js").headers["content-type"].startswith("text/javascript")
    for name in ("..%2Frendering.py", "nothing.css", "%2e%2e"):
        assert stranger.get(f"/static/{name}").status_code == 404
