"""Private intervals of several outputs: each is searched by itself, within one budget.

The rule, the search and what it may spend are those of `cloakgp.fitting.interval`. A person is in
the counts of every output, so that what counts of all outputs cost adds up: a round of all of them
may cost what a round of one output may. Outputs are searched in turn. Of the rounds that are left
each has an equal part, and what it does not need is for the outputs after it, and then for the
stages. How many rounds there are is a function of published counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.fitting.interval import (
    MOST_ROUNDS,
    Counted,
    SearchPlan,
    search,
)
from cloakgp.fitting.measuring import about_everybody, measured
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.models.kernels.coregion import as_entries
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.privacy.groups import Groups
from cloakgp.privacy.interval import CountQuestion
from cloakgp.privacy.several_outputs import OutputColumns
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import DenseStrategy, Measurement
from cloakgp.utils.arrays import Array


@forget_on_failure
def search_columns(
    X: Array,
    y: ArrayLike,
    *,
    query: Query,
    columns: OutputColumns,
    plan: SearchPlan,
    groups: Groups | None,
    insecure_seed: int | None = None,
) -> tuple[OutputColumns, tuple[Measurement, ...]]:
    """Look for the interval that holds most of each output; return these, and what was counted.

    y goes to `cloakgp.privacy` and nowhere else.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    y : array-like of shape (N, T)
        Private outputs.
    query : Query
        Of entries.
    columns : OutputColumns
        Declared.
    plan : SearchPlan
        With the rounds of all outputs.
    groups : array of shape (N T,) or None
        Whose each entry is.
    insecure_seed : int, optional
        Makes the noise reproducible and the counts **not private**.

    Returns
    -------
    OutputColumns
        Where an output stays with its declared bounds, these.
    tuple of Measurement
        About entries, with ends of intervals in widths from the middles of what was found.
    """
    count = len(columns.bounds)
    entries = columns.entries(y, rows=len(X))
    points = as_entries(X, count=count)
    which = np.tile(np.arange(count), len(X))
    left, made = plan.rounds, 0
    found: list[OutputBounds] = []
    asked: list[tuple[DenseStrategy, Sequence[Counted]]] = []
    for output, limits in enumerate(columns.bounds):
        strategy = about_everybody(
            points,
            X_query=query.X,
            query_weights=query.weights,
            table=0,
            groups=groups,
            counted=which == output,
        )

        def ask(
            question: CountQuestion,
            budget: Budget,
            seed: int | None,
            strategy: DenseStrategy = strategy,
        ) -> Answers:
            one = measured(strategy, entries, encoding=question, budget=budget, insecure_seed=seed)
            assert isinstance(one.answers, Answers)
            return one.answers

        part = min(len(left) // (count - output), MOST_ROUNDS)
        interval, counted = search(
            ask,
            bounds=limits,
            rows=len(X),
            plan=replace(plan, rounds=left[:part]),
            insecure_seed=None if insecure_seed is None else insecure_seed + made,
        )
        left, made = left[len(counted) :], made + len(counted)
        found.append(interval)
        asked.append((strategy, counted))
    units = OutputColumns(bounds=tuple(found))
    return units, tuple(
        Measurement(
            strategy=strategy,
            answers=answers,
            encoding=CountQuestion(units.places(question.edges, output=output)),
        )
        for output, (strategy, counted) in enumerate(asked)
        for question, answers in counted
    )
