"""A keeper that writes down what it is told, and refuses from some draw on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from cloakgp.privacy.spending import SpendingError


@dataclass
class Counting:
    """Of every charge: who spends, what is held, what each draw costs, and how it ended."""

    refuse_after: float = math.inf
    charges: list = field(default_factory=list)

    def open_charge(self, spender):
        charge = CountedCharge(self, spender)
        self.charges.append(charge)
        return charge

    @property
    def costs(self):
        return [cost for charge in self.charges for cost in charge.costs]

    @property
    def mu(self):
        return math.hypot(*(cost.mu for cost in self.costs))

    @property
    def pure(self):
        return math.fsum(cost.epsilon for cost in self.costs)


class CountedCharge:
    def __init__(self, keeper, spender):
        self.keeper, self.spender = keeper, spender
        self.held, self.costs, self.digests, self.ended = [], [], [], None

    def hold(self, budgets):
        self.held.append(tuple(budgets))

    def reserve(self, cost):
        if len(self.keeper.costs) >= self.keeper.refuse_after:
            raise SpendingError("no more")
        self.costs.append(cost)

    def drawn(self, digest):
        self.digests.append(digest)

    def close(self, *, failed):
        assert self.ended is None
        self.ended = "failed" if failed else "committed"
