"""Transactions of the service: what a reader and a waiting writer see of others."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from services import add_people, opened, register
from sqlalchemy import func, select

from cloakgp.service.access import Role
from cloakgp.service.database import lock_rules, note_event
from cloakgp.service.models import Event, Person

# The isolation of a server whose host set it.
REPEATABLE = "%20-cdefault_transaction_isolation%3Drepeatable%5C%20read"


@pytest.fixture(params=["sqlite", "postgresql", "postgresql, repeatable read"])
def database(request, url, tmp_path):
    """The database of a service with an account."""
    if request.param != "sqlite":
        url = request.getfixturevalue("schema")
    made = opened(url + (REPEATABLE if "repeatable" in request.param else ""), tmp_path)
    register(made, add_people(made)[Role.CUSTODIAN], tmp_path)
    yield made.database
    made.close()


def events(session):
    return session.scalar(select(func.count()).select_from(Event))


def test_whoever_waited_for_a_lock_counts_what_was_written_meanwhile(database):
    begun = threading.Event()

    def wait_and_count():
        if not database.is_shared:
            # SQLite's writers wait before they begin.
            begun.set()
        with database.writing() as session:
            # A transaction that sees one moment sees that of its first query.
            session.scalars(select(Person)).all()
            begun.set()
            lock_rules(session, "children")
            return events(session)

    with ThreadPoolExecutor(1) as pool:
        with database.writing() as session:
            lock_rules(session, "children")
            waiting = pool.submit(wait_and_count)
            assert begun.wait(60)
            note_event(session, who="host", what="a test")
            session.flush()
            seen = events(session)
        assert waiting.result(60) == seen


def test_a_reader_sees_one_moment(database):
    with database.reading() as session:
        before = events(session)
        with database.writing() as other:
            note_event(other, who="host", what="a test")
        assert events(session) == before
    with database.reading() as session:
        assert events(session) == before + 1
