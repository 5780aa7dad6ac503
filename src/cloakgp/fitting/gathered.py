"""Gathered table: rows that are read in passes, in cells of similar inputs.

All rows of a cell are asked alike: they have one column, and one threshold or band. A design and
inference then know cells in the place of rows, as of a table that is held, and what a fit holds and
keeps does not grow with the number of rows. Rows count as if they were at the centres of their
cells; that they are not adds to how outputs scatter, which is learned.

Of counts with exposures, cells are of similar inputs and similar exposures. What is asked of counts
are clipped roots, and these have no distribution of their sum by the sum of exposures, as counts
themselves have: so rows of one place that differ in their exposure by much are in several cells,
with windows of their own (`cloakgp.release.gathered_strategy`).

Where all rows of a person are protected together, a row's column is that of its cell over the
number of the person's rows, as for numbers (`cloakgp.design.streaming.grouping`): a cell is then
known by the sum of these weights, and of their squares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cloakgp.data.entries import (
    ExposedRows,
    GroupedRows,
    TransformedRows,
    added_noise,
    as_asked,
)
from cloakgp.design.streaming.binning import Partition
from cloakgp.design.streaming.grouping import Grouping
from cloakgp.fitting.held import HeldTable
from cloakgp.fitting.passes import Rows
from cloakgp.fitting.strategies import Budget
from cloakgp.fitting.table import Design, Strata
from cloakgp.models.likelihoods import Linearisation
from cloakgp.models.summary import ExposedSummary, Summary, summarise
from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy import Answers
from cloakgp.privacy.ask import StrategyBound, ask_chunks
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.privacy.questions.gathered import CellQuestion
from cloakgp.privacy.questions.outside import OutsideQuestion
from cloakgp.privacy.rounding import sum_of_shares
from cloakgp.release import DenseStrategy, Measurement, Strategy
from cloakgp.release.gathered_strategy import CellColumns, CellSums, GatheredStrategy, sum_cells

# As many as designs and inference are quick for.
CELLS = 1_000


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GatheredTable(HeldTable):
    """The cells of a table of one private column that is read in passes.

    ``X`` are their centres, and ``exposure`` is that of their rows.

    Attributes
    ----------
    passes : Rows or GroupedRows
        With groups, all rows of a group are protected together.
    summary : Summary
        Of the public inputs.
    cells : Partition
        Of inputs, and of the logarithm of exposures if there are any.
    sums : CellSums
        Over the rows of each cell.
    grouping : Grouping or None
    """

    passes: Rows | GroupedRows
    summary: Summary
    cells: Partition
    sums: CellSums
    grouping: Grouping | None = None

    @classmethod
    def gather(
        cls, rows: Rows | ExposedRows, *, transform: OutputTransform | None = None
    ) -> GatheredTable:
        """Return a table, after two passes over its public inputs, and one more over groups.

        Parameters
        ----------
        rows : Rows or ExposedRows
            See `cloakgp.data`.
        transform : OutputTransform, optional
            Applied to outputs first.

        Raises
        ------
        ValueError
            If rows have several private columns.
        """
        if getattr(rows, "n_outputs", 1) != 1:
            raise ValueError("y must have one dimension, with one entry per row")
        known, exposed = summarise(rows), isinstance(rows, ExposedRows)
        if exposed:
            known = ExposedSummary.of(known)
        passes = TransformedRows.of(rows, transform)
        grouped = rows.grouped
        if grouped:
            passes = GroupedRows.of(passes)
        cells = Partition(centres=known.centres(CELLS)[0], units=known.units)
        sums = sum_cells(passes, cells, what="gathering rows", exposed=exposed, grouped=grouped)
        occupied = sums.counts > 0
        cells, sums = replace(cells, centres=cells.centres[occupied]), sums.where(occupied)
        summary = known.by_row if isinstance(known, ExposedSummary) else known
        return cls(
            X=cells.centres[:, : len(summary.lowest)],
            exposure=sums.exposure if exposed else None,
            passes=passes,
            summary=summary,
            cells=cells,
            sums=sums,
            grouping=_grouping_of(passes, chunks=sums.chunks) if grouped else None,
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
        """N; with groups, the numbers that groups have: a row counts for a share of one."""
        return self.summary.count if self.grouping is None else self.grouping.groups

    @property
    def grouped(self) -> bool:
        """Whether all rows of one group are protected together."""
        return self.grouping is not None

    @property
    def added_noise(self) -> float:
        """The noise of answers over that of a budget: more of several custodians."""
        return added_noise(self.passes)

    @property
    def typical_exposure(self) -> float:
        """The average exposure of rows, as that of their cells; 1 without exposures."""
        if self.exposure is None:
            return 1.0
        return float(np.average(self.exposure, weights=self.sums.counts))

    @property
    def most_counted(self) -> int:
        """1: the shares of a group sum up to one."""
        return 1

    def _of_sums(self, account: Linearisation) -> Linearisation:
        """Return the account of sums over the rows of cells, by the latent value at the centre."""
        return Linearisation(
            expected=account.expected * self.sums.weights,
            slope=account.slope * self.sums.weights,
            residual=account.residual * self.sums.squares,
        )

    def _kept(self, strategy: DenseStrategy) -> Strategy:
        """Return a strategy about cells as one about the rows in them."""
        return GatheredStrategy(
            cells=self.cells,
            sizes=self.sums.counts,
            matrix=strategy.matrix,
            input_ranges=self.summary.ranges,
            row_exposure=self.exposure,
            weights=self.sums.weights if self.grouped else None,
            squares=self.sums.squares if self.grouped else None,
            grouping=self.grouping,
            X_query=strategy.X_query,
            query_weights=strategy.query_weights,
            reconstruction=strategy.reconstruction,
            certificate=strategy.certificate,
            table=self.number,
        )

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
        answers = self._ask(
            strategy.columns,
            y,
            budget,
            question=question,
            longest=strategy.longest_at_one(budget.law, channels=question.channels),
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
            CellColumns(
                matrix=self._counting_matrix(output, strata),
                cells=self.cells,
                grouped=self.grouped,
            ),
            y,
            budget,
            question=question,
            longest=1.0 if self.grouping is None else sum_of_shares(self.grouping.most_rows),
            after_answers=False,
            insecure_seed=insecure_seed,
        )

    def _ask(
        self,
        columns: CellColumns,
        y: Any,
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
        if self.grouping is not None:
            grouping = self.grouping
            bound = replace(
                bound,
                group_rows=grouping.most_rows,
                chunks=grouping.chunks,
                places=grouping.places,
            )
        return ask_chunks(
            as_asked(y),
            columns,
            bound=bound,
            question=question if question.rows is None else CellQuestion(question, self.cells),
            epsilon=budget.epsilon,
            delta=budget.delta,
            after_answers=after_answers,
            insecure_seed=insecure_seed,
        )

    def strata(self, count: int, *, output: int = 0) -> Strata:
        """Return up to a number of strata of similar inputs, of whole cells; public."""
        del output
        cells = Partition(centres=self.summary.centres(count)[0], units=self.summary.units)
        return Strata(cells=cells, sizes=cells.membership(self.X) @ self.sums.weights)


def _grouping_of(rows: GroupedRows, *, chunks: int) -> Grouping:
    return Grouping(
        groups=int(np.count_nonzero(rows.counts)),
        most_rows=int(rows.counts.max()),
        chunks=chunks,
        places=rows.places,
    )
