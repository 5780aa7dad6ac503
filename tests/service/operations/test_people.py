"""People: who gives which roles to whom."""

from __future__ import annotations

import pytest
from services import work_as

from cloakgp.service.access import Role
from cloakgp.service.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from cloakgp.service.messages import ChangedPerson, NewPerson, NewToken
from cloakgp.service.operations.audits import list_events
from cloakgp.service.operations.people import (
    add_person,
    change_person,
    first_token,
    issue_token,
    list_people,
    list_tokens,
    revoke_token,
    show_me,
)


@pytest.fixture
def admin(service, tokens):
    return work_as(service, tokens[Role.ADMINISTRATOR])


def test_a_person_from_coming_to_leaving(service, tokens, admin):
    person = add_person(admin, NewPerson(name="anna", roles=[Role.ANALYST, Role.READER]))
    issued = issue_token(admin, person.id, NewToken(label="laptop", roles=[Role.READER], days=3))
    anna = work_as(service, issued.token)
    # A token has the roles that it was given, and no more.
    assert show_me(anna).roles == [Role.READER]
    assert [token.label for token in list_tokens(admin, person.id)] == ["laptop"]
    # A role that is taken away is no token's any more.
    change_person(admin, person.id, ChangedPerson(roles=[Role.ANALYST]))
    assert work_as(service, issued.token).actor.roles == frozenset()
    assert not change_person(admin, person.id, ChangedPerson(active=False)).active
    assert revoke_token(admin, issued.about.id).revoked
    assert issued.token not in str([one.model_dump() for one in list_tokens(admin, person.id)])
    told = [event.what for event in list_events(work_as(service, tokens[Role.AUDITOR]))]
    assert told[:2] == ["token revoked", "person changed"]


def test_who_gives_roles_sees_no_data(admin):
    with pytest.raises(InvalidError, match="no other role"):
        add_person(admin, NewPerson(name="a", roles=[Role.ADMINISTRATOR, Role.ANALYST]))
    with pytest.raises(ForbiddenError, match="their own"):
        change_person(admin, admin.actor.id, ChangedPerson(roles=[Role.ANALYST]))


def test_a_token_has_no_role_that_its_person_lacks(admin):
    person = add_person(admin, NewPerson(name="anna", roles=[Role.READER]))
    with pytest.raises(InvalidError, match="no roles that its person has not"):
        issue_token(admin, person.id, NewToken(roles=[Role.CUSTODIAN]))


def test_nobody_is_there_twice(admin):
    with pytest.raises(ConflictError):
        add_person(admin, NewPerson(name="reader", roles=[Role.READER]))
    for missing in (
        lambda: list_tokens(admin, 99),
        lambda: issue_token(admin, 99, NewToken()),
        lambda: revoke_token(admin, 99),
        lambda: change_person(admin, 99, ChangedPerson()),
    ):
        with pytest.raises(NotFoundError):
            missing()


def test_the_first_administrator_comes_once(service):
    token = first_token(service.database, days=1)
    assert show_me(work_as(service, token)).roles == [Role.ADMINISTRATOR]
    assert first_token(service.database, days=1) is None
    assert [person.name for person in list_people(work_as(service, token))] == ["admin"]
