"""A service with people of every role, on SQLite and on PostgreSQL where a server answers."""

from __future__ import annotations

import os
import secrets

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from services import add_people, opened, register, unconfined

from cloakgp.service.access import Role
from cloakgp.service.app import create_app

# The local server is the first guess.
POSTGRESQL = os.environ.get("CLOAKGP_TEST_POSTGRESQL", "postgresql://127.0.0.1/test")


@pytest.fixture
def schema():
    """The URL of an empty schema of the server's; or the test is skipped."""
    url = sa.make_url(POSTGRESQL).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(url, connect_args={"connect_timeout": 3}, poolclass=sa.NullPool)
    name = f"cloakgp_{secrets.token_hex(6)}"
    try:
        with engine.begin() as connection:
            connection.execute(sa.text(f"CREATE SCHEMA {name}"))
    except sa.exc.OperationalError:
        pytest.skip("no PostgreSQL answers: name one in CLOAKGP_TEST_POSTGRESQL")
    yield f"{POSTGRESQL}?options=-csearch_path%3D{name}"
    with engine.begin() as connection:
        connection.execute(sa.text(f"DROP SCHEMA {name} CASCADE"))


@pytest.fixture
def url(tmp_path, monkeypatch):
    monkeypatch.setenv("CLOAKGP_LEDGER_HOME", str(tmp_path / "home"))
    return str(tmp_path / "people.db")


@pytest.fixture(params=["sqlite", "postgresql"])
def any_url(request, url):
    return url if request.param == "sqlite" else request.getfixturevalue("schema")


@pytest.fixture
def all_in_this_process():
    """What reads tables and plans has no process of its own, whose start takes long."""
    with unconfined():
        yield


@pytest.fixture
def service(url, tmp_path):
    made = opened(url, tmp_path)
    yield made
    made.close()


@pytest.fixture
def any_service(any_url, tmp_path):
    made = opened(any_url, tmp_path)
    yield made
    made.close()


@pytest.fixture
def tokens(service):
    return add_people(service)


@pytest.fixture
def table(service, tokens, tmp_path):
    return register(service, tokens[Role.CUSTODIAN], tmp_path)


@pytest.fixture
def app(service):
    return create_app(service)


@pytest.fixture
def http(app):
    """A client without a token."""
    return TestClient(app, base_url="http://127.0.0.1")


@pytest.fixture
def ask(http, tokens):
    """Ask as somebody of a role."""

    def asked(role, method, path, **more):
        headers = {"Authorization": f"Bearer {tokens[role]}", **more.pop("headers", {})}
        return http.request(method, path, headers=headers, **more)

    return asked
