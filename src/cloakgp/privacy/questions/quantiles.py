r"""Question about quantiles: the cell between thresholds of its row that an output lies in.

Mechanism
---------
Given a public strategy R of shape (k, N) and K public thresholds t_j1 ≤ … ≤ t_jK for every row j,
publish R V + s Z, with Z independent noise on a grid (Gaussian or Laplace). With one threshold, V
has one column, ½ where y_j ≤ t_j and −½ elsewhere. With more, row j of V has K + 1 entries: a one
in the cell between thresholds that y_j lies in, and zeros.

Where thresholds are predicted τ-quantiles, R 1[y ≤ t] is expected to be R 1 τ: the difference of
answers from that gives the direction in which predictions are off. No output is clipped, and
answers do not depend on its distance from thresholds.

Neighbours
    One output changes, to any number; everything else is equal. With groups, all outputs of one
    group change. Thresholds and R are equal: they are functions of public inputs, of declared
    numbers, and of answers that were published before.
Sensitivity
    An output is compared with numbers, exactly, and counted in one place. With one threshold v_j is
    one of two numbers that float64 holds, 1 apart. With more, a row of V has a single one,
    whatever the output: two of them are at most √2 apart, and 2 in ℓ1 norm, however many
    thresholds there are and wherever they are. So one output moves R V by at most max_j ‖r_j‖, or
    √2 and 2 times that, and a group by its gauge, or by that factor times Σ_j ‖r_j‖, by the
    triangle inequality: `cloakgp.privacy.ask`. All K quantiles share these answers. A question of
    its own for each, 1[y_j ≤ t_jk], would move by √K, and by K in ℓ1 norm.
Theorem
    As for `cloakgp.privacy.ask`, in k or k (K + 1) dimensions. Several stages compose as those of
    `cloakgp.privacy.questions.bands`.
Argument
    Given all earlier answers, thresholds and R are constants, and this is the mechanism of
    `cloakgp.privacy.ask` on a function of one output each: μ_t-Gaussian DP or ε_t-DP for every
    value of the earlier answers, which is what adaptive composition asks for. Sums of the columns
    of V are R V 1 = R 1, which is public: what is taken off noisy ones to make them add up, and
    their partial sums, which are about 1[y ≤ t_k], are post-processing.
Tables in chunks
    Rows are gathered in public cells: `cloakgp.privacy.questions.gathered`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cloakgp.privacy.entries import INFINITE, MISSING, number_faults
from cloakgp.privacy.questions.base import Question, numbers
from cloakgp.privacy.questions.counts import ROOT_HALF
from cloakgp.privacy.rounding import UNIT_ROUNDOFF
from cloakgp.utils.arrays import Array


@dataclass(frozen=True, eq=False)
class QuantileQuestion(Question):
    """The cell between the thresholds of its row that an output lies in.

    Attributes
    ----------
    thresholds : array of shape (N, K)
        In output units, in order in every row.
    bounds : (float, float)
        Declared: where outputs matter. They clip none.

    Examples
    --------
    >>> question = QuantileQuestion(np.array([[1.0, 2.0], [3.0, 3.0]]), bounds=(0.0, 9.0))
    >>> question.encode(np.array([1.0, 4.0]))
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """

    name: ClassVar[str] = "quantiles"
    complaints: ClassVar[tuple[str, ...]] = (MISSING, INFINITE)
    largest: ClassVar[float] = 1.0

    thresholds: Array
    bounds: tuple[float, float]

    def validate(self) -> None:
        """Refuse invalid thresholds.

        Raises
        ------
        ValueError
            If thresholds or bounds are missing, infinite, or not in order.
        """
        fit = self.thresholds.ndim == 2 and self.thresholds.shape[1] > 0
        lo, hi = self.bounds
        # Written so that NaN fails.
        if not (
            fit
            and np.isfinite(self.thresholds).all()
            and (np.diff(self.thresholds, axis=1) >= 0).all()
            and np.isfinite(self.bounds).all()
            and lo < hi
        ):
            raise ValueError("its thresholds are damaged")

    @property
    def rows(self) -> int:
        """N."""
        return len(self.thresholds)

    def at(self, places: NDArray[np.intp]) -> QuantileQuestion:
        """Return the question about rows at some places."""
        return QuantileQuestion(self.thresholds[places], self.bounds)

    @property
    def quantiles(self) -> int:
        """K."""
        return int(self.thresholds.shape[1])

    @property
    def channels(self) -> int:
        """The columns of V: 1 for one threshold, one for each cell between more."""
        return 1 if self.quantiles == 1 else self.quantiles + 1

    @property
    def distance(self) -> float:
        """The largest change of a row of V, rounded up."""
        return 1.0 if self.channels == 1 else 2.0 * ROOT_HALF

    @property
    def absolute_distance(self) -> float:
        """The same in ℓ1 norm: one entry falls, another rises."""
        return 1.0 if self.channels == 1 else 2.0 * (1 + 4 * UNIT_ROUNDOFF)

    @property
    def limits(self) -> tuple[float, float]:
        """The declared bounds."""
        return self.bounds

    def faults(self, entries: Array) -> tuple[bool, ...]:
        """Return whether outputs are missing, and whether any is infinite.

        Parameters
        ----------
        entries : array of shape (n,)
            Private.
        """
        return number_faults(entries)

    def encode(self, entries: Array) -> Array:
        """Return indicators of the cells of outputs, shape (N, channels).

        Parameters
        ----------
        entries : array of shape (N,)
            Private; finite.
        """
        above = (entries[:, None] > self.thresholds).sum(axis=1)
        if self.channels == 1:
            return np.where(above[:, None] == 0, 0.5, -0.5)
        return np.asarray(above[:, None] == np.arange(self.channels), dtype=np.float64)

    def expected(self, below: Array) -> Array:
        """Return the expected V, shape (N, channels).

        Parameters
        ----------
        below : array of shape (N, K)
            Public: the probabilities that outputs lie at or below thresholds.
        """
        if self.channels == 1:
            return below - 0.5
        return np.diff(below, axis=1, prepend=0.0, append=1.0)

    def about_outputs(self, values: Array, totals: Array, *means: float) -> Array:
        """Return answers about 1[y ≤ t_k], in units of equal noise.

        Shape (k, K). The unit of the k-th is `indicator_units`.
        """
        if self.channels == 1:
            below = values + totals[:, None] / 2
        else:
            # Their sum is public.
            excess = (values.sum(axis=1) - totals) / self.channels
            below = np.cumsum(values - excess[:, None], axis=1)[:, :-1]
        units = indicator_units(self.quantiles)
        expected = units * np.asarray(sum(means) * totals)[:, None]
        return np.asarray(below * units - expected, dtype=np.float64)

    def describe_answers(self, count: int, *, noise: Callable[[str], str], output: str) -> str:
        """Describe sums of indicators of cells."""
        about = f"which values of {output} lie at or below "
        if self.channels == 1:
            about += "a threshold of their row"
        else:
            about += f"each of {self.quantiles} thresholds of their row"
            count = count * self.channels
        return f"{numbers(count)} with {noise(' rows')}, about {about}, and not how far away."


def indicator_units(quantiles: int) -> Array:
    """Return factors of indicators 1[y ≤ t_k] that make their noise equal, shape (K,).

    Cells have noise of variance σ² each, and a public sum: partial sums of k of K + 1 have noise of
    variance σ² k (K + 1 − k)/(K + 1).

    Parameters
    ----------
    quantiles : int
        K.

    Examples
    --------
    >>> indicator_units(1), indicator_units(3).round(3)
    (array([1.]), array([1.155, 1.   , 1.155]))
    """
    if quantiles == 1:
        return np.ones(1)
    place = np.arange(1.0, quantiles + 1.0)
    return np.asarray(np.sqrt((quantiles + 1.0) / (place * (quantiles + 1.0 - place))))


def indicator_noise(quantiles: int) -> Array:
    """Return the covariance of the noise of answers about 1[y ≤ t_k], in their units: (K, K).

    With a diagonal of ones: partial sums of k and l ≥ k of K + 1 cells with a public sum have
    covariance σ² k (K + 1 − l)/(K + 1).

    Parameters
    ----------
    quantiles : int
        K.

    Examples
    --------
    >>> indicator_noise(2).round(3)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    units, place = indicator_units(quantiles), np.arange(1.0, quantiles + 1.0)
    if quantiles == 1:
        return np.ones((1, 1))
    shared = np.minimum.outer(place, place) - np.outer(place, place) / (quantiles + 1.0)
    return np.asarray(shared * np.outer(units, units))
