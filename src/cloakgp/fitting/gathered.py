"""Gathered table: rows that are read in passes, in cells of similar inputs.

All rows of a cell are asked alike: they have one column, and one set of thresholds. A design and
inference then know cells in the place of rows, as of a table that is held, and what a fit holds and
keeps does not grow with the number of rows. Rows count as if they were at the centres of their
cells; that they are not adds to how outputs scatter, which is learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cloakgp.data.entries import TransformedRows
from cloakgp.design import Certificate
from cloakgp.design.streaming.binning import Partition
from cloakgp.fitting.held import HeldTable
from cloakgp.fitting.passes import Rows
from cloakgp.fitting.refusals import refuse
from cloakgp.fitting.strategies import Budget
from cloakgp.fitting.table import Count, Design, DesignSettings, Model, Strata
from cloakgp.models.likelihoods import Linearisation
from cloakgp.models.summary import Summary, summarise
from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy import Answers
from cloakgp.privacy.ask import StrategyBound, ask_chunks
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.privacy.questions.outside import OutsideQuestion
from cloakgp.privacy.questions.quantiles import QuantileQuestion
from cloakgp.release import DenseStrategy, Measurement, Release, Strategy
from cloakgp.release.gathered_strategy import CellColumns, GatheredStrategy, cell_sizes
from cloakgp.utils.arrays import Array

# As many as designs and inference are quick for.
CELLS = 1_000


@dataclass(frozen=True, eq=False)
class CellThresholds(QuantileQuestion):
    """Thresholds of rows by the cells that they are in.

    Attributes
    ----------
    thresholds : array of shape (n, K)
        Of the rows of each cell.
    bounds : (float, float)
    cells : Partition
    """

    cells: Partition

    def of_rows(self, X: Array) -> QuantileQuestion:
        """Return the question about rows with inputs of shape (N, D)."""
        return QuantileQuestion(self.thresholds[self.cells.nearest(X)], self.bounds)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GatheredTable(HeldTable):
    """The cells of a table of one private column that is read in passes.

    ``X`` are their centres.

    Attributes
    ----------
    passes : Rows
    summary : Summary
        Of the public inputs.
    cells : Partition
    sizes : array of shape (n,)
        The number of rows of each cell.
    """

    passes: Rows
    summary: Summary
    cells: Partition
    sizes: Array

    @classmethod
    def gather(cls, rows: Rows, *, transform: OutputTransform | None = None) -> GatheredTable:
        """Return a table, after two passes over its public inputs.

        Parameters
        ----------
        rows : Rows
            See `cloakgp.data`.
        transform : OutputTransform, optional
            Applied to outputs first.

        Raises
        ------
        ValueError
            If rows have groups, or several private columns.
        """
        if getattr(rows, "n_outputs", 1) != 1:
            raise ValueError("y must have one dimension, with one entry per row")
        if rows.grouped:
            refuse("groups of quantiles in passes")
        known = summarise(rows)
        cells = Partition(centres=known.centres(CELLS)[0], units=known.units)
        sizes = cell_sizes(rows, cells, what="gathering rows")
        occupied = sizes > 0
        cells = replace(cells, centres=cells.centres[occupied])
        return cls(
            X=cells.centres,
            passes=TransformedRows.of(rows, transform),
            summary=known,
            cells=cells,
            sizes=sizes[occupied],
            input_names=tuple(rows.input_names),
            output_name=rows.output_name,
            transform=transform,
        )

    @property
    def rows(self) -> int:
        """N."""
        return self.summary.count

    @property
    def counted(self) -> int:
        """N."""
        return self.summary.count

    def _of_sums(self, account: Linearisation) -> Linearisation:
        """Return the account of sums over the rows of cells, by the latent value at the centre."""
        return Linearisation(
            expected=account.expected * self.sizes,
            slope=account.slope * self.sizes,
            residual=account.residual * self.sizes,
        )

    def _of_quantiles(
        self, budget: Budget, model: Model, settings: DesignSettings, *, known: Release | None
    ) -> Design:
        design = super()._of_quantiles(budget, model, settings, known=known)
        of_cells = design.strategy
        assert isinstance(of_cells, DenseStrategy)
        strategy = GatheredStrategy(
            cells=self.cells,
            sizes=self.sizes,
            matrix=of_cells.matrix,
            input_ranges=self.summary.ranges,
            X_query=of_cells.X_query,
            query_weights=of_cells.query_weights,
            reconstruction=of_cells.reconstruction,
            certificate=of_cells.certificate,
            table=self.number,
        )
        return Design(strategy=strategy, question=design.question)

    def ask(
        self,
        design: Design,
        y: Any,
        budget: Budget,
        *,
        after_answers: bool,
        insecure_seed: int | None,
    ) -> Measurement:
        """Put a design to the outputs in one pass, under (ε, δ)-differential privacy."""
        strategy, question = design.strategy, design.question
        assert isinstance(strategy, GatheredStrategy)
        assert isinstance(question, QuantileQuestion)
        answers = self._ask(
            strategy.columns,
            y,
            budget,
            question=CellThresholds(question.thresholds, question.bounds, self.cells),
            longest=strategy.longest_column(budget.law, channels=question.channels),
            after_answers=after_answers,
            insecure_seed=insecure_seed,
        )
        return Measurement(strategy=strategy, question=question, answers=answers)

    def count(
        self,
        question: CountQuestion | OutsideQuestion,
        y: Any,
        budget: Budget,
        *,
        output: int,
        insecure_seed: int | None,
        strata: Strata | None = None,
    ) -> Answers:
        """Count an output of every row, by strata if given, under (ε, δ)-differential privacy."""
        return self._ask(
            CellColumns(matrix=self._counting_matrix(output, strata), cells=self.cells),
            y,
            budget,
            question=question,
            longest=1.0,
            after_answers=False,
            insecure_seed=insecure_seed,
        )

    def _ask(
        self,
        columns: CellColumns,
        y: Rows,
        budget: Budget,
        *,
        question: Question,
        longest: float,
        after_answers: bool,
        insecure_seed: int | None,
    ) -> Answers:
        # Every chunk has at most all rows.
        bound = StrategyBound(
            answers=len(columns.matrix),
            longest=longest,
            chunk_rows=self.rows,
            count=self.rows,
            noise=NOISES[budget.noise],
        )
        return ask_chunks(
            y,
            columns,
            bound=bound,
            question=question,
            epsilon=budget.epsilon,
            delta=budget.delta,
            after_answers=after_answers,
            insecure_seed=insecure_seed,
        )

    def strata(self, count: int, *, output: int = 0) -> Strata:
        """Return up to a number of strata of similar inputs, of whole cells; public."""
        del output
        cells = Partition(centres=self.summary.centres(count)[0], units=self.summary.units)
        return Strata(cells=cells, sizes=cells.membership(self.X) @ self.sizes)

    def measure_counts(
        self, counts: Sequence[Count], *, first: Strategy
    ) -> tuple[Measurement, ...]:
        """Return counts as measurements of a release."""
        assert isinstance(first, GatheredStrategy)
        given = Certificate(criterion="given", gap=np.inf)
        return tuple(
            Measurement(
                strategy=replace(
                    first,
                    matrix=self._counting_matrix(one.output, one.strata),
                    reconstruction=None,
                    certificate=given,
                ),
                question=self._in_units(one),
                answers=one.answers,
            )
            for one in counts
        )
