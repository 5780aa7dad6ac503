"""Sums over rows of the expected answers about the spread of outputs: `sum_spread`.

How far outside of its predicted interval an output lies has a mean and a variance under any prior,
given what is known of the row (`cloakgp.release.posterior.row_stages`). Rows count as independent
given the process, so means and variances of their sums are sums over rows: two numbers for each
prior and answer, from one pass over public inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloakgp.models import SparsePrior
from cloakgp.release.bands import RowSpread
from cloakgp.release.measurement import Measurement
from cloakgp.release.posterior.clipped import moments_of_spread
from cloakgp.release.posterior.row_stages import RowKnowledge, RowStages
from cloakgp.release.streamed_strategy import RuleColumns
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Chunk, Passes

# Rows that are gone through at a time.
BLOCK_ROWS = 2048


@dataclass(frozen=True, eq=False)
class SpreadSums:
    """Means and variances of answers about spread without their noise, under several priors.

    Attributes
    ----------
    expected, scatter : arrays of shape (p, k)
    """

    expected: Array
    scatter: Array

    def merge(self, other: SpreadSums) -> SpreadSums:
        """Return the sums over the rows of both."""
        return SpreadSums(
            expected=self.expected + other.expected, scatter=self.scatter + other.scatter
        )


def sum_spread(
    passes: Passes,
    priors: Sequence[SparsePrior],
    *,
    columns: RuleColumns,
    spread: RowSpread,
    known: Sequence[Measurement],
    table: int,
) -> SpreadSums:
    """Sum the expected answers about spread, in one pass.

    Parameters
    ----------
    passes : Passes
    priors : sequence of SparsePrior
    columns : RuleColumns
        How much each row counts.
    spread : RowSpread
    known : sequence of Measurement
        All other answers, with sums under each of the priors.
    table : int
    """
    work = _Spreading(
        stages=RowStages.given(priors, known, table=table),
        knowledge=tuple(RowKnowledge.given(prior, known, table=table) for prior in priors),
        columns=columns,
        spread=spread,
    )
    return passes.over_inputs(work, what="expecting the spread")


@dataclass(frozen=True, eq=False)
class _Spreading:
    """The sums of one chunk."""

    stages: RowStages
    knowledge: tuple[RowKnowledge, ...]
    columns: RuleColumns
    spread: RowSpread

    def __call__(self, chunk: Chunk) -> SpreadSums:
        shape = len(self.knowledge), self.columns.rule.answers
        total = SpreadSums(expected=np.zeros(shape), scatter=np.zeros(shape))
        for start in range(0, len(chunk.X), BLOCK_ROWS):
            total = total.merge(self._of_block(chunk.X[start : start + BLOCK_ROWS]))
        return total

    def _of_block(self, X: Array) -> SpreadSums:
        weights, question = self.columns(X), self.spread.of_rows(X)
        expected, scatter = [], []
        for (features, noise, asked), known in zip(
            self.stages.over(X), self.knowledge, strict=True
        ):
            mean, variance = known.outputs(features, noise, [one.scaled for one in asked])
            means, variances = moments_of_spread(question, mean=mean, variance=variance)
            expected.append([float(row @ means) for row in weights])
            scatter.append([float(np.square(row) @ variances) for row in weights])
        return SpreadSums(expected=np.array(expected), scatter=np.array(scatter))
