r"""Credible interval of the root mean square error of new outputs, by a release's own account.

Over P points, new outputs are off by a mean square of

    M = |f − m|² / P + σ²,

with f − m ~ N(0, C) the predicted curve's error given the answers, and log σ the outputs' noise. M
has a law, of which `cloakgp.Release.typical_errors` tells the mean alone: that says nothing of how
far a single release may be off it. Few directions make most of |f − m|² where answers are few, as
the level does; and σ is known as well as it was asked. So |f − m|² / P is taken for gamma with its
mean tr C / P and variance 2 tr C² / P² (Satterthwaite 1946), and σ² for lognormal; both count as
independent.

Beforehand log σ is known to within a factor of two either way (`LOG_NOISE_SD`), around what is
declared. An answer about spread, whose expectation grows with log σ, tells more, as its own noise
and that of the rows allow; σ² then has the mean that is claimed. But distances tell a root mean
square only by a law of residuals, which is assumed and not asked: others of the same distances have
a logarithm of it that scatters by `LOG_LAW_SD`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from cloakgp.privacy.questions.spread import SpreadQuestion
from cloakgp.release.hyperparameters.noise import LOG_NOISE_SD
from cloakgp.release.measurement import Measurement
from cloakgp.release.posterior.clipped import moments_of_spread
from cloakgp.utils.arrays import Array

# Points that stand for all: the covariance of more tells hardly more, and takes their square.
MOST_POINTS = 300
# By how much laws of residuals move the logarithm of the sd that their distances tell: as on
# the tables that `python -m experiments table-scales` goes by.
LOG_LAW_SD = 0.3
# At how many quantiles of either law sums of both are formed.
QUANTILES = 101
# How far the logarithm of the noise sd is moved to see how an answer about spread moves with it.
STEP = 0.1


def error_range(
    covariance: Array, *, noise_variance: float, log_noise_sd: float, probability: float
) -> tuple[float, float]:
    """Return between what the root mean square error of new outputs over some points lies.

    Parameters
    ----------
    covariance : array of shape (P, P)
        C: of the curve's error, in squared output units.
    noise_variance : float
        The mean of σ², in squared output units.
    log_noise_sd : float
        The sd of log σ.
    probability : float
        That it lies there; it is as often below as above.

    Returns
    -------
    low, high : float
        In output units.

    Examples
    --------
    >>> low, high = error_range(np.eye(40), noise_variance=1.0, log_noise_sd=0.3, probability=0.8)
    >>> round(low, 2), round(high, 2)
    (1.14, 1.69)
    """
    levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
    squares: Array = np.zeros(1)
    mean = float(np.trace(covariance)) / len(covariance)
    if mean > 0.0:
        variance = 2.0 * float(np.square(covariance).sum()) / len(covariance) ** 2
        quantiles = special.gammaincinv(mean**2 / variance, levels)
        squares = np.asarray(quantiles * variance / mean, dtype=np.float64)
    # E σ² = exp(2 E log σ + 2 v), v the variance of log σ.
    log_sd = 2.0 * log_noise_sd
    noise = noise_variance * np.exp(log_sd * special.ndtri(levels) - log_sd**2 / 2)
    ends = np.quantile(np.add.outer(squares, noise), (0.5 - probability / 2, 0.5 + probability / 2))
    low, high = np.sqrt(ends).tolist()
    return low, high


def known_noise(
    measurements: Sequence[Measurement], *, noise_variance: float
) -> tuple[float, float]:
    """Return the mean of σ², and the sd of log σ, after answers about spread.

    Parameters
    ----------
    measurements : sequence of Measurement
        Those about anything else are passed over.
    noise_variance : float
        By which a release goes: the mean of σ² after such answers, and without them what is
        declared, which σ² is as often below as above.

    Examples
    --------
    >>> mean, log_sd = known_noise([], noise_variance=1.0)
    >>> round(mean, 2), log_sd
    (2.66, 0.7)
    """
    asked = [one for one in measurements if one.about_spread]
    if not asked:
        return noise_variance * float(np.exp(2.0 * LOG_NOISE_SD**2)), LOG_NOISE_SD
    slope, scatter = _of_one_row()
    precision = LOG_NOISE_SD**-2
    for one in asked:
        answers = one.answers.values.size
        rows = one.strategy.n_rows / answers
        unsure = one.answers.noise_sd**2 + rows * scatter
        precision += answers * (rows * slope) ** 2 / unsure
    # Of what is claimed, the law makes a multiple whose logarithm is 0 in the middle.
    mean = noise_variance * float(np.exp(2.0 * LOG_LAW_SD**2))
    return mean, float(np.hypot(precision**-0.5, LOG_LAW_SD))


def _of_one_row() -> tuple[float, float]:
    """Return by what a row's share of an answer grows with log σ, and its variance."""
    question = SpreadQuestion(mean=np.zeros(2), sd=np.ones(2))
    moved = np.exp(2.0 * STEP * np.array([-1.0, 1.0]))
    expected, scatter = moments_of_spread(question, mean=np.zeros(2), variance=moved)
    return float(np.diff(expected)[0] / (2.0 * STEP)), float(scatter.mean())
