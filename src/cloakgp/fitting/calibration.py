"""Calibration in a schedule: whether it is asked, for which share, in which cells and strata.

All of it depends on public numbers, and strata on earlier answers. Shares are such that the noise
of a count is a small part of the rows, and no larger than a law states.

Outputs are always counted in several strata of predicted means. By one law for all, intervals that
hold 90 % of outputs hold 99 % of some and 70 % of others wherever outputs scatter more here than
there, which the predictions that they replace, a little too wide on the whole, did not. Where even
the largest share would leave counts too noisy for four strata, nothing is asked. Noise adds up
over cells, so that there are few while noise is more than a small part of the rows. All of this was
chosen on releases of tables and of simulated outputs, at noises of .2 to 5 % of the rows
(``python -m experiments claims``): with more than one per cent predictions scored no better.
"""

from __future__ import annotations

import numpy as np

from cloakgp.fitting.strategies import Budget
from cloakgp.utils.arrays import Array

# The noise of a count as a share of the rows: with more nothing is asked, and less is not paid for.
NOISIEST, FINEST = 0.01, 0.002
# Fewer rows tell little of their distribution, whatever the noise.
LEAST_ROWS = 100
# The least share of a budget.
LEAST_SHARE = 0.01
# Strata of predicted means are so many; more than the least have counts with noise of at most this
# share of their rows.
LEAST_STRATA, MOST_STRATA, NOISIEST_STRATUM = 4, 5, 0.025
# Where cells end on either side, in predictive sds: predictions may be many times too unsure.
FINE_ENDS = np.array([0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0])
COARSE_ENDS = np.array([0.2, 0.6, 1.2, 2.2])
CELLS, COARSE_CELLS = (
    np.concatenate([-ends[::-1], [0.0], ends]) for ends in (FINE_ENDS, COARSE_ENDS)
)
# With more noise, as a share of the rows, cells are the coarse ones.
COARSE_FROM = 0.004


def calibration_share(
    budget: Budget, *, rows: int, largest_group: int = 1, outputs: int = 1
) -> float:
    """Return the share of a budget for counts in cells of predicted distributions; 0 for none.

    A person is in the counts of every output, so that what these cost adds up: each gets an equal
    part of the share, which is at most that for one output.

    Parameters
    ----------
    budget : Budget
        The whole.
    rows : int
        What the counts of one output add up to.
    largest_group : int
        How much one person adds to these at most.
    outputs : int
        T, of every row.

    Examples
    --------
    >>> pure = Budget(1.0, 0.0, noise="laplace")
    >>> [round(calibration_share(pure, rows=rows), 3) for rows in (1000, 6000, 50_000)]
    [0.0, 0.05, 0.028]
    >>> [round(calibration_share(pure, rows=rows, outputs=2), 3) for rows in (6000, 50_000)]
    [0.0, 0.05]
    """
    law, most = budget.law, budget.law.shares.calibration
    if rows < LEAST_ROWS * largest_group:
        return 0.0
    whole = noise_share(budget, rows=rows, largest_group=largest_group)
    if outputs * (whole / NOISIEST) ** law.power > most:
        return 0.0
    return float(np.clip(outputs * (whole / FINEST) ** law.power, LEAST_SHARE, most))


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


def choose_cells(noise: float) -> Array:
    """Return where cells end, in predictive sds.

    Parameters
    ----------
    noise : float
        Of a count, as a share of the rows.

    Examples
    --------
    >>> choose_cells(0.01)
    array([-2.2, -1.2, -0.6, -0.2,  0. ,  0.2,  0.6,  1.2,  2.2])
    >>> len(choose_cells(0.002))
    21
    """
    cells: Array = COARSE_CELLS if noise > COARSE_FROM else CELLS
    return cells


def choose_strata(means: Array, *, noise: float) -> tuple[Array, Array, Array]:
    """Return where strata of predicted means end, their middles, and shares of the rows in each.

    Quantiles of the means, as many strata as noise allows and at least four; fewer where means are
    alike.

    Parameters
    ----------
    means : array of shape (N,)
    noise : float
        As a share of the rows.

    Examples
    --------
    >>> choose_strata(np.arange(8.0), noise=0.01)
    (array([1.75, 3.5 , 5.25]), array([0.5, 2.5, 4.5, 6.5]), array([0.25, 0.25, 0.25, 0.25]))
    """
    count = int(np.clip(NOISIEST_STRATUM / max(noise, 1e-12), LEAST_STRATA, MOST_STRATA))
    ends = np.unique(np.quantile(means, np.arange(1, count) / count))
    ends = ends[(ends > means.min()) & (ends <= means.max())]
    # Of ends that part the same rows, one.
    ends = ends[np.unique(np.searchsorted(np.sort(means), ends), return_index=True)[1]]
    stratum = np.searchsorted(ends, means, side="right")
    middles = [float(np.median(means[stratum == each])) for each in range(len(ends) + 1)]
    return ends, np.array(middles), np.bincount(stratum) / len(means)
