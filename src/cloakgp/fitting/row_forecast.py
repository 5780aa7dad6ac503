"""Forecast of rows that are read in passes: the expected error of a stage, gathered in cells.

Every later stage reads the table some ten times more. Where privacy noise is a few per cent of the
error already, that buys nothing: the error that is expected with all of the budget spent at once,
and without privacy, are public, and decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from cloakgp.data import InputRows
from cloakgp.design.bayes import sharpest_strategy
from cloakgp.design.l1_ball import design_l1
from cloakgp.design.streaming.binning import CellSums, Partition, cell_sums
from cloakgp.design.streaming.conditioning import ConditionedModel
from cloakgp.design.streaming.grouping import GroupedModel, GroupedPasses
from cloakgp.design.streaming.row_model import RowModel
from cloakgp.fitting.strategies import Query, query_shares
from cloakgp.models import SparsePrior
from cloakgp.models.summary import Summary
from cloakgp.release.bands import RowBands
from cloakgp.release.posterior.dense import Posterior
from cloakgp.utils.arrays import as_matrix
from cloakgp.utils.names import Ball
from cloakgp.utils.passes import Passes

# Of the expected error of new outputs: less than this is not worth several stages.
LITTLE = 0.01
# The same of the expected error of the curve, where the noise of outputs may be a curve that is not
# known yet: then it counts for nothing.
LITTLE_OF_CURVE = 0.05
# In how many cells rows are gathered for the forecast, and how good its design is.
FORECAST_CELLS, FORECAST_GAP = 400, 0.02


@dataclass(frozen=True)
class RowsForecast:
    """Expected squared errors, mean over the query points, of one stage about many rows.

    Attributes
    ----------
    remaining : float
        Of predictions of the curve.
    least : float
        The same, if all outputs were public.
    noise : float
        The own noise of new outputs.
    """

    remaining: float
    least: float
    noise: float

    @property
    def error(self) -> float:
        """Expected root mean squared error of predictions of the curve."""
        return math.sqrt(self.remaining)

    @property
    def excess(self) -> float:
        """The relative increase of the expected error by privacy; 0 if it is free."""
        return math.sqrt((self.remaining + self.noise) / (self.least + self.noise)) - 1.0

    @property
    def excess_of_curve(self) -> float:
        """The same of the error of the curve alone; infinite if public outputs would leave none."""
        return math.sqrt(self.remaining / self.least) - 1.0 if self.least > 0 else math.inf


def forecast_rows(
    rows: Passes,
    summary: Summary,
    *,
    prior: SparsePrior,
    query: Query,
    noise_sd: float,
    ball: Ball,
    known: Posterior | None = None,
    bands: RowBands | None = None,
) -> RowsForecast:
    """Forecast one stage about rows that are read in passes, with rows gathered in cells.

    The rows of the summary stand for all; with groups, whose sizes they do not tell, it takes a
    pass.

    Parameters
    ----------
    rows : Passes
    summary : Summary
    prior : SparsePrior
    query : Query
    noise_sd : float
        Of the noise on each answer when columns have norm 1, in units of what is asked.
    ball : {"l1", "l2"}
        In whose norm that is.
    known : Posterior, optional
        Earlier answers.
    bands : RowBands, optional
        Given what is known, where outputs are clipped to bands.
    """
    as_matrix(query.X, name="X_query", columns=rows.n_inputs)
    weights = query_shares(query)
    model: RowModel = prior if bands is None else bands
    queries = prior.features(query.X)
    variance = prior.query_variance(query.X)
    if known is not None:
        root = known.inducing_root()
        if bands is None:
            model = ConditionedModel(model=prior, root=root)
        queries = root.T @ queries
        variance = np.maximum(variance - np.square(known.query_root(query.X)).sum(axis=1), 0.0)
    queries = queries * np.sqrt(weights)
    total = float(weights @ variance)
    cells = _forecast_cells(rows, summary, model=model)
    sharpest = sharpest_strategy if ball == "l2" else design_l1
    design = sharpest(
        cells,
        cells.features.T @ queries,
        prior_variance=total,
        noise_sd=noise_sd,
        gap=FORECAST_GAP,
    )
    precision = (cells.features / cells.noise) @ cells.features.T
    precision[np.diag_indices(len(precision))] += 1.0
    explained = linalg.cho_solve(linalg.cho_factor(precision, lower=True), queries)
    return RowsForecast(
        remaining=design.unexplained,
        least=total - float(np.square(queries).sum()) + float(np.vdot(queries, explained)),
        noise=float(weights @ prior.observation_noise(query.X)),
    )


def _forecast_cells(rows: Passes, summary: Summary, *, model: RowModel) -> CellSums:
    """Return estimated sums over the rows of each of a few cells."""
    cells = Partition(centres=summary.centres(FORECAST_CELLS)[0], units=summary.units)
    if isinstance(rows, GroupedPasses):
        return cell_sums(rows, model=GroupedModel(model), cells=cells)
    sampled = cell_sums(InputRows(summary.sample), model=model, cells=cells)
    return sampled.times_rows(summary.count / len(summary.sample))
