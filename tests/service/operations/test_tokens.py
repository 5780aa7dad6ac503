"""Tokens: whose they are, and how one takes the place of another."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from services import work_as

from cloakgp.service.access import Actor, Role
from cloakgp.service.context import Work
from cloakgp.service.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnknownActorError,
)
from cloakgp.service.messages import ChangedPerson, NewPerson, NewToken, RotatedToken
from cloakgp.service.models import Token, now
from cloakgp.service.operations.people import add_person, change_person
from cloakgp.service.operations.tokens import (
    issue_token,
    list_tokens,
    revoke_token,
    rotate_my_token,
    rotate_token,
)


@pytest.fixture
def admin(service, tokens):
    return work_as(service, tokens[Role.ADMINISTRATOR])


@pytest.fixture
def anna(admin):
    return add_person(admin, NewPerson(name="anna", roles=[Role.ANALYST, Role.READER])).id


def test_a_token_takes_the_place_of_another_at_once(service, admin, anna):
    old = issue_token(admin, anna, NewToken(label="laptop", roles=[Role.READER], days=3))
    new = rotate_token(admin, old.about.id, RotatedToken(days=10))
    assert (new.about.label, new.about.roles) == ("laptop", [Role.READER])
    assert work_as(service, new.token).actor.roles == {Role.READER}
    with pytest.raises(UnknownActorError):
        work_as(service, old.token)
    assert abs(new.about.expires.timestamp() - now() - 10 * 24 * 3600) < 60
    with pytest.raises(ConflictError, match="has ended"):
        rotate_token(admin, old.about.id, RotatedToken())


def test_for_some_hours_both_are_valid(service, admin, anna):
    old = issue_token(admin, anna, NewToken(days=3))
    rotate_token(admin, old.about.id, RotatedToken(grace_hours=2))
    assert work_as(service, old.token).actor.name == "anna"
    first, _ = list_tokens(admin, anna)
    assert 0 < first.expires.timestamp() - now() <= 2 * 3600
    # A grace is no extension.
    short = issue_token(admin, anna, NewToken(days=1))
    rotate_token(admin, short.about.id, RotatedToken(grace_hours=24 * 30))
    assert list_tokens(admin, anna)[2].expires == short.about.expires


def test_roles_that_were_taken_away_do_not_come_back(admin, anna):
    old = issue_token(admin, anna, NewToken())
    change_person(admin, anna, ChangedPerson(roles=[Role.READER]))
    assert rotate_token(admin, old.about.id, RotatedToken()).about.roles == [Role.READER]


def test_anybody_replaces_their_own_and_it_lasts_no_longer(service, admin, anna):
    old = issue_token(admin, anna, NewToken(days=3))
    mine = work_as(service, old.token)
    with pytest.raises(ForbiddenError, match="only an administrator"):
        rotate_my_token(mine, RotatedToken(days=1000))
    new = rotate_my_token(mine, RotatedToken())
    assert new.about.expires == old.about.expires
    assert work_as(service, new.token).actor.name == "anna"
    with pytest.raises(UnknownActorError):
        work_as(service, old.token)
    with pytest.raises(ForbiddenError, match="from a token"):
        rotate_my_token(
            Work(service=service, actor=Actor(anna, "anna", frozenset({Role.READER}))),
            RotatedToken(),
        )


def test_nobody_who_may_not_use_the_service_gets_a_token(admin, anna):
    change_person(admin, anna, ChangedPerson(active=False))
    with pytest.raises(ConflictError, match="may not use"):
        issue_token(admin, anna, NewToken())


def test_old_tokens_stay_dead_when_somebody_comes_back(service, admin, anna):
    old = issue_token(admin, anna, NewToken(days=3))
    change_person(admin, anna, ChangedPerson(active=False))
    change_person(admin, anna, ChangedPerson(active=True))
    with pytest.raises(UnknownActorError):
        work_as(service, old.token)
    assert [each.revoked for each in list_tokens(admin, anna)] == [True]
    assert work_as(service, issue_token(admin, anna, NewToken()).token).actor.name == "anna"


def test_what_is_not_there_is_not_found(service, admin):
    for missing in (
        lambda: list_tokens(admin, 99),
        lambda: issue_token(admin, 99, NewToken()),
        lambda: rotate_token(admin, 99, RotatedToken()),
        lambda: revoke_token(admin, 99),
    ):
        with pytest.raises(NotFoundError):
            missing()
    with service.database.reading() as session:
        assert session.scalar(sa.select(sa.func.count(Token.id))) == len(Role)


def test_a_token_has_no_role_that_its_person_lacks(admin, anna):
    with pytest.raises(InvalidError, match="no roles that its person lacks"):
        issue_token(admin, anna, NewToken(roles=[Role.CUSTODIAN]))
