"""Sent work: which account a ticket leads to, in the process that it was sent to."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from counting_keeper import Counting

from cloakgp.privacy import sent, spending
from cloakgp.privacy.sent import counted_as_sent, ticket_in_force
from cloakgp.privacy.spending import SpendingError, counted_by, keeper_in_force, this_process


@dataclass
class Sendable(Counting):
    name: str = "people"
    keepers: dict = field(default_factory=dict)

    def directions(self):
        return {"account": self.name}


class Broken(Counting):
    def directions(self):
        raise SpendingError("no ledger answers")


@dataclass
class Entry:
    """What an installed package answers with: the keepers of the names that are sent."""

    keepers: dict
    asked: list = field(default_factory=list)

    def load(self):
        return self.find

    def find(self, directions, *, process):
        self.asked.append((directions, process))
        return self.keepers[directions["account"]]


@pytest.fixture
def people():
    return Sendable()


@pytest.fixture
def found(people, monkeypatch):
    entry = Entry({"people": people})
    monkeypatch.setattr(spending, "entry_points", lambda **_: [entry])
    return entry


@pytest.fixture
def arrive(monkeypatch):
    """Go on as another process."""
    return lambda: monkeypatch.setattr(spending, "_STARTED", 0)


def written(keeper):
    with counted_by(keeper):
        return ticket_in_force()


def test_what_is_sent_counts_for_the_account_that_was_open(people, found, arrive):
    here = this_process()
    ticket = written(people)
    arrive()
    with counted_as_sent(ticket):
        assert keeper_in_force() is people
        # And what is sent on from there: it is the same account's.
        assert ticket_in_force() is ticket
    assert found.asked == [({"account": "people"}, here)]
    assert keeper_in_force() is None
    assert ticket_in_force(ticket) is ticket


@pytest.mark.usefixtures("found")
def test_where_it_was_written_a_ticket_is_nothing(people):
    ticket = written(people)
    with counted_as_sent(ticket):
        assert keeper_in_force() is None


@pytest.mark.usefixtures("found")
def test_a_block_of_the_receiving_process_counts(people, arrive):
    ticket, other = written(people), Sendable(name="others")
    arrive()
    with counted_by(other), counted_as_sent(ticket):
        assert keeper_in_force() is other
        assert ticket_in_force(ticket).directions == {"account": "others"}


@pytest.mark.usefixtures("found")
def test_a_block_that_a_fork_inherits_counts_for_no_ticket(people, arrive):
    """The parent's block of then is not what is sent from another one now."""
    ticket = written(people)
    with counted_by(Sendable(name="before")):
        arrive()
        assert ticket_in_force().directions == {"account": "before"}
        with counted_as_sent(ticket):
            assert keeper_in_force() is people
        assert keeper_in_force().name == "before"


@contextmanager
def meanwhile(block):
    """Have another thread within a block, which it leaves at the end or when told to."""
    inside, leave = threading.Event(), threading.Event()

    def stay():
        with block:
            inside.set()
            assert leave.wait(20)

    thread = threading.Thread(target=stay)

    def end():
        leave.set()
        thread.join()

    thread.start()
    assert inside.wait(20)
    try:
        yield end
    finally:
        end()


def test_a_ticket_counts_while_another_thread_is_within_its_own(people, found, arrive):
    """Workers may fit in several threads at once, each what another account has sent."""
    others = found.keepers["others"] = Sendable(name="others")
    tickets = written(people), written(others)
    arrive()
    with meanwhile(counted_as_sent(tickets[0])):
        # What was sent without an account is nobody's, whatever runs beside it.
        assert keeper_in_force() is None
        assert ticket_in_force() is None
        with counted_as_sent(None):
            assert keeper_in_force() is None
        assert ticket_in_force(tickets[1]) is tickets[1]
        with counted_as_sent(tickets[1]):
            assert keeper_in_force() is others
            assert ticket_in_force() is tickets[1]
        with meanwhile(counted_as_sent(tickets[1])):
            assert ticket_in_force() is None


