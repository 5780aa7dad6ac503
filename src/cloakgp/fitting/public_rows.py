"""Public rows before a private fit: the process that they alone imply, with what they teach of it.

Rows with public outputs are not pooled with private ones, since they may be of other people. They
are a public prediction (`cloakgp.models.prediction`): the mean p(x) of a process given them, whose
hyperparameters are fitted to them. How far the private outputs follow it is left to the answers: in
a slope with the prior N(1, ½²), in a process beside it, and in whether it counts at all. So public
rows cannot dominate where the answers contradict them (the discrepancy of Kennedy and O'Hagan 2000,
in place of a factor on the noise of public rows, which knows errors that are independent from row
to row alone).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg

from cloakgp.columns.schema import Schema
from cloakgp.fitting.defaults import choose_prior
from cloakgp.models import ExactPrior
from cloakgp.privacy import OutputBounds
from cloakgp.release import Hyperprior
from cloakgp.release.hyperparameters.covariance import gather
from cloakgp.release.hyperparameters.learning import learn_numbers
from cloakgp.release.public_rows import PublicRows
from cloakgp.release.tables import DenseTable
from cloakgp.utils.arrays import Array

# Beyond, a process of every row takes long, and any public model does as well.
MOST_ROWS = 2000
# Rows that hyperparameters are fitted to.
LEARNING_ROWS = 300
# Of outputs in learning, as a share of the bounds' width: learning is written for noisy answers.
NOISE_SHARE = 1e-3


def condition_on_public_rows(
    X: Array,
    outputs: Array,
    *,
    bounds: OutputBounds,
    input_names: Sequence[str] = (),
    schema: Schema | None = None,
) -> PublicRows:
    """Return the process given public rows.

    Parameters
    ----------
    X : array of shape (N, D)
    outputs : array of shape (N,)
        Public. Clipped to the bounds, as private ones are.
    bounds : OutputBounds
    input_names : sequence of str
    schema : Schema, optional

    Raises
    ------
    ValueError
        If there are too many, or outputs are not one finite number for each row.

    Examples
    --------
    >>> X = np.linspace(0.0, 6.0, 40)[:, None]
    >>> known = condition_on_public_rows(X, np.sin(X).ravel(), bounds=OutputBounds(-1.0, 1.0))
    >>> known.predict([[1.5], [4.5]]).round(1)
    array([ 1., -1.])
    """
    if outputs.shape != (len(X),) or not np.isfinite(outputs).all():
        raise ValueError("public rows have one finite output each: give (X, y)")
    if len(X) > MOST_ROWS:
        raise ValueError(
            f"there may be {MOST_ROWS:,} public rows at most: fit a model of your own to "
            f"{len(X):,}, and give it as public_prediction"
        )
    values = bounds.clip(outputs)
    blocks = None if schema is None or schema.plain else schema.groups
    declared = choose_prior(X, bounds=bounds, blocks=blocks)
    # From all over the table, always the same ones.
    chosen = np.linspace(0, len(X) - 1, min(len(X), LEARNING_ROWS)).round().astype(np.intp)
    scale = 1.0 / (NOISE_SHARE * bounds.width)
    table = DenseTable(number=0, X=X[chosen], questions=scale * np.eye(len(chosen)))
    [learned] = learn_numbers(
        declared,
        gather((table,), scale * values[chosen]),
        bounds=(bounds.lo, bounds.hi),
        hyperprior=Hyperprior(),
    )
    prior = learned.prior
    assert isinstance(prior, ExactPrior)
    covariance = prior.row_covariance(X, X.copy())
    covariance[np.diag_indices(len(X))] += prior.row_noise(X)
    factor = linalg.cho_factor(covariance, lower=True)
    weights = linalg.cho_solve(factor, values - prior.means(X))
    return PublicRows(
        prior=prior,
        X=X,
        weights=np.asarray(weights, dtype=np.float64),
        input_names=tuple(input_names),
        schema=schema,
    )
