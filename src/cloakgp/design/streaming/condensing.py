r"""Condensed questions: the columns of all rows under a rule, summed by cells.

The rows of a cell are at about the same place, and so are known by about the same variance λ_c of
their own. Of them, sums over rows need their number n_c, Q_c = Σ_j r_j and Σ_j r_j r_jᵀ. The last
would be a k × k matrix for each cell. It is n_c q̄ q̄ᵀ with q̄ = Q_c/n_c, which is kept, and what
columns differ from their cell's mean: of that, the trace w_c is kept for each cell, and the matrix
for all cells together, because R Rᵀ is. So

    R Λ Rᵀ ≈ Q diag(λ/n) Qᵀ + (Σ_c λ_c w_c) W,    W = (R Rᵀ − Q diag(1/n) Qᵀ) / Σ_c w_c,

which is positive semidefinite, has the right share of each cell in its trace, and is exact where
all λ_c are one, or the columns of every cell are alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cloakgp.design.streaming.binning import Partition
from cloakgp.design.streaming.grouping import GroupedPasses, columns_at
from cloakgp.design.streaming.row_model import RowModel
from cloakgp.design.streaming.rules import Rule
from cloakgp.utils.arrays import Array
from cloakgp.utils.clusters import membership_of
from cloakgp.utils.passes import Chunk, Passes

# Columns that differ from the mean of their cell by less than this share are rounding.
ALIKE = 1e-12


@dataclass(frozen=True, eq=False)
class SampledQuestions:
    """The columns of a sample of rows.

    Attributes
    ----------
    X : array of shape (n, D)
    columns : array of shape (k, n)
    cells : array of int, shape (n,)
        Which cell each row is in.
    share : float
        N/n, how many rows each stands for.
    """

    X: Array
    columns: Array
    cells: NDArray[np.intp]
    share: float


@dataclass(frozen=True, eq=False)
class CellQuestions:
    """The columns of all rows, summed by cells.

    Attributes
    ----------
    centres : array of shape (n, D)
        Where the rows of a cell are on average.
    counts : array of shape (n,)
        How many there are, at least one.
    questions : array of shape (k, n)
        Q, sums of their columns.
    squares : array of shape (n,)
        Σ ‖r_j‖² over them.
    gram : array of shape (k, k)
        R Rᵀ over all rows.
    longest : float
        max_j ‖r_j‖ over all rows.
    sample : SampledQuestions or None
        Some of the rows, that say how rows differ from the centres of their cells.

    Examples
    --------
    >>> cells = CellQuestions.of_rows(np.zeros((2, 1)), np.array([[1.0, 3.0]]))
    >>> cells.row_products(np.array([1.0, 2.0]))
    array([[19.]])
    """

    centres: Array
    counts: Array
    questions: Array
    squares: Array
    gram: Array
    longest: float
    sample: SampledQuestions | None = None

    @classmethod
    def of_rows(cls, X: Array, columns: Array) -> CellQuestions:
        """Return every row as a cell of its own: nothing is lost.

        Parameters
        ----------
        X : array of shape (N, D)
        columns : array of shape (k, N)
        """
        squares = np.einsum("kn,kn->n", columns, columns)
        return cls(
            centres=X,
            counts=np.ones(len(X)),
            questions=columns,
            squares=squares,
            gram=columns @ columns.T,
            longest=float(np.sqrt(squares.max(initial=0.0))),
        )

    @property
    def count(self) -> int:
        """N, the number of rows."""
        return int(self.counts.sum())

    @property
    def totals(self) -> Array:
        """R 1, shape (k,)."""
        totals: Array = self.questions.sum(axis=1)
        return totals

    @cached_property
    def spreads(self) -> Array:
        """w, the squares from deviations of columns from their cell's mean, shape (n,)."""
        alike = np.einsum("kn,kn->n", self.questions, self.questions) / self.counts
        return np.where(self.squares - alike > ALIKE * self.squares, self.squares - alike, 0.0)

    @cached_property
    def within(self) -> Array:
        """W, how columns differ from their cell's mean, of trace 1 or 0, shape (k, k)."""
        total = float(self.spreads.sum())
        if total == 0.0:
            return np.zeros_like(self.gram)
        left: Array = self.gram - (self.questions / self.counts) @ self.questions.T
        return (left + left.T) / (2.0 * total)

    def row_products(self, variances: Array) -> Array:
        """Return R diag(variances) Rᵀ, the variances given per cell: see the module.

        Parameters
        ----------
        variances : array of shape (n,)
        """
        between = (self.questions * (variances / self.counts)) @ self.questions.T
        product: Array = between + float(variances @ self.spreads) * self.within
        return product

    @cached_property
    def estimating(self) -> Array:
        """Questions at cells, then at the sample: see `estimated_products`, shape (k, n + s)."""
        sample = self.sample
        if sample is None:
            return self.questions
        membership = membership_of(sample.cells, count=len(self.counts))
        sampled = (membership @ sample.columns.T).T
        return np.hstack([self.questions - sample.share * sampled, sample.share * sample.columns])

    def estimated_products(self, variances: Array) -> Array:
        """Return R diag(variances) Rᵀ, corrected by the sample.

        Cells are a control variate: what they say of all rows is corrected by what the rows of the
        sample say beyond their cells.

        Parameters
        ----------
        variances : array of shape (n + s,)
            At cells, then at the sample.
        """
        count, sample = len(self.counts), self.sample
        product = self.row_products(variances[:count])
        if sample is None:
            return product
        beyond = variances[count:] - variances[sample.cells]
        return product + (self.estimating[:, count:] * beyond) @ sample.columns.T

    def row_forms(self, matrix: Array) -> Array:
        """Return Σ r_jᵀ M r_j over the rows of each cell, shape (n,): `row_products`' adjoint.

        Parameters
        ----------
        matrix : array of shape (k, k)
            Symmetric.
        """
        between = np.einsum("kn,kn->n", self.questions, matrix @ self.questions) / self.counts
        forms: Array = between + float(np.vdot(self.within, matrix)) * self.spreads
        return forms

    def scaled(self, factor: float) -> CellQuestions:
        """Return the questions in other units.

        Parameters
        ----------
        factor : float
            By which every column is multiplied; positive.
        """
        return replace(
            self,
            questions=self.questions * factor,
            squares=self.squares * factor**2,
            gram=self.gram * factor**2,
            longest=self.longest * factor,
            sample=None
            if self.sample is None
            else replace(self.sample, columns=self.sample.columns * factor),
        )

    def gathered(self, positions: NDArray[np.intp]) -> CellQuestions:
        """Return fewer cells, each of several of these.

        Parameters
        ----------
        positions : array of int, shape (n,)
            To which of them each of these goes, from 0; none stays empty.
        """
        joined = membership_of(positions)
        counts = joined @ self.counts
        return replace(
            self,
            centres=(joined @ (self.centres * self.counts[:, None])) / counts[:, None],
            counts=counts,
            questions=(joined @ self.questions.T).T,
            squares=joined @ self.squares,
            sample=None
            if self.sample is None
            else replace(self.sample, cells=positions[self.sample.cells]),
        )


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over the rows of every cell."""

    places: Array
    counts: Array
    questions: Array
    squares: Array
    gram: Array
    longest: float

    def merge(self, other: _Sums) -> _Sums:
        return _Sums(
            places=self.places + other.places,
            counts=self.counts + other.counts,
            questions=self.questions + other.questions,
            squares=self.squares + other.squares,
            gram=self.gram + other.gram,
            # Unlike Python's max, this lets no NaN pass unseen.
            longest=float(np.maximum(self.longest, other.longest)),
        )


@dataclass(frozen=True, eq=False)
class _Condensing:
    """The sums of one chunk."""

    model: RowModel
    rule: Rule
    cells: Partition
    grouped: bool

    def __call__(self, chunk: Chunk) -> _Sums:
        columns, inputs = columns_at(
            chunk.X, model=self.model, rule=self.rule, grouped=self.grouped
        )
        squares = np.einsum("kn,kn->n", columns, columns)
        membership = self.cells.membership(inputs)
        return _Sums(
            places=membership @ inputs,
            counts=membership @ np.ones(len(inputs)),
            questions=np.ascontiguousarray((membership @ columns.T).T),
            squares=membership @ squares,
            gram=columns @ columns.T,
            longest=float(np.sqrt(squares.max(initial=0.0))),
        )


def condense(
    passes: Passes,
    *,
    model: RowModel,
    rule: Rule,
    cells: Partition,
    sample: Array | None = None,
    what: str = "gathering questions",
) -> CellQuestions:
    """Sum the columns of the rows of every cell, in one pass.

    Sees public arrays only.

    Parameters
    ----------
    passes : Passes
        With `GroupedPasses`, columns are those of `grouped_columns`.
    model : RowModel
        Whose features and noise variances the rule goes by.
    rule : Rule
    cells : Partition
    sample : array of shape (n, D), optional
        Some of these rows, spread over all of them; none of groups, whose sizes it does not tell.
    what : str
        Shown to whoever waits.

    Returns
    -------
    CellQuestions
        Of the cells that have rows.
    """
    grouped = isinstance(passes, GroupedPasses)
    condensing = _Condensing(model=model, rule=rule, cells=cells, grouped=grouped)
    sums = passes.over_inputs(condensing, what=what)
    kept = sums.counts > 0
    counts = sums.counts[kept]
    return CellQuestions(
        centres=sums.places[kept] / counts[:, None],
        counts=counts,
        questions=np.ascontiguousarray(sums.questions[:, kept]),
        squares=sums.squares[kept],
        gram=(sums.gram + sums.gram.T) / 2,
        longest=sums.longest,
        sample=None
        if sample is None
        else SampledQuestions(
            X=sample,
            columns=rule.columns(*model.features_and_noise(sample)),
            # Each is among the rows, so that its cell is not empty.
            cells=(np.cumsum(kept) - 1)[cells.nearest(sample)],
            share=float(counts.sum()) / len(sample),
        ),
    )
