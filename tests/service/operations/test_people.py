"""People: who gives which roles to whom."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from services import work_as

from cloakgp.service.access import Role
from cloakgp.service.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from cloakgp.service.messages import (
    ChangedPerson,
    Choices,
    Decision,
    NewIdentity,
    NewPerson,
    NewRequest,
    NewToken,
)
from cloakgp.service.models import Person
from cloakgp.service.operations.accounts import list_accounts
from cloakgp.service.operations.audits import list_events
from cloakgp.service.operations.jobs import show_job
from cloakgp.service.operations.people import (
    add_person,
    change_person,
    erase_person,
    link_identity,
    list_people,
    show_me,
    show_person,
    unlink_identity,
)
from cloakgp.service.operations.requests import (
    approve_request,
    make_request,
    show_request,
)
from cloakgp.service.operations.tokens import issue_token, list_tokens, revoke_token

ACCOUNT = NewIdentity(issuer="https://id.example.org", subject="subject-1")


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
    assert revoke_token(admin, issued.about.id).revoked
    assert not change_person(admin, person.id, ChangedPerson(active=False)).active
    assert issued.token not in str([one.model_dump() for one in list_tokens(admin, person.id)])
    told = [event.what for event in list_events(work_as(service, tokens[Role.AUDITOR]))]
    assert told[:2] == ["person changed", "token revoked"]


def test_who_gives_roles_sees_no_data(admin):
    with pytest.raises(InvalidError, match="no other role"):
        add_person(admin, NewPerson(name="a", roles=[Role.ADMINISTRATOR, Role.ANALYST]))
    with pytest.raises(ForbiddenError, match="their own"):
        change_person(admin, admin.actor.id, ChangedPerson(roles=[Role.ANALYST]))


def test_nobody_is_there_twice(admin):
    with pytest.raises(ConflictError):
        add_person(admin, NewPerson(name="reader", roles=[Role.READER]))
    for missing in (
        lambda: show_person(admin, 99),
        lambda: change_person(admin, 99, ChangedPerson()),
        lambda: erase_person(admin, 99),
        lambda: link_identity(admin, 99, ACCOUNT),
        lambda: unlink_identity(admin, 1, ACCOUNT),
    ):
        with pytest.raises(NotFoundError):
            missing()


def asked(work, table, epsilon):
    quick = {"stages": "one", "interval": "off", "learn": "none"}
    choices = Choices(epsilon=epsilon, delta=1e-6, **quick)
    return make_request(work, NewRequest(table=table.id, choices=choices, purpose="a test"))


@pytest.mark.parametrize(
    "change", [ChangedPerson(active=False), ChangedPerson(roles=[Role.READER])], ids=str
)
def test_nothing_is_made_for_whoever_may_no_longer_ask(service, tokens, admin, table, change):
    """Neither what is queued nor what waits; and what it held is free again."""
    service.dispatcher.at_once = False
    analyst, approver = (work_as(service, tokens[role]) for role in (Role.ANALYST, Role.APPROVER))
    queued, waiting = asked(analyst, table, 0.3), asked(analyst, table, 1.2)
    change_person(admin, analyst.actor.id, change)
    service.dispatcher.work()
    assert show_job(approver, queued.job.id).state == "cancelled"
    seen = show_request(approver, waiting.id)
    assert (seen.state, seen.remark) == ("withdrawn", "the person who asked may no longer do so")
    with pytest.raises(ConflictError, match="withdrawn"):
        approve_request(approver, waiting.id, Decision())
    (account,) = list_accounts(approver)
    assert (account.used, account.held) == (0, 0)


def test_a_job_looks_again_whether_its_analyst_may_ask(service, tokens, table):
    """Though it was queued at the very moment in which they were told to leave."""
    service.dispatcher.at_once = False
    analyst, approver = (work_as(service, tokens[role]) for role in (Role.ANALYST, Role.APPROVER))
    queued, waiting = asked(analyst, table, 0.3), asked(analyst, table, 1.2)
    with service.database.writing() as session:
        session.get(Person, analyst.actor.id).active = False
    with pytest.raises(ConflictError, match="may no longer"):
        approve_request(approver, waiting.id, Decision())
    service.dispatcher.work()
    assert show_job(approver, queued.job.id).state == "cancelled"
    assert service.ledger.account("children").standing.used == 0
    auditor = work_as(service, tokens[Role.AUDITOR])
    assert list_events(auditor)[0].about == "job 1: the person who asked may no longer do so"


def test_a_name_is_erased_and_a_pseudonym_stays(service, tokens, admin, table):
    service.dispatcher.at_once = False
    people = {role: work_as(service, tokens[role]) for role in Role}
    request = asked(people[Role.ANALYST], table, 1.2)
    approve_request(people[Role.APPROVER], request.id, Decision())
    for role in (Role.ANALYST, Role.APPROVER, Role.CUSTODIAN):
        who = people[role].actor.id
        link_identity(admin, who, NewIdentity(issuer="https://i.example", subject=str(who)))
        with pytest.raises(ConflictError, match="first withdraw"):
            erase_person(admin, who)
        change_person(admin, who, ChangedPerson(active=False))
        assert people[role].actor.name in service.ledger.names().values() or role != Role.CUSTODIAN
        erased = erase_person(admin, who)
        assert (erased.name, erased.erased) == (f"erased person {who}", True)
        assert erased.identities == []
        with pytest.raises(ConflictError, match="a new person"):
            change_person(admin, who, ChangedPerson(active=True))
    everything = "".join(
        str(service_row)
        for name in ("people", "events", "requests", "tables", "tokens", "identities", "proposals")
        for service_row in rows_of(service, f"service_{name}")
    )
    # Roles are called the same as people here: names stand in quotes.
    for name in ("custodian", "approver", "analyst"):
        assert f"'{name}'," not in everything
    # Nor does the ledger know whose entries they are.
    known = set(service.ledger.names().values())
    assert known.isdisjoint({"custodian", "approver", "analyst"})
    assert service.ledger.verify().sound
    auditor = people[Role.AUDITOR]
    assert {event.who for event in list_events(auditor)} >= {"erased person 1", "erased person 2"}
    with pytest.raises(InvalidError, match="no name of a person"):
        add_person(admin, NewPerson(name="erased person 9", roles=[Role.READER]))


def rows_of(service, table):
    with service.database.reading() as session:
        return session.execute(sa.text(f"SELECT * FROM {table}")).all()


def test_an_account_is_one_person_s(admin):
    first, second = (
        add_person(admin, NewPerson(name=name, roles=[Role.READER])).id for name in ("a", "b")
    )
    assert link_identity(admin, first, ACCOUNT).identities[0].subject == "subject-1"
    with pytest.raises(ConflictError, match="linked to a person"):
        link_identity(admin, second, ACCOUNT)
    with pytest.raises(NotFoundError):
        unlink_identity(admin, second, ACCOUNT)
    assert unlink_identity(admin, first, ACCOUNT).identities == []


def test_people_come_in_pages(admin):
    names = [person.name for person in list_people(admin)]
    assert [person.name for person in list_people(admin, most=2)] == names[:2]
    assert [person.name for person in list_people(admin, after=names[1])] == names[2:]
