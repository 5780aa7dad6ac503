"""Ledgers to write in: SQLite in a folder, and PostgreSQL where a server answers."""

from __future__ import annotations

import os
import secrets

import pytest
import sqlalchemy as sa

from cloakgp.ledger import Ledger

# The local server is the first guess.
POSTGRESQL = os.environ.get("CLOAKGP_TEST_POSTGRESQL", "postgresql://127.0.0.1/test")


@pytest.fixture(scope="session")
def server():
    """The server's URL; or the test is skipped."""
    url = sa.make_url(POSTGRESQL).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(url, connect_args={"connect_timeout": 3}, poolclass=sa.NullPool)
    try:
        with engine.connect():
            pass
    except sa.exc.OperationalError:
        pytest.skip("no PostgreSQL answers: name one in CLOAKGP_TEST_POSTGRESQL")
    return engine


@pytest.fixture
def schema(server):
    """The URL of an empty schema of the server's."""
    name = f"cloakgp_{secrets.token_hex(6)}"
    with server.begin() as connection:
        connection.execute(sa.text(f"CREATE SCHEMA {name}"))
    yield f"{POSTGRESQL}?options=-csearch_path%3D{name}"
    with server.begin() as connection:
        connection.execute(sa.text(f"DROP SCHEMA {name} CASCADE"))


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Where keys and anchors go."""
    monkeypatch.setenv("CLOAKGP_LEDGER_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, home, tmp_path):
    """Where a ledger can be made."""
    assert not home.exists()
    if request.param == "sqlite":
        return str(tmp_path / "people.db")
    return request.getfixturevalue("schema")


@pytest.fixture
def ledger(home, tmp_path):
    """A ledger without accounts; its key and anchor are in the folder `home`."""
    assert not home.exists()
    made = Ledger.create(tmp_path / "people.db")
    yield made
    made.close()


@pytest.fixture
def account(ledger):
    return ledger.open_account("people", epsilon=1.0, delta=1e-6)
