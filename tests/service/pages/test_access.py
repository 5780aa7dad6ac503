"""Every role at every page: who sees what, forms of the session alone, and nothing private."""

from __future__ import annotations

import re

import pytest
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient
from services import begin_joint, register, work_as, write_people
from visitors import Page

from cloakgp.service.access import ACCESS, Role
from cloakgp.service.messages import Choices, NewRequest, NewTable
from cloakgp.service.operations.requests import make_request
from cloakgp.service.operations.tables import register_table, upload_table
from cloakgp.service.pages.base import PageRoute
from cloakgp.service.pages.rendering import POLICY

SECRET = "173.90846"
# Pages, and what one must be allowed to; those for anybody are in `OPEN`.
SEEN = {
    "/budgets": "list_accounts",
    "/budgets/new": "open_account",
    "/budgets/children": "list_accounts",
    "/tables/1": "show_table",
    "/add-table": "upload_table",
    "/add-table/column?upload=0": "look_at_table",
    "/add-table/declare?upload=0&output=height&public=age": "look_at_table",
    "/tables/1/plan?epsilon=0.5&delta=1e-6": "make_plan",
    "/tables/1/plan/answer?epsilon=0.5&delta=1e-6": "make_plan",
    "/tables/1/plan/error?epsilon=0.5&delta=1e-6&figures=exact": "make_plan",
    "/tables/1/plan/budgets?epsilon=0.5&delta=1e-6&figures=compared": "make_plan",
    "/tables/1/plan/picture?epsilon=0.5&delta=1e-6": "plot_plan",
    "/tables/1/request?epsilon=0.5&delta=1e-6": "make_request",
    "/requests": "list_requests",
    "/requests/1": "show_request",
    "/joint-requests": "list_joint_requests",
    "/joint-requests/1": "show_joint_request",
    "/releases": "list_releases",
    "/releases/1": "show_release",
    "/releases/1/answer": "predict_release",
    "/releases/1/picture": "plot_release",
    "/releases/1/page": "page_release",
    "/releases/1/visit?table=1&epsilon=0.5": "make_request",
    "/ledger": "list_entries",
    "/events": "list_events",
    "/people": "list_people",
    "/people/1": "list_tokens",
}
# Forms are sent to nothing that is there, so that a role that may changes nothing.
SENT = {
    "/budgets/new": "open_account",
    "/budgets/none/limit": "change_limit",
    "/budgets/none/rules": "change_rules",
    "/budgets/none/share": "set_share",
    "/budgets/none/proposals/99/confirm": "confirm_proposal",
    "/budgets/none/proposals/99/reject": "reject_proposal",
    "/tables/99/withdraw": "withdraw_table",
    "/add-table": "upload_table",
    "/add-table/declare": "register_table",
    "/tables/99/request": "make_request",
    "/requests/99/approve": "approve_request",
    "/requests/99/reject": "reject_request",
    "/requests/99/withdraw": "withdraw_request",
    "/requests/99/jobs/99/cancel": "cancel_job",
    "/joint-requests/99/continue": "continue_joint_request",
    "/joint-requests/99/close": "close_joint_request",
    "/releases/99/table": "predict_table",
    "/ledger": "verify_ledger",
    "/people": "add_person",
    "/people/99": "change_person",
    "/people/99/tokens": "issue_token",
    "/people/99/erase": "erase_person",
    "/people/99/identities": "link_identity",
    "/people/99/identities/unlink": "unlink_identity",
    "/people/99/tokens/99/rotate": "rotate_token",
    "/people/99/tokens/99/revoke": "revoke_token",
    "/sign-out": "log_out",
}
OPEN = {("GET", "/"), ("GET", "/help"), ("GET", "/sign-in"), ("POST", "/sign-in")}
OPEN |= {("GET", "/sign-in/provider"), ("GET", "/sign-in/callback")}
QUICK = {"stages": "one", "interval": "off", "learn": "none"}


@pytest.fixture
def full(service, tokens, tmp_path):
    """A service with a table, a request and a release."""
    custodian = work_as(service, tokens[Role.CUSTODIAN])
    register(service, tokens[Role.CUSTODIAN], tmp_path)
    sent = upload_table(
        custodian,
        "people.csv",
        received=write_people(tmp_path / "secret.csv", seed=1, secret=SECRET),
    )
    new = {"name": "secret", "account": "children", "output": "height", "bounds": (50, 250)}
    table = register_table(custodian, NewTable(upload=sent.id, **new))
    choices = Choices(epsilon=0.5, delta=1e-6, **QUICK)
    asked = NewRequest(table=table.id, choices=choices, purpose="a test")
    made = make_request(work_as(service, tokens[Role.ANALYST]), asked)
    assert made.job.state in ("queued", "done")
    begin_joint(service, tokens[Role.ANALYST])
    return service


def pattern_of(path):
    return re.sub(r"\{\w+\}", "[^/]+", path) + "$"


def test_the_lists_name_every_page(app):
    routes = [context.route for context in iter_route_contexts(app.routes)]
    pages = [route for route in routes if isinstance(route, PageRoute)]
    for method, listed in (("GET", SEEN), ("POST", SENT)):
        paths = {page.path for page in pages if method in page.methods}
        for path in paths - {path for each, path in OPEN if each == method}:
            if not path.startswith("/static"):
                found = any(re.match(pattern_of(path), each.partition("?")[0]) for each in listed)
                assert found, path


