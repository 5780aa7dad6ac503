"""Whatever is done to a ledger in whatever order: nothing overspent, nothing lost, chain sound."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from spenders import gaussian, spender

from cloakgp.ledger import Ledger, LedgerError, LimitError
from cloakgp.privacy.filters import Amount, filter_of
from cloakgp.privacy.spending import Cost

DELTA = 1e-6
costs = st.one_of(
    st.floats(0.01, 0.2).map(gaussian),
    st.floats(0.01, 0.3).map(lambda epsilon: Cost(mechanism="laplace", epsilon=epsilon)),
)


def of_one(drawn):
    """The most that is drawn of anybody, who is in one cohort."""
    return reduce(Amount.largest, drawn.values(), Amount())


class Spending(RuleBasedStateMachine):
    """A model beside a ledger on disk: sums of what is held and drawn, by charge and cohort."""

    opened = Bundle("opened")

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.patch = pytest.MonkeyPatch()
        self.patch.setenv("CLOAKGP_LEDGER_HOME", str(self.folder))
        self.ledger = Ledger.create(self.folder / "people.db")
        self.account = self.ledger.open_account("people", epsilon=1.0, delta=DELTA)
        self.limit = (1.0, DELTA)
        # Of every charge that counts: what is held, and what was drawn.
        self.held, self.drawn, self.finished = {}, {}, Amount()

    def teardown(self):
        self.ledger.close()
        self.patch.undo()
        shutil.rmtree(self.folder)

    @property
    def expected(self):
        parts = (self.held[charge].largest(of_one(self.drawn[charge])) for charge in self.held)
        return sum(parts, start=self.finished)

    @rule(target=opened, epsilon=st.one_of(st.none(), st.floats(0.01, 0.6)))
    def begin(self, epsilon):
        charge = self.account.open_charge(spender())
        held = Amount()
        if epsilon is not None:
            held = Amount.to_hold([(epsilon, DELTA)])
            # As the entry says it.
            held = Amount.from_numbers(held.numbers)
            try:
                charge.hold([(epsilon, DELTA)])
            except LimitError:
                assert not filter_of(self.limit).accepts(self.expected + held)
                held = Amount()
        self.held[charge], self.drawn[charge] = held, {}
        return charge

    @rule(charge=opened, cost=costs, cohort=st.integers(0, 2))
    def draw(self, charge, cost, cohort):
        before = self.drawn[charge]
        more = Amount.from_numbers(Amount.of(cost).numbers)
        self.drawn[charge] = {**before, cohort: before.get(cohort, Amount()) + more}
        try:
            charge.reserve(replace(cost, cohort=cohort))
        except LimitError:
            assert not filter_of(self.limit).accepts(self.expected)
            self.drawn[charge] = before

    @rule(charge=consumes(opened), failed=st.booleans())
    def end(self, charge, failed):
        charge.close(failed=failed)
        del self.held[charge]
        self.finished += of_one(self.drawn.pop(charge))

    @rule(charge=consumes(opened))
    def die(self, charge):
        """Nobody closes it: it counts for ever."""
        self.finished += self.held.pop(charge).largest(of_one(self.drawn.pop(charge)))

    @rule(charge=consumes(opened), although_drawn=st.booleans())
    def void(self, charge, although_drawn):
        if charge.number is None:
            del self.held[charge], self.drawn[charge]
            return
        drawn = of_one(self.drawn[charge]) != Amount()
        if drawn and not although_drawn:
            with pytest.raises(LedgerError):
                self.ledger.void(charge.number, reason="it died")
            self.die(charge)
            return
        self.ledger.void(charge.number, reason="it died", although_drawn=although_drawn)
        del self.held[charge], self.drawn[charge]
        with pytest.raises(LedgerError):
            charge.reserve(gaussian(0.01))

    @rule(epsilon=st.floats(0.2, 2.0))
    def change_limit(self, epsilon):
        self.ledger.change_limit("people", epsilon=epsilon, delta=DELTA, reason="a test")
        self.limit = (epsilon, DELTA)

    @rule()
    def open_anew(self):
        """As another process does."""
        other = Ledger(self.folder / "people.db")
        assert other.account("people").standing == self.account.standing
        other.close()

    @invariant()
    def counts_exactly_what_the_model_does(self):
        assert self.account.standing.spent == self.expected

    @invariant()
    def is_sound(self):
        assert self.ledger.verify().findings == ()


Spending.TestCase.settings = settings(max_examples=8, stateful_step_count=12)
TestSpending = Spending.TestCase
