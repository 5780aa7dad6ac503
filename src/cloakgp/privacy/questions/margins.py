r"""Margins: how far from its predicted mean an output lies, counted in cells of that distance.

Mechanism
---------
Every row j has a public predicted mean m_j and sd s_j > 0 of its output. Public numbers
0 < t_1 < … < t_J cut the score |y'_j − m_j|/s_j into J + 1 cells: at most t_1, above t_1 and at
most t_2, …, above t_J; y'_j is the output brought within public bounds. Publish the J + 1 counts
Σ_j v_j + s Z with independent noise on a grid (Gaussian or Laplace), where v_j ∈ {0, 1}ᴶ⁺¹ has a
one at the cell of the score.

Counts of rows that no prediction was fitted to say how wide an interval around a prediction must be
(`cloakgp.release.margins`).

Neighbours
    One output changes, to any number; everything else is equal. Means, sds, bounds and cells are
    equal: they are functions of public inputs and of answers that were published before.
Sensitivity
    v_j has a single one, whatever the output: two of them are at most √2 apart, and 2 in ℓ1 norm,
    however many cells there are. A group of n rows moves counts by at most n times that, by the
    triangle inequality. Scores are rounded, and may overflow; each is one number for one output
    all the same, and counts in one cell. Counts are whole numbers below 2⁵³: nothing else is
    rounded before the grid, which `cloakgp.privacy.grid` counts.
Theorem
    As for `cloakgp.privacy.ask`, in J + 1 dimensions. It is asked of rows that no other question
    is about, so that it composes in parallel (`cloakgp.privacy.accounting.compose_parallel`).
Argument
    Given all earlier answers, means, sds and cells are constants, and this is the mechanism of
    `cloakgp.privacy.ask` on a function of one output each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.questions.counts import IndicatorQuestion
from cloakgp.utils.arrays import Array


@dataclass(frozen=True, eq=False)
class MarginQuestion(IndicatorQuestion):
    """How far from its predicted mean the output of every row lies, in predictive sds.

    Attributes
    ----------
    mean, sd : arrays of shape (N,)
        Predicted, in output units.
    within : OutputBounds
        Outputs beyond count as at the ends.
    cells : array of shape (J,)
        Where cells end, in predictive sds, in order; each end belongs to the cell before it.

    Examples
    --------
    >>> question = MarginQuestion(
    ...     mean=np.array([0.0, 0.0, 5.0]), sd=np.ones(3), within=OutputBounds(-9.0, 9.0),
    ...     cells=np.array([1.0, 2.0]))
    >>> question.encode(np.array([-1.0, 1.5, 99.0]))
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    name: ClassVar[str] = "margins"
    follows_answers: ClassVar[bool] = True

    mean: Array
    sd: Array
    within: OutputBounds
    cells: Array

    def validate(self) -> None:
        """Refuse predictions and cells that are none.

        Raises
        ------
        ValueError
            If predictions are missing or infinite, an sd is not above zero, or the ends of cells
            are infinite, not above zero, or not in order.
        """
        alike = self.mean.ndim == 1 and self.mean.shape == self.sd.shape
        if not (alike and np.isfinite((self.mean, self.sd)).all() and (self.sd > 0).all()):
            raise ValueError("its predicted distributions are damaged")
        ends = self.cells
        if not (ends.ndim == 1 and len(ends) and np.isfinite(ends).all()):
            raise ValueError("its cells are damaged")
        if not (np.diff(ends, prepend=0.0) > 0).all():
            raise ValueError("its cells are damaged")
        self.within.validate()

    @property
    def channels(self) -> int:
        """J + 1, the number of indicators."""
        return len(self.cells) + 1

    @property
    def rows(self) -> int:
        """N."""
        return len(self.mean)

    def encode(self, entries: Array) -> Array:
        """Return indicators of cells, shape (n, J + 1).

        Parameters
        ----------
        entries : array of shape (n,)
            Private; finite.
        """
        # Far scores overflow to infinity, which lies in the last cell.
        with np.errstate(over="ignore"):
            scores = np.abs(self.within.clip(entries) - self.mean) / self.sd
        cell = np.searchsorted(self.cells, scores, side="left")
        return np.asarray(cell[:, None] == np.arange(self.channels), np.float64)

    def check_weights(self, weights: Array) -> None:
        """Refuse to count rows otherwise than once each."""
        if weights.shape[0] != 1 or not np.all(weights == 1.0):
            raise ValueError("its arrays do not fit each other")

    def describe_answers(self, count: int, *, noise: Callable[[str], str], output: str) -> str:
        """Describe counts of outputs by their distance from predictions."""
        del count
        return (
            f"{self.channels} numbers, about {self.rows:,} rows that no other question is about: "
            f"how many values of {output} lie at each of so many distances from their predictions, "
            f"which end from {self.cells[0]:.3g} to {self.cells[-1]:.3g} predictive sds; each "
            f"with {noise(' rows')}."
        )
