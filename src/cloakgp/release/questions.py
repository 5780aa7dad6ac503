"""What to ask a table, given what is already known: designs on public arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cloakgp.arrays import Array
from cloakgp.design import BayesDesign, Certificate, Progress, design_bayes, design_strategy
from cloakgp.models import ConditionedCovariance, ExactPrior, OutputCovariance, SparsePrior
from cloakgp.models.rkhs import function_questions
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.privacy.guarantee import exact_noise_multiplier
from cloakgp.privacy.units import Groups
from cloakgp.release.measurement import Measurement
from cloakgp.release.posterior import Posterior

Mechanism = Literal["bayes", "trace", "logdet", "functional"]
MECHANISMS: tuple[Mechanism, ...] = ("bayes", "trace", "logdet", "functional")


@dataclass(frozen=True)
class Budget:
    """What one visit may spend."""

    epsilon: float
    delta: float


@dataclass(frozen=True, eq=False)
class Query:
    """Where predictions matter, and how much.

    Attributes
    ----------
    X : array of shape (P, D)
    weights : array of shape (P,) or None
    """

    X: Array
    weights: Array | None = None


@dataclass(frozen=True, eq=False)
class Questions:
    """What will be asked of a table: public.

    Attributes
    ----------
    X : array of shape (N, D)
    strategy : array of shape (k, N)
    X_query : array of shape (P, D)
    reconstruction : array of shape (P, k) or None
    certificate : Certificate
    table : int
    query_weights : array of shape (P,) or None
    representers : array of shape (N, k) or None
        See `Measurement`.
    groups : array of shape (N,) or None
        See `Measurement`.
    """

    X: Array
    strategy: Array
    X_query: Array
    reconstruction: Array | None
    certificate: Certificate
    table: int = 0
    query_weights: Array | None = None
    representers: Array | None = None
    groups: Groups | None = None

    def answered(self, answers: Answers) -> Measurement:
        """Return the measurement that these questions and their answers make."""
        return Measurement(
            X=self.X,
            strategy=self.strategy,
            answers=answers,
            X_query=self.X_query,
            reconstruction=self.reconstruction,
            certificate=self.certificate,
            table=self.table,
            query_weights=self.query_weights,
            representers=self.representers,
            groups=self.groups,
        )


def choose_questions(
    X: Array,
    *,
    prior: ExactPrior | SparsePrior,
    query: Query,
    bounds: OutputBounds,
    budget: Budget,
    mechanism: Mechanism = "bayes",
    gap: float = 1e-3,
    known: Posterior | None = None,
    table: int = 0,
    groups: Groups | None = None,
    progress: Progress | None = None,
) -> Questions:
    """Design the questions to put to a table. Sees public arrays and earlier answers only.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    prior : ExactPrior or SparsePrior
    query : Query
    bounds : OutputBounds
    budget : Budget
    mechanism : {"bayes", "trace", "logdet", "functional"}
    gap : float
    known : Posterior, optional
        Earlier answers, to ask for what they leave open; for "bayes".
    table : int
        The number of the table in the release.
    groups : array of shape (N,), optional
        Which group each row belongs to, from `cloakgp.privacy.units.checked_groups`: all rows of a
        group are protected together.
    progress : callable, optional

    Returns
    -------
    Questions

    Raises
    ------
    ValueError
        If a parameter does not make sense.
    """
    if mechanism not in MECHANISMS:
        raise ValueError(f"mechanism must be one of {', '.join(MECHANISMS)}, got {mechanism!r}")
    if mechanism == "functional":
        whole = function_questions(prior, X)
        return Questions(
            X=X,
            strategy=whole.strategy,
            X_query=query.X,
            reconstruction=prior.cross_covariance(query.X, X) @ whole.representers,
            certificate=Certificate(criterion="functional", gap=0.0),
            table=table,
            query_weights=query.weights,
            representers=whole.representers,
            groups=groups,
        )
    if mechanism != "bayes":
        design = design_strategy(
            prior.cloaking_matrix(query.X, X),
            criterion=mechanism,
            weights=query.weights if mechanism == "trace" else None,
            groups=groups,
            gap=gap,
            progress=progress,
        )
        return Questions(
            X=X,
            strategy=design.strategy,
            X_query=query.X,
            reconstruction=design.reconstruction,
            certificate=design.certificate,
            table=table,
            query_weights=query.weights,
            groups=groups,
        )
    sharpest = _sharpest(
        X,
        prior=prior,
        query=query,
        noise_sd=bounds.width * exact_noise_multiplier(budget.epsilon, budget.delta),
        gap=gap,
        known=known,
        table=table,
        groups=groups,
        progress=progress,
    )
    return Questions(
        X=X,
        strategy=sharpest.strategy,
        X_query=query.X,
        reconstruction=None,
        certificate=sharpest.certificate,
        table=table,
        query_weights=query.weights,
        groups=groups,
    )


def _sharpest(
    X: Array,
    *,
    prior: ExactPrior | SparsePrior,
    query: Query,
    noise_sd: float,
    gap: float,
    known: Posterior | None,
    table: int,
    groups: Groups | None,
    progress: Progress | None,
) -> BayesDesign:
    """Return the `bayes` design for a table, given what earlier answers say."""
    weights = np.ones(len(query.X)) if query.weights is None else query.weights
    if weights.shape != (len(query.X),) or not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError("query weights must be positive and finite, one per query point")
    covariance: OutputCovariance = prior.output_covariance(X)
    crossed = prior.cross_covariance(query.X, X).T
    variance = prior.query_variance(query.X)
    if known is not None:
        rows, points = known.row_root(X, table=table), known.query_root(query.X)
        floor = 1.0 / (1.0 / covariance.least_noise + known.precision_of(table))
        covariance = ConditionedCovariance(prior=covariance, known=rows, least_noise=floor)
        crossed = crossed - rows @ points.T
        variance = np.maximum(variance - np.square(points).sum(axis=1), 0.0)
    return design_bayes(
        covariance,
        crossed * np.sqrt(weights),
        prior_variance=float(weights @ variance),
        noise_sd=noise_sd,
        groups=groups,
        gap=gap,
        progress=progress,
    )
