"""Signing in at an identity provider: who signed a token, about whom, and for which sign-in."""

from __future__ import annotations

import time
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from fastapi.testclient import TestClient
from joserfc.jwk import RSAKey
from providers import CLIENT, SECRET, Provider
from services import add_people, opened, serving, work_as
from visitors import Page

from cloakgp.service.access import Role
from cloakgp.service.app import create_app
from cloakgp.service.messages import ChangedPerson, NewIdentity, NewPerson
from cloakgp.service.operations.audits import list_events
from cloakgp.service.operations.people import (
    add_person,
    change_person,
    erase_person,
    link_identity,
    unlink_identity,
)
from cloakgp.service.settings import IdentityProvider

# Tests have the same names in every process, and an hour later.
YEAR_2000, YEAR_2100 = 946_684_800, 4_102_444_800


class House:
    """A service whose people sign in at a provider."""

    def __init__(self, service, provider, tokens):
        self.service, self.provider, self.tokens = service, provider, tokens
        self.admin = work_as(service, tokens[Role.ADMINISTRATOR])
        self.app = create_app(service)
        self.anna = add_person(self.admin, NewPerson(name="anna", roles=[Role.ANALYST])).id
        link_identity(self.admin, self.anna, self.identity())

    def identity(self, subject="subject-1"):
        return NewIdentity(issuer=self.provider.issuer, subject=subject)

    def browser(self):
        return TestClient(self.app, base_url="http://127.0.0.1", follow_redirects=False)

    def begin(self, browser, wanted="/"):
        """Where a browser that goes to the provider comes back to."""
        sent = browser.get("/sign-in/provider", params={"next": wanted})
        assert sent.status_code == 303, sent.text
        # Without TLS, the certificates of authorities, which take long to read, are none of it.
        back = httpx.get(sent.headers["location"], timeout=600, verify=False).headers["location"]
        assert back.startswith("http://127.0.0.1/sign-in/callback?")
        return back.removeprefix("http://127.0.0.1")

    def sign_in(self, browser=None):
        browser = browser or self.browser()
        return browser.get(self.begin(browser)), browser

    def noted(self):
        auditor = work_as(self.service, self.tokens[Role.AUDITOR])
        return [
            f"{event.what}: {event.person} {event.about}"
            for event in list_events(auditor)
            if event.what.startswith("sign")
        ]


@pytest.fixture
def provider():
    made = Provider()
    with serving(made.app) as address:
        made.issuer = address
        yield made


@pytest.fixture
def house(url, tmp_path, provider):
    (tmp_path / "secret").write_text(SECRET + "\n")
    declared = IdentityProvider(
        issuer=provider.issuer,
        client=CLIENT,
        address="http://127.0.0.1",
        secret_file=str(tmp_path / "secret"),
        roles={"statisticians": "analyst", "heads": "approver"},
    )
    service = opened(url, tmp_path, provider=declared)
    yield House(service, provider, add_people(service))
    service.close()


def roles(browser):
    answer = browser.get("/api/me")
    return answer.json()["roles"] if answer.status_code == 200 else answer.status_code


def test_whoever_signs_in_there_has_a_session_here(house):
    page = Page(house.browser().get("/sign-in?next=/requests").text)
    assert "/sign-in/provider?next=/requests" in [each.get("href") for each in page.of("a")]
    browser = house.browser()
    answer = browser.get(house.begin(browser, "/requests?x=1"))
    assert answer.status_code == 200
    assert roles(browser) == ["analyst"]
    # On by itself: a redirection would be on its way from another site still, without the cookie.
    assert [each["content"] for each in Page(answer.text).of("meta") if "content" in each][-1] == (
        "0;url=/requests?x=1"
    )
    cookie = [each for each in answer.headers.get_list("set-cookie") if "cloakgp=" in each]
    assert "httponly" in cookie[0].lower()
    assert "samesite=strict" in cookie[0].lower()
    assert house.noted()[0] == "signed in:  at the identity provider"
    form = browser.get("/api/me").json()["form_token"]
    assert browser.delete("/api/session", headers={"X-Form-Token": form}).status_code == 204
    assert roles(browser) == 401


