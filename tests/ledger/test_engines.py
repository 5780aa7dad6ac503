"""Engines: the isolation of transactions, whatever the server's default is."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from cloakgp.ledger import Ledger, LedgerError
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


NO_ADDRESSES = [
    *(5, b"x.db", ["x.db"], " ", "\t", "a\0b", "a\ud800", "sqlite://", "mysql://host/x"),
    *("postgresql://localhost:notaport/x", "sqlite:///x.db?timeout=abc"),
]


@pytest.mark.parametrize("address", NO_ADDRESSES, ids=ascii)
def test_what_is_no_address_is_refused_and_makes_nothing(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for find in (Ledger, Ledger.create):
        with pytest.raises(LedgerError, match="a ledger is a file, sqlite:///FILE or postgresql:"):
            find(address)
    assert list(tmp_path.iterdir()) == []


def test_where_no_file_can_be_no_ledger_is_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LedgerError, match="is a folder: name a file"):
        Ledger.create(tmp_path)
    with pytest.raises(LedgerError, match=r"a ledger is a file, .* got NoneType"):
        Ledger.create(None)
    for find in (Ledger, Ledger.create):
        with pytest.raises(LedgerError, match=r"no ledger can be at xxx.*: File name too long"):
            find("x" * 300)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(LedgerError, match="name a ledger, or set CLOAKGP_LEDGER"):
        Ledger()


def test_a_path_names_a_file(tmp_path):
    Ledger.create(tmp_path / "people.db").close()
    assert Ledger(f"sqlite:///{tmp_path / 'people.db'}?timeout=5").verify().sound
