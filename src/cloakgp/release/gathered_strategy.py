"""Gathered strategies: all rows of a cell are asked alike, and no row is kept.

A row j of a cell c is asked w_j r_c: w_j is 1, or, where all rows of a person are protected
together, one over the number of that person's rows. So R V = Σ_c r_c Σ_{j∈c} w_j v_j: the strategy
asks for weighted sums over cells. Given the latent value f_c at the centre, such a sum has mean
W E[v | f_c] and variance Q var(v | f_c), with W = Σ w_j and Q = Σ w_j². Of a cell its centre, the
number of its rows, W and Q are kept. That its rows lie elsewhere is left out: it adds to how
outputs scatter, which is learned.

Exposures of counts are a further coordinate, by their logarithm: rows of a cell have similar ones.
They count as (Σ w √e / W)², which gives the sum of roots √(e λ) the right mean; that exposures of
a cell differ adds λ var √e to how the roots of its counts scatter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cloakgp.design.streaming.binning import Partition
from cloakgp.design.streaming.grouping import GroupedPasses, Grouping
from cloakgp.privacy.noise import GAUSSIAN, Noise
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.rounding import sum_of_shares
from cloakgp.release.strategy import MISFIT, LatentPrior, Strategy
from cloakgp.release.tables import DenseTable
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Chunk, Passes

# Relative: sums of weights in another order differ by less.
SAME_SUM = 1e-9


@dataclass(frozen=True, eq=False)
class CellColumns:
    """The columns of rows by the cells that they are in.

    Attributes
    ----------
    matrix : array of shape (k, n)
        The column of each row of a cell.
    cells : Partition
    grouped : bool
        Whether inputs end with the sizes of groups, over which columns are divided.

    Examples
    --------
    >>> cells = Partition(centres=np.array([[0.0], [1.0]]), units=np.ones(1))
    >>> CellColumns(np.array([[3.0, 5.0]]), cells)(np.array([[0.9], [0.2], [0.8]]))
    array([[5., 3., 5.]])
    """

    matrix: Array
    cells: Partition
    grouped: bool = False

    def __call__(self, X: Array) -> Array:
        """Return the columns of rows, shape (k, N)."""
        columns = np.ascontiguousarray(self.matrix[:, self.cells.nearest(X)])
        return columns / X[:, -1] if self.grouped else columns


@dataclass(frozen=True, eq=False)
class CellSums:
    """Public sums over the rows of every cell.

    Attributes
    ----------
    counts : array of shape (n,)
        The number of rows.
    weights, squares : arrays of shape (n,)
        W and Q.
    roots : array of shape (n,)
        Σ w √e; W without exposures.
    chunks : int
        In how many chunks the rows were read.
    """

    counts: Array
    weights: Array
    squares: Array
    roots: Array
    chunks: int

    def merge(self, other: CellSums) -> CellSums:
        """Return the sums over the rows of both."""
        return CellSums(
            counts=self.counts + other.counts,
            weights=self.weights + other.weights,
            squares=self.squares + other.squares,
            roots=self.roots + other.roots,
            chunks=self.chunks + other.chunks,
        )

    def where(self, occupied: NDArray[np.bool_]) -> CellSums:
        """Return the sums of some of the cells."""
        return replace(
            self,
            counts=self.counts[occupied],
            weights=self.weights[occupied],
            squares=self.squares[occupied],
            roots=self.roots[occupied],
        )

    @property
    def exposure(self) -> Array:
        """(Σ w √e / W)², shape (n,)."""
        return np.asarray(np.square(self.roots / self.weights), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Summing:
    """The rows of one chunk, added up by cells."""

    cells: Partition
    exposed: bool
    grouped: bool

    def __call__(self, chunk: Chunk) -> CellSums:
        places, count = self.cells.nearest(chunk.X), len(self.cells.centres)
        weights = 1.0 / chunk.X[:, -1] if self.grouped else np.ones(len(chunk.X))
        roots = weights
        if self.exposed:
            roots = weights * np.exp(chunk.X[:, self.cells.centres.shape[1] - 1] / 2)

        def added(values: Array) -> Array:
            return np.bincount(places, weights=values, minlength=count).astype(np.float64)

        return CellSums(
            counts=np.bincount(places, minlength=count).astype(np.float64),
            weights=added(weights),
            squares=added(np.square(weights)),
            roots=added(roots),
            chunks=1,
        )


def sum_cells(
    passes: Passes, cells: Partition, *, what: str, exposed: bool = False, grouped: bool = False
) -> CellSums:
    """Add up the rows of every cell, in one pass over public inputs.

    Parameters
    ----------
    passes : Passes
    cells : Partition
    what : str
        What this pass is for.
    exposed : bool
        Whether the last coordinate of cells is the logarithm of exposures.
    grouped : bool
        Whether inputs end with the sizes of groups.
    """
    return passes.over_inputs(_Summing(cells=cells, exposed=exposed, grouped=grouped), what=what)


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
        r_c, the column of each row of a cell, times the number of its person's rows.
    input_ranges : array of shape (2, D)
        Of the rows.
    row_exposure : array of shape (n,) or None
        Of counts: how much of whatever they are counted in each row of a cell had. The last
        coordinate of cells is its logarithm then.
    weights, squares : arrays of shape (n,) or None
        W and Q, of groups; None where every row counts once.
    grouping : Grouping or None
        Of rows that are protected together.
    """

    cells: Partition
    sizes: Array
    matrix: Array
    input_ranges: Array
    row_exposure: Array | None = None
    weights: Array | None = None
    squares: Array | None = None
    grouping: Grouping | None = None

    @property
    def X(self) -> Array:
        """The centres of the cells, shape (n, D)."""
        return self.cells.centres[:, : self.n_inputs]

    @property
    def columns(self) -> CellColumns:
        """The columns of rows, by their inputs."""
        return CellColumns(matrix=self.matrix, cells=self.cells, grouped=self.grouped)

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
    def cell_weights(self) -> Array:
        """W, shape (n,)."""
        return self.sizes if self.weights is None else self.weights

    @property
    def effective_sizes(self) -> Array:
        """W²/Q, shape (n,): of how many rows a weighted mean scatters as much as of these."""
        if self.weights is None or self.squares is None:
            return self.sizes
        return np.asarray(np.square(self.weights) / self.squares, dtype=np.float64)

    @property
    def totals(self) -> Array:
        """R 1 over all rows, shape (k,)."""
        totals: Array = self.matrix @ self.cell_weights
        return totals

    def trend_answers(self, prior: LatentPrior) -> Array:
        """Return R t, shape (k,), as if all rows of a cell were at its place."""
        trend = prior.means(self.X) - prior.mean
        answers: Array = self.matrix @ (self.cell_weights * trend)
        return answers

    @property
    def grouped(self) -> bool:
        """Whether all rows of one group are protected together."""
        return self.grouping is not None

    def longest_column(self, noise: Noise = GAUSSIAN, *, channels: int = 1) -> float:
        """Return `longest_at_one`, or that of all custodians whose rows a person may have."""
        longest = self.longest_at_one(noise, channels=channels)
        return longest if self.grouping is None else longest * self.grouping.places

    def longest_at_one(self, noise: Noise = GAUSSIAN, *, channels: int = 1) -> float:
        """Return max ‖r_c‖; with groups, what the lengths of one group's columns add up to at most.

        These are ‖r_c‖ over the number of its rows each, and so no more than max ‖r_c‖ together.

        Parameters
        ----------
        noise : Noise
        channels : int
        """
        longest = noise.gauge(self.matrix, groups=None, channels=channels)
        return (
            longest if self.grouping is None else longest * sum_of_shares(self.grouping.most_rows)
        )

    @property
    def asks_something(self) -> bool:
        """Whether any question depends on any output."""
        return bool(self.matrix.any())

    def merge(
        self, others: Sequence[Strategy], *, noise_sds: Sequence[float], prior: LatentPrior
    ) -> DenseTable:
        """Return the cells, and what was asked of the mean of each, in units of the noise.

        Raises
        ------
        ValueError
            If the others are about rows that were not gathered.
        """
        del prior
        matrices = [one.matrix for one in (self, *others) if isinstance(one, GatheredStrategy)]
        if len(matrices) < len(noise_sds):
            raise ValueError(MISFIT)
        questions = [matrix / sd for matrix, sd in zip(matrices, noise_sds, strict=True)]
        return DenseTable(
            number=self.table,
            X=self.X,
            questions=np.vstack(questions) * self.cell_weights,
            offset=None if self.row_exposure is None else np.log(self.row_exposure),
            sizes=self.effective_sizes,
        )

    def same_rows(self, other: Strategy) -> bool:
        """Return whether another strategy has the same cells, with as many rows in each."""
        return (
            isinstance(other, GatheredStrategy)
            and np.array_equal(self.cells.centres, other.cells.centres)
            and np.array_equal(self.sizes, other.sizes)
            and np.array_equal(self.cell_weights, other.cell_weights)
        )

    def same_questions(self, other: Strategy) -> bool:
        """Return whether another strategy asks the same of every row."""
        return (
            isinstance(other, GatheredStrategy)
            and self.same_rows(other)
            and np.array_equal(self.matrix, other.matrix)
        )

    def verify(self, passes: Passes, *, question: Question) -> float:
        """Check that the cells of a table have as many rows.

        And as much weight, of rows with groups. Of counts with exposures, rows are
        `cloakgp.data.entries.ExposedRows`.
        """
        del question
        rows = GroupedPasses.of(passes) if self.grouped else passes
        found = sum_cells(rows, self.cells, what="verifying", grouped=self.grouped)
        alike = np.array_equal(found.counts, self.sizes)
        if not (alike and np.allclose(found.weights, self.cell_weights, rtol=SAME_SUM)):
            raise ValueError("the release is about other rows")
        return self.longest_column()

    def validate(self) -> None:
        """Refuse arrays that do not fit each other, and cells without rows."""
        self.cells.validate()
        cells, exposure = len(self.cells.centres), self.row_exposure
        dimensions = self.n_inputs + (exposure is not None)
        if self.matrix.ndim != 2 or self.cells.centres.shape[1] != dimensions:
            raise ValueError(MISFIT)
        others = [one for one in (exposure, self.weights, self.squares) if one is not None]
        shapes = {self.matrix.shape[1:], *(one.shape for one in (self.sizes, *others))}
        if shapes != {(cells,)}:
            raise ValueError(MISFIT)
        # Written so that NaN fails.
        if not ((self.sizes >= 1) & (self.sizes == np.floor(self.sizes))).all():
            raise ValueError("its cells are damaged")
        if not all(((one > 0) & np.isfinite(one)).all() for one in others):
            raise ValueError("its cells are damaged")
        if len({one is None for one in (self.weights, self.squares, self.grouping)}) > 1:
            raise ValueError(MISFIT)
        if self.grouping is not None:
            self.grouping.validate()
        super().validate()
