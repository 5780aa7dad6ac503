"""Duties apart: who asks does not raise, nobody raises alone, and less is done at once."""

from __future__ import annotations

import pytest
from services import add_people, on_postgresql_slowly, opened, register, unconfined, work_as

from cloakgp.service.access import Role
from cloakgp.service.errors import ConflictError, ForbiddenError, NotFoundError
from cloakgp.service.messages import (
    ChangedPerson,
    Choices,
    NewAccount,
    NewLimit,
    NewPerson,
    NewRequest,
    NewRules,
    PrivacyBudget,
)
from cloakgp.service.operations.accounts import (
    change_limit,
    change_rules,
    list_accounts,
    open_account,
    set_share,
)
from cloakgp.service.operations.audits import list_events
from cloakgp.service.operations.people import change_person, create_person
from cloakgp.service.operations.proposals import (
    confirm_proposal,
    list_proposals,
    reject_proposal,
)
from cloakgp.service.operations.requests import make_request
from cloakgp.service.operations.tokens import create_token


class Office:
    """A service with an account of (3, 1e-6), approval above 1, and shares of 2."""

    def __init__(self, service, tmp_path):
        self.service = service
        self.tokens = add_people(service)
        self.table = register(service, self.tokens[Role.CUSTODIAN], tmp_path)
        service.dispatcher.at_once = False
        self.custodian, self.approver, self.analyst, self.admin = (
            work_as(service, self.tokens[role])
            for role in (Role.CUSTODIAN, Role.APPROVER, Role.ANALYST, Role.ADMINISTRATOR)
        )
        self.second = self.newcomer("second", Role.CUSTODIAN)

    def newcomer(self, name, *roles, token_roles=None):
        with self.service.database.writing() as session:
            person = create_person(session, NewPerson(name=name, roles=list(roles)))
            token = create_token(session, person, roles=token_roles, days=1).token
        return work_as(self.service, token)

    @property
    def account(self):
        (found,) = list_accounts(self.custodian)
        return found


@pytest.fixture
def office(any_url, tmp_path):
    service = opened(any_url, tmp_path)
    with unconfined():
        yield Office(service, tmp_path)
    service.close()


def limit(epsilon, delta=1e-6):
    return NewLimit(limit=PrivacyBudget(epsilon=epsilon, delta=delta), reason="more people agreed")


def rules(approval, share):
    def pair(epsilon):
        return None if epsilon is None else PrivacyBudget(epsilon=epsilon, delta=1e-6)

    return NewRules(approval=pair(approval), share=pair(share))


def ask(work, office, epsilon):
    chosen = Choices(epsilon=epsilon, delta=1e-6)
    return make_request(work, NewRequest(table=office.table.id, choices=chosen, purpose="a test"))


def test_a_limit_is_raised_by_two(office):
    change = change_limit(office.custodian, "children", limit(900))
    assert (change.account.limit.epsilon, change.proposal.state) == (3, "waiting")
    assert office.account.limit.epsilon == 3
    with pytest.raises(ForbiddenError, match="another person"):
        confirm_proposal(office.custodian, change.proposal.id)
    confirmed = confirm_proposal(office.second, change.proposal.id)
    assert (confirmed.state, confirmed.decided_by) == ("confirmed", "second")
    assert office.account.limit.epsilon == 900
    last = list(office.service.ledger.entries())[-1].content
    assert (last["kind"], office.service.ledger.names()[last["who"]]) == ("limit", "second")
    assert last["reason"] == f"more people agreed (proposal {change.proposal.id})"
    with pytest.raises(ConflictError, match="confirmed"):
        confirm_proposal(office.approver, change.proposal.id)


@on_postgresql_slowly
def test_a_limit_is_lowered_at_once(office):
    change = change_limit(office.custodian, "children", limit(2))
    assert (change.account.limit.epsilon, change.proposal) == (2, None)
    # Less of one and more of the other lets something be spent that could not be.
    assert change_limit(office.custodian, "children", limit(1, 1e-5)).proposal is not None


@on_postgresql_slowly
def test_looser_rules_wait_and_tighter_ones_do_not(office):
    def in_force():
        return office.account.approval, office.account.share

    before = rules(1, 2)
    for new, waits in (
        (rules(1.5, 2), True),
        (rules(1, 2.5), True),
        (rules(1, None), True),
        (rules(0.5, None), True),
        (rules(None, 2), False),
        (rules(0.5, 1), False),
        (before, False),
    ):
        change = change_rules(office.custodian, "children", new)
        assert (change.proposal is not None) == waits
        expected = before if waits else new
        assert in_force() == (expected.approval, expected.share)
        if waits:
            confirm_proposal(office.approver, change.proposal.id)
            assert in_force() == (new.approval, new.share)
        # And back, by whatever way that takes.
        back = change_rules(office.custodian, "children", before).proposal
        if back is not None:
            confirm_proposal(office.approver, back.id)
        assert in_force() == (before.approval, before.share)


