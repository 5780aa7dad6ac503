r"""Credible interval of the root mean square error of new outputs, by a release's own account.

`cloakgp.Release.typical_errors` tells the mean of a mean square M over P points alone: that says
nothing of how far a single release may be off it. What is left open of M depends on what was asked.

**By a noise variance.** With f − m ~ N(0, C) the predicted curve's error given the answers, and
log σ the outputs' noise,

    M = |f − m|² / P + σ².

Few directions make most of |f − m|² where answers are few, as the level does; and σ is known as
well as it was asked. So |f − m|² / P is taken for gamma with its mean tr C / P and variance
2 tr C² / P² (Satterthwaite 1946), and σ² for lognormal; both count as independent. Of outputs that
were transformed by g, M is the mean square of g⁻¹(f + σ e) − g⁻¹(m), over draws of f and σ: few
points where outputs are large, and so few directions, may make most of it.

Beforehand log σ is known to within a factor of two either way (`LOG_NOISE_SD`), around what is
declared. An answer about spread, whose expectation grows with log σ, tells more, as its own noise
and that of the rows allow; σ² then has the mean that is claimed. But distances tell a root mean
square only by a law of residuals, which is assumed and not asked: others of the same distances have
a logarithm of it that scatters by `LOG_LAW_SD`. Of several outputs one answer tells what all noises
have in common, in widths of the bounds, which say little of how noisy each output is: around it the
logarithm of each one's own scatters by `LOG_OWN_SD`, so that one seven times as noisy as another is
not beyond what is told. By more, `LOG_ALIKE_SD`, that of the noise scatters where most values are
alike (`cloakgp.release.common_values`): most distances are then theirs, and not those of others. Of
one output, most of which is at an end of its bounds, the noise is told by counts and by the curve
instead, and what they leave open of it is known (`cloakgp.release.hyperparameters.alike`).

**By counts.** Where outputs were counted where they were predicted to lie
(`cloakgp.release.calibration`), counts tell the law of (y − m)/s over the rows, with the curve's
error in it. What noise, and that of so many rows, leaves open of it is its posterior, and nothing
of the above counts. But that is of smooth laws of four numbers, and counts do not tell how far
values are beyond the last cell: the logarithm of the root mean square scatters by `LOG_COUNTED_SD`
more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special
from scipy.stats import qmc

from cloakgp.privacy.questions.spread import SpreadQuestion
from cloakgp.release.common_values import found_alike
from cloakgp.release.hyperparameters.noise import LOG_NOISE_SD
from cloakgp.release.measurement import Measurement
from cloakgp.release.new_outputs import NewNumbers
from cloakgp.release.outside import OutsideValues, weighted_quantiles
from cloakgp.release.posterior.clipped import moments_of_spread
from cloakgp.utils.arrays import Array

# Points that stand for all: the covariance of more tells hardly more, and takes their square.
MOST_POINTS = 300
# By how much laws of residuals move the logarithm of the sd that their distances tell: as on
# the tables that `python -m experiments table-scales` goes by.
LOG_LAW_SD = 0.3
# The same of laws that counts in cells leave open beside the smooth ones that they are taken to be
# of: as of truths drawn from the prior, with residuals of short tails and of long ones.
LOG_COUNTED_SD = 0.12
# By how much the logarithm of one output's own noise, in widths of its bounds, is off what several
# have in common: a factor of e, so that both of two that differ sevenfold are within 80 %.
LOG_OWN_SD = 1.0
# And by how much that of the noise is off where most values are alike: of zeros and ones, and of
# tables of which one in fifty to three in ten have an amount, it was by up to a factor of four.
LOG_ALIKE_SD = 1.3
# And the most by which it is off where counts tell it.
LOG_MOST_SD = 1.0
# At how many quantiles of either law sums of both are formed.
QUANTILES = 101
# How far the logarithm of the noise sd is moved to see how an answer about spread moves with it.
STEP = 0.1
# Of transformed outputs: draws of the curve and the noise, along how many directions of the
# curve's error (others count as noise of single points), and at how many quantiles of new outputs.
DRAWS, DIRECTIONS, STEPS = 256, 30, 41
# At how many quantiles the error within an interval is put beside that of values outside.
WITHIN = 21


@dataclass(frozen=True)
class ErrorRange:
    """Between what the root mean square error of new outputs over some points lies.

    Attributes
    ----------
    within : (float, float)
        In output units, but for what lies outside of an interval that counts found.
    with_outside : (float, float) or None
        With all of that, as noisy counts tell of it; None if there is no such interval.
    middle : float or None
        With all of that, what the error is as often above as below, where counts refute that
        nothing lies outside.
    """

    within: tuple[float, float]
    with_outside: tuple[float, float] | None = None
    middle: float | None = None


def distinct_points(X: Array) -> Array:
    """Return the distinct points among these, `MOST_POINTS` at most, evenly among them.

    Parameters
    ----------
    X : array of shape (P, D)
    """
    every = np.unique(X, axis=0)
    return np.asarray(every[:: -(-len(every) // MOST_POINTS)])


def error_range(
    new: NewNumbers,
    *,
    covariance: Array,
    log_noise: tuple[float, float] | None,
    probability: float,
    measurements: Sequence[Measurement] = (),
) -> ErrorRange | None:
    """Return between what the root mean square error of new outputs over some points lies.

    Parameters
    ----------
    new : NewNumbers
        At P points; by its calibration, if it has one.
    covariance : array of shape (P, P)
        C: of the curve's error, as outputs were asked.
    log_noise : (float, float) or None
        Of σ², over what predictions go by: its mean, and the sd of log σ (see `known_noise`). None
        if it was assumed, and nothing is left open.
    probability : float
        That it lies there; it is as often below as above.
    measurements : sequence of Measurement
        Those that may have found an interval.

    Returns
    -------
    ErrorRange or None
        None if the noise was assumed, and outputs were not counted.

    Examples
    --------
    >>> ends = (-9.0, 9.0)
    >>> new = NewNumbers(np.zeros(40), np.full(40, 2.0**0.5), declared=ends, bounds=ends)
    >>> found = error_range(new, covariance=np.eye(40), log_noise=(1.0, 0.3), probability=0.8)
    >>> round(found.within[0], 2), round(found.within[1], 2)
    (1.14, 1.69)
    """
    if new.calibration is not None:
        laws = np.exp(2.0 * LOG_COUNTED_SD * special.ndtri(_levels(QUANTILES)))
        squares = np.multiply.outer(new.mean_squares(), laws)
    elif log_noise is None:
        return None
    elif new.transform is not None:
        squares = _transformed(new, covariance, log_noise=log_noise)
    else:
        noise = float(np.mean(_noise_variance(new, covariance)))
        squares = np.add.outer(
            _curve_squares(covariance), noise * _multiples(log_noise, _levels(QUANTILES))
        )
    levels = np.array([0.5 - probability / 2, 0.5 + probability / 2])
    within = ErrorRange(within=_root(np.quantile(squares, levels)))
    return _with_outside(within, new, squares, measurements, levels=levels)


def _root(ends: Array) -> tuple[float, float]:
    low, high = np.sqrt(ends).tolist()
    return low, high


def _with_outside(
    within: ErrorRange,
    new: NewNumbers,
    squares: Array,
    measurements: Sequence[Measurement],
    *,
    levels: Array,
) -> ErrorRange:
    """Return the range with values outside of an interval, as far as counts tell of these."""
    if not measurements:
        return within
    outside = OutsideValues.counted(measurements, middle=float(new.mean.mean()))
    if outside is None:
        return within
    predicted = new.restored(new.mean) if new.transform is not None else new.mean
    places = new.restored(outside.places)
    distances = np.square(places - predicted.mean()) + predicted.var()
    few = np.quantile(squares, _levels(WITHIN))
    every, weights = outside.with_them(few, distances)
    low, middle, high = np.sqrt(weighted_quantiles(every, weights, np.insert(levels, 1, 0.5)))
    return replace(
        within,
        with_outside=(float(low), float(high)),
        middle=float(middle) if outside.are_certain else None,
    )


def _levels(count: int) -> Array:
    levels: Array = (np.arange(count) + 0.5) / count
    return levels


def _noise_variance(new: NewNumbers, covariance: Array) -> Array:
    """Return what outputs scatter by around the curve, as predictions have it, shape (P,)."""
    left: Array = np.maximum(np.square(new.sd) - np.diag(covariance), 0.0)
    return left


def _curve_squares(covariance: Array) -> Array:
    """Return quantiles of |f − m|² / P."""
    mean = float(np.trace(covariance)) / len(covariance)
    if not mean > 0.0:
        return np.zeros(1)
    # In means: squares of small covariances are nothing, and of large ones no numbers.
    variance = 2.0 * float(np.square(covariance / mean).sum()) / len(covariance) ** 2
    quantiles = special.gammaincinv(1.0 / variance, _levels(QUANTILES))
    return np.asarray(quantiles * variance * mean, dtype=np.float64)


def _multiples(log_noise: tuple[float, float], levels: Array) -> Array:
    """Return quantiles of σ², over what predictions go by."""
    mean, log_noise_sd = log_noise
    # E σ² = exp(2 E log σ + 2 v), v the variance of log σ.
    log_sd = 2.0 * log_noise_sd
    factors: Array = np.exp(log_sd * special.ndtri(levels) - log_sd**2 / 2)
    return mean * factors


def _transformed(new: NewNumbers, covariance: Array, *, log_noise: tuple[float, float]) -> Array:
    """Return draws of the mean square error of outputs that were transformed, shape (n,)."""
    values, vectors = np.linalg.eigh(covariance)
    roots = vectors[:, -DIRECTIONS:] * np.sqrt(np.maximum(values[-DIRECTIONS:], 0.0))
    left = np.maximum(np.diag(covariance) - np.square(roots).sum(axis=1), 0.0)
    # Their first point is the lower end of all.
    shares = qmc.Sobol(roots.shape[1] + 1, scramble=False).random(DRAWS)[1:]
    multiples = _multiples(log_noise, shares[:, 0])
    curves = new.mean + special.ndtri(shares[:, 1:]) @ roots.T
    noise, predicted = _noise_variance(new, covariance), new.restored(new.mean)
    steps = special.ndtri(_levels(STEPS))
    found = np.empty(len(multiples))
    for place, (curve, multiple) in enumerate(zip(curves, multiples, strict=True)):
        sd = np.sqrt(left + multiple * noise)
        outputs = new.restored(curve[:, None] + sd[:, None] * steps)
        found[place] = np.mean(np.square(outputs - predicted[:, None]))
    return found


def noise_range_of_counts(log_sd: float) -> float:
    """Return the sd of log σ of outputs most of which are at an end of their bounds.

    It is the mean of σ² that is claimed: with a larger sd that would be beyond the range.

    Parameters
    ----------
    log_sd : float
        By what counts and the curve leave open.

    Examples
    --------
    >>> noise_range_of_counts(0.0), noise_range_of_counts(3.0)
    (0.3, 1.0)
    """
    return float(min(np.hypot(log_sd, LOG_LAW_SD), LOG_MOST_SD))


def known_noise(measurements: Sequence[Measurement], *, count: int = 1) -> tuple[float, float]:
    """Return the mean of σ², over what predictions go by, and the sd of log σ.

    Parameters
    ----------
    measurements : sequence of Measurement
        Those about anything but spread are passed over.
    count : int
        T, of how many outputs of each person they are.

    Returns
    -------
    mean : float
        By what is claimed σ² is as often too small as too large, but for answers about spread, by
        which what is claimed is the mean of what they leave open.
    log_noise_sd : float

    Examples
    --------
    >>> mean, log_sd = known_noise([])
    >>> round(mean, 2), log_sd
    (2.66, 0.7)
    """
    # Of rows that were asked twice, what is claimed goes by the last answer.
    asked = {
        one.strategy.table: one for one in measurements if one.about_spread and one.noise_sd > 0
    }
    # Where most values are alike, and not at an end, nothing tells how far the others are.
    others = LOG_ALIKE_SD**2 if found_alike(measurements) else 0.0
    if not asked:
        unknown = LOG_NOISE_SD**2 + others
        return float(np.exp(2.0 * unknown)), float(np.sqrt(unknown))
    slope, scatter = _of_one_row()
    precision = 0.0
    for one in asked.values():
        totals = np.asarray(one.strategy.totals)
        # How many rows each answer is about, all of one weight.
        rows = one.strategy.n_rows / len(totals)
        unsure = one.answers.noise_sd**2 + np.square(totals) / rows * scatter
        precision += float(np.sum(np.square(totals * slope) / unsure))
    # Of one output, how far it is from what all have in common, of which nothing tells.
    own = others + (LOG_OWN_SD**2 if count > 1 else 0.0)
    # Of what is claimed, laws and outputs make multiples whose logarithm is 0 in the middle.
    mean = float(np.exp(2.0 * (LOG_LAW_SD**2 + own)))
    told = 1.0 / (precision + 1.0 / LOG_NOISE_SD**2)
    return mean, float(np.sqrt(told + own + LOG_LAW_SD**2))


def _of_one_row() -> tuple[float, float]:
    """Return by what a row's share of an answer grows with log σ, and its variance."""
    question = SpreadQuestion(mean=np.zeros(2), sd=np.ones(2))
    moved = np.exp(2.0 * STEP * np.array([-1.0, 1.0]))
    expected, scatter = moments_of_spread(question, mean=np.zeros(2), variance=moved)
    return float(np.diff(expected)[0] / (2.0 * STEP)), float(scatter.mean())
