"""The design of a table that is read in passes: what to ask of every row, by any criterion."""

from __future__ import annotations

import numpy as np

from cloakgp.arrays import Array, as_matrix
from cloakgp.criteria import StreamedProblem, criterion_named
from cloakgp.criteria.base import ChosenRule
from cloakgp.design import Progress
from cloakgp.design.cells import Cells
from cloakgp.models import SparsePrior
from cloakgp.models.summary import Summary
from cloakgp.passes import Passes
from cloakgp.release import Query

# With more rows than this, and inducing inputs, designs go through the rows in passes.
MANY_ROWS = 5_000


def query_weights(query: Query) -> Array:
    """Return how important each query point is, shape (P,): all alike if nothing was said.

    Raises
    ------
    ValueError
        Unless weights are positive and finite, one for each point.

    Examples
    --------
    >>> query_weights(Query(np.zeros((2, 1))))
    array([1., 1.])
    """
    weights = np.ones(len(query.X)) if query.weights is None else query.weights
    if weights.shape != (len(query.X),) or not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError("query weights must be positive and finite, one per query point")
    return weights


def design_rows(
    rows: Passes,
    summary: Summary,
    *,
    prior: SparsePrior,
    query: Query,
    noise_sd: float,
    criterion: str = "bayes",
    gap: float = 1e-3,
    tally: Cells | None = None,
    progress: Progress | None = None,
) -> ChosenRule:
    """Choose what to ask of every row of a table, reading its public inputs a few times.

    Parameters
    ----------
    rows : Passes
    summary : Summary
        Of these rows.
    prior : SparsePrior
    query : Query
    noise_sd : float
        Of the noise on each answer when columns have norm 1, in output units.
    criterion : str
        The name of one that is for many rows.
    gap : float
        For "bayes", of the smaller problem that the design starts from.
    tally : Cells, optional
        The questions are summed over the rows of each of these, too.
    progress : callable, optional
        Called with the gap while the design improves.

    Returns
    -------
    ChosenRule

    Raises
    ------
    ValueError
        If the query does not fit, or the criterion is not for many rows.
    """
    by = criterion_named(criterion, use="many rows")
    # Of another dimension, points could broadcast in a kernel and waste the budget.
    as_matrix(query.X, name="X_query", columns=rows.n_inputs)
    return by.choose_rule(
        StreamedProblem(
            rows=rows,
            summary=summary,
            prior=prior,
            X_query=query.X,
            weights=query_weights(query),
            noise_sd=noise_sd,
            gap=gap,
            tally=tally,
            progress=progress,
        )
    )