@pytest.mark.usefixtures("found")
def test_a_ticket_counts_to_the_end_whenever_those_of_other_threads_end(people, arrive):
    ticket = written(people)
    arrive()
    with meanwhile(counted_as_sent(ticket)) as end, counted_as_sent(ticket):
        end()
        assert keeper_in_force() is people


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("sent_here", [True, False])
def test_a_thread_of_a_block_is_counted_to_its_end_also_after_the_block(people, sent_here, arrive):
    ticket, others = written(people) if sent_here else None, Sendable(name="others")
    arrive()
    with meanwhile(counted_by(others)) as end, counted_as_sent(ticket):
        end()
        assert keeper_in_force() is others
    assert keeper_in_force() is None


@pytest.mark.usefixtures("found")
def test_of_several_blocks_of_other_threads_none_counts_what_was_sent(people, arrive):
    ticket = written(people)
    arrive()
    with (
        meanwhile(counted_by(Sendable())),
        meanwhile(counted_by(Sendable())),
        pytest.raises(SpendingError, match="several accounts are open"),
        counted_as_sent(ticket),
    ):
        pytest.fail("it counts")


def in_thread(call):
    results = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    return results[0]


def test_threads_of_pools_send_for_the_only_account_that_is_open(people):
    with counted_by(people):
        assert in_thread(ticket_in_force).directions == {"account": "people"}
        with counted_by(Sendable()):
            # Another object, and the same account.
            assert in_thread(ticket_in_force).directions == {"account": "people"}
        with counted_by(Sendable(name="others")):
            unsure = in_thread(ticket_in_force)
            assert ticket_in_force().directions == {"account": "others"}
    assert unsure.directions == {}
    assert "several accounts were open" in unsure.refusal


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize(
    ("keeper", "why"),
    [(Counting(), "counts in that one alone"), (Broken(), "no ledger answers")],
)
def test_what_cannot_be_named_elsewhere_is_refused_there(keeper, why, arrive):
    ticket = written(keeper)
    arrive()
    with pytest.raises(SpendingError, match=why), counted_as_sent(ticket):
        pytest.fail("it counts")


@pytest.mark.usefixtures("found")
def test_after_two_days_it_is_refused_and_so_is_what_is_sent_on(people, arrive, monkeypatch):
    ticket = written(people)
    arrive()
    monkeypatch.setattr(sent.time, "time", lambda: ticket.moment + sent.VALID + 1)
    assert ticket_in_force(ticket) is ticket
    with pytest.raises(SpendingError, match="more than a day ago"), counted_as_sent(ticket):
        pytest.fail("it counts")
    monkeypatch.setattr(sent.time, "time", lambda: ticket.moment + sent.VALID - 1)
    with counted_as_sent(ticket):
        assert keeper_in_force() is people


def test_tickets_of_a_day_of_a_block_are_the_same_and_those_of_long_blocks_are_not_late(
    people, monkeypatch
):
    with counted_by(people):
        first = ticket_in_force()
        for days, same in [(0.9, True), (-0.1, True), (1.1, False), (30.9, False)]:
            now = first.moment + days * sent.DAY
            monkeypatch.setattr(sent.time, "time", lambda now=now: now)
            ticket = ticket_in_force()
            assert (ticket == first) is same
            # As it is sent, and for a day from then on.
            assert not ticket.is_late
            monkeypatch.setattr(sent.time, "time", lambda now=now: now + sent.DAY)
            assert not ticket.is_late
            monkeypatch.setattr(sent.time, "time", lambda now=now: now + sent.VALID)
            assert ticket.is_late is (days > 0)


def test_nobody_who_could_count_is_told(people, arrive, monkeypatch):
    ticket = written(people)
    arrive()
    monkeypatch.setattr(spending, "entry_points", lambda **_: [])
    with (
        pytest.raises(SpendingError, match=r"no installed package keeps one.*cloakgp\[ledger\]$"),
        counted_as_sent(ticket),
    ):
        pytest.fail("it counts")
