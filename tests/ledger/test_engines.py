"""Engines: the isolation of transactions, whatever the server's default is."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from cloakgp.ledger.database import Database
from cloakgp.ledger.engines import make_engine, parse_url


def test_isolation_is_set_for_a_server_alone(tmp_path, monkeypatch):
    asked = []
    make = sa.create_engine

    def noting(url, **settings):
        asked.append(settings.get("isolation_level"))
        return make(url, **settings)

    monkeypatch.setattr(sa, "create_engine", noting)
    for url in ("postgresql://127.0.0.1/nothing", str(tmp_path / "people.db")):
        make_engine(parse_url(url)).dispose()
    assert asked == ["READ COMMITTED", None]


@pytest.mark.parametrize("default", ["read committed", "repeatable read", "serializable"])
def test_the_default_of_a_server_is_not_that_of_a_ledger(schema, home, default):
    """Whoever waits for the head counts what was written before they had it."""
    assert not home.exists()
    words = default.replace(" ", "%5C%20")
    url = parse_url(f"{schema}%20-cdefault_transaction_isolation%3D{words}")
    with sa.create_engine(url, poolclass=sa.NullPool).connect() as connection:
        assert connection.exec_driver_sql("SHOW transaction_isolation").scalar() == default
    database = Database(url)
    for writing, level in ((True, "read committed"), (False, "repeatable read")):
        with database._connected(writing=writing) as connection:
            found = connection.exec_driver_sql("SHOW transaction_isolation").scalar()
        assert found == level
    database.close()
