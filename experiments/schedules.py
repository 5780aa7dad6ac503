"""What stages, a search for an interval and the questions beside them cost, by public rules.

Nothing here is drawn: who is asked what depends on numbers of rows and budgets alone, so tables of
it are exact.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

from rich.table import Table

from cloakgp.fitting.bands import default_stages, schedule_stages
from cloakgp.fitting.calibration import calibration_share
from cloakgp.fitting.interval import plan_search
from cloakgp.fitting.scatter import choose_count
from cloakgp.fitting.strata import plan_checked_search
from cloakgp.fitting.strategies import Budget
from cloakgp.privacy import OutputBounds
from experiments.framework import Experiment, Progress, table_titled

# As wide as one likes: rules do not depend on it.
BOUNDS = OutputBounds(0.0, 1e4)
ROWS = (90, 113, 250, 500, 1_000, 5_000)
EPSILONS, DELTAS = (0.3, 1.0, 3.0), (0.0, 1e-2, 1e-5)
# Numbers of rows are looked for up to this.
MOST_ROWS = 1_000_000
Found = dict[tuple[float, float], list[int | None]]


def budget_of(epsilon: float, delta: float) -> Budget:
    """Return a budget with the noise that needs its δ, or Laplace noise without one."""
    return Budget(epsilon, delta, noise="gaussian" if delta else "laplace")


def _spread_strata(budget: Budget, rows: int) -> int:
    """Return in how many strata it is asked how noisy outputs are; 0 if it is not asked."""
    stages = default_stages(budget.law)
    steps = schedule_stages(stages, budget=budget, rows=rows, ask_spread=True)
    asked = [step for step in steps if step.stage is None]
    return choose_count(asked[0].budget, rows=rows) if asked else 0


# Whether something is asked with a budget of so many rows; it then is with more, too.
QUESTIONS: Mapping[str, Callable[[Budget, int], bool]] = MappingProxyType(
    {
        "an interval": lambda budget, rows: bool(
            plan_search(BOUNDS, budget=budget, rows=rows).rounds
        ),
        "who lies outside, by strata": lambda budget, rows: bool(
            plan_checked_search(BOUNDS, budget=budget, rows=rows).checks
        ),
        "spread": lambda budget, rows: _spread_strata(budget, rows) > 0,
        "spread, by strata": lambda budget, rows: _spread_strata(budget, rows) > 1,
        "calibration": lambda budget, rows: calibration_share(budget, rows=rows) > 0,
    }
)


def fewest_rows(asked: Callable[[int], bool], *, most: int = MOST_ROWS) -> int | None:
    """Return the fewest rows at which something is asked, None if it takes more than the most.

    Examples
    --------
    >>> fewest_rows(lambda rows: rows >= 84), fewest_rows(lambda rows: False)
    (84, None)
    """
    if not asked(most):
        return None
    return bisect_left(range(most), True, lo=1, key=asked)


@dataclass(frozen=True)
class Schedules(Experiment[Found]):
    """Which questions are asked from how many rows on, and what a round of a search costs."""

    name: ClassVar[str] = "schedules"
    small: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    def compute(self, progress: Progress) -> Found:
        """Return the fewest rows for each question, by ε and δ."""
        budgets = [(epsilon, delta) for epsilon in EPSILONS for delta in DELTAS]
        found: Found = {}
        with progress("schedules", steps=len(budgets)) as tick:
            for pair in budgets:
                budget = budget_of(*pair)
                found[pair] = [fewest_rows(partial(asked, budget)) for asked in QUESTIONS.values()]
                tick()
        return found

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out both."""
        title = "The fewest rows, without groups, from which something is asked by default"
        table = table_titled(title, "ε", "δ", right=QUESTIONS)
        for (epsilon, delta), rows in found.items():
            cells = ("never" if one is None else f"{one:,}" for one in rows)
            table.add_row(f"{epsilon:g}", f"{delta:g}", *cells)
        yield table
        heads = ("of ε without δ", *(f"of μ² at δ = {delta:g}" for delta in DELTAS[1:]))
        table = table_titled("One round of a search at ε = 1", "rows", right=heads)
        for rows in ROWS:
            plans = (
                plan_search(BOUNDS, budget=budget_of(1.0, delta), rows=rows) for delta in DELTAS
            )
            cells = (f"{plan.share:.1%}" if plan.rounds else "none" for plan in plans)
            table.add_row(f"{rows:,}", *cells)
        yield table
