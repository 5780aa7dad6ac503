"""Every role × every route: what the one table of access allows, and nothing else."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

from cloakgp.service import operations
from cloakgp.service.access import ACCESS, OPEN, Actor, Role, operation
from cloakgp.service.app import create_app
from cloakgp.service.errors import ForbiddenError

METHODS = {"get", "post", "put", "patch", "delete"}


def routes_of(app):
    """What is answered: name of an operation → method and path."""
    return {
        described["operationId"]: (method.upper(), path)
        for path, methods in app.openapi()["paths"].items()
        for method, described in methods.items()
        if method in METHODS
    }


def test_every_route_is_in_the_table_and_the_other_way_round(app):
    assert set(routes_of(app)) == set(ACCESS) | OPEN


def test_every_operation_checks_by_itself_who_asks():
    """Pages that call operations cannot forget to: each is decorated, but those open to all."""
    checked = set()
    for module in pkgutil.iter_modules(operations.__path__):
        found = importlib.import_module(f"{operations.__name__}.{module.name}")
        for name, function in inspect.getmembers(found, inspect.isfunction):
            if name in ACCESS and function.__module__ == found.__name__:
                assert hasattr(function, "__wrapped__"), name
                with pytest.raises(ForbiddenError):
                    function(Asking(Actor(1, "nobody", frozenset())))
                checked.add(name)
    # Metrics are the application's.
    assert checked == set(ACCESS) - {"show_metrics"}


class Asking:
    def __init__(self, actor):
        self.actor = actor


def test_every_role_at_every_route(app, http, tokens):
    """Nothing is there: whoever may is told so, or that what was sent makes no sense."""
    wrong, routes = [], routes_of(app)
    # Last, as the token ends with it.
    routes["rotate_my_token"] = routes.pop("rotate_my_token")
    for name, (method, path) in routes.items():
        for part in (
            "person}",
            "token}",
            "table}",
            "request}",
            "job}",
            "release}",
            "proposal}",
            "number}",
        ):
            path = path.replace("{" + part, "999")
        path = path.replace("{account}", "none").replace("{name}", "a.csv")
        path = path.replace("{upload}", "none")
        if "shares" in path:
            path = "/api/accounts/none/shares/nobody"
        for role, token in tokens.items():
            answer = http.request(
                method, path, headers={"Authorization": f"Bearer {token}"}, json={}
            )
            refused = answer.status_code in (401, 403)
            if refused != (name not in OPEN and role not in ACCESS[name]):
                wrong.append((role, name, answer.status_code, answer.text))
        if name not in OPEN:
            nobody = http.request(method, path, json={})
            if nobody.status_code != 401:
                wrong.append((name, "without a token", nobody.status_code))
    assert set(tokens) == set(Role)
    assert wrong == []


def test_administrators_see_no_data():
    allowed = {name for name, roles in ACCESS.items() if Role.ADMINISTRATOR in roles}
    people = {"list_people", "show_person", "add_person", "change_person", "erase_person"}
    people |= {"link_identity", "unlink_identity"}
    tokens = {"list_tokens", "issue_token", "rotate_token", "revoke_token", "rotate_my_token"}
    assert allowed == people | tokens | {"show_metrics", "show_me", "log_out"}


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("register_table", {Role.CUSTODIAN}),
        ("upload_table", {Role.CUSTODIAN}),
        ("change_limit", {Role.CUSTODIAN}),
        ("approve_request", {Role.APPROVER}),
        ("confirm_proposal", {Role.CUSTODIAN, Role.APPROVER}),
        ("export_events", {Role.AUDITOR}),
        ("make_request", {Role.ANALYST}),
        ("begin_joint_request", {Role.CUSTODIAN, Role.ANALYST}),
        ("send_joint_file", {Role.CUSTODIAN}),
        ("predict_release", {Role.ANALYST, Role.READER}),
        ("list_entries", {Role.AUDITOR}),
        ("verify_ledger", {Role.AUDITOR}),
        ("issue_token", {Role.ADMINISTRATOR}),
    ],
)
def test_what_only_some_may(name, roles):
    assert set(ACCESS[name]) == roles


def test_an_operation_is_done_for_those_who_may():
    @operation
    def list_people(work):
        return work.actor.name

    admin = Actor(1, "adam", frozenset({Role.ADMINISTRATOR}))
    assert list_people(Asking(admin)) == "adam"
    with pytest.raises(ForbiddenError):
        list_people(Asking(Actor(2, "anna", frozenset({Role.ANALYST, Role.READER}))))


def test_operations_are_named_in_the_table():
    with pytest.raises(AssertionError):

        @operation
        def delete_everything(work):
            return work


def test_the_application_needs_no_page(service):
    assert len(routes_of(create_app(service))) == len(ACCESS) + len(OPEN)
