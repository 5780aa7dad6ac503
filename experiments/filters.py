"""Privacy filters beside plain sums: how much they accept, and what stopping by answers reaches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from rich.table import Table

from cloakgp.privacy.filters import UNITS, Amount, costs_of_release
from experiments.adversaries import Rule, adding_up, filtering, stopping_delta
from experiments.framework import Experiment, Progress, table_titled

LIMITS = ((2.0, 1e-5), (1.0, 1e-6))
STOPPED_LIMIT = (1.0, 1e-5)
GAUSSIAN_EPSILON, GAUSSIAN_DELTA, LAPLACE_EPSILON = 0.3, 1e-6, 0.2
GAUSSIAN = costs_of_release(GAUSSIAN_EPSILON, GAUSSIAN_DELTA, noise="gaussian")[0]
LAPLACE = costs_of_release(LAPLACE_EPSILON, 0.0)[0]
# More releases than fit any of the limits.
MOST = 60
BITS = (1, 2, 5, 15, 40, 120)
# What is bought at the end, which needs no δ.
ENDS = MappingProxyType({"Laplace noise": "laplace", "any mechanism without δ": "coin"})


@dataclass(frozen=True)
class Concentrated(Amount):
    """An amount that knows how much zero-concentrated DP its parts without δ are: Σ ε²/2."""

    zcdp: float = 0.0


def concentrating(total: Amount, limit: tuple[float, float]) -> bool:
    """Stop where zero-concentrated DP, which OpenDP's filter adds up, crosses the limit.

    Its δ is by Canonne, Kamath and Steinke (2020), proposition 12, over a grid of orders.
    """
    rho = float(Fraction(total.gaussian, 2 * UNITS))
    rho += total.zcdp if isinstance(total, Concentrated) else 0.0
    orders = 1 + np.exp(np.linspace(-3, 7, 2000))
    log_delta = (orders - 1) * (orders * rho - limit[0]) + np.log1p(-1 / orders) * orders
    return float(np.min(log_delta - np.log(orders - 1))) <= math.log(limit[1])


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "plain sum, which keeps no limit": adding_up,
        "the filter": filtering,
        "zero-concentrated differential privacy (OpenDP's filter)": concentrating,
    }
)


def accepted_releases(rule: Rule, limit: tuple[float, float]) -> tuple[int, int, int]:
    """Return how many releases a rule accepts: Gaussian, Laplace, and both in turn.

    Examples
    --------
    >>> accepted_releases(adding_up, (1.0, 1e-6))
    (9, 5, 5)
    """

    def total(gaussian: int, laplace: int) -> Amount:
        summed = GAUSSIAN.times(gaussian) + LAPLACE.times(laplace)
        return Concentrated(*astuple(summed), zcdp=LAPLACE_EPSILON**2 / 2 * laplace)

    def most(totals: Iterable[Amount]) -> int:
        return max(count for count, one in enumerate(totals) if rule(one, limit))

    counts = range(MOST)
    return (
        most(total(count, 0) for count in counts),
        most(total(0, count) for count in counts),
        most(total(count - count // 2, count // 2) for count in counts),
    )


@dataclass(frozen=True, eq=False)
class Found:
    """Accepted releases by rule and limit; δ over the limit's, by rule and end, and bits."""

    accepted: Mapping[str, Sequence[tuple[int, int, int]]]
    reached: Mapping[tuple[str, str], Sequence[float]]


@dataclass(frozen=True)
class Filters(Experiment[Found]):
    """Compare the filter of accounts with plain sums: releases accepted, and δ reached."""

    name: ClassVar[str] = "filters"
    small: ClassVar[Mapping[str, Any]] = {"bits": (1, 2)}

    bits: Sequence[int] = BITS

    def compute(self, progress: Progress) -> Found:
        """Count releases, and let an adversary stop by answers."""
        rules = {"plain sum": adding_up, "the filter": filtering}
        with progress("stopping", steps=len(rules) * len(ENDS)) as tick:
            reached = {}
            for name, rule in rules.items():
                for end, pure in ENDS.items():
                    reached[name, end] = [
                        stopping_delta(rule, STOPPED_LIMIT, levels=count, pure=pure)
                        / STOPPED_LIMIT[1]
                        for count in self.bits
                    ]
                    tick()
        accepted = {
            name: [accepted_releases(rule, limit) for limit in LIMITS]
            for name, rule in RULES.items()
        }
        return Found(accepted, reached)

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out both."""
        laid = table_titled(
            f"Releases accepted: of ({GAUSSIAN_EPSILON:g}, {GAUSSIAN_DELTA:g}) with Gaussian "
            f"noise, of {LAPLACE_EPSILON:g} with Laplace noise, and of both in turn",
            "rule",
            right=[f"limit ({epsilon:g}, {delta:g})" for epsilon, delta in LIMITS],
        )
        for name, counts in found.accepted.items():
            laid.add_row(name, *(", ".join(map(str, one)) for one in counts))
        yield laid
        epsilon, delta = STOPPED_LIMIT
        laid = table_titled(
            f"δ over the limit's, ({epsilon:g}, {delta:g}), by Gaussian bits before the end",
            "rule",
            "at the end",
            right=map(str, self.bits),
        )
        for (name, end), values in found.reached.items():
            laid.add_row(name, end, *(f"{value:.2f}" for value in values))
        yield laid
