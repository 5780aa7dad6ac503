"""Queries: they select and do nothing else, and end when they take too long."""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from cloakgp.data.formats.address import AddressFormat
from cloakgp.data.formats.rows import DatabaseFormat
from cloakgp.data.limits import ReadingLimits, RefusedError
from cloakgp.data.tables import column_names_of, read_private

POSTGRESQL = os.environ.get("CLOAKGP_TEST_POSTGRESQL", "postgresql://127.0.0.1/test")
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
# Rows come at once, and there is no end of them.
STREAM = ENDLESS.replace("count(*)", "x AS height")


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE people (age REAL, height REAL)")
        database.executemany("INSERT INTO people VALUES (?, ?)", [(30, 170.5), (40, 165)])
        database.execute("CREATE VIEW tall AS SELECT height FROM people WHERE height > 168")
    database.close()
    return path


@pytest.fixture
def address(people, tmp_path):
    path = tmp_path / "people.url"
    path.write_text(f"sqlite:///{people}")
    return path


@pytest.fixture(params=["file", "address"])
def reading(request, people, address):
    """Read the heights that a query gives, from a file and by an address."""

    def read(query, limits=ReadingLimits()):  # noqa: B008
        if request.param == "file":
            path, table_format = people, DatabaseFormat(query, limits=limits)
        else:
            path, table_format = address, AddressFormat(query, limits=limits)
        return read_private(path, output="height", table_format=table_format).tolist()

    return read


@pytest.mark.parametrize(
    "query",
    [
        "SELECT age, height FROM people",
        "SELECT height FROM tall",
        "WITH n AS (SELECT round(height, 1) AS height FROM people) SELECT * FROM n",
        "SELECT max(height) AS height FROM people GROUP BY age ORDER BY 1",
        "VALUES (1)",
    ],
)
def test_what_selects_is_read(people, query):
    assert column_names_of(people, table_format=DatabaseFormat(query))


@pytest.mark.parametrize(
    "query",
    [
        "VACUUM INTO '{there}'",
        "ATTACH DATABASE '{there}' AS other",
        "PRAGMA writable_schema = ON",
        "PRAGMA user_version",
        "SELECT * FROM pragma_database_list",
        "DELETE FROM people",
        "UPDATE people SET height = 0",
        "CREATE TEMP TABLE other AS SELECT * FROM people",
        "BEGIN IMMEDIATE",
        "SAVEPOINT here",
        "SELECT load_extension('{there}') AS height",
        "EXPLAIN DELETE FROM people",
        "REINDEX",
    ],
)
def test_what_does_more_is_refused(reading, people, tmp_path, query):
    there = tmp_path / "there.db"
    before = people.read_bytes()
    with pytest.raises(RefusedError, match="may select, and do nothing else"):
        reading(query.format(there=there))
    assert not there.exists()
    assert people.read_bytes() == before


def test_two_statements_are_refused(reading):
    with pytest.raises(ValueError, match="cannot be read"):
        reading("SELECT height FROM people; DELETE FROM people")
    assert len(reading("SELECT height FROM people")) == 2


@pytest.mark.parametrize("query", [ENDLESS, STREAM])
def test_a_query_that_takes_too_long_ends(reading, query, patience):
    began = time.monotonic()
    with pytest.raises(RefusedError, match=r"longer than 0.3 seconds"):
        reading(query, ReadingLimits(seconds=0.3))
    assert time.monotonic() - began < patience


def test_a_query_that_nobody_waits_for_ends(reading):
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    with pytest.raises(RefusedError, match="caller has left"):
        reading(ENDLESS, ReadingLimits(stopped=stop.is_set))


