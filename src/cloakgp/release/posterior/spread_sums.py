"""Sums over rows of the expected answers about the spread of outputs: `sum_spread`.

How far outside of its predicted interval an output lies has a mean and a variance under any prior,
given what is known of the row (`cloakgp.release.posterior.row_stages`). Rows count as independent
given the process, so means and variances of their sums are sums over rows: two numbers for each
prior and answer, from one pass over public inputs.

They vary little from row to row, so that some rows tell as much as all: `SpreadSums.over_all`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloakgp.models import SparsePrior
from cloakgp.release.bands import RowSpread
from cloakgp.release.measurement import Measurement
from cloakgp.release.posterior.clipped import moments_of_spread
from cloakgp.release.posterior.row_stages import RowStages, over_blocks_of
from cloakgp.release.streamed_strategy import RuleColumns
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Chunk, Passes


@dataclass(frozen=True, eq=False)
class SpreadSums:
    """Means and variances of answers about spread without their noise, under several priors.

    Attributes
    ----------
    expected, scatter : arrays of shape (p, k)
    squares : array of shape (p, k)
        Of the rows' means, as often as each counts.
    totals : array of shape (k,)
        How much all rows count.
    """

    expected: Array
    scatter: Array
    squares: Array
    totals: Array

    def merge(self, other: SpreadSums) -> SpreadSums:
        """Return the sums over the rows of both."""
        return SpreadSums(
            expected=self.expected + other.expected,
            scatter=self.scatter + other.scatter,
            squares=self.squares + other.squares,
            totals=self.totals + other.totals,
        )

    def over_all(self, totals: Array) -> SpreadSums:
        """Return the sums over all rows of a table, of which these are a sample.

        The error of means of samples adds to the variance (Cochran 1977, theorem 2.2).

        Parameters
        ----------
        totals : array of shape (k,)
            How much all of them count. Every answer is to have rows in the sample.

        Examples
        --------
        >>> known = SpreadSums(expected=np.array([[3.0]]), scatter=np.array([[0.4]]),
        ...                    squares=np.array([[5.0]]), totals=np.array([2.0]))
        >>> everywhere = known.over_all(np.array([20.0]))
        >>> float(everywhere.expected[0, 0]), float(everywhere.scatter[0, 0])
        (30.0, 54.0)
        """
        share = totals / self.totals
        means = self.expected / self.totals
        between = np.maximum(self.squares / self.totals - means**2, 0.0)
        return SpreadSums(
            expected=share * self.expected,
            scatter=share * self.scatter + totals**2 * between / self.totals,
            squares=share * self.squares,
            totals=totals,
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
        stages=RowStages.given(priors, known, table=table, to_end=True),
        columns=columns,
        spread=spread,
    )
    return passes.over_inputs(work, what="expecting the spread")


@dataclass(frozen=True, eq=False)
class _Spreading:
    """The sums of one chunk."""

    stages: RowStages
    columns: RuleColumns
    spread: RowSpread

    def __call__(self, chunk: Chunk) -> SpreadSums:
        return over_blocks_of(chunk, self._of_block)

    def _of_block(self, X: Array) -> SpreadSums:
        weights, question = self.columns(X), self.spread.of_rows(X)
        expected, scatter, squares = [], [], []
        for (rows, asked), known in zip(self.stages.over(X), self.stages.at_end, strict=True):
            mean, variance = rows.outputs(known, [one.scaled for one in asked])
            means, variances = moments_of_spread(question, mean=mean, variance=variance)
            expected.append(weights @ means)
            scatter.append(np.square(weights) @ variances)
            squares.append(weights @ np.square(means))
        return SpreadSums(
            expected=np.array(expected),
            scatter=np.array(scatter),
            squares=np.array(squares),
            totals=weights.sum(axis=1),
        )
