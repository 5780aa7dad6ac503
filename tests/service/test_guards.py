"""Tokens, sessions, forms of other sites, and how often anybody may ask."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from services import add_people, opened

from cloakgp.service.access import Role
from cloakgp.service.app import create_app
from cloakgp.service.credentials import digest_of
from cloakgp.service.models import BrowserSession, Event, Person, Token


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def me(http, token):
    return http.get("/api/me", headers=bearer(token))


def change(service, model, **values):
    with service.database.writing() as session:
        session.execute(sa.update(model).values(**values))


def log_in(http, token):
    answer = http.post("/api/session", json={"token": token})
    assert answer.status_code == 201, answer.text
    return answer.json()["form_token"]


def test_a_token_says_who_somebody_is_and_what_they_may(http, tokens):
    answer = me(http, tokens[Role.READER]).json()
    assert (answer["name"], answer["roles"]) == ("reader", ["reader"])
    assert "predict_release" in answer["operations"]
    assert "make_request" not in answer["operations"]


@pytest.mark.parametrize("wrong", ["", "cloakgp_", "x" * 5000, "cloakgp_ÿ", "' OR 1=1 --"])
def test_anything_else_is_refused_in_the_same_words(http, wrong):
    answer = http.get("/api/me", headers={"Authorization": f"Bearer {wrong}".encode("latin-1")})
    assert answer.status_code == 401
    assert answer.json() == {"kind": "unauthenticated", "message": "a valid token is needed"}


@pytest.mark.parametrize("values", [{"revoked": 1}, {"expires": 1}], ids=["revoked", "expired"])
def test_tokens_end(service, http, tokens, values):
    assert me(http, tokens[Role.READER]).status_code == 200
    cookie_holder = TestClient(http.app, base_url="http://127.0.0.1")
    log_in(cookie_holder, tokens[Role.READER])
    change(service, Token, **values)
    assert me(http, tokens[Role.READER]).status_code == 401
    # And what began with them.
    assert cookie_holder.get("/api/me").status_code == 401


def test_people_who_may_no_longer_use_the_service_cannot(service, http, tokens):
    change(service, Person, active=False)
    assert me(http, tokens[Role.READER]).status_code == 401


def test_no_token_is_kept(service, tokens):
    with service.database.reading() as session:
        kept = session.execute(sa.select(Token.digest, Token.hint)).all()
    for token in tokens.values():
        assert digest_of(token) in [row.digest for row in kept]
        assert token not in str(kept)


def test_a_session_ends_when_somebody_logs_out(http, tokens):
    form = log_in(http, tokens[Role.READER])
    assert http.get("/api/me").json()["form_token"] == form
    assert http.delete("/api/session", headers={"X-Form-Token": form}).status_code == 204
    assert http.get("/api/me").status_code == 401


def test_a_session_ends_by_itself(service, http, tokens):
    log_in(http, tokens[Role.READER])
    change(service, BrowserSession, expires=1)
    assert http.get("/api/me").status_code == 401


def test_the_cookie_is_for_browsers_and_this_site_alone(http, tokens):
    answer = http.post("/api/session", json={"token": tokens[Role.READER]})
    said = answer.headers["set-cookie"].lower()
    assert "httponly" in said
    assert "samesite=strict" in said
    assert "path=/" in said


def test_behind_a_proxy_cookies_go_over_tls_alone(url, tmp_path):
    service = opened(url, tmp_path, secure=True)
    token = add_people(service)[Role.READER]
    http = TestClient(create_app(service), base_url="https://127.0.0.1")
    said = http.post("/api/session", json={"token": token}).headers["set-cookie"]
    assert said.startswith("__Host-cloakgp=")
    assert "secure" in said.lower()
    service.close()


def test_signing_out_makes_browsers_forget_the_cookie(url, tmp_path):
    """Of `__Host-` cookies they do so only if it is said the way it was set."""
    service = opened(url, tmp_path, secure=True)
    token = add_people(service)[Role.READER]
    http = TestClient(create_app(service), base_url="https://127.0.0.1")
    for sign_out in (
        lambda form: http.delete("/api/session", headers={"X-Form-Token": form}),
        lambda form: http.post("/sign-out", data={"form_token": form}, follow_redirects=False),
    ):
        said = sign_out(log_in(http, token)).headers["set-cookie"].lower()
        assert said.startswith('__host-cloakgp="";')
        assert {"secure", "httponly", "max-age=0", "path=/", "samesite=strict"} <= set(
            said.split("; ")
        )
        assert http.get("/api/me").status_code == 401
    service.close()


@pytest.mark.parametrize("given", [None, "", "0" * 64, "ÿ"])
def test_other_sites_change_nothing(http, tokens, given):
    """What a browser sends along is not enough: they cannot read the form token."""
    log_in(http, tokens[Role.ADMINISTRATOR])
    headers = {} if given is None else {"X-Form-Token": given.encode("latin-1")}
    new = {"name": "mallory", "roles": ["analyst"]}
    assert http.post("/api/people", json=new, headers=headers).status_code == 403
    assert len(http.get("/api/people").json()) == len(Role)


def test_forms_of_one_session_are_none_of_another(http, tokens):
    other = TestClient(http.app, base_url="http://127.0.0.1")
    form = log_in(other, tokens[Role.ADMINISTRATOR])
    log_in(http, tokens[Role.ADMINISTRATOR])
    new = {"name": "mallory", "roles": ["analyst"]}
    assert http.post("/api/people", json=new, headers={"X-Form-Token": form}).status_code == 403
    assert other.post("/api/people", json=new, headers={"X-Form-Token": form}).status_code == 201


def test_what_browsers_say_comes_from_another_site_is_refused(http, tokens):
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    token = tokens[Role.ADMINISTRATOR]
    assert http.post("/api/session", json={"token": token}, headers=elsewhere).status_code == 403
    form = log_in(http, token)
    headers = {"X-Form-Token": form, **elsewhere}
    new = {"name": "mallory", "roles": ["analyst"]}
    assert http.post("/api/people", json=new, headers=headers).status_code == 403


def test_programs_with_a_token_need_no_form(http, tokens):
    new = {"name": "anna", "roles": ["analyst"]}
    headers = bearer(tokens[Role.ADMINISTRATOR])
    assert http.post("/api/people", json=new, headers=headers).status_code == 201


@pytest.fixture
def narrow(url, tmp_path):
    """A service that is asked little, and its people's tokens."""
    rates = {"default": "3/minute", "predict": "2/minute", "plan": "1/minute"}
    service = opened(url, tmp_path, rates={**rates, "upload": "1/minute", "failed": "2/minute"})
    yield TestClient(create_app(service), base_url="http://127.0.0.1"), add_people(service)
    service.close()


