"""Gathered strategies: all rows of a cell are asked alike, and no row is kept.

With r_j = r_c for all rows j of a cell c, R V = Σ_c r_c Σ_{j∈c} v_j: the strategy asks for sums
over cells. Of a cell its centre and the number of its rows are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloakgp.design.streaming.binning import Partition
from cloakgp.privacy.noise import GAUSSIAN, Noise
from cloakgp.privacy.questions.base import Question
from cloakgp.release.strategy import MISFIT, LatentPrior, Strategy
from cloakgp.release.tables import AnsweredTable
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Chunk, Passes


@dataclass(frozen=True, eq=False)
class CellColumns:
    """The columns of rows by the cells that they are in.

    Attributes
    ----------
    matrix : array of shape (k, n)
        The column of each row of a cell.
    cells : Partition

    Examples
    --------
    >>> cells = Partition(centres=np.array([[0.0], [1.0]]), units=np.ones(1))
    >>> CellColumns(np.array([[3.0, 5.0]]), cells)(np.array([[0.9], [0.2], [0.8]]))
    array([[5., 3., 5.]])
    """

    matrix: Array
    cells: Partition

    def __call__(self, X: Array) -> Array:
        """Return the columns of rows, shape (k, N)."""
        return np.ascontiguousarray(self.matrix[:, self.cells.nearest(X)])


@dataclass(frozen=True, eq=False)
class CellSizes:
    """The number of rows of every cell.

    Attributes
    ----------
    counts : array of shape (n,)
    """

    counts: Array

    def merge(self, other: CellSizes) -> CellSizes:
        """Return the numbers of the rows of both."""
        return CellSizes(counts=self.counts + other.counts)


@dataclass(frozen=True, eq=False)
class _Counting:
    """The rows of one chunk, counted by cells."""

    cells: Partition

    def __call__(self, chunk: Chunk) -> CellSizes:
        found = np.bincount(self.cells.nearest(chunk.X), minlength=len(self.cells.centres))
        return CellSizes(counts=found.astype(np.float64))


def cell_sizes(passes: Passes, cells: Partition, *, what: str) -> Array:
    """Count the rows of every cell, in one pass over public inputs; shape (n,).

    Parameters
    ----------
    passes : Passes
    cells : Partition
    what : str
        What this pass is for.
    """
    return passes.over_inputs(_Counting(cells=cells), what=what).counts


@dataclass(frozen=True, eq=False, kw_only=True)
class GatheredStrategy(Strategy):
    """A strategy that asks all rows of a cell alike, kept without the rows.

    Attributes
    ----------
    cells : Partition
        A row belongs to the nearest centre.
    sizes : array of shape (n,)
        The number of rows of each cell, at least one.
    matrix : array of shape (k, n)
        The column of each row of a cell.
    input_ranges : array of shape (2, D)
        The least and the greatest of every input, over all rows.
    """

    cells: Partition
    sizes: Array
    matrix: Array
    input_ranges: Array

    @property
    def X(self) -> Array:
        """The centres of the cells, shape (n, D)."""
        return self.cells.centres

    @property
    def columns(self) -> CellColumns:
        """The columns of rows, by their inputs."""
        return CellColumns(matrix=self.matrix, cells=self.cells)

    @property
    def n_answers(self) -> int:
        """k, the number of questions."""
        return len(self.matrix)

    @property
    def n_rows(self) -> int:
        """N, the number of rows of the table."""
        return int(self.sizes.sum())

    @property
    def ranges(self) -> Array:
        """The least and the greatest of every input, shape (2, D)."""
        return self.input_ranges

    @property
    def totals(self) -> Array:
        """R 1 over all rows, shape (k,)."""
        totals: Array = self.matrix @ self.sizes
        return totals

    def longest_column(self, noise: Noise = GAUSSIAN, *, channels: int = 1) -> float:
        """Return max ‖r_c‖."""
        return noise.gauge(self.matrix, groups=None, channels=channels)

    @property
    def asks_something(self) -> bool:
        """Whether any question depends on any output."""
        return bool(self.matrix.any())

    def merge(
        self, others: Sequence[Strategy], *, noise_sds: Sequence[float], prior: LatentPrior
    ) -> AnsweredTable:
        """Refuse to state questions about outputs themselves: those of cells are sums.

        Raises
        ------
        ValueError
        """
        del others, noise_sds, prior
        raise ValueError("questions about cells of rows are for thresholds of quantiles")

    def same_rows(self, other: Strategy) -> bool:
        """Return whether another strategy has the same cells, with as many rows in each."""
        return (
            isinstance(other, GatheredStrategy)
            and np.array_equal(self.X, other.X)
            and np.array_equal(self.sizes, other.sizes)
        )

    def same_questions(self, other: Strategy) -> bool:
        """Return whether another strategy asks the same of every row."""
        return (
            isinstance(other, GatheredStrategy)
            and self.same_rows(other)
            and np.array_equal(self.matrix, other.matrix)
        )

    def verify(self, passes: Passes, *, question: Question) -> float:
        """Check that the cells of a table have as many rows."""
        del question
        if not np.array_equal(cell_sizes(passes, self.cells, what="verifying"), self.sizes):
            raise ValueError("the release is about other rows")
        return self.longest_column()

    def validate(self) -> None:
        """Refuse arrays that do not fit each other, and cells without rows."""
        self.cells.validate()
        cells = len(self.X)
        if self.matrix.ndim != 2 or not self.matrix.shape[1] == cells == len(self.sizes):
            raise ValueError(MISFIT)
        # Written so that NaN fails.
        if not ((self.sizes >= 1) & (self.sizes == np.floor(self.sizes))).all():
            raise ValueError("its cells are damaged")
        super().validate()
