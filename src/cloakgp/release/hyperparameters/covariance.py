r"""Answers for learning: their questions, in sums over rows at few points.

Where a table has many rows, each is moved to the nearest of a few hundred k-means centres of the
public inputs. That approximates the objective of a fit to public numbers; it touches neither a
release nor its guarantee.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from cloakgp.design.streaming.condensing import CellQuestions
from cloakgp.design.streaming.sums import AskedOfCells, weighted_products
from cloakgp.models.clipping import OFFSET_SD
from cloakgp.models.defaults import input_scales
from cloakgp.release.measurement import Measurement
from cloakgp.release.streamed_strategy import StreamedStrategy
from cloakgp.release.tables import DenseTable
from cloakgp.utils.arrays import Array
from cloakgp.utils.clusters import cluster_rows

LEARNING_POINTS = 600


class RowAnswers(Protocol):
    """Noise-scaled questions of a table, in sums over rows at learning points."""

    @property
    def questions(self) -> Array:
        """As many rows as there are answers."""

    def products(self, variances: Array) -> Array:
        """Return R diag(variances) Rᵀ, the variances given per point."""

    def add_forms(self, matrix: Array, forms: Array) -> None:
        """Add Σ r_jᵀ M r_j over the rows at each point to an entry for that point."""


@dataclass(frozen=True, eq=False)
class CellAnswers:
    """Noise-scaled questions of a table that keeps cells instead of rows.

    Attributes
    ----------
    cells : CellQuestions
        Each at a learning point.
    first : int
        The point of the first of them.
    """

    cells: CellQuestions
    first: int = 0

    @property
    def questions(self) -> Array:
        """Those put to all rows of each cell together, shape (k, n)."""
        return self.cells.questions

    @property
    def _span(self) -> slice:
        return slice(self.first, self.first + len(self.cells.counts))

    def products(self, variances: Array) -> Array:
        """Return R diag(variances) Rᵀ, the variances given per point."""
        return self.cells.row_products(variances[self._span])

    def add_forms(self, matrix: Array, forms: Array) -> None:
        """Add Σ r_jᵀ M r_j over the rows at each point to an entry for that point."""
        forms[self._span] += self.cells.row_forms(matrix)


@dataclass(frozen=True, eq=False)
class TableAnswers:
    """The noise-scaled questions put to one table, and the learning point that each row is at."""

    questions: Array
    positions: np.ndarray[tuple[int], np.dtype[np.intp]]

    @cached_property
    def squares(self) -> Array | None:
        """Σ r_j r_jᵀ over the rows at each point, shape (n, k, k), from the first point of these.

        None where that would be more numbers than the questions themselves.
        """
        first = int(self.positions.min())
        points, answers = int(self.positions.max()) + 1 - first, len(self.questions)
        if points * answers > len(self.positions):
            return None
        order = np.argsort(self.positions, kind="stable")
        cuts = np.searchsorted(self.positions[order], first + np.arange(1, points))
        groups = np.split(self.questions[:, order], cuts, axis=1)
        return np.stack([rows @ rows.T for rows in groups])

    def products(self, variances: Array) -> Array:
        """Return R diag(variances) Rᵀ, the variances given per point."""
        if self.squares is None:
            product: Array = (self.questions * variances[self.positions]) @ self.questions.T
            return product
        first = int(self.positions.min())
        return np.tensordot(variances[first : first + len(self.squares)], self.squares, axes=1)

    def add_forms(self, matrix: Array, forms: Array) -> None:
        """Add Σ r_jᵀ M r_j over the rows at each point to an entry for that point."""
        if self.squares is None:
            each = np.einsum("kj,kj->j", self.questions, matrix @ self.questions)
            np.add.at(forms, self.positions, each)
        else:
            first = int(self.positions.min())
            forms[first : first + len(self.squares)] += np.tensordot(self.squares, matrix, axes=2)


@dataclass(frozen=True, eq=False)
class StageOfCells:
    """What one stage asked of the rows of cells, divided by the noise sd of its answers.

    Attributes
    ----------
    questions : array of shape (k, n)
        Those put to all rows of each cell together.
    squares : array of shape (n,)
        Σ ‖r_j‖² over the rows of each cell.
    in_parts : bool
        Whether each row is in one answer alone.
    """

    questions: Array
    squares: Array
    in_parts: bool

    def beyond_products(self, variances: Array, *, counts: Array) -> Array:
        """Return Σ_j r_j r_jᵀ less that of rows asked alike, the variances given per cell.

        Parameters
        ----------
        variances : array of shape (n,)
        counts : array of shape (n,)
            Rows of each cell.

        Returns
        -------
        array of shape (k, k)
        """
        if not self.in_parts:
            weights = variances * (self._shares - 1.0 / counts)
            products: Array = (self.questions * weights) @ self.questions.T
            return products
        alike = weighted_products(self._sparse, self._sparse, weights=variances / counts)
        return np.diag(np.abs(self.questions) @ (variances * self._shares)) - alike

    def beyond_forms(self, matrix: Array, *, counts: Array) -> Array:
        """Return Σ_j r_jᵀ M r_j over the rows of each cell, less that of rows asked alike.

        Parameters
        ----------
        matrix : array of shape (k, k)
        counts : array of shape (n,)

        Returns
        -------
        array of shape (n,)
        """
        columns = self._sparse if self.in_parts else self.questions
        forms: Array = np.einsum("kn,kn->n", self.questions, matrix @ columns)
        if not self.in_parts:
            forms *= self._shares - 1.0 / counts
            return forms
        return np.diag(matrix) @ np.abs(self.questions) * self._shares - forms / counts

    @cached_property
    def _sparse(self) -> sparse.csr_array:
        """The rows of a cell are in few parts."""
        return sparse.csr_array(self.questions)

    @cached_property
    def _shares(self) -> Array:
        """Squares over those of all rows as one; over lengths where a row is in one answer."""
        lengths = np.abs(self.questions) if self.in_parts else np.square(self.questions)
        shares: Array = self.squares / np.maximum(lengths.sum(axis=0), 1e-300)
        return shares


@dataclass(frozen=True, eq=False)
class StagesOfCells:
    """The noise-scaled questions of stages put to the rows of the same cells.

    The rows of a cell are asked alike, or fall into the answers of a stage in shares that have
    nothing to do with how they fall into those of another.

    Attributes
    ----------
    stages : tuple of StageOfCells
    counts : array of shape (n,)
        How many rows each cell has.
    """

    stages: tuple[StageOfCells, ...]
    counts: Array

    @cached_property
    def questions(self) -> Array:
        """As many rows as there are answers, shape (k, n)."""
        return np.vstack([stage.questions for stage in self.stages])

    def products(self, variances: Array) -> Array:
        """Return R diag(variances) Rᵀ over rows, the variances given per cell."""
        weighed = self.questions * (variances / self.counts)
        products: Array = weighed @ self.questions.T
        return products + self.beyond_products(variances)

    def add_forms(self, matrix: Array, forms: Array) -> None:
        """Add Σ r_jᵀ M r_j over the rows of each cell to an entry for that cell."""
        forms += np.einsum("kn,kn->n", self.questions, matrix @ self.questions) / self.counts
        forms += self.beyond_forms(matrix)

    def beyond_products(self, variances: Array) -> Array:
        """Return `products` less those of rows asked alike, which are one more kernel of cells."""
        found = np.zeros((len(self.questions),) * 2)
        for stage, span in self._spans():
            found[span, span] = stage.beyond_products(variances, counts=self.counts)
        return found

    def beyond_forms(self, matrix: Array) -> Array:
        """Return what `add_forms` adds, less that of rows asked alike: the adjoint."""
        found = np.zeros_like(self.counts)
        for stage, span in self._spans():
            found += stage.beyond_forms(matrix[span, span], counts=self.counts)
        return found

    def _spans(self) -> Iterator[tuple[StageOfCells, slice]]:
        start = 0
        for stage in self.stages:
            stop = start + len(stage.questions)
            yield stage, slice(start, stop)
            start = stop


@dataclass(frozen=True, eq=False)
class LearningQuestions:
    """Questions, divided by the noise sds of their answers, with kernels at few points.

    Attributes
    ----------
    points : array of shape (n, D)
    questions : array of shape (k, n)
        R with the columns of rows at the same point added up.
    tables : tuple
        The questions in sums over rows, one entry per table; answers of the tables follow each
        other.
    variances : array of shape (n, D), optional
        Where each point is the mean of the inputs of a cell's rows, their variances over these.
    """

    points: Array
    questions: Array
    tables: tuple[RowAnswers, ...]
    variances: Array | None = field(default=None, kw_only=True)

    @classmethod
    def of_cells(cls, cells: CellQuestions, *, most: int | None = None) -> LearningQuestions:
        """Gather the cells of one table in a limited number, 600 by default.

        Parameters
        ----------
        cells : CellQuestions
            Divided by the noise sd of the answers.
        most : int, optional
        """
        limit = LEARNING_POINTS if most is None else most
        if len(cells.counts) > limit:
            _, positions = _learning_points(cells.centres, most=limit)
            cells = cells.gathered(positions)
        return cls(
            points=cells.centres, questions=cells.questions, tables=(CellAnswers(cells=cells),)
        )

    @classmethod
    def of(cls, asked: Sequence[DenseTable], *, most: int | None = None) -> LearningQuestions:
        """Move the rows of tables to a limited number of points each, 600 by default."""
        limit = LEARNING_POINTS if most is None else most
        tables, points, questions = [], [], []
        offset = 0
        for table in asked:
            centres, positions = _learning_points(table.X, most=limit)
            binned = np.zeros((len(table.questions), len(centres)))
            np.add.at(binned.T, positions, table.questions.T)
            tables.append(TableAnswers(questions=table.questions, positions=positions + offset))
            points.append(centres)
            questions.append(binned)
            offset += len(centres)
        return cls(
            points=np.vstack(points),
            questions=np.asarray(linalg.block_diag(*questions), dtype=np.float64),
            tables=tuple(tables),
        )

    @property
    def sums(self) -> Array:
        """R 1, shape (k,)."""
        totals: Array = self.questions.sum(axis=1)
        return totals

    def row_products(self, variances: Array | None = None) -> Array:
        """Return R diag(variances) Rᵀ for independent rows, the variances given per point."""
        each = np.ones(len(self.points)) if variances is None else variances
        blocks = [table.products(each) for table in self.tables]
        return np.asarray(linalg.block_diag(*blocks), dtype=np.float64)

    def row_forms(self, matrix: Array) -> Array:
        """Return Σ r_jᵀ M r_j over the rows at each point, shape (n,): `row_products`' adjoint."""
        forms, start = np.zeros(len(self.points)), 0
        for table in self.tables:
            stop = start + len(table.questions)
            table.add_forms(matrix[start:stop, start:stop], forms)
            start = stop
        return forms


