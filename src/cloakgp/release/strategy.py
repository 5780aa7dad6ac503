"""Strategies: which linear questions were put to the outputs of one table. Public.

A strategy R has a column r_j for every row. It is kept whole, beside the rows (`DenseStrategy`), or
as a rule that gives every row's column from its public inputs, with the few sums over rows that
predictions need (`cloakgp.release.streamed_strategy`): the first grows with the number of rows, the
second does not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from cloakgp.criteria import CRITERIA
from cloakgp.design import Certificate
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy.grid import SMALLEST_ENTRY
from cloakgp.privacy.groups import Groups, checked_groups
from cloakgp.privacy.noise import GAUSSIAN, Noise
from cloakgp.privacy.questions.base import Question
from cloakgp.release.tables import AnsweredTable, DenseTable
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Chunk, Passes

MISFIT = "its arrays do not fit each other"


@dataclass(frozen=True, eq=False, kw_only=True)
class Strategy(ABC):
    """Linear questions about the outputs of one table. Public, independently of answers.

    A new way to keep strategies is a subclass, and a line in `cloakgp.release.io.codec`.

    Attributes
    ----------
    X_query : array of shape (P, D)
        Where predictions were asked for.
    query_weights : array of shape (P,) or None
        How much the query points mattered; all alike if None.
    reconstruction : array of shape (P, k) or None
        L, with L R the cloaking matrix at X_query; None where the answers were not chosen to
        reconstruct anything (criterion "bayes").
    certificate : Certificate
    table : int
        Strategies with the same number are about the same rows of the same table.
    """

    X_query: Array
    query_weights: Array | None = None
    reconstruction: Array | None
    certificate: Certificate
    table: int = 0

    @property
    @abstractmethod
    def n_answers(self) -> int:
        """k, the number of questions."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """N, the number of rows of the table."""

    @property
    @abstractmethod
    def ranges(self) -> Array:
        """The least and the greatest of every input, shape (2, D)."""

    @property
    @abstractmethod
    def totals(self) -> Array:
        """R 1, shape (k,): the change of answers if every output moves by one."""

    @abstractmethod
    def trend_answers(self, prior: LatentPrior) -> Array:
        """Return R t, what the trend of a prior adds to the answers that are expected, shape (k,).

        Parameters
        ----------
        prior : ExactPrior or SparsePrior
        """

    @abstractmethod
    def longest_column(self, noise: Noise = GAUSSIAN, *, channels: int = 1) -> float:
        """Return the largest change of answers if a protected unit moves by one.

        Parameters
        ----------
        noise : Noise
            In whose norm.
        channels : int
            Of what is asked about; see `Noise.gauge`.
        """

    @property
    @abstractmethod
    def asks_something(self) -> bool:
        """Whether any question depends on any output."""

    @property
    def groups(self) -> Groups | None:
        """Which group each row belongs to, if rows are protected together; shape (N,)."""
        return None

    @property
    def grouped(self) -> bool:
        """Whether all rows of one group are protected together."""
        return self.groups is not None

    @abstractmethod
    def merge(
        self, others: Sequence[Strategy], *, noise_sds: Sequence[float], prior: LatentPrior
    ) -> AnsweredTable:
        """Merge the questions of this and others about one table, for conditioning.

        Parameters
        ----------
        others : sequence of Strategy
            About the same rows.
        noise_sds : sequence of float
            Of this strategy's answers, and of the others'.
        prior : ExactPrior or SparsePrior

        Raises
        ------
        ValueError
            If that cannot be said without going over the rows again.
        """

    @abstractmethod
    def same_rows(self, other: Strategy) -> bool:
        """Return whether another strategy is about rows with the same inputs, in this order."""

    @abstractmethod
    def same_questions(self, other: Strategy) -> bool:
        """Return whether another strategy asks the same of every row."""

    @abstractmethod
    def verify(self, passes: Passes, *, question: Question) -> float:
        """Check the statements about the rows, in a pass over their public inputs.

        Anybody who has the inputs can do so; it takes one pass and no output.

        Parameters
        ----------
        passes : Passes
            The same rows; `cloakgp.data` makes such objects.
        question : Question
            That was asked.

        Returns
        -------
        float
            The norm of the longest column, computed anew.

        Raises
        ------
        ValueError
            If there are other rows, or the column of any row is longer than the guarantee allows.
        """

    def validate(self) -> None:
        """Refuse arrays that do not fit each other.

        Raises
        ------
        ValueError
            If they do not, or the certificate is none.
        """
        queries, weights = len(self.X_query), self.query_weights
        fit = (
            self.X_query.ndim == 2
            and self.ranges.shape == (2, self.X_query.shape[1])
            and (weights is None or weights.shape == (queries,))
            and (
                self.reconstruction is None
                or self.reconstruction.shape == (queries, self.n_answers)
            )
        )
        if not fit:
            raise ValueError(MISFIT)
        if weights is not None and not (weights > 0).all():
            raise ValueError("its query weights are damaged")
        # Written so that NaN fails.
        if self.certificate.criterion not in CRITERIA or not self.certificate.gap >= 0:
            raise ValueError("its certificate is damaged")

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs."""
        return int(self.X_query.shape[1])

    def renumber(self, table: int) -> Self:
        """Return the same strategy about a table of another number."""
        return replace(self, table=table)


LatentPrior = ExactPrior | SparsePrior


