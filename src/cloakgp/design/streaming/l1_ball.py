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
   leaves less than what is certified so, in the first pass over all rows.

Of a table that is much larger than a sample of it, the first two go by the sample
(`cloakgp.design.streaming.sampling`), and one pass over all rows is left.

Any rule may be released: all of this decides how useful a release is, never how private.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cloakgp.design.bayes import sharpest_strategy
from cloakgp.design.l1_ball import climb_in_l1
from cloakgp.design.solver import Progress
from cloakgp.design.strategy import Certificate
from cloakgp.design.streaming.bayes import (
    Stepping,
    StepSums,
    StrategyState,
    StreamedDesign,
    gathered_rows,
    main_query_directions,
)
from cloakgp.design.streaming.binning import Partition
from cloakgp.design.streaming.row_model import RowModel
from cloakgp.design.streaming.rules import PartitionRule
from cloakgp.design.streaming.sampling import Sample
from cloakgp.design.streaming.sums import StrategySums, sum_strategy, sums_of_rows
from cloakgp.design.weak_duality import positive
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Chunk, Passes
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
    cells: Partition,
    prior_variance: float,
    noise_sd: float,
    sample: Sample | None = None,
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
    cells : Partition
    prior_variance : float
        Σ_i w_i K_**ii, in squared output units.
    noise_sd : float
        s, of the noise on each answer when columns have ℓ1 norm 1, in output units.
    sample : Sample, optional
        Of these rows: the steps go by it.
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
    gathered = gathered_rows(passes, model=model, cells=cells, sample=sample)
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
    start, at_best = (
        StrategyState.on_cells(one.strategy, gathered, queries=directions, noise_sd=noise_sd)
        for one in (coarse, gaussian)
    )
    bounding_rule, at_best = at_best.rule()
    if sample is not None:
        # Any columns bound. Where rows are many, those that pass over what a row's own noise costs
        # do nearly as well (gaps of .1 grew by 4 %), and to find the others took a third of a pass.
        bounding_rule = replace(bounding_rule, curvatures=np.zeros_like(bounding_rule.curvatures))
    bounding = Stepping(model=model, rule=bounding_rule, duals=at_best.duals(gap=np.inf))
    most: float | None = None

    def over_all(rule: PartitionRule, step: int) -> StrategySums:
        nonlocal most
        parting = _Parting(model=model, rule=rule, bounding=bounding if most is None else None)
        found = passes.over_inputs(parting, what=f"designing, step {step + 1}")
        if found.bound is not None:
            most = bounding.most_explained(found.bound) + lost
        return found.sums

    if sample is None:
        rule, sums = _searched(over_all, start, prior_variance=prior_variance)
    else:
        rule, _ = _searched(
            lambda rule, _: sum_strategy(sample.passes, model=model, rule=rule),
            start,
            prior_variance=prior_variance,
            share=sample.share,
        )
        sums = over_all(rule, 0)
    assert most is not None
    unexplained = positive(prior_variance - start.reached(sums).explained())
    least = prior_variance - most
    return StreamedDesign(
        rule=rule,
        sums=sums,
        certificate=Certificate(criterion="bayes", gap=max(1.0 - least / unexplained, 0.0)),
        unexplained=unexplained,
    )


def _searched(
    over: Callable[[PartitionRule, int], StrategySums],
    state: StrategyState,
    *,
    prior_variance: float,
    share: float = 1.0,
) -> tuple[PartitionRule, StrategySums]:
    """Return the best rule of a few steps, and its sums.

    Parameters
    ----------
    over : callable
        Goes through rows and sums what a rule asks of them.
    state : StrategyState
    prior_variance : float
    share : float
        How many rows each of them stands for.
    """
    best: tuple[float, PartitionRule, StrategySums] | None = None
    for step in range(STEPS):
        rule = _best_answers(state)
        sums = over(rule, step)
        reached = state.reached(sums, share=share)
        explained = reached.explained()
        won = explained - (best[0] if best else -np.inf)
        if won > 0:
            best = explained, rule, sums
        if won < STALLED * (prior_variance - explained):
            break
        state = state.towards(reached)
    assert best is not None
    return best[1:]


@dataclass(frozen=True, eq=False)
class _Parted:
    """The sums of a partition over some rows, and those that bound."""

    sums: StrategySums
    bound: StepSums | None

    def merge(self, other: _Parted) -> _Parted:
        bound = None
        if self.bound is not None and other.bound is not None:
            bound = self.bound.merge(other.bound)
        return _Parted(sums=self.sums.merge(other.sums), bound=bound)


@dataclass(frozen=True, eq=False)
class _Parting:
    """A step over one chunk, and a bound on every step: rows are known once for both."""

    model: RowModel
    rule: PartitionRule
    bounding: Stepping | None

    def __call__(self, chunk: Chunk) -> _Parted:
        features, noise = self.model.features_and_noise(chunk.X)
        asked = self.rule.summable_columns(features, noise)
        self.rule.remembered.keep(chunk.X, asked)
        return _Parted(
            sums=sums_of_rows(asked, features, noise),
            bound=None if self.bounding is None else self.bounding.of_rows(features, noise),
        )


def _best_answers(state: StrategyState) -> PartitionRule:
    """Return the rule by which every row goes to the answer that is best for it."""
    weights = state.weights()
    return PartitionRule(
        matrix=weights @ (state.queries - state.features.T @ weights).T,
        curvatures=np.square(weights).sum(axis=1),
    )
