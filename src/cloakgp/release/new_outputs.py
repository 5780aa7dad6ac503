"""New outputs at some points: the quantiles of their predicted distributions, and probabilities.

Numbers are distributed by noisy counts where there are any (`cloakgp.release.calibration`), and
else as the Gaussian predictive distribution says, or, where no answer tells their own noise, a
mixture of such (`cloakgp.release.unknown_noise`); counts of events by a mixture of whole numbers
(`cloakgp.models.likelihoods.counts.CountMixture`); outputs of which quantiles were asked by these,
and beyond them as normal distributions (`cloakgp.models.likelihoods.quantiles.PredictedQuantiles`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cloakgp.models.likelihoods.counts import CountMixture
from cloakgp.models.likelihoods.quantiles import PredictedQuantiles
from cloakgp.models.transforms import OutputTransform
from cloakgp.release.calibration import BLOCK, GRID, PLACES, Calibration
from cloakgp.utils.arrays import Array

if TYPE_CHECKING:
    from cloakgp.release.margins import Margins
    from cloakgp.release.unknown_noise import UnknownNoise

# How much of the curve, or of new outputs, their limits hold.
LIMITS = 0.95


class NewOutputs(Protocol):
    """One new output at each of n points."""

    def quantiles(self, probabilities: Array) -> Array:
        """Return quantiles in output units, shape (n, Q)."""

    def interval(self, coverage: float) -> Array:
        """Return the ends of intervals in output units, shape (n, 2)."""

    def above(self, threshold: float) -> Array:
        """Return the probability that each is above a threshold in output units, shape (n,)."""


class CentralIntervals(ABC):
    """New outputs whose intervals miss them as often below as above."""

    @abstractmethod
    def quantiles(self, probabilities: Array) -> Array:
        """Return quantiles in output units, shape (n, Q).

        Parameters
        ----------
        probabilities : array of shape (Q,)
        """

    def interval(self, coverage: float) -> Array:
        """Return the ends of intervals in output units, shape (n, 2).

        Parameters
        ----------
        coverage : float
        """
        return self.quantiles(central(coverage))


@dataclass(frozen=True, eq=False)
class NewNumbers(CentralIntervals):
    """New outputs that are numbers, within the declared bounds.

    Attributes
    ----------
    mean, sd : arrays of shape (n,)
        Of the predictive distribution, of outputs as they were asked: before they are transformed
        back.
    declared : (float, float)
        The bounds of such outputs.
    bounds : (float, float)
        The same in output units.
    transform : OutputTransform or None
        From output units to those that were asked.
    calibration : Calibration or None
    unknown : UnknownNoise or None
        Their distributions where no answer tells their own noise, and nobody gave it.
    margins : Margins or None
        Of intervals; quantiles and probabilities do not go by them.

    Examples
    --------
    >>> new = NewNumbers(np.array([5.0]), np.array([2.0]), declared=(0, 8), bounds=(0, 8))
    >>> new.quantiles(np.array([0.1, 0.5, 0.95])).round(2), new.above(7.0).round(2)
    (array([[2.44, 5.  , 8.  ]]), array([0.16]))
    """

    mean: Array
    sd: Array
    declared: tuple[float, float]
    bounds: tuple[float, float]
    transform: OutputTransform | None = None
    calibration: Calibration | None = None
    unknown: UnknownNoise | None = None
    margins: Margins | None = None

    def interval(self, coverage: float) -> Array:
        """Return the ends of intervals in output units, shape (n, 2).

        By margins, as far below the prediction as above; all within the bounds if these are
        infinite.

        Parameters
        ----------
        coverage : float
        """
        if self.margins is None:
            return super().interval(coverage)
        reach = self.margins.margin(coverage) * self.sd
        ends = np.stack([self.mean - reach, self.mean + reach], axis=1)
        return self.restored(ends)

    def quantiles(self, probabilities: Array) -> Array:
        """Return quantiles in output units, shape (n, Q).

        Parameters
        ----------
        probabilities : array of shape (Q,)
        """
        steps = special.ndtri(probabilities)
        if self.calibration is not None:
            steps = self.calibration.quantiles(self.mean, probabilities)
        elif self.unknown is not None:
            steps = self.unknown.steps(probabilities)
        return self.restored(self.mean[:, None] + self.sd[:, None] * steps)

    def typical_errors(self) -> Array:
        """Return the root of the mean square of each one's distance from its prediction, (n,).

        In output units. The prediction is that of `cloakgp.Release.predict`: the median of
        outputs that are transformed, which lie within the bounds. Of others all of the predictive
        distribution counts, as in its sd.
        """
        if self.calibration is None and self.transform is None:
            return self.sd
        found = np.empty(len(self.mean))
        normal = np.diff(special.ndtr(GRID), prepend=0.0, append=1.0)
        for rows, squares in self._squared_distances():
            known = self.calibration
            shares = normal if known is None else known.shares(self.mean[rows])
            found[rows] = np.sqrt(np.sum(shares * squares, axis=1))
        return found

    def typical_error(self) -> float:
        """Return the root of the mean square of all distances, in output units.

        Of calibrated outputs by the counts of all strata together, which tell it better.
        """
        if self.calibration is None:
            return float(np.sqrt(np.mean(np.square(self.typical_errors()))))
        return float(np.sqrt(self.mean_squares().mean()))

    def mean_squares(self) -> Array:
        """Return the mean square of all distances under each law that counts leave open, (laws,).

        Calibrated outputs only; in squared output units.
        """
        assert self.calibration is not None
        squares = np.zeros(len(PLACES))
        for _, block in self._squared_distances():
            squares += block.sum(axis=0)
        return np.asarray(self.calibration.laws @ squares / len(self.mean))

    def _squared_distances(self) -> Iterator[tuple[slice, Array]]:
        """Yield squares of distances from predictions at all of `PLACES`, by blocks of points."""
        for start in range(0, len(self.mean), BLOCK):
            rows = slice(start, start + BLOCK)
            mean = self.mean[rows]
            distances = self.sd[rows, None] * PLACES
            if self.transform is not None:
                outputs = self.restored(mean[:, None] + distances)
                distances = outputs - self.restored(mean)[:, None]
            yield rows, np.square(distances)

    def above(self, threshold: float) -> Array:
        """Return the probability that each is above a threshold in output units, shape (n,).

        Parameters
        ----------
        threshold : float
        """
        lowest, highest = self.bounds
        if not lowest <= threshold < highest:
            return np.full(len(self.mean), 1.0 if threshold < lowest else 0.0)
        asked = np.array(float(threshold))
        if self.transform is not None:
            asked = self.transform.forward(asked)
        steps = (asked - self.mean) / self.sd
        if self.calibration is None:
            # These laws are symmetric.
            known = special.ndtr if self.unknown is None else self.unknown.below
            return np.asarray(known(-steps))
        return 1.0 - self.calibration.probabilities(self.mean, steps[:, None])[:, 0]

    def restored(self, asked: Array) -> Array:
        """Return numbers as they were asked in output units, within the declared bounds."""
        within = np.clip(asked, *self.declared)
        return restore(within, transform=self.transform, bounds=self.bounds)


@dataclass(frozen=True, eq=False)
class NewCounts(CentralIntervals):
    """New outputs that are counts of events, for some exposure.

    Attributes
    ----------
    mixture : CountMixture
    """

    mixture: CountMixture

    def quantiles(self, probabilities: Array) -> Array:
        """Return the least whole numbers with that much at or below them, shape (n, Q).

        Parameters
        ----------
        probabilities : array of shape (Q,)
        """
        return np.stack([self.mixture.quantile(each) for each in probabilities.tolist()], axis=1)

    def above(self, threshold: float) -> Array:
        """Return the probability that each is above a threshold, shape (n,).

        Parameters
        ----------
        threshold : float
        """
        return self.mixture.above(threshold)


@dataclass(frozen=True, eq=False)
class NewQuantiles(CentralIntervals):
    """New outputs whose distribution is known by a few of its quantiles.

    Attributes
    ----------
    known : PredictedQuantiles
        Of outputs as they were asked: before they are transformed back.
    bounds : (float, float)
        Declared, in output units. Outputs may lie beyond them: all that do are counted at the ends.
    transform : OutputTransform or None
        From output units to those that were asked.

    Examples
    --------
    >>> known = PredictedQuantiles(
    ...     steps=np.array([0.0]), values=np.array([[5.0]]), spread=np.array([[2.0]]))
    >>> new = NewQuantiles(known, bounds=(0, 8))
    >>> new.quantiles(np.array([0.1, 0.5, 0.95])).round(2), new.above(7.0).round(2)
    (array([[2.44, 5.  , 8.  ]]), array([0.16]))
    """

    known: PredictedQuantiles
    bounds: tuple[float, float]
    transform: OutputTransform | None = None

    def quantiles(self, probabilities: Array) -> Array:
        """Return quantiles in output units, shape (n, Q).

        Parameters
        ----------
        probabilities : array of shape (Q,)
        """
        found = self.known.quantile(probabilities)
        return restore(found, transform=self.transform, bounds=self.bounds)

    def above(self, threshold: float) -> Array:
        """Return the probability that each is above a threshold in output units, shape (n,).

        Parameters
        ----------
        threshold : float
            Beyond the bounds, it is taken to be at their end.
        """
        asked = np.clip(float(threshold), *self.bounds)
        if self.transform is not None:
            asked = self.transform.forward(np.array(asked))
        return self.known.above(float(asked))


def restore(
    values: Array, *, transform: OutputTransform | None, bounds: tuple[float, float]
) -> Array:
    """Return outputs in output units, within the declared bounds.

    Parameters
    ----------
    values : array
        As they were asked.
    transform : OutputTransform or None
        From output units to those that were asked.
    bounds : (float, float)
        In output units.

    Examples
    --------
    >>> restore(np.array([3.0, 9.0]), transform=None, bounds=(0.0, 8.0))
    array([3., 8.])
    """
    found = values if transform is None else transform.inverse(values)
    return np.clip(found, *bounds)


def check_probabilities(values: ArrayLike, *, name: str) -> Array:
    """Return probabilities, shape (Q,), or refuse what lies outside of (0, 1).

    Parameters
    ----------
    values : float, or array-like of shape (Q,)
    name : str
        What errors call them.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> check_probabilities(0.5, name="coverage")
    array([0.5])
    """
    levels = np.atleast_1d(np.asarray(values, dtype=np.float64))
    # Written so that NaN fails.
    if levels.ndim != 1 or not len(levels) or not ((levels > 0) & (levels < 1)).all():
        raise ValueError(f"{name} must lie between 0 and 1, such as 0.9 for 90 %")
    return levels


def check_threshold(threshold: float) -> float:
    """Return a threshold, or refuse what is no number.

    Parameters
    ----------
    threshold : float

    Raises
    ------
    ValueError
    """
    if not np.isfinite(threshold):
        raise ValueError(f"threshold must be a number, got {threshold}")
    return float(threshold)


def central(coverage: float) -> Array:
    """Return the probabilities below the two ends of an interval that holds a given share.

    Parameters
    ----------
    coverage : float

    Examples
    --------
    >>> central(0.9)
    array([0.05, 0.95])
    """
    return np.array([0.5 - coverage / 2, 0.5 + coverage / 2])
