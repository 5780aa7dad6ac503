"""Stages of a table that is read in passes: whether several are worth their readings.

Every later stage reads the table some ten times more. Where privacy noise is a few per cent of the
error already, that buys nothing: the error that is expected with all of the budget spent at once,
and without privacy, are public, and decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import linalg

from cloakgp.criteria import criterion_named
from cloakgp.data import InputRows
from cloakgp.design.bayes import sharpest_strategy
from cloakgp.design.l1_ball import design_l1
from cloakgp.design.streaming.binning import Cells, CellSums, cell_sums
from cloakgp.design.streaming.grouping import GroupedModel, GroupedPasses
from cloakgp.fitting.bands import ONE_STAGE, Stages, Step, schedule_stages, stages_for
from cloakgp.fitting.strategies import Budget, Query, query_weights, unit_noise_sd
from cloakgp.models import SparsePrior
from cloakgp.models.summary import Summary
from cloakgp.privacy import OutputBounds
from cloakgp.utils.passes import Passes, Tell

# Of the expected error of new outputs: less than this is not worth several stages.
LITTLE = 0.01
# In how many cells rows are gathered for the forecast, and how good its design is.
FORECAST_CELLS, FORECAST_GAP = 400, 0.02


def schedule_rows(
    budget: Budget,
    *,
    rows: int,
    excess: Callable[[], float],
    stages: Stages,
    criterion: str,
    ask_spread: bool,
    tell: Tell,
    spent: float = 0.0,
) -> tuple[Step, ...]:
    """Split a budget over the stages of a table that is read in passes.

    Parameters
    ----------
    budget : Budget
        The whole.
    rows : int
        N.
    excess : callable
        Gives `privacy_excess` with this budget.
    stages : "auto", None, or sequence of (share, width)
        "auto" is one stage where several are not worth their passes.
    criterion : str
    ask_spread : bool
        Whether outputs' noise is to be learned.
    tell : callable
        Called with what begins, in a few words.
    spent : float
        The share of μ² (of ε) that was for something before (`cloakgp.fitting.interval`).
    """
    schedule = stages_for(
        stages, criterion=criterion_named(criterion, use="many rows"), noise=budget.noise
    )
    if len(schedule) > 1 and isinstance(stages, str):
        tell("looking whether stages are worth it")
        if excess() <= LITTLE:
            schedule = ONE_STAGE
    return schedule_stages(
        schedule,
        budget=budget,
        rows=rows,
        ask_spread=ask_spread,
        spent=spent,
    )


def privacy_excess(
    rows: Passes,
    summary: Summary,
    *,
    prior: SparsePrior,
    query: Query,
    bounds: OutputBounds,
    budget: Budget,
) -> float:
    """Return by what share privacy in one stage enlarges the expected error of new outputs.

    Root mean square over the query points, under the prior, with rows gathered in cells. The rows
    of the summary stand for all; with groups, whose sizes they do not tell, it takes a pass.

    Parameters
    ----------
    rows : Passes
    summary : Summary
    prior : SparsePrior
    query : Query
    bounds : OutputBounds
    budget : Budget

    Returns
    -------
    float
        0 where privacy costs nothing.
    """
    weights = query_weights(query)
    cells = _forecast_cells(rows, summary, prior=prior)
    queries = prior.features(query.X) * np.sqrt(weights)
    variance = float(weights @ prior.query_variance(query.X))
    sharpest = sharpest_strategy if budget.noise == "gaussian" else design_l1
    design = sharpest(
        cells,
        cells.features.T @ queries,
        prior_variance=variance,
        noise_sd=unit_noise_sd(bounds, budget),
        gap=FORECAST_GAP,
    )
    precision = (cells.features / cells.noise) @ cells.features.T
    precision[np.diag_indices(len(precision))] += 1.0
    known = linalg.cho_solve(linalg.cho_factor(precision, lower=True), queries)
    least = variance - float(np.square(queries).sum()) + float(np.vdot(queries, known))
    noise = float(weights @ prior.observation_noise(query.X))
    return math.sqrt((design.unexplained + noise) / (least + noise)) - 1.0


def _forecast_cells(rows: Passes, summary: Summary, *, prior: SparsePrior) -> CellSums:
    """Return about what the rows of each of a few cells add up to."""
    cells = Cells(centres=summary.centres(FORECAST_CELLS)[0], units=summary.units)
    if isinstance(rows, GroupedPasses):
        return cell_sums(rows, model=GroupedModel(prior), cells=cells)
    sampled = cell_sums(InputRows(summary.sample), model=prior, cells=cells)
    return sampled.times_rows(summary.count / len(summary.sample))
