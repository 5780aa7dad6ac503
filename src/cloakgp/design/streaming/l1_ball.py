r"""Bayesian A-optimal design in the ℓ1 ball for tables read in passes: a partition of many rows.

The problem is that of `cloakgp.design.l1_ball`, for a sparse model, in the steps of
`cloakgp.design.streaming.bayes`:

1. rows are gathered in cells, and `cloakgp.design.l1_ball` finds a strategy that asks all rows of a
   cell alike;
2. from there every row goes to the one answer that is best for it, all others being as they are.
   With L and W as there, these are the vertices of the ball at which 2 rᵀ L v_j − λ_j rᵀ W Wᵀ r is
   greatest. One row among many is worth little to any answer, so that little is lost by not
   sharing it (on a few hundred rows, up to 2 % of what remains). A full step may overshoot: sums
   move half-way, and again, and the best rule is kept;
3. the Gaussian design of the same cells bounds what any strategy explains: none in the ℓ1 ball
   leaves less than what is certified so.

Any rule may be released: all of this decides how useful a release is, never how private.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cloakgp.design.bayes import sharpest_strategy
from cloakgp.design.l1_ball import climb_in_l1
from cloakgp.design.solver import Progress
from cloakgp.design.strategy import Certificate
from cloakgp.design.streaming.bayes import (
    StrategyState,
    StreamedDesign,
    main_query_directions,
    most_explained,
)
from cloakgp.design.streaming.binning import Cells, cell_sums
from cloakgp.design.streaming.rules import PartitionRule, RowModel
from cloakgp.design.streaming.sums import StrategySums, sum_strategy
from cloakgp.design.weak_duality import positive
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Passes
from cloakgp.utils.threads import suitable_threads

# How often every row goes to the answer that is best for it, at most.
STEPS = 3
# Stop when a step explains less than this share of what remains.
STALLED = 1e-3


def design_streamed_l1(
    passes: Passes,
    queries: Array,
    *,
    model: RowModel,
    cells: Cells,
    prior_variance: float,
    noise_sd: float,
    tally: Cells | None = None,
    gap: float = 1e-2,
    progress: Progress | None = None,
) -> StreamedDesign:
    """Choose which answer every row of a table goes to, reading it a few times.

    Sees public arrays only.

    Parameters
    ----------
    passes : Passes
    queries : array of shape (M, P)
        The model's features of the query points, columns scaled by the roots of their weights.
    model : RowModel
    cells : Cells
    prior_variance : float
        Σ_i w_i K_**ii, in squared output units.
    noise_sd : float
        s, of the noise on each answer when columns have ℓ1 norm 1, in output units.
    tally : Cells, optional
        The questions are summed over the rows of each of these, too.
    gap : float
        To which the Gaussian design of the cells is solved.
    progress : callable, optional
        Called with the gap of the smaller problem.

    Returns
    -------
    StreamedDesign
        Its rule is a `PartitionRule`. As for `cloakgp.design.l1_ball.design_l1`, the certificate
        holds and does not close.
    """
    directions, lost = main_query_directions(queries, prior_variance=prior_variance)
    gathered = cell_sums(passes, model=model, cells=cells)
    crossed = gathered.features.T @ directions
    with suitable_threads(float(gathered.features.size) * len(directions)):
        gaussian = sharpest_strategy(
            gathered,
            crossed,
            prior_variance=prior_variance,
            noise_sd=noise_sd,
            gap=gap,
            progress=progress,
        )
        coarse = climb_in_l1(
            gaussian, gathered, crossed, prior_variance=prior_variance, noise_sd=noise_sd
        )
    start = StrategyState.on_cells(coarse.strategy, gathered, queries=directions, noise_sd=noise_sd)
    explained, rule, sums = _partition(
        passes, start, model=model, prior_variance=prior_variance, tally=tally
    )
    unexplained = positive(prior_variance - explained)
    at_best = StrategyState.on_cells(
        gaussian.strategy, gathered, queries=directions, noise_sd=noise_sd
    )
    most = most_explained(passes, at_best, model=model) + lost
    least = prior_variance - most
    return StreamedDesign(
        rule=rule,
        sums=sums,
        certificate=Certificate(criterion="bayes", gap=max(1.0 - least / unexplained, 0.0)),
        unexplained=unexplained,
    )


def _partition(
    passes: Passes,
    state: StrategyState,
    *,
    model: RowModel,
    prior_variance: float,
    tally: Cells | None,
) -> tuple[float, PartitionRule, StrategySums]:
    """Return the best rule of a few steps, what it explains, and its sums."""
    best: tuple[float, PartitionRule, StrategySums] | None = None
    for step in range(STEPS):
        rule = _best_answers(state)
        sums = sum_strategy(
            passes, model=model, rule=rule, cells=tally, what=f"designing, step {step + 1}"
        )
        reached = replace(state, features=sums.features, noise=sums.noise)
        explained = reached.explained()
        won = explained - (best[0] if best else -np.inf)
        if won > 0:
            best = explained, rule, sums
        if won < STALLED * (prior_variance - explained):
            break
        state = state.towards(reached)
    assert best is not None
    return best


def _best_answers(state: StrategyState) -> PartitionRule:
    """Return the rule by which every row goes to the answer that is best for it."""
    weights = state.weights()
    return PartitionRule(
        matrix=weights @ (state.queries - state.features.T @ weights).T,
        curvatures=np.square(weights).sum(axis=1),
    )
