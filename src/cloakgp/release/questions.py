"""What to ask a table, given what is already known: designs on public arrays."""

from __future__ import annotations

from dataclasses import dataclass

from cloakgp.criteria import Problem, criterion_named
from cloakgp.design import Certificate, Progress
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.groups import Groups
from cloakgp.release.measurement import Measurement
from cloakgp.release.posterior.dense import Posterior
from cloakgp.utils.arrays import Array


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
    criterion: str = "bayes",
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
    criterion : str
        One of `cloakgp.criteria` for numbers.
    gap : float
    known : Posterior, optional
        Earlier answers, to ask for what they leave open; for "bayes".
    table : int
        The number of the table in the release.
    groups : array of shape (N,), optional
        Which group each row belongs to, from `cloakgp.privacy.groups.checked_groups`: all rows of a
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
    chosen = criterion_named(criterion, use="numbers").choose(
        Problem(
            prior=prior,
            X=X,
            X_query=query.X,
            weights=query.weights,
            noise_sd=bounds.width * exact_noise_multiplier(budget.epsilon, budget.delta),
            gap=gap,
            known=known,
            table=table,
            groups=groups,
            progress=progress,
        )
    )
    return Questions(
        X=X,
        strategy=chosen.strategy,
        X_query=query.X,
        reconstruction=chosen.reconstruction,
        certificate=chosen.certificate,
        table=table,
        query_weights=query.weights,
        representers=chosen.representers,
        groups=groups,
    )
