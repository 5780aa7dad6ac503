"""The first administrator, and a way in when all are shut out."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from services import work_as

from cloakgp.service.access import Role
from cloakgp.service.errors import UnknownActorError
from cloakgp.service.maintenance import first_token, recover_administrator
from cloakgp.service.models import Person
from cloakgp.service.operations.audits import list_events
from cloakgp.service.operations.people import list_people, show_me


def test_the_first_administrator_comes_once(service):
    token = first_token(service.database, days=1)
    assert show_me(work_as(service, token)).roles == [Role.ADMINISTRATOR]
    assert first_token(service.database, days=1) is None
    assert [person.name for person in list_people(work_as(service, token))] == ["admin"]


def test_administrators_are_recovered_and_their_tokens_end(service, tokens):
    old = tokens[Role.ADMINISTRATOR]
    token, name = recover_administrator(service.database, days=1)
    assert name == "administrator"
    assert show_me(work_as(service, token)).roles == [Role.ADMINISTRATOR]
    with pytest.raises(UnknownActorError):
        work_as(service, old)
    # Others keep theirs.
    last = list_events(work_as(service, tokens[Role.AUDITOR]))[0]
    assert (last.who, last.what, last.person) == (
        "host",
        "administrator recovered",
        "administrator",
    )
    assert last.about == f"{token[:14]}; 1 tokens of administrators revoked"


def test_an_administrator_is_added_where_none_may_use_the_service(service, tokens):
    with service.database.writing() as session:
        is_admin = Person.name == "administrator"
        session.execute(sa.update(Person).where(is_admin).values(active=False))
        session.execute(sa.update(Person).where(Person.name == "reader").values(name="admin"))
    token, name = recover_administrator(service.database, days=1)
    assert name == "admin 2"
    assert show_me(work_as(service, token)).roles == [Role.ADMINISTRATOR]
    with pytest.raises(UnknownActorError):
        work_as(service, tokens[Role.ADMINISTRATOR])
