r"""Calibration: predictive distributions corrected by noisy counts of where outputs lie in them.

An output at x has a predicted mean m and sd s. Counts in cells of
z = (y − m)/s (`cloakgp.privacy.questions.calibration`) tell the distribution function Ĝ of z over
the rows of a table, and a new output is predicted to lie below m + s z with probability Ĝ(z).

Ĝ is found in two steps. First a smooth one: Jones and Pewsey's (2009) sinh-arcsinh distribution,
Φ(sinh(e^ld asinh(w) − e)) with w = (z − a)/e^lb, four numbers with weak priors around a law whose
tails are those of residuals where noise is learned (`cloakgp.release.posterior.clipped`); its
likelihood is that of the counts with their noise, and Ĝ its mean over the posterior (in Laplace's
approximation), so that few or noisy counts make wider intervals. Then an isotone one, from the
counts alone: the nearest counts that are not negative and add up to the rows (their sums are the
isotone distribution function that pooling gives, for noise that is alike in each cell), spread
within a cell as the smooth one is. They are mixed with weight 1/(1 + (100 t)²) on the second, t
being the noise of a count as a share of the rows: half where noise is one per cent.

In each stratum of predicted means the same is done with priors around what all strata tell
together; between the middles of strata distribution functions are mixed linearly, so that nothing
jumps.

Intervals get wider as far as counts tell, and narrower only as far as noise lets it be told: where
a quantile of Ĝ lies nearer to the median than predicted, it is moved outwards as far as a quantile
of its posterior, that at the probability ½ + .5 (τ − ½) for the quantile at τ, lies from the smooth
estimate, but no further than a normal law has it. So an end of a 90 % interval is where the
posterior has it with .725. For this the posterior counts that outputs do not scatter alike within a
stratum: log scales vary by a quarter, less the weight of the isotone estimate.

Errors that are claimed go by the smooth estimate alone, with no caution: the noise of a count
beyond all outputs leaves the isotone one some of them there, where squares are large. So does that
of a count of one stratum: an error over all points goes by the counts of all strata together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special
from scipy.stats import qmc

from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.questions.calibration import CellCounts
from cloakgp.release.measurement import Measurement
from cloakgp.utils.arrays import Array

# Location, log scale, skewness and log tail weight of the law nearest to Student's with eight
# degrees of freedom and variance 1 (`cloakgp.release.posterior.clipped.FREEDOM`); prior sds around
# it, in which that with four degrees and the normal law are one away; and of a stratum around all.
CENTRE = np.array([0.0, -0.38, 0.0, -0.23])
WEAK = np.array([0.5, 1.0, 0.5, 0.2])
OF_STRATUM = np.array([0.3, 0.3, 0.3, 0.1])
LOG_SCALE = np.array([0.0, 1.0, 0.0, 0.0])
# Where the search for the most probable begins, beside the centre of its prior: narrower laws.
NARROWER = (-1.0, -2.0)
# By how much log scales vary within a stratum.
WITHIN = 0.25
# How far the posterior probability at which a quantile is taken follows that of the quantile.
CAUTION = 0.5
# Probabilities at which quantiles are compared: these normal ones.
LEVELS = special.ndtr(np.linspace(-6.0, 6.0, 301))
# What a share of noise counts against the isotone estimate; see above.
NOISE_WEIGHT = 100.0
# Points at which distribution functions are kept: dense at the centre, to 40 predictive sds.
POINTS = 401
FURTHEST, FINEST = 40.0, 0.05
GRID: Array = FINEST * np.sinh(np.linspace(-1.0, 1.0, POINTS) * np.arcsinh(FURTHEST / FINEST))
# Standardised residuals that stand for all between two of these points, and beyond the last.
PLACES: Array = np.concatenate([GRID[:1], (GRID[1:] + GRID[:-1]) / 2, GRID[-1:]])
# Over which the posterior of the four numbers is averaged.
DRAWS = 128
STEP = 1e-4
# Beyond so many sds nothing is told apart.
LARGEST = 20.0
# Distribution functions of points held in memory at a time.
BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Calibration:
    """How outputs fall in their predicted distributions, by noisy counts.

    Attributes
    ----------
    counts : array of shape (B, K)
        Noisy.
    question : CellCounts
        What was counted, in units of outputs as asked.
    noise_sd : float
        Of a count.
    units : OutputBounds or None
        In widths of which, from whose middle, outputs were asked; None if in their own units.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> from cloakgp.privacy.questions import CalibrationQuestion
    >>> cells = np.linspace(-3.0, 3.0, 13)
    >>> question = CalibrationQuestion(
    ...     mean=np.zeros(10_000), sd=np.ones(10_000), cells=cells, strata=np.zeros(0),
    ...     middles=np.zeros(1), sizes=np.array([1e4]))
    >>> shares = np.diff(norm.cdf(np.concatenate([[-np.inf], cells, [np.inf]]), scale=0.5))
    >>> known = Calibration(counts=1e4 * shares[None, :], question=question, noise_sd=1.0)
    >>> known.quantiles(np.zeros(1), np.array([0.05, 0.95])).round(2)
    array([[-0.83,  0.83]])
    """

    counts: Array
    question: CellCounts
    noise_sd: float
    units: OutputBounds | None = None

    @classmethod
    def of(cls, measurement: Measurement, *, units: OutputBounds | None = None) -> Calibration:
        """Return the calibration from the counts of a measurement.

        Parameters
        ----------
        measurement : Measurement
            That counted in cells.
        units : OutputBounds, optional
            Of outputs as they were asked.

        Raises
        ------
        ValueError
            If it did not.
        """
        question, answers = measurement.question, measurement.answers
        if not isinstance(question, CellCounts) or not answers.noise_sd > 0:
            raise ValueError("its calibration is damaged")
        return cls(
            counts=answers.values.reshape(question.shape),
            question=question,
            noise_sd=answers.noise_sd,
            units=units,
        )

    @property
    def middles(self) -> Array:
        """A predicted mean in the midst of each stratum, shape (B,), in output units."""
        middles, units = self.question.middles, self.units
        return middles if units is None else units.middle + units.width * middles

    def probabilities(self, mean: Array, standardised: Array) -> Array:
        """Return how probable it is that outputs lie below m + s z, shape (P, Q).

        Parameters
        ----------
        mean : array of shape (P,)
            m.
        standardised : array of shape (P, Q)
            z.
        """
        found = np.empty(standardised.shape)
        for rows, curves in self._blocks(mean):
            for place, curve in zip(range(rows.start, rows.stop), curves, strict=True):
                found[place] = np.interp(standardised[place], GRID, curve, left=0.0, right=1.0)
        return found

    def quantiles(self, mean: Array, probabilities: Array) -> Array:
        """Return z such that outputs lie below m + s z with given probabilities, shape (P, Q).

        Parameters
        ----------
        mean : array of shape (P,)
            m.
        probabilities : array of shape (Q,)
        """
        found = np.empty((len(mean), len(probabilities)))
        for rows, curves in self._blocks(mean):
            for place, curve in zip(range(rows.start, rows.stop), curves, strict=True):
                found[place] = np.interp(probabilities, curve, GRID)
        return found

    def shares(self, mean: Array) -> Array:
        """Return how many outputs are expected to lie at each of `PLACES`, shape (P, G + 1).

        With no caution: errors that are claimed shall be neither too large nor too small.

        Parameters
        ----------
        mean : array of shape (P,)
            m.
        """
        expected = np.array([each.expected for each in self._strata])
        return self._weights(mean) @ np.diff(expected, axis=1, prepend=0.0, append=1.0)

    @property
    def laws(self) -> Array:
        """What `shares` of all strata together may be, by what counts leave open, (n, G + 1)."""
        below = np.array([_below(GRID, law) for law in self._fitted.laws])
        return np.diff(below, axis=1, prepend=0.0, append=1.0)

    def coverage_sd(self, coverage: float) -> float:
        """Return how unsure the share of rows is that a central interval of all strata holds.

        An sd, from the noise of the counts and the number of rows: of the smooth estimate over its
        posterior, of the isotone one from the noise on sums of counts whose total is known.

        Parameters
        ----------
        coverage : float
        """
        fitted, cells = self._fitted, self.question.cells
        levels = np.array([0.5 - coverage / 2, 0.5 + coverage / 2])
        ends = np.interp(levels, fitted.below, GRID)
        held = np.array([np.diff(_below(ends, law)) for law in fitted.laws])
        within = np.diff(np.searchsorted(cells, ends))
        parts = (np.arange(len(cells) + 1) < within)[None, :].astype(np.float64)
        return float(fitted.share_sd(held, parts, np.array([coverage]))[0])

    def _blocks(self, mean: Array) -> Iterator[tuple[slice, Array]]:
        """Yield distribution functions at points, by blocks of them, shape (n, G) each."""
        curves = self.curves
        for start in range(0, len(mean), BLOCK):
            block = mean[start : start + BLOCK]
            yield slice(start, start + len(block)), self._weights(block) @ curves

    def _weights(self, mean: Array) -> Array:
        """Return how much each stratum counts for outputs with such predicted means, (P, B)."""
        middles = self.middles
        return np.array([np.interp(mean, middles, row) for row in np.eye(len(middles))]).T

    @cached_property
    def _fitted(self) -> _Fitted:
        """Over all strata."""
        return _Fitted.of(
            self.counts.sum(axis=0),
            self.question.cells,
            rows=float(self.question.sizes.sum()),
            noise=self.noise_sd * float(np.sqrt(len(self.counts))),
            centre=CENTRE,
            sds=WEAK,
        )

    @property
    def grid(self) -> Array:
        """The standardised residuals at which distribution functions are kept, shape (G,)."""
        return GRID

    @property
    def together(self) -> Array:
        """The distribution function over all strata, at the points of the grid, shape (G,)."""
        return self._fitted.below

    @property
    def together_sd(self) -> Array:
        """How unsure that is, an sd as that of `coverage_sd`, shape (G,)."""
        return self._fitted.below_sd(self.question.cells)

    @cached_property
    def curves(self) -> Array:
        """The distribution function in each stratum, at the points of the grid, shape (B, G).

        In between it is linear, as it is between the middles of strata.
        """
        return np.array([each.below for each in self._strata])

    @property
    def curves_sd(self) -> Array:
        """How unsure each of these is, an sd, shape (B, G)."""
        return np.array([each.below_sd(self.question.cells) for each in self._strata])

    @cached_property
    def _strata(self) -> tuple[_Fitted, ...]:
        """One by one."""
        if len(self.counts) == 1:
            return (self._fitted,)
        return tuple(
            _Fitted.of(
                counts,
                self.question.cells,
                rows=float(size),
                noise=self.noise_sd,
                centre=self._fitted.law,
                sds=OF_STRATUM,
            )
            for counts, size in zip(self.counts, self.question.sizes, strict=True)
        )


@dataclass(frozen=True, eq=False)
class _Fitted:
    """The estimate from counts of one stratum, or of all.

    Attributes
    ----------
    law : array of shape (4,)
        The most probable one.
    laws : array of shape (n, 4)
        Some of its posterior.
    expected : array of shape (G,)
        The smooth distribution function on the grid, its mean over the posterior.
    below : array of shape (G,)
        That by which intervals go, as narrow as noise allows.
    weight : float
        Of the isotone estimate.
    rows, noise : float
        How many, and the noise of a count in shares of these.
    """

    law: Array
    laws: Array
    expected: Array
    below: Array
    weight: float
    rows: float
    noise: float

    @classmethod
    def of(
        cls, counts: Array, cells: Array, *, rows: float, noise: float, centre: Array, sds: Array
    ) -> _Fitted:
        """Estimate a distribution function from noisy counts in cells.

        Parameters
        ----------
        counts : array of shape (K,)
        cells : array of shape (K − 1,)
        rows : float
        noise : float
            Sd, of each count.
        centre, sds : arrays of shape (4,)
            Of the prior.
        """
        # They add up to what is known.
        known = counts + (rows - counts.sum()) / len(counts)
        posterior = _Posterior(known, cells, rows=rows, noise=noise, centre=centre, sds=sds)
        law, laws, scores = posterior.approximated()
        grid, share = GRID, noise / rows
        smooth = np.mean([_below(grid, each) for each in laws], axis=0)
        weight = 1.0 / (1.0 + (NOISE_WEIGHT * share) ** 2)
        isotone = _within_cells(_nearest_counts(known, rows) / rows, cells, grid, smooth)
        told = np.maximum.accumulate((1.0 - weight) * smooth + weight * isotone)
        parts = laws + (1.0 - weight) * WITHIN * scores * LOG_SCALE
        below = _cautious(told, smooth, parts, grid)
        return cls(
            law=law,
            laws=laws,
            expected=smooth,
            below=below,
            weight=weight,
            rows=rows,
            noise=share,
        )

    def below_sd(self, cells: Array) -> Array:
        """Return how unsure the distribution function is on the grid, an sd, shape (G,).

        Parameters
        ----------
        cells : array of shape (K − 1,)
        """
        held = np.array([_below(GRID, law) for law in self.laws])
        cell, inside = _part_of_cell(cells, GRID, held.mean(axis=0))
        parts = np.clip(cell[:, None] + inside[:, None] - np.arange(len(cells) + 1), 0.0, 1.0)
        return self.share_sd(held, parts, self.below)

    def share_sd(self, held: Array, parts: Array, share: Array) -> Array:
        """Return how unsure shares of the rows are, an sd, shape (Q,).

        Parameters
        ----------
        held : array of shape (n, Q)
            The shares by each of the laws.
        parts : array of shape (Q, K)
            How much of each cell belongs to them.
        share : array of shape (Q,)
            The shares as estimated.
        """
        # Noise of a sum of counts, from each of which the mean of all noise was taken.
        free = np.square(parts).sum(axis=1) - np.square(parts.sum(axis=1)) / parts.shape[1]
        variance = self.noise**2 * free + share * (1.0 - share) / self.rows
        isotone = np.sqrt(np.maximum(variance, 0.0))
        smooth = np.std(held, axis=0)
        return np.asarray(np.hypot((1.0 - self.weight) * smooth, self.weight * isotone))


@dataclass(frozen=True, eq=False)
class _Posterior:
    """Of the four numbers of a law, given noisy counts; in sds of their prior around its centre."""

    counts: Array
    cells: Array
    rows: float
    noise: float
    centre: Array
    sds: Array

    def expected(self, position: Array) -> Array:
        inner = _below(self.cells, self.centre + self.sds * position)
        return self.rows * np.diff(np.concatenate([[0.0], inner, [1.0]]))

    def variance(self, expected: Array) -> Array:
        return self.noise**2 + expected * (1.0 - expected / self.rows)

    def minus_log_density(self, position: Array) -> float:
        expected = self.expected(position)
        spread = self.variance(expected)
        misfit = np.square(self.counts - expected) / spread + np.log(spread)
        return 0.5 * float(misfit.sum()) + 0.5 * float(position @ position)

    def approximated(self) -> tuple[Array, Array, Array]:
        """Return the most probable law, laws of Laplace's approximation, and a score for each.

        Scores are normal and independent of the laws, shape (n, 1).
        """
        starts = [np.zeros(4), *(np.array([0.0, start, 0.0, 0.0]) for start in NARROWER)]
        tried = [optimize.minimize(self.minus_log_density, one, method="BFGS") for one in starts]
        best = min(tried, key=lambda one: float(one.fun)).x
        steps = STEP * np.eye(4)
        moved = [self.expected(best + step) - self.expected(best - step) for step in steps]
        slopes = np.array(moved).T / (2 * STEP)
        weighted = slopes / np.sqrt(self.variance(self.expected(best)))[:, None]
        root = np.linalg.inv(np.linalg.cholesky(weighted.T @ weighted + np.eye(4))).T
        draws = special.ndtri(qmc.Sobol(5, scramble=False).random(DRAWS)[1:])
        laws = self.centre + self.sds * (best + draws[:, :4] @ root.T)
        return self.centre + self.sds * best, laws, draws[:, 4:]


def _below(z: Array, law: Array) -> Array:
    """Return the distribution function of a sinh-arcsinh law."""
    location, log_scale, skewness, log_tail = law
    place = np.arcsinh((z - location) * np.exp(-log_scale))
    bent = np.sinh(np.clip(np.exp(log_tail) * place - skewness, -LARGEST, LARGEST))
    found: Array = special.ndtr(bent)
    return found


def _quantiles(levels: Array, laws: Array) -> Array:
    """Return quantiles of sinh-arcsinh laws, shape (n, levels)."""
    location, log_scale, skewness, log_tail = laws.T[:, :, None]
    bent = np.arcsinh(special.ndtri(levels)) + skewness
    found: Array = location + np.exp(log_scale) * np.sinh(np.exp(-log_tail) * bent)
    return found


def _cautious(told: Array, smooth: Array, laws: Array, grid: Array) -> Array:
    """Return a distribution function no narrower than its posterior allows, or than predicted.

    Parameters
    ----------
    told, smooth : arrays of shape (G,)
        The distribution function that is estimated, and its smooth part, on the grid.
    laws : array of shape (n, 4)
        Of the posterior.
    grid : array of shape (G,)
    """
    quantiles, predicted = np.interp(LEVELS, told, grid), special.ndtri(LEVELS)
    ordered = np.sort(_quantiles(LEVELS, laws), axis=0)
    place = (0.5 + CAUTION * (LEVELS - 0.5)) * (len(ordered) - 1)
    lower, each = np.floor(place).astype(np.intp), np.arange(len(LEVELS))
    part = place - lower
    posterior = (1.0 - part) * ordered[lower, each] + part * ordered[lower + 1, each]
    careful = quantiles + posterior - np.interp(LEVELS, smooth, grid)
    outwards = np.where(
        LEVELS > 0.5,
        np.maximum(quantiles, np.minimum(careful, predicted)),
        np.minimum(quantiles, np.maximum(careful, predicted)),
    )
    return np.interp(grid, np.maximum.accumulate(outwards), LEVELS, left=0.0, right=1.0)


def _nearest_counts(counts: Array, total: float) -> Array:
    """Return the nearest counts that are not negative and sum up to a total, shape (K,)."""
    ordered = np.sort(counts)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(counts) + 1)
    nearest: Array = np.maximum(counts - excess[np.flatnonzero(ordered > excess)[-1]], 0.0)
    return nearest


def _within_cells(shares: Array, cells: Array, grid: Array, smooth: Array) -> Array:
    """Return the distribution function of shares of cells, spread within cells as a smooth one."""
    sums = np.concatenate([[0.0], np.cumsum(shares)])
    cell, inside = _part_of_cell(cells, grid, smooth)
    found: Array = sums[cell] + shares[cell] * inside
    return found


def _part_of_cell(cells: Array, grid: Array, smooth: Array) -> tuple[NDArray[np.intp], Array]:
    """Return in which cell points lie, and how much of it is below them, by a smooth law."""
    ends = np.concatenate([[0.0], np.interp(cells, grid, smooth), [1.0]])
    cell = np.searchsorted(cells, grid, side="right")
    width = ends[cell + 1] - ends[cell]
    inside = np.where(width > 0, (smooth - ends[cell]) / np.where(width > 0, width, 1.0), 0.5)
    return cell, np.clip(inside, 0.0, 1.0)
