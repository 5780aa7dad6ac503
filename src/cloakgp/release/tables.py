r"""Answered tables: the questions about the rows of one table, for conditioning on answers.

Of rows that are kept, these and the questions (`DenseTable`). Of rows that are not kept, sums over
them under a sparse prior (`SummedTable`): with V the rows' features and Λ their noise variances,
A = R Vᵀ and B = R Λ Rᵀ, divided by the noise sd of the answers, say all that is needed. Answers
have the covariance I + A Aᵀ + B, and covariance A v_* with the latent function at a point of
features v_*.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.utils.arrays import Array

# Rows of a covariance held in memory at a time.
BLOCK_ROWS = 2048


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
    def shared_covariance(self, prior: ExactPrior | SparsePrior, other: AnsweredTable) -> Array:
        """Return R K_ff Rᵀ with another table's questions, shape (k, k')."""

    @abstractmethod
    def own_covariance(self, prior: ExactPrior | SparsePrior) -> Array:
        """Return R Λ Rᵀ, the covariance from the noise of the rows, shape (k, k)."""

    @abstractmethod
    def inducing_cross(self, prior: SparsePrior) -> Array:
        """Return R Vᵀ, the covariance of the answers with the inducing variables, shape (k, M).

        Parameters
        ----------
        prior : SparsePrior
        """

    @abstractmethod
    def row_cross(self, prior: ExactPrior | SparsePrior, X: Array) -> Array:
        """Return Λ Rᵀ, the covariance of its rows' own noise with the answers, shape (N, k).

        Parameters
        ----------
        prior : ExactPrior or SparsePrior
        X : array of shape (N, D)
            The table's rows.
        """


@dataclass(frozen=True, eq=False)
class DenseTable(AnsweredTable):
    """The rows of one table, and the questions about their latent values.

    Attributes
    ----------
    number : int
    X : array of shape (N, D)
    questions : array of shape (k, N)
        Divided by the noise sd of their answers.
    residual : array of shape (k, k) or None
        The covariance of what else the answers hold, beside noise of unit variance: what linear
        questions leave out of outputs that were clipped (`cloakgp.release.posterior.clipped`).
    offset : array of shape (N,) or None
        What each row's latent value has beside the function: log exposures of counts.
    sizes : array of shape (N,) or None
        Of how many outputs each row stands for the mean, of which questions are; one each if None.
    """

    X: Array
    questions: Array
    residual: Array | None = None
    offset: Array | None = None
    sizes: Array | None = None

    @property
    def n_answers(self) -> int:
        """k, the number of questions."""
        return len(self.questions)

    def cross(self, prior: ExactPrior | SparsePrior, X: Array) -> Array:
        """Return K_*f Rᵀ, never holding more than a block of rows of K_*f, shape (P, k)."""
        products = [
            prior.cross_covariance(block, self.X) @ self.questions.T for block in _blocks(X)
        ]
        return np.vstack(products) if products else np.zeros((0, self.n_answers))

    def shared_covariance(self, prior: ExactPrior | SparsePrior, other: AnsweredTable) -> Array:
        """Return R K_ff Rᵀ, never holding more than a block of rows of K_ff."""
        if not isinstance(other, DenseTable):
            return self.questions @ other.cross(prior, self.X)
        products = [
            prior.row_covariance(block, other.X) @ other.questions.T for block in _blocks(self.X)
        ]
        return self.questions @ np.vstack(products)

    def own_covariance(self, prior: ExactPrior | SparsePrior) -> Array:
        """Return R Λ Rᵀ, and the residual covariance of linear questions."""
        own: Array = (self.questions * prior.row_noise(self.X)) @ self.questions.T
        return own if self.residual is None else own + self.residual

    def inducing_cross(self, prior: SparsePrior) -> Array:
        """Return R Vᵀ, never holding more than a block of rows of V."""
        crossed = np.zeros((self.n_answers, len(prior.inducing)))
        for start in range(0, len(self.X), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            crossed += self.questions[:, rows] @ prior.features(self.X[rows]).T
        return crossed

    def row_cross(self, prior: ExactPrior | SparsePrior, X: Array) -> Array:
        """Return Λ Rᵀ, shape (N, k)."""
        crossed: Array = prior.row_noise(X)[:, None] * self.questions.T
        return crossed


def _blocks(X: Array) -> list[Array]:
    return [X[start : start + BLOCK_ROWS] for start in range(0, len(X), BLOCK_ROWS)]


@dataclass(frozen=True, eq=False)
class SummedTable(AnsweredTable):
    """Sums over the rows of one table.

    Attributes
    ----------
    number : int
    features : array of shape (k, M)
        A.
    noise : array of shape (k, k)
        B.
    """

    features: Array
    noise: Array

    @property
    def n_answers(self) -> int:
        """k, the number of questions."""
        return len(self.features)

    def cross(self, prior: ExactPrior | SparsePrior, X: Array) -> Array:
        """Return v_*ᵀ Aᵀ, shape (P, k)."""
        crossed: Array = (self.features @ _sparse(prior).features(X)).T
        return crossed

    def shared_covariance(self, prior: ExactPrior | SparsePrior, other: AnsweredTable) -> Array:
        """Return A A'ᵀ with another table's sums, or A V Rᵀ with another's questions."""
        if isinstance(other, SummedTable):
            return self.features @ other.features.T
        return other.shared_covariance(prior, self).T

    def own_covariance(self, prior: ExactPrior | SparsePrior) -> Array:
        """Return B."""
        del prior
        return self.noise

    def inducing_cross(self, prior: SparsePrior) -> Array:
        """Return A."""
        del prior
        return self.features

    def row_cross(self, prior: ExactPrior | SparsePrior, X: Array) -> Array:
        """Refuse: the columns of rows are not kept."""
        del prior, X
        raise ValueError(
            "the questions about every row of a large table are not kept, and so it cannot be "
            "asked again for what its answers leave open"
        )


def _sparse(prior: ExactPrior | SparsePrior) -> SparsePrior:
    if not isinstance(prior, SparsePrior):
        raise ValueError("sums over many rows go with a sparse prior")
    return prior
