r"""Values outside of an interval: what noisy counts leave open of their share and their distance.

Counts found an interval [l, u] within the declared bounds, to which later questions clip. Values
outside are in no estimate of scatter: how far off predictions are for them nobody asked. But the
counts that found the interval have bins outside of it, too, as far as the bounds.

With a share p of all N values at one place x outside, a bin there has an expected count of N p, and
all bins within add up to N (1 − p); where it was asked who lies outside, strata add up to N p. So
the density of all counts, with their noise, is a function of p and x on a grid. Beforehand half of
all tables have no values outside. Of the others log(1 + N p) is uniform, up to p = .4; and so is
the logarithm of the distance of x from the middle of predictions, from the interval's ends to the
bounds, but for one in ten, who are at the bound. Two sides are as probable as they are long on that
scale.

What is left open of p and x is often much: with bounds a hundred times as wide as the scatter, one
value in a hundred that counts cannot see may make most of a mean square.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.privacy.questions.outside import OutsideQuestion
from cloakgp.release.measurement import Measurement, narrower_interval
from cloakgp.utils.arrays import Array

# How probable it is beforehand that nothing lies outside; and the largest share that may.
NONE_OUTSIDE, MOST_OUTSIDE = 0.5, 0.4
# Places on either side, beside those in the midst of bins; and shares.
PLACES, SHARES = 40, 40
# How probable a bound itself is on its side, where outputs beyond it count, and many have a limit.
AT_BOUND = 0.1
# How probable it may still be that nothing lies outside, where counts refute it.
REFUTED = 0.05
# The least distance of values outside from the middle of predictions, in widths of the interval.
NEAREST = 0.1


@dataclass(frozen=True, eq=False)
class Counts:
    """Noisy counts of values in bins, from bound to bound.

    Attributes
    ----------
    edges : array of shape (B + 1,)
    counts : array of shape (B,)
    noise_sd : float
        Of each.
    """

    edges: Array
    counts: Array
    noise_sd: float

    def log_density(
        self, places: Array, outside: Array, *, interval: tuple[float, float], rows: float
    ) -> Array:
        """Return the log density of the counts up to a constant, shape (L, Q).

        Noise counts as normal. Of bins within, their sum alone.

        Parameters
        ----------
        places : array of shape (L,)
            Where values outside lie.
        outside : array of shape (Q,)
            How many there are.
        interval : (float, float)
        rows : float
            Of how many.
        """
        counts, variance = self.counts, self.noise_sd**2
        beyond = (self.edges[1:] <= interval[0]) | (self.edges[:-1] >= interval[1])
        bins = np.searchsorted(self.edges, places, side="right") - 1
        bins = np.clip(bins, 0, len(counts) - 1)
        seen, here = beyond[bins][:, None], counts[bins][:, None]
        density = np.where(seen, (here - outside / 2) * outside / variance, 0.0)
        left = counts[~beyond].sum() - rows + np.where(seen, outside, 0.0)
        return np.asarray(density - left**2 / (2 * variance * (~beyond).sum()))


@dataclass(frozen=True, eq=False)
class OutsideValues:
    """What noisy counts leave open of the values outside of an interval.

    Attributes
    ----------
    places : array of shape (L,)
        Where they may lie, in units of outputs as asked.
    shares : array of shape (Q,)
        How many of all these may be; the first is none.
    weights : array of shape (L, Q)
        How probable each is, given the counts; all add up to 1.
    """

    places: Array
    shares: Array
    weights: Array

    @classmethod
    def counted(cls, measurements: Sequence[Measurement], *, middle: float) -> OutsideValues | None:
        """Return what counts leave open; None if first questions clipped to no interval.

        Parameters
        ----------
        measurements : sequence of Measurement
            In the order in which they were made. Of several tables nothing is told.
        middle : float
            Of predictions: what distances are from.
        """
        interval, question = narrower_interval(measurements), measurements[0].question
        rounds = [one for one in measurements if isinstance(one.question, CountQuestion)]
        tables = {one.strategy.table for one in measurements}
        if interval is None or not rounds or len(tables) > 1:
            return None
        assert isinstance(question, OutputBounds)
        asked = [
            (
                one.question.how_many(one.answers.values, one.strategy.totals).sum(),
                one.answers.noise_sd**2 * one.answers.values.size,
            )
            for one in measurements
            if isinstance(one.question, OutsideQuestion)
            and (one.question.lo, one.question.hi) == interval
        ]
        return cls.given(
            [
                Counts(one.question.edges, one.answers.values[0], one.answers.noise_sd)
                for one in rounds
                if isinstance(one.question, CountQuestion)
            ],
            interval=(question.lo, question.hi),
            rows=float(rounds[0].strategy.totals[0]),
            middle=middle,
            asked=asked,
        )

    @classmethod
    def given(
        cls,
        rounds: Sequence[Counts],
        *,
        interval: tuple[float, float],
        rows: float,
        middle: float,
        asked: Sequence[tuple[float, float]] = (),
    ) -> OutsideValues:
        """Return what these counts leave open.

        Parameters
        ----------
        rounds : sequence of Counts
            The first from bound to bound, as all others.
        interval : (float, float)
            l and u.
        rows : float
            N.
        middle : float
        asked : sequence of (float, float)
            Noisy numbers of values outside, with the variance of their noise.
        """
        lo, hi = interval
        edges = np.unique(np.concatenate([one.edges for one in rounds]))
        places, likely = _places(lo, hi, edges=edges, middle=middle)
        levels = np.arange(SHARES) / (SHARES - 1)
        shares = np.expm1(levels * np.log1p(MOST_OUTSIDE * rows)) / rows
        outside = rows * shares
        density = np.zeros((len(places), SHARES))
        for one in rounds:
            density += one.log_density(places, outside, interval=interval, rows=rows)
        for number, variance in asked:
            density -= (number - outside) ** 2 / (2 * variance)
        before = np.full(SHARES, (1.0 - NONE_OUTSIDE) / (SHARES - 1))
        before[0] = NONE_OUTSIDE
        weights = np.exp(density - density.max()) * likely[:, None] * before
        return cls(places=places, shares=shares, weights=weights / weights.sum())

    @property
    def are_certain(self) -> bool:
        """Whether the counts refute that nothing lies outside."""
        return float(self.weights[:, 0].sum()) < REFUTED

    def with_them(self, within: Array, distances: Array) -> tuple[Array, Array]:
        """Return mean squares over all values, and how probable each is, shapes (n,).

        Parameters
        ----------
        within : array of shape (m,)
            Equally probable mean squares of the distances of values within.
        distances : array of shape (L,)
            Mean squares of the distances of values at each place.
        """
        outside = distances[:, None] * self.shares
        every = (1.0 - self.shares) * within[:, None, None] + outside
        weights = np.broadcast_to(self.weights / len(within), every.shape)
        return every.ravel(), weights.ravel()


def _places(lo: float, hi: float, *, edges: Array, middle: float) -> tuple[Array, Array]:
    """Return places outside of an interval, and how probable each is beforehand, shapes (L,).

    Some are in every bin, of which the farthest are short on the scale of the distance.
    """
    # Predictions may lie at an end of the interval, or beyond it.
    least = NEAREST * (hi - lo)
    places, likely = [], []
    for sign, end, bound in ((-1.0, lo, edges[0]), (1.0, hi, edges[-1])):
        near, far = max(sign * (end - middle), least), sign * (bound - middle)
        if bound == end or far <= near:
            continue
        bins = sign * (edges - middle)
        bins = np.log(bins[(bins > near) & (bins < far)])
        parts = np.union1d(np.linspace(np.log(near), np.log(far), PLACES + 1), bins)
        places.append(np.append(middle + sign * np.exp((parts[:-1] + parts[1:]) / 2), bound))
        length = parts[-1] - parts[0]
        likely.append(np.append((1.0 - AT_BOUND) * np.diff(parts), AT_BOUND * length))
    if not places:
        return np.array([middle]), np.ones(1)
    every = np.concatenate(likely)
    return np.concatenate(places), every / every.sum()


def weighted_quantiles(values: Array, weights: Array, levels: Array) -> Array:
    """Return quantiles of values that are not equally probable, shape (Q,).

    Parameters
    ----------
    values, weights : arrays of shape (n,)
    levels : array of shape (Q,)

    Examples
    --------
    >>> weighted_quantiles(np.array([3.0, 1.0]), np.array([0.9, 0.1]), np.array([0.05, 0.5]))
    array([1., 3.])
    """
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    found = np.searchsorted(below, levels * below[-1])
    return np.asarray(values[order][np.minimum(found, len(values) - 1)])
