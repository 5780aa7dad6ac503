"""Private fit of several outputs of each person: their intervals, and then all entries in stages.

Every output is an entry of its own, in widths from the middle of its interval: of the declared
bounds, or of what was found to hold most of it. All entries of a person are protected together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.fitting.bands import Stage, schedule_stages, whole_of
from cloakgp.fitting.dense import StageSettings, ask_in_stages
from cloakgp.fitting.interval import (
    NO_SEARCH,
    SearchPlan,
    decided_by_answers,
    plan_search,
)
from cloakgp.fitting.intervals import search_columns
from cloakgp.fitting.strategies import Budget
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.kernels.coregion import as_entries
from cloakgp.privacy.groups import checked_groups
from cloakgp.privacy.noise import noise_named
from cloakgp.privacy.several_outputs import STANDARD_BOUNDS, OutputColumns
from cloakgp.privacy.spending import hold, one_charge
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import Measurement, Release
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseName


@forget_on_failure
@one_charge
def release_several_outputs(
    X: Array,
    y: ArrayLike,
    *,
    columns: OutputColumns,
    prior_within: Callable[[OutputColumns], ExactPrior | SparsePrior],
    epsilon: float,
    delta: float,
    noise: NoiseName,
    stages: Sequence[Stage],
    searched: bool,
    settings: StageSettings,
    groups: Iterable[Hashable] | None = None,
) -> tuple[Release, OutputColumns]:
    """Look for intervals, design, measure, learn; return what may be published.

    y is handed to `cloakgp.privacy` and touched nowhere else.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    y : array-like of shape (N, T)
        Private outputs.
    columns : OutputColumns
        Declared.
    prior_within : callable
        Returns the prior of entries in widths of given columns.
    epsilon, delta : float
        The whole budget, for all outputs together.
    noise : {"gaussian", "laplace"}
    stages : sequence of Stage
    searched : bool
        Whether an interval that holds most of it is looked for of each output, if that costs
        little.
    settings : StageSettings
        With a query of entries.
    groups : iterable of N hashables, optional
        Public: whose row it is.

    Returns
    -------
    Release
        About entries.
    OutputColumns
        In widths from the middles of which they are.

    Raises
    ------
    ValueError
        For anything that does not make sense; no message quotes an output.
    """
    law, rows = noise_named(noise), len(X)
    budget = Budget(*law.check(epsilon, delta), noise=law.name)
    owners = columns.units(groups, rows=rows)
    units = checked_groups(owners.tolist(), rows=len(owners))
    search = NO_SEARCH
    if searched:
        search = plan_searches(
            budget, rows=rows, outputs=len(columns.bounds), most=int(np.bincount(owners).max())
        )
    if search.rounds:
        budget = decided_by_answers(budget)
    scheduled = partial(
        schedule_stages, stages, budget=budget, rows=len(owners), ask_spread=settings.learns_noise
    )
    found = columns
    counted: tuple[Measurement, ...] = ()
    if not search.rounds:
        entries = columns.standardised(y, rows=rows)
    steps = scheduled(spent=search.spent(len(search.rounds)))
    hold(whole_of(budget, steps=steps, others=search.rounds))
    if search.rounds:
        settings.tell("looking for where most outputs lie")
        found, counted = search_columns(
            X,
            y,
            query=settings.query,
            columns=columns,
            plan=search,
            groups=units,
            insecure_seed=settings.insecure_seed,
        )
        # Rounds that were not needed are the stages' budget.
        steps = scheduled(spent=search.spent(len(counted)))
        # Later bands may go beyond what was found, and no first question does.
        entries = found.standardised(y, rows=rows, within=columns)
    release = ask_in_stages(
        as_entries(X, count=len(columns.bounds)),
        entries,
        prior=prior_within(found),
        encoding=STANDARD_BOUNDS,
        steps=steps,
        counted=counted,
        groups=units,
        settings=settings,
    )
    return release, found


def plan_searches(budget: Budget, *, rows: int, outputs: int, most: int) -> SearchPlan:
    """Return whether to look for intervals of several outputs, and at what price.

    Depends on public numbers alone: see `cloakgp.fitting.interval.plan_search`.

    Parameters
    ----------
    budget : Budget
        The whole.
    rows : int
        N.
    outputs : int
        T.
    most : int
        How many entries one person has at most.

    Examples
    --------
    >>> pure = Budget(1.0, 0.0, noise="laplace")
    >>> [len(plan_searches(pure, rows=rows, outputs=2, most=2).rounds) for rows in (190, 250, 1000)]
    [0, 4, 12]
    """
    return plan_search(
        STANDARD_BOUNDS,
        budget=decided_by_answers(budget),
        rows=rows,
        largest_group=most // outputs,
        outputs=outputs,
    )
