r"""Binning: rows gathered in cells, a smaller problem whose every strategy fits the rows.

If all rows of a cell are asked alike, r_j = r_c, then R y = Σ_c r_c Σ_{j∈c} y_j: the strategy asks
for sums over cells. Under the model these sums have covariance V_cᵀ V_c + diag(λ_c) with the cell's
own sums of features and of noise variances, exactly. So a design for cells is a design for rows
that is the best among those which do not tell the rows of a cell apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial import KDTree

from cloakgp.design.streaming.row_model import RowModel
from cloakgp.design.streaming.rules import Columns
from cloakgp.utils.arrays import Array
from cloakgp.utils.clusters import cluster_rows, membership_of
from cloakgp.utils.passes import Chunk, Passes
from cloakgp.utils.threads import product


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of the space of inputs: a row belongs to the nearest centre.

    Attributes
    ----------
    centres : array of shape (n, D)
    units : array of shape (D,)
        Positive; distances are measured in these.

    Examples
    --------
    >>> cells = Partition(centres=np.array([[0.0], [1.0]]), units=np.ones(1))
    >>> cells.membership(np.array([[0.2], [0.9], [0.8]])).toarray()
    array([[1., 0., 0.],
           [0., 1., 1.]])
    """

    centres: Array
    units: Array

    def validate(self) -> None:
        """Refuse a partition that is none.

        Raises
        ------
        ValueError
            If centres are none or not finite, or units are not positive.
        """
        fit = self.centres.ndim == 2 and self.units.shape == self.centres.shape[1:]
        if not (
            fit
            and len(self.centres)
            and np.isfinite(self.centres).all()
            and np.isfinite(self.units).all()
            and (self.units > 0).all()
        ):
            raise ValueError("its cells are damaged")

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self.centres / self.units)

    def membership(self, X: Array) -> sparse.csr_array:
        """Return the matrix of shape (n, rows) with a 1 where a row belongs to a cell.

        Parameters
        ----------
        X : array of shape (rows, D), or with more columns, which are passed over
        """
        return membership_of(self.nearest(X), count=len(self.centres))

    def nearest(self, X: Array) -> NDArray[np.intp]:
        """Return which cell each row belongs to, shape (rows,).

        Parameters
        ----------
        X : array of shape (rows, D), or with more columns, which are passed over
        """
        _, nearest = self._tree.query(X[:, : len(self.units)] / self.units)
        return np.asarray(nearest, dtype=np.intp)

    def joined(self, *, most: int) -> NDArray[np.intp]:
        """Return in which of a limited number of larger cells each of these lies, shape (n,).

        Parameters
        ----------
        most : int
        """
        _, places = cluster_rows(self.centres, most=most, units=self.units, steps=KMEANS_STEPS)
        return places


# The scale of the number of an answer beside inputs: no cell holds rows of two.
ANSWERS_APART = 1e-6
# Where they lie exactly matters little.
KMEANS_STEPS = 10
# Cells within each answer, at least, of rows that are not all alike.
FEWEST_IN_ANSWER = 2