@pytest.mark.parametrize(
    ("wrong", "noted"),
    [
        ({"nonce": "another"}, "invalid_claim"),
        ({"nonce": None}, "missing_claim"),
        ({"aud": "another client"}, "invalid_claim"),
        ({"aud": [CLIENT, "another client"]}, "missing_claim"),
        ({"aud": None}, "missing_claim"),
        ({"iss": "https://elsewhere.example"}, "invalid_claim"),
        ({"exp": YEAR_2000}, "expired_token"),
        ({"exp": None}, "missing_claim"),
        ({"iat": YEAR_2100}, "invalid_claim"),
        ({"azp": "another client"}, "invalid_claim"),
        ({"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}, "invalid_claim"),
        ({"sub": None}, "missing_claim"),
        ({"sub": 7}, "invalid_claim"),
        ({"sub": ""}, "names no person"),
        ({"sub": "x" * 300}, "names no person"),
    ],
    ids=str,
)
def test_tokens_that_are_for_somebody_or_something_else_are_refused(house, wrong, noted):
    house.provider.wrong = wrong
    answer, browser = house.sign_in()
    assert answer.status_code == 401
    assert roles(browser) == 401
    assert noted in house.noted()[0]
    assert "set-cookie" not in answer.headers or "cloakgp=c" not in answer.headers["set-cookie"]


def test_tokens_that_others_have_signed_are_refused(house):
    real = house.provider.key
    house.provider.key = RSAKey.generate_key(2048, {"kid": "first"}, private=True)
    answer, browser = house.sign_in()
    assert (answer.status_code, roles(browser)) == (401, 401)
    assert "bad_signature" in house.noted()[0]
    house.provider.key = real
    assert house.sign_in()[0].status_code == 200


@pytest.mark.parametrize("kind", ["HS256", "none"])
def test_tokens_without_the_provider_s_key_are_refused(house, kind, monkeypatch):
    """Signed with what the client knows as well, or with nothing at all."""
    if kind == "none":
        signed = house.provider.id_token

        def unsigned(nonce):
            _, body, _ = signed(nonce).split(".")
            return f"eyJhbGciOiJub25lIn0.{body}."

        monkeypatch.setattr(house.provider, "id_token", unsigned)
    else:
        house.provider.header = {"alg": kind}
    answer, browser = house.sign_in()
    assert (answer.status_code, roles(browser)) == (401, 401)


def test_a_provider_changes_its_keys(house, monkeypatch):
    assert house.sign_in()[0].status_code == 200
    house.provider.turn_keys()
    # Keys that were fetched just now are not fetched again for every token that is wrong.
    assert house.sign_in()[0].status_code == 401
    assert house.provider.asked == 1
    monkeypatch.setattr("cloakgp.service.oidc.KEYS_AGAIN", 0)
    assert house.sign_in()[0].status_code == 200
    assert house.provider.asked == 2


def test_what_comes_back_was_begun_in_this_browser(house):
    """Nobody is signed in as somebody else by a link that another has begun."""
    mallory, anna = house.browser(), house.browser()
    back = house.begin(mallory)
    assert anna.get(back).status_code == 401
    assert roles(anna) == 401
    # Nor with a cookie of another sign-in.
    house.begin(anna)
    assert anna.get(back).status_code == 401
    assert "not begun in this browser" in house.noted()[0]
    assert mallory.get(back).status_code == 200


@pytest.mark.parametrize("state", ["", "0" * 64, "ÿ"])
def test_a_wrong_state_is_refused(house, state):
    browser = house.browser()
    code = parse_qs(urlsplit(house.begin(browser)).query)["code"][0]
    answer = browser.get("/sign-in/callback", params={"code": code, "state": state})
    assert (answer.status_code, roles(browser)) == (401, 401)


def test_a_code_is_good_once_and_for_its_verifier(house):
    browser, other = house.browser(), house.browser()
    back = house.begin(browser)
    stolen = parse_qs(urlsplit(back).query)["code"][0]
    state = parse_qs(urlsplit(house.begin(other)).query)["state"][0]
    answer = other.get("/sign-in/callback", params={"code": stolen, "state": state})
    assert (answer.status_code, roles(other)) == (401, 401)
    assert "refused" in house.noted()[0]
    again = house.browser()
    back = house.begin(again)
    cookie = dict(again.cookies)
    assert again.get(back).status_code == 200
    again.cookies.update(cookie)
    assert again.get(back).status_code == 401


def test_an_answer_of_another_provider_is_refused(house):
    browser = house.browser()
    back = house.begin(browser)
    assert browser.get(back + "&iss=https://elsewhere.example").status_code == 401


def test_accounts_that_nobody_has_are_refused_and_told_what_they_are_known_by(house):
    house.provider.subject = "subject-2"
    answer, browser = house.sign_in()
    assert (answer.status_code, roles(browser)) == (401, 401)
    assert "subject-2" in answer.text
    assert house.noted()[0] == (
        "sign-in failed:  with an unlinked account of the identity provider"
    )
    link_identity(house.admin, house.anna, house.identity("subject-2"))
    assert house.sign_in()[0].status_code == 200


def test_an_account_of_another_issuer_is_another(house):
    unlink_identity(house.admin, house.anna, house.identity())
    elsewhere = NewIdentity(issuer="https://elsewhere.example", subject="subject-1")
    link_identity(house.admin, house.anna, elsewhere)
    assert house.sign_in()[0].status_code == 401


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"groups": ["statisticians", "heads", "cooks"]}, ["analyst"]),
        ({"groups": "statisticians"}, ["analyst"]),
        ({"groups": ["heads"]}, 401),
        ({"groups": {"statisticians": True}}, 401),
        ({}, 401),
    ],
    ids=str,
)
def test_roles_are_what_both_the_house_and_the_administrator_give(house, claims, expected):
    house.provider.claims = claims
    _, browser = house.sign_in()
    assert roles(browser) == expected


