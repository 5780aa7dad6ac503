"""What was asked of the rows of one table, as conditioning on the answers needs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.utils.arrays import Array


@dataclass(frozen=True, eq=False)
class AnsweredTable(ABC):
    """Questions R about one table, divided by the noise sd of their answers.

    Attributes
    ----------
    number : int
        Of the table in its release.
    """

    number: int

    @property
    @abstractmethod
    def n_answers(self) -> int:
        """k, the number of questions."""

    @abstractmethod
    def cross(self, prior: ExactPrior | SparsePrior, X: Array) -> Array:
        """Return K_*f Rᵀ, the covariance of f_* with the answers, shape (P, k)."""

    @abstractmethod
    def shared(self, prior: ExactPrior | SparsePrior, other: AnsweredTable) -> Array:
        """Return R K_ff Rᵀ with another table's questions, shape (k, k')."""

    @abstractmethod
    def own(self, prior: ExactPrior | SparsePrior) -> Array:
        """Return R Λ Rᵀ, what the noise of the rows adds to the covariance, shape (k, k)."""

    @abstractmethod
    def inducing_cross(self, prior: SparsePrior) -> Array:
        """Return R Vᵀ, the covariance of the answers with the inducing variables, shape (k, M).

        Parameters
        ----------
        prior : SparsePrior
        """

    @abstractmethod
    def row_cross(self, prior: ExactPrior | SparsePrior, X: Array) -> Array:
        """Return Λ Rᵀ, what its rows' own noise shares with the answers, shape (N, k).

        Parameters
        ----------
        prior : ExactPrior or SparsePrior
        X : array of shape (N, D)
            The table's rows.
        """