@dataclass(frozen=True, eq=False)
class LearningAnswers(LearningQuestions):
    """Published answers to learn from, divided by their noise sds.

    Attributes
    ----------
    values : array of shape (k,)
        R y + noise of unit variance.
    residual : array of shape (k, k) or None
        The covariance of what else they hold; see `cloakgp.release.posterior.dense.DenseTable`.
    """

    values: Array
    residual: Array | None = None


def gather(tables: Sequence[DenseTable], values: Array) -> LearningAnswers:
    """Bring answers about rows that are kept into the form that learning needs.

    Parameters
    ----------
    tables : sequence of DenseTable
        At least one.
    values : array of shape (k,)
        R y + noise of unit variance, in the order of the tables.
    """
    placed = LearningQuestions.of(tables)
    residual = None
    if any(table.residual is not None for table in tables):
        blocks = [
            np.zeros((table.n_answers, table.n_answers))
            if table.residual is None
            else table.residual
            for table in tables
        ]
        residual = np.asarray(linalg.block_diag(*blocks), dtype=np.float64)
    return LearningAnswers(
        points=placed.points,
        questions=placed.questions,
        tables=placed.tables,
        values=values,
        residual=residual,
    )


def gather_sums(
    stages: Sequence[tuple[AskedOfCells, Measurement]],
    *,
    mean: float,
    points: Array,
    counts: Array,
    variances: Array | None = None,
    trends: Sequence[Array] = (),
    detrended: bool = False,
) -> LearningAnswers:
    """Bring answers about rows that are not kept into the form for learning.

    The rows of a cell are taken to be asked alike but for their lengths, and to be at one place, or
    anywhere about that.

    Parameters
    ----------
    stages : sequence of pairs of AskedOfCells and Measurement
        What was asked of the rows of the same cells, and noisy answers.
    mean : float
        Of the prior under which outputs in bands were linearised.
    points : array of shape (n, D)
        Centres of the cells, or the means of the inputs of their rows.
    counts : array of shape (n,)
        How many rows each cell has.
    variances : array of shape (n, D), optional
        Of the inputs of the rows of each cell, around the points.
    trends : sequence of arrays of shape (k,)
        What the trend of that prior adds to the answers of each stage; empty if it has none.
    detrended : bool
        Whether answers are to be less that.
    """
    asked, values = [], []
    residuals, skews = [], []
    for place, (sums, measurement) in enumerate(stages):
        scale = 1.0 / measurement.answers.noise_sd
        assert isinstance(measurement.strategy, StreamedStrategy)
        asked.append(
            StageOfCells(
                questions=sums.questions * scale,
                squares=sums.squares * scale**2,
                in_parts=measurement.strategy.in_parts,
            )
        )
        clipped = sums.clipped
        centred = measurement.question.about_outputs(measurement.answers.values, sums.totals)[:, 0]
        count = len(centred)
        residuals.append(np.zeros((count, count)) if clipped is None else clipped.residual)
        residuals[-1] = residuals[-1] * scale**2
        skews.append(np.zeros(count) if clipped is None else clipped.skew * scale)
        if clipped is not None:
            # Less the whole prior mean, of which the level is added up again.
            centred = measurement.answers.values[:, 0] - clipped.expected + mean * sums.totals
        if trends and detrended == (clipped is None):
            centred = centred - trends[place] if detrended else centred + trends[place]
        values.append(centred * scale)
    occupied = np.sum([stage.squares for stage in asked], axis=0) > 0
    table = StagesOfCells(
        stages=tuple(
            replace(stage, questions=stage.questions[:, occupied], squares=stage.squares[occupied])
            for stage in asked
        ),
        counts=counts[occupied],
    )
    residual = None
    if any(sums.clipped is not None for sums, _ in stages):
        skew = np.concatenate(skews)
        residual = linalg.block_diag(*residuals) + OFFSET_SD**2 * np.outer(skew, skew)
    return LearningAnswers(
        points=points[occupied],
        questions=table.questions,
        tables=(table,),
        values=np.concatenate(values),
        residual=residual,
        variances=None if variances is None else variances[occupied],
    )


def _learning_points(X: Array, *, most: int) -> tuple[Array, NDArray[np.intp]]:
    """Return distinct inputs, or k-means centres of many, and where each row is among them."""
    # In scales of each input: near in age is not near in income.
    return cluster_rows(X, most=most, units=input_scales(X))