def test_sessions_end_with_the_account_the_person_and_the_role(house):
    _, browser = house.sign_in()
    change_person(house.admin, house.anna, ChangedPerson(roles=[Role.READER]))
    # They have no role at all left.
    assert roles(browser) == 403
    change_person(house.admin, house.anna, ChangedPerson(roles=[Role.ANALYST]))
    assert roles(browser) == ["analyst"]
    unlink_identity(house.admin, house.anna, house.identity())
    assert roles(browser) == 401
    link_identity(house.admin, house.anna, house.identity())
    _, browser = house.sign_in()
    change_person(house.admin, house.anna, ChangedPerson(active=False))
    assert roles(browser) == 401
    assert house.sign_in()[0].status_code == 401
    assert "anna" in house.noted()[0]
    erase_person(house.admin, house.anna)
    assert house.sign_in()[0].status_code == 401
    assert "unlinked account" in house.noted()[0]


def test_a_provider_that_does_not_answer_is_said_to(house, monkeypatch):
    browser = house.browser()
    back = house.begin(browser)
    monkeypatch.setattr(house.provider, "id_token", lambda nonce: 7 if nonce else nonce)
    assert browser.get(back).status_code == 503
    house.provider.issuer += "/another"
    house.service.provider._metadata = None
    answer = house.browser().get("/sign-in/provider")
    assert answer.status_code == 503
    assert "identity provider does not answer" in answer.text
    # For some seconds nobody waits for it again.
    house.provider.issuer = house.service.provider.provider.issuer
    monkeypatch.setattr("cloakgp.service.oidc.AGAIN", 600.0)
    house.service.provider._failed = time.monotonic()
    assert house.browser().get("/sign-in/provider").status_code == 503
    monkeypatch.setattr("cloakgp.service.oidc.AGAIN", 0.0)
    assert house.browser().get("/sign-in/provider").status_code == 303


def test_without_a_provider_there_is_no_such_way(service):
    app = create_app(service)
    browser = TestClient(app, base_url="http://127.0.0.1")
    for path in ("/sign-in/provider", "/sign-in/callback"):
        assert browser.get(path).status_code == 404
    assert "/sign-in/provider" not in browser.get("/sign-in").text