@dataclass(frozen=True, eq=False, kw_only=True)
class DenseStrategy(Strategy):
    """A strategy that is kept whole, with the rows that it is about.

    Attributes
    ----------
    X : array of shape (N, D)
        The table's public inputs.
    matrix : array of shape (k, N)
        R, in the order of the rows of X.
    representers : array of shape (N, k) or None
        For whole functions: with answers a about the prior mean m, the raw prediction at any input
        is m + k(., X) representers a (`cloakgp.models.rkhs.FunctionQuestions`).
    row_groups : array of shape (N,) or None
        Which group each row belongs to, from 0. All rows of a group are protected together; None:
        every row on its own.
    row_exposure: array of shape (N,) or None
        Of counts: how much of whatever they are counted in each row had (years, people); 1 of every
        row if None.
    """

    X: Array
    matrix: Array
    representers: Array | None = None
    row_groups: Groups | None = None
    row_exposure: Array | None = None

    @property
    def n_answers(self) -> int:
        """k, the number of questions."""
        return len(self.matrix)

    @property
    def n_rows(self) -> int:
        """N, the number of rows of the table."""
        return len(self.X)

    @cached_property
    def ranges(self) -> Array:
        """The least and the greatest of every input, shape (2, D)."""
        return np.array([self.X.min(axis=0), self.X.max(axis=0)])

    @property
    def totals(self) -> Array:
        """R 1, shape (k,)."""
        totals: Array = self.matrix.sum(axis=1)
        return totals

    def trend_answers(self, prior: LatentPrior) -> Array:
        """Return R t, shape (k,)."""
        answers: Array = self.matrix @ (prior.means(self.X) - prior.mean)
        return answers

    def longest_column(self, noise: Noise = GAUSSIAN, *, channels: int = 1) -> float:
        """Return max ‖r_j‖; with groups, the greatest gauge of one (`cloakgp.privacy.groups`)."""
        return noise.gauge(self.matrix, groups=self.row_groups, channels=channels)

    @property
    def asks_something(self) -> bool:
        """Whether any question depends on any output."""
        return bool(self.matrix.any())

    @property
    def groups(self) -> Groups | None:
        """Which group each row belongs to, if rows are protected together; shape (N,)."""
        return self.row_groups

    def merge(
        self, others: Sequence[Strategy], *, noise_sds: Sequence[float], prior: LatentPrior
    ) -> DenseTable:
        """Return the rows, and all that was asked of them, in units of the noise."""
        del prior
        matrices = [one.matrix for one in (self, *others) if isinstance(one, DenseStrategy)]
        if len(matrices) < len(noise_sds):
            raise ValueError(
                "one table was asked by strategies that are kept in different ways, and what these "
                "have in common is not known: combine with same_rows=False if rows differ"
            )
        questions = [matrix / sd for matrix, sd in zip(matrices, noise_sds, strict=True)]
        return DenseTable(
            number=self.table,
            X=self.X,
            questions=np.vstack(questions),
            offset=None if self.row_exposure is None else np.log(self.row_exposure),
        )

    def same_rows(self, other: Strategy) -> bool:
        """Return whether another strategy is about rows with the same inputs, in this order."""
        if not isinstance(other, DenseStrategy) or not np.array_equal(self.X, other.X):
            return False
        mine, others = self.row_exposure, other.row_exposure
        if mine is None or others is None:
            return mine is others
        return np.array_equal(mine, others)

    def same_questions(self, other: Strategy) -> bool:
        """Return whether another strategy asks the same of every row."""
        return isinstance(other, DenseStrategy) and np.array_equal(self.matrix, other.matrix)

    def verify(self, passes: Passes, *, question: Question) -> float:
        """Check that a table holds the rows that the strategy is about."""
        del question
        found = passes.over_inputs(_Inputs.of, what="verifying").together()
        if not np.array_equal(found, self.X):
            raise ValueError("the release is about other rows")
        return self.longest_column()

    def validate(self) -> None:
        """Refuse arrays that do not fit each other, or questions out of scale."""
        if self.matrix.ndim != 2 or self.X.shape != (self.matrix.shape[1], self.n_inputs):
            raise ValueError(MISFIT)
        answers, rows = self.matrix.shape
        if self.representers is not None and self.representers.shape != (rows, answers):
            raise ValueError(MISFIT)
        if self.row_groups is not None and not _numbered_in_order(self.row_groups, rows=rows):
            raise ValueError("the groups of its rows are damaged")
        exposure = self.row_exposure
        if exposure is not None and not (
            exposure.shape == (rows,) and (exposure > 0).all() and np.isfinite(exposure).all()
        ):
            raise ValueError("the exposure of its rows is damaged")
        super().validate()
        largest = float(np.abs(self.matrix).max()) if self.asks_something else 1.0
        if not SMALLEST_ENTRY < largest < 1 / SMALLEST_ENTRY:
            raise ValueError("its questions are out of scale")


def _numbered_in_order(groups: Groups, *, rows: int) -> bool:
    """Return whether groups are as `checked_groups` numbers them: in order of appearance."""
    if groups.shape != (rows,):
        return False
    numbered = checked_groups(groups.tolist(), rows=rows)
    return numbered is not None and np.array_equal(numbered, groups)


@dataclass(frozen=True, eq=False)
class _Inputs:
    """The inputs of chunks, in order."""

    parts: tuple[Array, ...]

    @classmethod
    def of(cls, chunk: Chunk) -> _Inputs:
        return cls(parts=(chunk.X,))

    def merge(self, other: _Inputs) -> _Inputs:
        return _Inputs(parts=self.parts + other.parts)

    def together(self) -> Array:
        return np.vstack(self.parts)
