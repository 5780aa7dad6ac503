r"""Sums of a strategy over all rows: small, and all that later steps need.

With R the strategy, V the rows' features and Λ their noise variances, answers R y + noise have the
covariance A Aᵀ + B + s² I with A = R Vᵀ and B = R Λ Rᵀ, and covariance A v_* with the latent
function at a point of features v_*. So A, B and R 1 say all that predictions need of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from cloakgp.design.streaming.row_model import RowModel
from cloakgp.design.streaming.rules import Columns, Rule, weigh_rows
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Chunk, Passes


@dataclass(frozen=True, eq=False)
class ClippedSums:
    """Sums over rows that linearised clipped outputs add to questions about outputs.

    Clipped outputs t ≈ h + A (y − m) + e + o β, see `cloakgp.models.clipping`.

    Attributes
    ----------
    expected : array of shape (k,)
        R (h − A (m − m₀)), with m₀ the prior mean: what is asked is this and R A (y − m₀).
    residual : array of shape (k, k)
        R diag(var e) Rᵀ.
    skew : array of shape (k,)
        R o.
    """

    expected: Array
    residual: Array
    skew: Array

    def merge(self, other: ClippedSums) -> ClippedSums:
        """Return the sums over the rows of both."""
        return ClippedSums(
            expected=self.expected + other.expected,
            residual=self.residual + other.residual,
            skew=self.skew + other.skew,
        )


@dataclass(frozen=True, eq=False)
class StrategySums:
    """Sums over rows of their columns under a rule.

    Attributes
    ----------
    features : array of shape (k, M)
        A = R Vᵀ.
    noise : array of shape (k, k)
        B = R Λ Rᵀ.
    totals : array of shape (k,)
        R 1.
    count : int
        N, the number of rows.
    chunk_rows : int
        The most rows that were seen together.
    longest : float
        max_j ‖r_j‖ over every row.
    shared : tuple of arrays of shape (k, k')
        R Λ R'ᵀ with what the same rows were asked earlier.
    clipped : ClippedSums or None
        Of outputs that were clipped to bands. R is then what is asked of the outputs themselves by
        the best linear account of these, in the other sums, too.
    """

    features: Array
    noise: Array
    totals: Array
    count: int
    chunk_rows: int
    longest: float
    shared: tuple[Array, ...] = ()
    clipped: ClippedSums | None = None

    def with_noise(self, more: float, *, products: Sequence[Array]) -> StrategySums:
        """Return the sums of rows that have more noise, each as much.

        Parameters
        ----------
        more : float
            In squared output units.
        products : sequence of arrays
            R Rᵀ, and R R'ᵀ with what was asked earlier.
        """
        own, *others = products
        return replace(
            self,
            noise=self.noise + more * own,
            shared=tuple(each + more * one for each, one in zip(self.shared, others, strict=True)),
        )

    def merge(self, other: StrategySums) -> StrategySums:
        """Return the sums over the rows of both."""
        return StrategySums(
            features=self.features + other.features,
            noise=self.noise + other.noise,
            totals=self.totals + other.totals,
            count=self.count + other.count,
            chunk_rows=max(self.chunk_rows, other.chunk_rows),
            # Unlike Python's max, this lets no NaN pass unseen.
            longest=float(np.maximum(self.longest, other.longest)),
            shared=tuple(one + two for one, two in zip(self.shared, other.shared, strict=True)),
            clipped=_merged(self.clipped, other.clipped),
        )


@dataclass(frozen=True, eq=False)
class AskedOfCells:
    """Sums over the rows of cells of their columns in one stage.

    Attributes
    ----------
    questions : array of shape (k, n)
        R summed over the rows of each cell.
    squares : array of shape (n,)
        Σ ‖r_j‖² over these.
    clipped : ClippedSums or None
        Over all rows, as in `StrategySums`.
    """

    questions: Array
    squares: Array
    clipped: ClippedSums | None = None

    @property
    def totals(self) -> Array:
        """R 1, shape (k,)."""
        found: Array = self.questions.sum(axis=1)
        return found

    def merge(self, other: AskedOfCells) -> AskedOfCells:
        """Return the sums over the rows of both."""
        return AskedOfCells(
            questions=self.questions + other.questions,
            squares=self.squares + other.squares,
            clipped=_merged(self.clipped, other.clipped),
        )

    def joined(self, cells: sparse.csr_array) -> AskedOfCells:
        """Return the sums over larger cells.

        Parameters
        ----------
        cells : sparse array of shape (m, n)
            With a 1 where one of these is part of one of those.
        """
        return replace(self, questions=(cells @ self.questions.T).T, squares=cells @ self.squares)


def _merged(mine: ClippedSums | None, theirs: ClippedSums | None) -> ClippedSums | None:
    return None if mine is None or theirs is None else mine.merge(theirs)


def weighted_products(columns: Columns, others: Columns, *, weights: Array | float) -> Array:
    """Return R diag(weights) R'ᵀ, shape (k, k').

    Parameters
    ----------
    columns : array or sparse array of shape (k, n)
        R.
    others : array or sparse array of shape (k', n)
        R'.
    weights : array of shape (n,), or float
    """
    products = weigh_rows(columns, np.broadcast_to(weights, columns.shape[1:])) @ others.T
    dense: Array = products.toarray() if sparse.issparse(products) else products
    return dense


def sums_of_rows(
    columns: Columns,
    features: Array,
    noise: Array,
    *,
    earlier: Sequence[Columns] = (),
) -> StrategySums:
    """Return the sums over some rows.

    Parameters
    ----------
    columns : array or sparse array of shape (k, n)
        R.
    features : array of shape (M, n)
        V.
    noise : array of shape (n,)
        Λ.
    earlier : sequence of arrays or sparse arrays of shape (k', n)
        What earlier stages asked of these rows.
    """
    if isinstance(columns, sparse.csr_array):
        spread = weighted_products(columns, columns, weights=noise)
    else:
        weighed = columns * np.sqrt(noise)
        # The same array twice: half the work.
        spread = weighed @ weighed.T
    return StrategySums(
        features=columns @ features.T,
        noise=spread,
        totals=np.asarray(columns.sum(axis=1), dtype=np.float64),
        count=len(noise),
        chunk_rows=len(noise),
        longest=float(np.sqrt(_squares(columns).max(initial=0.0))),
        shared=tuple(weighted_products(columns, one, weights=noise) for one in earlier),
    )


def sums_over_cells(columns: Columns, membership: sparse.csr_array) -> AskedOfCells:
    """Return the sums over some rows of cells.

    Parameters
    ----------
    columns : array or sparse array of shape (k, n)
        R.
    membership : sparse array of shape (cells, n)
        1 where a row belongs to a cell.
    """
    if isinstance(columns, sparse.csr_array):
        questions = (columns @ membership.T).toarray()
    else:
        questions = (membership @ columns.T).T
    return AskedOfCells(questions=questions, squares=membership @ _squares(columns))


def _squares(columns: Columns) -> Array:
    """Return ‖r_j‖² of every row."""
    if isinstance(columns, sparse.csr_array):
        return np.asarray(columns.power(2).sum(axis=0), dtype=np.float64)
    squares: Array = np.einsum("kn,kn->n", columns, columns)
    return squares


@dataclass(frozen=True, eq=False)
class _Asking:
    """The sums of one chunk."""

    model: RowModel
    rule: Rule
    remember: bool = False

    def __call__(self, chunk: Chunk) -> StrategySums:
        features, noise = self.model.features_and_noise(chunk.X)
        columns = self.rule.summable_columns(features, noise)
        if self.remember and isinstance(columns, sparse.csr_array):
            self.rule.remembered.keep(chunk.X, columns)
        return sums_of_rows(columns, features, noise)


def sum_strategy(
    passes: Passes,
    *,
    model: RowModel,
    rule: Rule,
    remember: bool = False,
    what: str = "summing questions",
) -> StrategySums:
    """Sum the columns of all rows under a rule, in one pass.

    Parameters
    ----------
    passes : Passes
    model : RowModel
    rule : Rule
    remember : bool
        Keep columns of one entry each for further passes (`Rule.remembered`).
    what : str
        Shown to whoever waits.
    """
    asking = _Asking(model=model, rule=rule, remember=remember)
    return passes.over_inputs(asking, what=what)
