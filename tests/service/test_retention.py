"""Retention: names and addresses are erased when they are older than is kept."""

from __future__ import annotations

import sqlalchemy as sa
from services import work_as

from cloakgp.service.access import Role
from cloakgp.service.database import note_event
from cloakgp.service.maintenance import apply_retention
from cloakgp.service.messages import ChangedPerson, NewAccount, PrivacyBudget
from cloakgp.service.models import Event, Person, now
from cloakgp.service.operations.accounts import open_account
from cloakgp.service.operations.audits import list_events
from cloakgp.service.operations.people import change_person, list_people

DAY = 24 * 3600


def test_what_is_older_is_erased_and_nothing_else(service, tokens):
    admin = work_as(service, tokens[Role.ADMINISTRATOR])
    custodian = work_as(service, tokens[Role.CUSTODIAN])
    open_account(custodian, NewAccount(name="people", limit=PrivacyBudget(epsilon=1)))
    for who in (1, 2):
        change_person(admin, who, ChangedPerson(active=False))
    assert "custodian" in service.ledger.names().values()
    with service.database.writing() as session:
        session.get(Person, 1).left = now() - 31 * DAY
        for when in (31, 1):
            note_event(session, who="unknown", what="sign-in failed", address=f"10.0.0.{when}")
        session.flush()
        old = sa.update(Event).where(Event.address == "10.0.0.31")
        session.execute(old.values(created=now() - 31 * DAY))
    erased = apply_retention(service.ledger, service.database, days=30)
    assert "custodian" not in service.ledger.names().values()
    assert service.ledger.verify().sound
    assert (erased.names, erased.addresses) == (1, 1)
    names = [person.name for person in list_people(admin)]
    assert names == [
        "administrator",
        "analyst",
        "approver",
        "auditor",
        "erased person 1",
        "reader",
    ]
    noted = list_events(work_as(service, tokens[Role.AUDITOR]))
    assert [event.address for event in noted if event.what == "sign-in failed"] == ["10.0.0.1", ""]
    assert noted[0].about == "1 names, 1 addresses, older than 30 days"
    again = apply_retention(service.ledger, service.database, days=30)
    assert (again.names, again.addresses) == (0, 0)