@pytest.mark.usefixtures("full")
def test_every_role_at_every_page(visit):
    """Those who may see it, the others are told that they may not; pages name no secret."""
    wrong = []
    for role in Role:
        visitor = visit(role)
        for path, operation in SEEN.items():
            answer = visitor.get(path)
            allowed = role in ACCESS[operation]
            # Uploads that are not there.
            expected = {404, 422} if "upload=" in path else {200}
            if answer.status_code not in (expected if allowed else {403}):
                wrong.append((role, path, answer.status_code, answer.text[-800:]))
            if SECRET in answer.text or SECRET[:-1] in answer.text:
                wrong.append((role, path, "a secret"))
    assert wrong == []


def test_every_role_at_every_form(visit):
    wrong = []
    for role in Role:
        visitor = visit(role)
        for path, operation in SENT.items():
            status = visitor.send(path, follow_redirects=False).status_code
            if (status == 403) == (role in ACCESS[operation]):
                wrong.append((role, path, status))
    assert wrong == []


def test_strangers_are_asked_to_sign_in(app):
    http = TestClient(app, base_url="http://127.0.0.1", follow_redirects=False)
    for path in SEEN:
        answer = http.get(path)
        assert (answer.status_code, answer.headers["location"][:8]) == (303, "/sign-in"), path
    for path in SENT:
        answer = http.post(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in"), path


def test_forms_are_of_the_session(visit):
    """Without its token, with another's, or from another site, nothing is done."""
    sessions = {role: (visit(role), visit(role).form_token) for role in Role}
    for path, operation in SENT.items():
        visitor, another = sessions[next(role for role in Role if role in ACCESS[operation])]
        for token in ("", "0" * 64, "ü", another):
            answer = visitor.client.post(path, data={"form_token": token}, follow_redirects=False)
            assert answer.status_code == 403, (path, token)
            assert "not sent by a page of the session" in answer.text
        headers = {"Sec-Fetch-Site": "cross-site"}
        answer = visitor.send(path, headers=headers, follow_redirects=False)
        assert answer.status_code == 403, path


@pytest.mark.usefixtures("full")
def test_pages_are_whole_by_themselves(visit):
    """Nothing from elsewhere, no script within, a label for every field, a token in every form."""
    visitors = {role: visit(role) for role in Role}
    for path, operation in {**SEEN, "/help": "show_me"}.items():
        if "upload=" in path or "picture" in path or path == "/releases/1/page":
            continue
        for role in ACCESS[operation]:
            answer = visitors[role].get(path)
            assert answer.headers["content-security-policy"] == POLICY
            assert answer.headers["cache-control"] == "no-store"
            check_page(Page(answer.text), path)


def check_page(page, path):
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], path
        for name in ("src", "href", "action"):
            if name in attributes:
                assert attributes[name].startswith(("/", "#")), (path, attributes)
                assert not attributes[name].startswith("//"), (path, attributes)
        assert tag != "style"
        assert tag != "script" or "src" in attributes
        assert tag != "img" or attributes.get("alt")
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids)), path
    labelled = {each.get("for") for each in page.of("label")}
    for field in page.of("input", "select", "textarea"):
        if field.get("type") in ("hidden", "checkbox", "radio"):
            continue
        assert field.get("id") in labelled or field.get("aria-label"), (path, field)
    for described in (
        each["aria-describedby"] for _, each in page.elements if "aria-describedby" in each
    ):
        assert described in ids, (path, described)
    for form in page.forms:
        posts = form["attributes"].get("method") == "post"
        assert ("form_token" in form["fields"]) == posts, (path, form)


def test_the_checks_of_pages_find_what_they_look_for():
    for text in (
        '<img src="https://elsewhere.example/a.png" alt="a">',
        '<a href="//elsewhere.example">a</a>',
        "<p style='color: red'>a</p>",
        "<script>1</script>",
        "<input name=a>",
        '<form method="post" action="/a"></form>',
        '<b id="a"></b><b id="a"></b>',
        '<button onclick="a()">a</button>',
    ):
        with pytest.raises(AssertionError):
            check_page(Page(text), "")


def test_a_problem_is_a_page(visit):
    answer = visit(Role.ANALYST).get("/tables/99")
    assert answer.status_code == 404
    assert answer.headers["content-security-policy"] == POLICY
    assert "there is no such table" in answer.text
    assert "Sign out" in answer.text
    assert visit(Role.ANALYST).get("/tables/none").status_code == 422


@pytest.mark.parametrize("address", ["/nowhere", "/api/nowhere", "/api/releases/99/receipt"])
def test_who_follows_a_link_to_nothing_sees_a_page(visit, address):
    analyst = visit(Role.ANALYST)
    browser = analyst.get(address, headers={"accept": "text/html,*/*"})
    program = analyst.get(address, headers={"accept": "application/json"})
    assert browser.status_code == program.status_code
    assert browser.headers["content-type"].startswith("text/html")
    assert "To the first page" in browser.text
    assert program.json()["kind"] in {"not-found", "unauthenticated"}