def test_time_is_that_of_the_database_alone(people, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("cloakgp.data.limits.time", SimpleNamespace(monotonic=lambda: now[0]))
    limits = ReadingLimits(seconds=0.2)
    query = "SELECT height FROM people UNION ALL SELECT height FROM people ORDER BY height"
    rows = DatabaseFormat(query, limits=limits).rows(people)
    next(rows)
    now[0] += 0.5
    assert len(list(rows)) == 4


def test_rows_are_limited_while_they_are_read(reading):
    with pytest.raises(RefusedError, match="more than 1,000 rows"):
        reading(STREAM, ReadingLimits(rows=1000))


def test_cells_are_limited(reading):
    with pytest.raises(ValueError, match="cannot be read"):
        reading("SELECT zeroblob(1000000000) AS height")


def test_databases_that_keep_to_no_time_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.url"
    path.write_text("mysql+pymysql://127.0.0.1:1/x")

    class Engine:
        dialect = type("Dialect", (), {"name": "mysql", "driver": "pymysql"})

    monkeypatch.setattr("sqlalchemy.create_engine", lambda *_, **__: Engine())
    limited = AddressFormat("SELECT 1", limits=ReadingLimits(seconds=1))
    with pytest.raises(RefusedError, match="SQLite, and for PostgreSQL"):
        column_names_of(path, table_format=limited)


@pytest.fixture
def served(tmp_path):
    """The address of a table on a server, and an engine that looks at it; or it is skipped."""
    url = sa.make_url(POSTGRESQL).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(url, connect_args={"connect_timeout": 3}, poolclass=sa.NullPool)
    name = f"people_{secrets.token_hex(6)}"
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(f"CREATE TABLE {name} (age real, height real)")
            connection.exec_driver_sql(f"INSERT INTO {name} VALUES (30, 170.5), (40, 165)")
    except sa.exc.OperationalError:
        pytest.skip("no PostgreSQL answers: name one in CLOAKGP_TEST_POSTGRESQL")
    path = tmp_path / "served.url"
    path.write_text(url.render_as_string(hide_password=False))
    yield path, name, engine
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP TABLE {name}")


def asked_of(served, query, **limits):
    path, name, _ = served
    chosen = AddressFormat(query.format(table=name), limits=ReadingLimits(**limits))
    return read_private(path, output="height", table_format=chosen).tolist()


def test_a_server_is_read(served):
    assert asked_of(served, "SELECT * FROM {table} ORDER BY age", seconds=60) == ["170.5", "165"]


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM {table}",
        "WITH gone AS (DELETE FROM {table} RETURNING height) SELECT * FROM gone",
        "SELECT height FROM {table}; COMMIT; DELETE FROM {table}",
        "COMMIT; DELETE FROM {table}; SELECT 1 AS height",
        "SELECT height FROM {table}); DELETE FROM {table}; --",
        "COPY {table} TO PROGRAM 'true'",
        "SELECT set_config('transaction_read_only', 'off', true) AS height",
        "SELECT setval('nothing', 3) AS height",
    ],
)
def test_a_server_only_selects(served, query):
    with pytest.raises(ValueError, match="cannot be read"):
        asked_of(served, query)
    assert len(asked_of(served, "SELECT * FROM {table}")) == 2


@pytest.mark.parametrize(
    "query",
    [
        "SELECT pg_sleep(600) AS height",
        # The server's own limit is taken away, and the query goes on after the first rows.
        "SELECT set_config('statement_timeout', '0', false) AS height, pg_sleep(k / 1000) "
        "FROM generate_series(1, 100000) AS all_of_them(k)",
    ],
)
def test_a_server_is_told_to_end_a_query_that_takes_too_long(served, query, patience):
    began = time.monotonic()
    with pytest.raises(RefusedError, match="longer than 1 seconds"):
        asked_of(served, query, seconds=1)
    assert time.monotonic() - began < patience
    _, _, engine = served
    running = (
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND "
        "query LIKE '%pg_sleep(%' AND pid <> pg_backend_pid()"
    )
    with engine.connect() as connection:
        assert connection.execute(sa.text(running)).scalar() == 0