@dataclass(frozen=True, eq=False)
class CellsOfAnswers:
    """Cells within the answers of a strategy that asks every row in one of them.

    Attributes
    ----------
    cells : Partition
        By the number of the answer beside the inputs.
    """

    cells: Partition

    @classmethod
    def of(cls, X: Array, columns: sparse.csr_array, *, units: Array, most: int) -> Self:
        """Return a limited number of cells, by some rows: k-means within each answer.

        Parameters
        ----------
        X : array of shape (n, D)
        columns : sparse array of shape (k, n)
            With one entry in every column.
        units : array of shape (D,)
            Of distances.
        most : int
            But at least two for each answer.

        Examples
        --------
        >>> X = np.array([[0.0], [0.1], [5.0]])
        >>> asked = sparse.csr_array(np.array([[1.0, 0.0, 1.0], [0.0, -1.0, 0.0]]))
        >>> found = CellsOfAnswers.of(X, asked, units=np.ones(1), most=3)
        >>> found.membership(X, asked).toarray()
        array([[1., 0., 0.],
               [0., 0., 1.],
               [0., 1., 0.]])
        """
        answers = _answers_of(columns)
        each = max(most // columns.shape[0], FEWEST_IN_ANSWER)
        centres, places = _cluster_within(answers, X, most=each, units=units)
        numbers = np.empty(len(centres))
        numbers[places] = answers
        return cls(
            Partition(
                centres=np.column_stack([centres, numbers]), units=np.append(units, ANSWERS_APART)
            ),
        )

    def joined(self, *, most: int) -> NDArray[np.intp]:
        """Return in which of a limited number of larger cells each of these lies, shape (n,).

        Parameters
        ----------
        most : int
            But at least one for each answer.
        """
        answers, units = self.cells.centres[:, -1], self.cells.units[:-1]
        each = max(most // len(np.unique(answers)), 1)
        _, places = _cluster_within(answers, self.cells.centres[:, :-1], most=each, units=units)
        return places

    def membership(self, X: Array, columns: Columns) -> sparse.csr_array:
        """Return the matrix of shape (n, rows) with a 1 where a row belongs to a cell.

        Parameters
        ----------
        X : array of shape (rows, D), or with more columns, which are passed over
        columns : sparse array of shape (k, rows)
            As they are asked.
        """
        inputs = X[:, : len(self.cells.units) - 1]
        return self.cells.membership(np.column_stack([inputs, _answers_of(columns)]))


def _cluster_within(
    answers: NDArray[np.generic], X: Array, *, most: int, units: Array
) -> tuple[Array, NDArray[np.intp]]:
    """Return centres of the rows of each answer, and to which of them each row belongs."""
    centres, places, count = [], np.empty(len(X), dtype=np.intp), 0
    for answer in np.unique(answers):
        inside = answers == answer
        found, nearest = cluster_rows(X[inside], most=most, units=units, steps=KMEANS_STEPS)
        places[inside] = count + nearest
        centres.append(found)
        count += len(found)
    return np.vstack(centres), places


def _answers_of(columns: Columns) -> NDArray[np.intp]:
    """Return which answer each row is in, shape (n,)."""
    return np.asarray(sparse.csc_array(columns).indices, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class CellSums:
    """Sums over the rows of every cell.

    Attributes
    ----------
    features : array of shape (M, n)
    noise : array of shape (n,)
        Of noise variances; 0 for a cell without rows.
    """

    features: Array
    noise: Array

    def merge(self, other: CellSums) -> CellSums:
        """Return the sums over the rows of both."""
        return CellSums(features=self.features + other.features, noise=self.noise + other.noise)

    def times(self, columns: Array) -> Array:
        """Return K_y B of the cells' sums of outputs, for B of shape (n, k)."""
        if len(self.noise) < 2 * len(self.features):
            latent = product(self._latent, columns)
        else:
            latent = product(self.features.T, product(self.features, columns))
        return latent + self.noise[:, None] * columns

    @cached_property
    def _latent(self) -> Array:
        """Vᵀ V, of few cells less work than V twice, shape (n, n)."""
        latent: Array = self.features.T @ self.features
        return latent

    @property
    def least_noise(self) -> float:
        """The smallest noise variance of a cell."""
        return float(self.noise.min())

    def times_rows(self, share: float) -> CellSums:
        """Return the sums of a multiple of the rows."""
        return CellSums(features=share * self.features, noise=share * self.noise)

    def occupied(self) -> CellSums:
        """Return the cells that have rows."""
        kept = self.noise > 0
        return CellSums(features=self.features[:, kept], noise=self.noise[kept])


@dataclass(frozen=True, eq=False)
class _Gathering:
    """The cell sums of one chunk."""

    model: RowModel
    cells: Partition

    def __call__(self, chunk: Chunk) -> CellSums:
        features, noise = self.model.features_and_noise(chunk.X)
        membership = self.cells.membership(chunk.X)
        return CellSums(
            features=np.ascontiguousarray((membership @ features.T).T), noise=membership @ noise
        )


def cell_sums(passes: Passes, *, model: RowModel, cells: Partition) -> CellSums:
    """Sum over the rows of every cell, in one pass.

    Parameters
    ----------
    passes : Passes
    model : RowModel
    cells : Partition

    Returns
    -------
    CellSums
        Of the cells that have rows.
    """
    gathered = passes.over_inputs(_Gathering(model=model, cells=cells), what="gathering rows")
    return gathered.occupied()