def test_nobody_asks_too_often(narrow):
    http, tokens = narrow
    answers = [me(http, tokens[Role.READER]) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 61
    # Others are not held up.
    assert me(http, tokens[Role.AUDITOR]).status_code == 200


def test_predictions_and_plans_have_limits_of_their_own(narrow):
    http, tokens = narrow
    headers = bearer(tokens[Role.ANALYST])
    codes = [http.post("/api/plans", json={}, headers=headers).status_code for _ in range(2)]
    assert codes == [422, 429]
    path = "/api/releases/1/predict"
    codes = [http.post(path, json={}, headers=headers).status_code for _ in range(3)]
    assert codes == [422, 422, 429]


def test_nobody_guesses_tokens_for_long(narrow):
    http, tokens = narrow
    assert [me(http, "wrong").status_code for _ in range(4)] == [401, 401, 429, 429]
    wrong = http.post("/api/session", json={"token": "wrong"})
    assert wrong.status_code == 429
    # Whoever has a valid one is answered, from that address too.
    assert me(http, tokens[Role.READER]).status_code == 200
    assert http.post("/api/session", json={"token": tokens[Role.READER]}).status_code == 201


def test_a_session_that_has_ended_locks_nobody_out(narrow):
    """Browsers go on sending its cookie: that is no attempt at anything."""
    http, tokens = narrow
    stale = {"cloakgp": "of a session that has ended"}
    browser = TestClient(http.app, base_url="http://127.0.0.1", cookies=stale)
    assert [browser.get("/api/me").status_code for _ in range(30)] == [401] * 30
    assert me(http, tokens[Role.READER]).status_code == 200
    log_in(http, tokens[Role.READER])


def test_a_page_forgets_the_cookie_of_a_session_that_has_ended(service):
    app = create_app(service)
    browser = TestClient(app, base_url="http://127.0.0.1", follow_redirects=False)
    assert "set-cookie" not in browser.get("/requests").headers
    browser.cookies.set("cloakgp", "of a session that has ended", domain="127.0.0.1")
    assert "Max-Age=0" in browser.get("/requests").headers["set-cookie"]


def failures(service):
    with service.database.reading() as session:
        query = sa.select(Event).where(Event.what == "sign-in failed").order_by(Event.id)
        return list(session.scalars(query))


def test_failed_sign_ins_are_noted_without_the_token(service, http, tokens):
    me(http, "cloakgp_something")
    http.post("/api/session", json={"token": "cloakgp_other"})
    change(service, Token, revoked=1)
    me(http, tokens[Role.READER])
    first, second, third = failures(service)
    assert {first.who, first.about} == {"unknown", "with an unknown token"}
    assert (second.about, first.address) == (first.about, "testclient")
    hint = tokens[Role.READER][:14]
    assert (third.about, third.person.name) == (f"with the token {hint}…, revoked", "reader")
    told = "".join(each.about for each in (first, second, third))
    assert "something" not in told
    assert tokens[Role.READER] not in told


def test_a_flood_of_failures_does_not_fill_the_disk(url, tmp_path):
    rates = {"noted": "3/hour", "noted in all": "5/hour", "failed": "1000/minute"}
    service = opened(url, tmp_path, rates=rates, proxies=("10.0.0.1",))
    app = create_app(service)
    http = TestClient(app, base_url="http://127.0.0.1", client=("10.0.0.1", 1))
    for number in range(40):
        headers = bearer("wrong") | {"X-Forwarded-For": f"192.0.2.{number % 4}"}
        assert http.get("/api/me", headers=headers).status_code == 401
    noted = failures(service)
    assert len(noted) == 5
    assert [each.address for each in noted] == [f"192.0.2.{number % 4}" for number in range(5)]
    assert noted[-1].about.endswith("further ones of this hour are not noted")
    service.close()


@pytest.mark.parametrize(
    ("proxies", "peer", "forwarded", "expected"),
    [
        ((), "10.0.0.1", "192.0.2.7", "10.0.0.1"),
        (("10.0.0.1",), "10.0.0.1", "192.0.2.7", "192.0.2.7"),
        (("10.0.0.0/24",), "10.0.0.9", "192.0.2.7", "192.0.2.7"),
        # Whoever is no proxy says what they like.
        (("10.0.0.1",), "10.0.0.2", "192.0.2.7", "10.0.0.2"),
        # What came before the proxy is what its client says.
        (("10.0.0.1",), "10.0.0.1", "198.51.100.1, 192.0.2.7", "192.0.2.7"),
    ],
)
def test_proxies_are_believed_that_are_declared(url, tmp_path, proxies, peer, forwarded, expected):
    service = opened(url, tmp_path, proxies=proxies)
    http = TestClient(create_app(service), base_url="http://127.0.0.1", client=(peer, 1))
    http.get("/api/me", headers=bearer("wrong") | {"X-Forwarded-For": forwarded})
    assert [each.address for each in failures(service)] == [expected]
    service.close()
