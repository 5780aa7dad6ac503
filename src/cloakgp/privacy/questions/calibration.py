r"""Calibration: in which cell of its predicted distribution an output lies, counted by strata.

Mechanism
---------
Every row j has a public predicted mean m_j and sd s_j > 0 of its output. Public numbers
c_1 < … < c_{K−1} cut the standardised residual z = (y − m)/s into K cells: below c_1, from c_1 to
below c_2, …, from c_{K−1} on. Others, t_1 < … < t_{B−1}, cut predicted means into B strata in the
same way. Publish the B K counts Σ_j v_j + s Z with independent noise on a grid (Gaussian or
Laplace), where v_j ∈ {0, 1}ᴮᴷ has a one at the stratum of m_j and the cell of z_j.

Counts say how often outputs lie where they were predicted to lie: by them release and user know
what intervals hold (`cloakgp.release.calibration`).

Neighbours
    One output changes, to any number; everything else is equal. With groups, all outputs of one
    group change. Means, sds, cells and strata are equal: they are functions of public inputs and of
    answers that were published before.
Sensitivity
    The stratum of a row does not depend on its output. v_j has a single one, whatever the output:
    two of them are at most √2 apart, and 2 in ℓ1 norm, however many strata and cells there are. A
    group of n rows moves counts by at most n times that, by the triangle inequality. z is rounded,
    and may overflow, so that an output next to the end of a cell may count as beyond it; but it is
    one number for one output, and counts in one cell, whatever was rounded. Counts are whole
    numbers below 2⁵³: nothing else is rounded before the grid, which `cloakgp.privacy.grid` counts.
Theorem
    As for `cloakgp.privacy.ask`, in B K dimensions. Whether it is asked, and for which share of the
    budget, public numbers decide before anything is asked (`cloakgp.fitting.calibration`), so that
    it composes as one more stage: see `cloakgp.privacy.questions.bands`.
Argument
    Given all earlier answers, means, sds, cells and strata are constants, and this is the mechanism
    of `cloakgp.privacy.ask` on a function of one output each: μ_t-Gaussian DP or ε_t-DP for every
    value of the earlier answers, which is what adaptive composition asks for.
Several outputs of a person
    Their entries stand in one column, and every output has counts of its own, of the entries of
    that output alone: see `cloakgp.privacy.questions.counts`. Means, sds and strata are then those
    of entries. Neighbours differ in all entries of one person, of whom one row moves the counts of
    each output by √2, and 2 in ℓ1 norm. Counts of T outputs are T such mechanisms, which compose:
    their μ_t², or ε_t, add up. (One question with T B K counts would move by √(2T), and 2T: with
    the noise that the parts of a budget split in T equal ones buy, that is the same.)
Tables in chunks
    Rows of a chunk get means, sds and strata from their inputs, and earlier answers
    (`cloakgp.release.bands.RowCalibration`); all else is as it stands at
    `cloakgp.privacy.questions.counts`, weights of grouped rows included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cloakgp.privacy.questions.counts import IndicatorQuestion
from cloakgp.utils.arrays import Array

DAMAGED = "its cells are damaged"


class CellCounts(IndicatorQuestion):
    """Counts of outputs in cells of their predicted distributions, by strata of the means.

    Attributes
    ----------
    cells : array of shape (K − 1,)
        Where cells end, in predictive sds from the predicted mean, in order.
    strata : array of shape (B − 1,)
        Where strata of predicted means end, in output units, in order.
    middles : array of shape (B,)
        A predicted mean in the midst of each stratum.
    sizes : array of shape (B,)
        What the counts of each stratum add up to; of rows that are read in passes, nearly.
    """

    follows_answers: ClassVar[bool] = True

    cells: Array
    strata: Array
    middles: Array
    sizes: Array

    def validate(self) -> None:
        """Refuse cells and strata that are none.

        Raises
        ------
        ValueError
            If their ends are infinite, or not in order.
        """
        for ends in (self.cells, self.strata):
            fit = ends.ndim == 1 and np.isfinite(ends).all() and (ends[1:] > ends[:-1]).all()
            if not fit:
                raise ValueError(DAMAGED)
        per_stratum = (len(self.strata) + 1,)
        if not (len(self.cells) and self.middles.shape == self.sizes.shape == per_stratum):
            raise ValueError(DAMAGED)
        # Written so that NaN fails.
        if not (np.isfinite(self.middles).all() and (np.diff(self.middles) > 0).all()):
            raise ValueError(DAMAGED)
        if not ((self.sizes > 0) & (self.sizes < np.inf)).all():
            raise ValueError(DAMAGED)

    @property
    def shape(self) -> tuple[int, int]:
        """B and K."""
        return len(self.strata) + 1, len(self.cells) + 1

    @property
    def channels(self) -> int:
        """B K, the number of indicators."""
        strata, cells = self.shape
        return strata * cells

    def check_weights(self, weights: Array) -> None:
        """Refuse to count rows otherwise than once each, or not at all: as entries of others."""
        if weights.shape[0] != 1 or not ((weights == 0.0) | (weights == 1.0)).all():
            raise ValueError("its arrays do not fit each other")

    def stratum_of(self, means: Array) -> NDArray[np.intp]:
        """Return in which stratum predicted means lie, from 0, shape (n,)."""
        return np.searchsorted(self.strata, means, side="right")

    def describe_answers(self, count: int, *, noise: Callable[[str], str], output: str) -> str:
        """Describe counts of outputs in cells of their predicted distributions."""
        del count
        strata, cells = self.shape
        parts = f", in each of {strata} parts by predicted value" if strata > 1 else ""
        return (
            f"{self.channels} numbers: how many values of {output} lie in each of {cells} "
            f"intervals around their predictions, which end from {self.cells[0]:g} to "
            f"{self.cells[-1]:g} predictive sds{parts}; each with {noise(' rows')}."
        )


@dataclass(frozen=True, eq=False)
class CalibrationQuestion(CellCounts):
    """In which cell of its predicted distribution the output of every row lies.

    Attributes
    ----------
    mean, sd : arrays of shape (N,)
        Predicted, in output units.
    cells, strata, middles, sizes : arrays
        As for `CellCounts`.

    Examples
    --------
    >>> question = CalibrationQuestion(
    ...     mean=np.array([0.0, 0.0, 5.0]), sd=np.ones(3), cells=np.array([-1.0, 1.0]),
    ...     strata=np.array([2.0]), middles=np.array([0.0, 5.0]), sizes=np.array([2.0, 1.0]))
    >>> question.encode(np.array([0.5, 7.0, -9.0]))
    array([[0., 1., 0., 0., 0., 0.],
           [0., 0., 1., 0., 0., 0.],
           [0., 0., 0., 1., 0., 0.]])
    """

    name: ClassVar[str] = "calibration"

    mean: Array
    sd: Array
    cells: Array
    strata: Array
    middles: Array
    sizes: Array

    def validate(self) -> None:
        """Refuse predictions, cells and strata that are none.

        Raises
        ------
        ValueError
            If predictions are missing or infinite, or an sd is not above zero; or as `CellCounts`.
        """
        super().validate()
        fit = self.mean.ndim == 1 and self.mean.shape == self.sd.shape
        if not (fit and np.isfinite((self.mean, self.sd)).all() and (self.sd > 0).all()):
            raise ValueError("its predicted distributions are damaged")

    @property
    def rows(self) -> int:
        """N."""
        return len(self.mean)

    def encode(self, entries: Array) -> Array:
        """Return indicators of strata and cells, shape (n, B K).

        Parameters
        ----------
        entries : array of shape (n,)
            Private; finite.
        """
        # Far outputs overflow to infinity, which lies in the first cell or the last.
        with np.errstate(over="ignore"):
            standardised = (entries - self.mean) / self.sd
        cell = np.searchsorted(self.cells, standardised, side="right")
        place = self.stratum_of(self.mean) * self.shape[1] + cell
        return np.asarray(place[:, None] == np.arange(self.channels), np.float64)