@on_postgresql_slowly
def test_a_larger_share_waits_and_a_smaller_one_does_not(office):
    def share(epsilon):
        budget = None if epsilon is None else PrivacyBudget(epsilon=epsilon, delta=1e-6)
        return set_share(office.custodian, "children", "analyst", budget).proposal

    larger = share(2.5)
    assert (larger.person, larger.changes[0].after.epsilon) == ("analyst", 2.5)
    assert share(0.5) is None
    assert list_proposals(office.custodian, waiting=True) == []
    back = share(None)
    assert back.changes[0].after is None
    ask(office.analyst, office, 0.4)
    confirm_proposal(office.second, back.id)
    assert ask(office.analyst, office, 0.8).id == 2


@on_postgresql_slowly
def test_who_asks_does_not_raise(office):
    """Whatever the roles of the token, and though the role was taken away meanwhile."""
    both = office.newcomer("both", Role.CUSTODIAN, Role.ANALYST)
    half = office.newcomer("half", Role.CUSTODIAN, Role.ANALYST, token_roles=[Role.CUSTODIAN])
    for work in (both, half):
        for change in (
            lambda work: change_limit(work, "children", limit(5)),
            lambda work: change_rules(work, "children", rules(100, None)),
            lambda work: set_share(work, "children", work.actor.name, PrivacyBudget(epsilon=100)),
            lambda work: open_account(
                work, NewAccount(name="mine", limit=PrivacyBudget(epsilon=100), approval=None)
            ),
        ):
            with pytest.raises(ForbiddenError, match="a person who requests releases"):
                change(work)
    # Less is done by them too.
    assert change_limit(both, "children", limit(2.9)).proposal is None
    waiting = change_limit(office.custodian, "children", limit(5)).proposal.id
    with pytest.raises(ForbiddenError, match="a person who requests releases"):
        confirm_proposal(both, waiting)
    ask(both, office, 0.1)
    change_person(office.admin, both.actor.id, ChangedPerson(roles=[Role.CUSTODIAN]))
    former = work_as(office.service, _token_of(office, "both"))
    with pytest.raises(ForbiddenError, match="a person who requests releases"):
        confirm_proposal(former, waiting)
    assert office.account.limit.epsilon == 2.9


def _token_of(office, name):
    from sqlalchemy import select

    from cloakgp.service.models import Person

    with office.service.database.writing() as session:
        person = session.scalar(select(Person).where(Person.name == name))
        return create_token(session, person, days=1).token


def test_what_has_changed_since_is_not_confirmed(office):
    proposal = change_limit(office.custodian, "children", limit(5)).proposal.id
    office.service.ledger.change_limit("children", epsilon=1, delta=1e-6, reason="an alarm")
    with pytest.raises(ConflictError, match="changed since"):
        confirm_proposal(office.approver, proposal)
    assert office.account.limit.epsilon == 1
    with pytest.raises(ConflictError, match="replaced"):
        confirm_proposal(office.approver, proposal)


def test_lowering_or_another_proposal_closes_one_that_waits(office):
    first = change_limit(office.custodian, "children", limit(5)).proposal
    second = change_limit(office.custodian, "children", limit(6)).proposal
    assert [each.id for each in list_proposals(office.second, waiting=True)] == [second.id]
    change_limit(office.second, "children", limit(2))
    assert list_proposals(office.second, waiting=True) == []
    states = {each.id: each.state for each in list_proposals(office.approver)}
    assert states == {first.id: "replaced", second.id: "replaced"}


def test_whoever_proposed_it_must_still_be_one_who_may(office):
    proposal = change_limit(office.second, "children", limit(5)).proposal.id
    change_person(office.admin, office.second.actor.id, ChangedPerson(active=False))
    with pytest.raises(ConflictError, match="may no longer"):
        confirm_proposal(office.approver, proposal)
    assert reject_proposal(office.approver, proposal).state == "rejected"


def test_a_proposal_is_taken_back(office):
    proposal = change_rules(office.custodian, "children", rules(3, 3)).proposal.id
    assert reject_proposal(office.custodian, proposal).state == "rejected"
    with pytest.raises(ConflictError, match="rejected"):
        confirm_proposal(office.approver, proposal)
    for decide in (confirm_proposal, reject_proposal):
        with pytest.raises(NotFoundError):
            decide(office.approver, 99)
    auditor = work_as(office.service, office.tokens[Role.AUDITOR])
    told = [f"{event.what}: {event.about}" for event in list_events(auditor)][:2]
    assert told == [
        "change rejected: proposal 1, children: approval from (1, 1e-06) to (3, 1e-06), "
        "share from (2, 1e-06) to (3, 1e-06)",
        "change proposed: proposal 1, children: approval from (1, 1e-06) to (3, 1e-06), "
        "share from (2, 1e-06) to (3, 1e-06)",
    ]


def test_two_who_decide_at_the_same_moment(office):
    from concurrent.futures import ThreadPoolExecutor

    proposal = change_limit(office.custodian, "children", limit(5)).proposal.id

    def decide(number):
        work = (office.second, office.approver)[number % 2]
        try:
            return (confirm_proposal, reject_proposal)[number % 2](work, proposal).state
        except ConflictError:
            return None

    with ThreadPoolExecutor(4) as pool:
        done = [state for state in pool.map(decide, range(4)) if state]
    assert len(done) == 1
    assert office.account.limit.epsilon == (5 if done == ["confirmed"] else 3)
