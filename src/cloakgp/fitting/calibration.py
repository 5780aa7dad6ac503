"""Calibration in a schedule: whether it is asked, for which share, in which cells and strata.

All of it depends on public numbers, and strata on earlier answers. Shares are such that the noise
of a count is a small part of the rows, and no larger than a law states. Where even the largest
share would leave a count with noise of more than 5 % of the rows, nothing is asked: intervals from
such counts held from 70 to 95 % where they were to hold 90, in simulations of seven kinds of
outputs.
"""

from __future__ import annotations

import numpy as np

from cloakgp.fitting.strategies import Budget
from cloakgp.utils.arrays import Array

# The noise of a count as a share of the rows: with more nothing is asked, and less is not paid for.
NOISIEST, FINEST = 0.05, 0.002
# Fewer rows tell little of their distribution, whatever the noise.
LEAST_ROWS = 100
# The least share of a budget.
LEAST_SHARE = 0.01
# Strata of predicted means are at most so many; noise in each is at most this share of its rows.
MOST_STRATA, NOISIEST_STRATUM = 5, 0.03
# Where cells end on either side, in predictive sds: predictions may be many times too unsure.
ENDS = np.array([0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0])
CELLS = np.concatenate([-ENDS[::-1], [0.0], ENDS])


def calibration_share(budget: Budget, *, rows: int, largest_group: int = 1) -> float:
    """Return the share of a budget for counts in cells of predicted distributions; 0 for none.

    Parameters
    ----------
    budget : Budget
        The whole.
    rows : int
        What counts add up to.
    largest_group : int
        How much one person adds to counts at most.

    Examples
    --------
    >>> pure = Budget(1.0, 0.0, noise="laplace")
    >>> [round(calibration_share(pure, rows=rows), 3) for rows in (300, 1000, 50_000)]
    [0.0, 0.0, 0.028]
    """
    law, most = budget.law, budget.law.shares.calibration
    if rows < LEAST_ROWS * largest_group:
        return 0.0
    whole = noise_share(budget, rows=rows, largest_group=largest_group)
    if (whole / NOISIEST) ** law.power > most:
        return 0.0
    return float(np.clip((whole / FINEST) ** law.power, LEAST_SHARE, most))


def noise_share(budget: Budget, *, rows: int, largest_group: int = 1) -> float:
    """Return the sd of the noise of a count as a share of the rows.

    Parameters
    ----------
    budget : Budget
        Of the counts.
    rows, largest_group : int
        As for `calibration_share`.
    """
    return largest_group * budget.law.between_indicators * budget.unit_sd() / rows


def choose_strata(means: Array, *, noise: float) -> tuple[Array, Array, Array]:
    """Return where strata of predicted means end, their middles, and shares of the rows in each.

    Quantiles of the means, as many strata as noise allows; fewer where means are alike.

    Parameters
    ----------
    means : array of shape (N,)
    noise : float
        As a share of the rows.

    Examples
    --------
    >>> choose_strata(np.arange(10.0), noise=0.014)
    (array([4.5]), array([2., 7.]), array([0.5, 0.5]))
    """
    count = int(np.clip(NOISIEST_STRATUM / max(noise, 1e-12), 1, MOST_STRATA))
    ends = np.unique(np.quantile(means, np.arange(1, count) / count))
    ends = ends[(ends > means.min()) & (ends <= means.max())]
    stratum = np.searchsorted(ends, means, side="right")
    middles = [float(np.median(means[stratum == each])) for each in range(len(ends) + 1)]
    return ends, np.array(middles), np.bincount(stratum) / len(means)
