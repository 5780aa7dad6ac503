"""Private interval of a table that is read in passes: counts are asked in a pass for each round.

The rule, the search and what it may spend are those of `cloakgp.fitting.interval`. Where all rows
of a group are protected together, a row counts for one over the rows of its group, so that what a
group moves counts by is what one row would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cloakgp.data.grouped import GroupedRows
from cloakgp.design import Certificate
from cloakgp.design.streaming.rules import EqualRule
from cloakgp.fitting.interval import (
    Counted,
    SearchPlan,
    decided_by_answers,
    plan_search,
    search,
)
from cloakgp.fitting.strategies import Budget
from cloakgp.fitting.streaming_measuring import Rows
from cloakgp.models import SparsePrior
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.privacy.interval import CountQuestion, measure_count_rows
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.rounding import gamma
from cloakgp.privacy.streaming import StrategyBound
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import Measurement, StreamedStrategy
from cloakgp.release.posterior.clipped_sums import says_nothing
from cloakgp.utils.arrays import Array


@dataclass(frozen=True)
class EqualShares:
    """For how much rows count: for one each, or with groups for a share of their group's one.

    Attributes
    ----------
    grouped : bool
        Whether inputs end with the sizes of groups.

    Examples
    --------
    >>> EqualShares(grouped=True)(np.array([[7.0, 1.0], [8.0, 2.0]]))
    array([[1. , 0.5]])
    """

    grouped: bool = False

    def __call__(self, X: Array) -> Array:
        """Return the columns of rows, shape (1, n)."""
        ones = np.ones((1, len(X)))
        return ones / X[:, -1] if self.grouped else ones


def total_shares(rows: Rows | GroupedRows, *, count: int) -> int:
    """Return what the shares of all rows add up to: rows, or the numbers that groups have.

    Parameters
    ----------
    rows : Rows or GroupedRows
    count : int
        N.
    """
    return int(np.count_nonzero(rows.counts)) if isinstance(rows, GroupedRows) else count


def plan_row_search(
    rows: Rows | GroupedRows, *, bounds: OutputBounds, budget: Budget, count: int
) -> SearchPlan:
    """Return whether to look for an interval, and at what price. Depends on public numbers alone.

    Parameters
    ----------
    rows : Rows or GroupedRows
    bounds : OutputBounds
        Declared.
    budget : Budget
        The whole.
    count : int
        N.
    """
    shares = total_shares(rows, count=count)
    return plan_search(bounds, budget=decided_by_answers(budget), rows=shares)


@forget_on_failure
def search_rows(
    rows: Rows | GroupedRows,
    *,
    bounds: OutputBounds,
    plan: SearchPlan,
    count: int,
    insecure_seed: int | None = None,
) -> tuple[OutputBounds, tuple[Counted, ...]]:
    """Look for the interval that holds most outputs; return it, and what was counted.

    Outputs go to `cloakgp.privacy.interval` and nowhere else.

    Parameters
    ----------
    rows : Rows or GroupedRows
    bounds : OutputBounds
        Declared.
    plan : SearchPlan
    count : int
        N.
    insecure_seed : int, optional
        Makes the noise reproducible and the counts **not private**.
    """
    grouped = isinstance(rows, GroupedRows)

    def ask(question: CountQuestion, budget: Budget, seed: int | None) -> Answers:
        return measure_count_rows(
            rows,
            EqualShares(grouped=grouped),
            bound=_bound_of(rows, count=count, budget=budget),
            question=question,
            epsilon=budget.epsilon,
            delta=budget.delta,
            insecure_seed=seed,
        )

    shares = total_shares(rows, count=count)
    return search(ask, bounds=bounds, rows=shares, plan=plan, insecure_seed=insecure_seed)


def _bound_of(rows: Rows | GroupedRows, *, count: int, budget: Budget) -> StrategyBound:
    # Every chunk has at most all rows, and there are at most as many chunks as rows.
    bound = StrategyBound(
        answers=1, longest=1.0, chunk_rows=count, count=count, noise=NOISES[budget.noise]
    )
    if not isinstance(rows, GroupedRows):
        return bound
    most = int(rows.counts.max())
    return replace(bound, longest=_longest(most), group_rows=most, chunks=count)


def _longest(most_rows: int) -> float:
    """Return at least what the rounded shares of a group's rows add up to, in any order."""
    return 1.0 + 8 * gamma(2 * most_rows + 2)


def counts_of(
    counted: Sequence[Counted], *, first: StreamedStrategy, prior: SparsePrior
) -> tuple[Measurement, ...]:
    """Return counts as measurements of a release; they tell nothing of where single outputs are.

    Parameters
    ----------
    counted : sequence of (CountQuestion, Answers)
    first : StreamedStrategy
        The first about the same rows.
    prior : SparsePrior
        That the release declares.
    """
    grouping = first.grouping
    strategy = replace(
        first,
        prior=prior,
        rule=EqualRule(matrix=np.zeros((1, len(prior.inducing)))),
        sums=(says_nothing(prior, 1),),
        row_totals=np.array([float(first.n_rows if grouping is None else grouping.groups)]),
        longest=1.0 if grouping is None else _longest(grouping.most_rows),
        reconstruction=None,
        certificate=Certificate(criterion="given", gap=np.inf),
    )
    return tuple(
        Measurement(strategy=strategy, answers=answers, encoding=question)
        for question, answers in counted
    )
