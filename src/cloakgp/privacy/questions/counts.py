r"""Counts of outputs in several intervals.

Mechanism
---------
Given public numbers e_0 < … < e_B, publish Σ_j v_j + s z, where z is independent noise on a grid
(Gaussian or Laplace) and v_j ∈ {0, 1}ᴮ has a one at the interval that output j lies in: below e_1,
from e_1 to below e_2, …, from e_{B−1} on.

Where to count next is chosen from published counts (`cloakgp.fitting.interval`), so as to find an
interval that holds most outputs, however wide the declared bounds are.

Neighbours
    One output changes, to any number; everything else is equal. With groups, all outputs of one
    group change. The ends e are equal: they are functions of public numbers and published answers.
Sensitivity
    v_j has a single one, wherever it is: two of them are at most √2 apart, and 2 in ℓ1 norm,
    which Laplace noise counts in (a row that is added or removed would move it by 1 in either:
    `cloakgp.privacy.noise.laplace`); a group of n rows moves the sum by at most n times that, by
    the triangle inequality. Which interval an output lies in is decided by comparisons, which are
    exact, and the counts are whole numbers below 2⁵³: nothing is rounded before the grid, which
    `cloakgp.privacy.grid` counts.
Theorem
    As for `cloakgp.privacy.ask`, in B dimensions. How many such mechanisms there are, answers
    decide, and so how much is left for all stages after them; on every path they spend the whole.
    With Σ μ_t² at most μ² on every path they are μ-Gaussian DP together (Smith and Thakurta 2022,
    *Fully adaptive composition for Gaussian differential privacy*), and with Σ ε_t at most ε, ε-DP
    (Rogers, Roth, Ullman and Vadhan 2016, theorem 3.6 and before). Privacy-loss distributions of
    fixed parts do not apply: `Guarantee.adaptive`.
Argument
    Given all earlier answers, the ends are constants, and this is the Gaussian mechanism on a sum
    of functions of one output each: μ_t-Gaussian DP for every value of the earlier answers, which
    is what adaptive composition asks for. What is found, the interval, is a function of published
    counts: post-processing.
Several outputs of a person
    Their entries stand in one column, and every output has counts of its own: Σ_j r_j v_j, with
    public r_j of 1 for the entries of that output and 0 for all others. Neighbours differ in all
    entries of one person, of whom one row moves the counts of one output as above. Counts of T
    outputs are T such mechanisms, which compose: their μ_t², or ε_t, add up.
Tables in chunks
    Σ_j r_j v_j is asked by the mechanism of `cloakgp.privacy.ask`, whose k is 1 and whose C
    is B: v_j is an encoding of output j whose distance is stated above, and everything that is said
    there of labels holds. r_j is 1, or where all rows of a group are protected together one over
    the number of its rows, so that what a group moves counts by is that of one row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cloakgp.privacy.entries import INFINITE, MISSING, number_faults
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.rounding import UNIT_ROUNDOFF
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import amount

# Ends nearer to 0, of all that is counted, are there but for rounding.
ROUNDED = 1e-12
ROOT_HALF = math.sqrt(0.5) * (1 + 4 * UNIT_ROUNDOFF)


class IndicatorQuestion(Question):
    """A question with indicators: of each output a single one, in the cell that it lies in."""

    locates: ClassVar[bool] = False
    complaints: ClassVar[tuple[str, ...]] = (MISSING, INFINITE)
    largest: ClassVar[float] = 1.0

    @property
    def distance(self) -> float:
        """The largest change of an output's indicators, rounded up: one falls, another rises."""
        return 2.0 * ROOT_HALF

    @property
    def absolute_distance(self) -> float:
        """The same in ℓ1 norm."""
        return 2.0 * (1 + 4 * UNIT_ROUNDOFF)

    @property
    def limits(self) -> None:
        """None: counts do not locate single outputs."""
        return

    def faults(self, entries: Array) -> tuple[bool, ...]:
        """Return whether outputs are missing, and whether any is infinite.

        Parameters
        ----------
        entries : array of shape (n,)
            Private.
        """
        return number_faults(entries)

    def about_outputs(self, values: Array, totals: Array, *means: float) -> Array:
        """Return the counts: they do not locate single outputs."""
        del totals, means
        return values


@dataclass(frozen=True, eq=False)
class CountQuestion(IndicatorQuestion):
    """Counts of outputs in several intervals.

    Of each output an indicator of the interval that it lies in.

    Attributes
    ----------
    edges : array of shape (B + 1,)
        Where the intervals end, in output units, in order. What lies beyond the first or the last
        counts as within.

    Examples
    --------
    >>> question = CountQuestion(np.array([0.0, 2.0, 8.0]))
    >>> question.encode(np.array([-3.0, 1.0, 2.0, 90.0])).sum(axis=0)
    array([2., 2.])
    """

    name: ClassVar[str] = "counts"
    precedes_choice: ClassVar[bool] = True

    edges: Array

    def validate(self) -> None:
        """Refuse intervals that are none.

        Raises
        ------
        ValueError
            If ends are missing, infinite, or not in order.
        """
        fit = self.edges.ndim == 1 and len(self.edges) >= 2 and np.isfinite(self.edges).all()
        if not (fit and (self.edges[1:] > self.edges[:-1]).all()):
            raise ValueError("its intervals are damaged")

    @property
    def channels(self) -> int:
        """B, the number of indicators."""
        return self.intervals

    @property
    def intervals(self) -> int:
        """B, their number."""
        return len(self.edges) - 1

    def in_units(self, limits: OutputBounds) -> CountQuestion:
        """Return the question about outputs in widths of some bounds, from their middle.

        Parameters
        ----------
        limits : OutputBounds
        """
        return CountQuestion((self.edges - limits.middle) / limits.width)

    def in_output_units(self, limits: OutputBounds) -> CountQuestion:
        """Return a question that is `in_units` as it was before."""
        return CountQuestion(limits.middle + limits.width * self.edges)

    @property
    def ends(self) -> tuple[float, float]:
        """The first and the last end: the declared bounds, in output units."""
        return float(self.edges[0]), float(self.edges[-1])

    def encode(self, entries: Array) -> Array:
        """Return indicators of the intervals that outputs lie in, shape (n, B).

        Parameters
        ----------
        entries : array of shape (n,)
            Private; finite.
        """
        return np.asarray(self._places(entries)[:, None] == np.arange(self.intervals), np.float64)

    def _places(self, outputs: Array) -> NDArray[np.intp]:
        return np.searchsorted(self.edges[1:-1], outputs, side="right")

    def check_weights(self, weights: Array) -> None:
        """Refuse to count rows otherwise than once each, or not at all.

        Of several outputs of a person, one is counted at a time.
        """
        counted = weights == 1.0
        if len(weights) != 1 or not np.all(counted | (weights == 0.0)) or not counted.any():
            raise ValueError("its arrays do not fit each other")

    def describe_answers(self, count: int, *, noise: Callable[[str], str], output: str) -> str:
        """Describe counts of outputs in intervals."""
        del count
        inner, (lowest, highest) = self.edges[1:-1], self.ends
        inner = np.where(np.abs(inner) < ROUNDED * (highest - lowest), 0.0, inner)
        between = (
            f", which end from {amount(inner[0], 4)} to {amount(inner[-1], 4)}"
            if len(inner)
            else ""
        )
        return (
            f"{self.intervals} numbers: how many values of {output} lie in each of so many "
            f"intervals{between}, each with {noise(' rows')}."
        )
