r"""Strata: whether an interval that holds most outputs loses a group of rows with like inputs.

An interval may leave out a tenth of all outputs. If these are a tenth of everybody, little is lost;
if they are all of one group, the children of a table of people, say, that group is predicted wrong,
and surely. So before a narrower interval is taken, it is asked by strata how many outputs lie
outside (`cloakgp.privacy.questions.outside`). Strata are k-means cells of the public inputs; one
output moves one of the counts by 1, however many there are.

A stratum is lost where more than a fifth of it lies outside, and more than noise alone makes of
nobody in any stratum in nineteen tables of twenty. Where one is lost the interval is widened by its
own width on either side, and asked about again; if one is still lost, it is widened once more. If
it would then not be half as wide as the declared bounds, these stay.

What a question costs is a public rule: noise on a count is to be a fiftieth of the rows, or less
where that is cheap; or what a small share of the budget buys, if that tells anything. Where it does
not, nobody asks, and the release says that it does not know.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cloakgp.fitting.interval import (
    LEAST_ROUND_SHARE,
    SEEDS_APART,
    WIDEST,
    SearchPlan,
    plan_search,
)
from cloakgp.fitting.strategies import Budget, split_budget
from cloakgp.fitting.table import Count, Strata
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.privacy.questions.outside import OutsideQuestion
from cloakgp.utils.arrays import Array

# The noise sd of a count, over the rows, that is paid for; that is paid for if it is cheap; and the
# most that tells anything.
FINE, FINEST, COARSEST = 0.02, 0.004, 0.035
# How many such questions there are at most.
CHECKS = 2
# How many strata: so many sds of noise are the rows of one, within these numbers.
ROWS_IN_SDS, FEWEST, MOST = 8, 4, 12
# What of a stratum may lie outside, and how often noise alone may say that more does.
TOLERABLE, FALSE_ALARMS = 0.2, 0.05
# How far an interval is widened on either side, in its widths.
FURTHER = 1.0


class AskOutside(Protocol):
    """Asks by strata who lies outside: `Table.count`."""

    def __call__(
        self,
        question: OutsideQuestion,
        *,
        budget: Budget,
        output: int,
        insecure_seed: int | None,
        strata: Strata,
    ) -> Answers:
        """Return noisy answers."""


def plan_checked_search(
    bounds: OutputBounds, *, budget: Budget, rows: int, largest_group: int = 1, outputs: int = 1
) -> SearchPlan:
    """Return a search with a check of outputs outside by strata, if that is precise enough.

    Depends on public numbers alone. Of several outputs each is asked about, where all of these
    questions together cost no more than those about one output may.

    Parameters
    ----------
    bounds, budget, rows, largest_group, outputs
        As for `plan_search`.

    Examples
    --------
    >>> pure, bounds = Budget(1.0, 0.0, noise="laplace"), OutputBounds(0.0, 1e4)
    >>> for rows in (250, 500, 1000, 50_000):
    ...     plan = plan_checked_search(bounds, budget=pure, rows=rows)
    ...     print(len(plan.checks), plan.strata, round(plan.check_share, 3))
    0 0 0.0
    2 4 0.1
    2 6 0.071
    2 12 0.007
    >>> plan = plan_checked_search(bounds, budget=pure, rows=1000, outputs=2)
    >>> len(plan.checks), plan.strata, round(plan.check_share, 3)
    (4, 4, 0.05)
    """
    search = plan_search(
        bounds, budget=budget, rows=rows, largest_group=largest_group, outputs=outputs
    )
    if not search.rounds:
        return search
    law = budget.law
    unit = largest_group * budget.unit_sd() / rows
    fine, finest = ((unit / wanted) ** law.power for wanted in (FINE, FINEST))
    most, cheap = law.shares.check / outputs, law.shares.cheap_round / outputs
    share = max(min(fine, most), min(finest, cheap), LEAST_ROUND_SHARE)
    precision = unit / share ** (1 / law.power)
    if precision > COARSEST:
        return search
    try:
        part, _ = split_budget(budget, shares=[share, 1.0 - share])
    except ValueError:
        return search
    return replace(
        search,
        checks=(part,) * (CHECKS * outputs),
        check_share=share,
        strata=min(max(round(1 / (ROWS_IN_SDS * precision)), FEWEST), MOST),
    )


def keep_strata(
    ask: AskOutside,
    *,
    found: OutputBounds,
    declared: OutputBounds,
    plan: SearchPlan,
    strata: Callable[[], Strata],
    output: int = 0,
    insecure_seed: int | None = None,
) -> tuple[OutputBounds, tuple[Count, ...]]:
    """Return an interval that loses no stratum by noisy counts, and these counts.

    Parameters
    ----------
    ask : callable
        Called once for each question that is asked.
    found, declared : OutputBounds
    plan : SearchPlan
    strata : callable
        Returns the strata; called if anything is asked.
    output : int
        Of several, the one that the interval is of.
    insecure_seed : int, optional
        Makes the noise reproducible and the answers **not private**.
    """
    asked: list[Count] = []
    if found == declared or not plan.checks:
        return found, ()
    parts = strata()
    for number, budget in enumerate(plan.checks[:CHECKS], start=CHECKS * output):
        question = OutsideQuestion(
            lo=found.lo if found.lo > declared.lo else None,
            hi=found.hi if found.hi < declared.hi else None,
        )
        seed = None if insecure_seed is None else insecure_seed + SEEDS_APART // 2 + number
        answers = ask(question, budget=budget, output=output, insecure_seed=seed, strata=parts)
        asked.append(Count(output=output, question=question, answers=answers, strata=parts))
        outside = question.how_many(answers.values, parts.sizes)
        if not lost(outside, sizes=parts.sizes, noise_sd=answers.noise_sd).any():
            return found, tuple(asked)
        found = _widened(found, within=declared)
        if found == declared:
            break
    return found, tuple(asked)


def lost(outside: Array, *, sizes: Array, noise_sd: float) -> NDArray[np.bool_]:
    """Return the strata that an interval loses by noisy counts, shape (S,).

    Parameters
    ----------
    outside, sizes : arrays of shape (S,)
        How many outputs of each lie outside, with noise; and how many there are.
    noise_sd : float

    Examples
    --------
    >>> lost(np.array([70.0, 70.0, 12.0]), sizes=np.array([80.0, 500.0, 12.0]), noise_sd=20.0)
    array([ True, False, False])
    """
    # What Laplace noise exceeds in one of so many draws; normal noise does so less often.
    beyond = noise_sd * math.log(len(sizes) / (2 * FALSE_ALARMS)) / math.sqrt(2.0)
    return np.asarray(outside > np.maximum(TOLERABLE * sizes, beyond))


def _widened(found: OutputBounds, *, within: OutputBounds) -> OutputBounds:
    """Return an interval widened on either side; the bounds if it is then hardly narrower."""
    lo = max(found.lo - FURTHER * found.width, within.lo)
    hi = min(found.hi + FURTHER * found.width, within.hi)
    return within if hi - lo > WIDEST * within.width else OutputBounds(lo, hi)
