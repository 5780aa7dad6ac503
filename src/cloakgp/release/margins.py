r"""Conformal margins: how far an interval reaches around a prediction, by rows that were kept out.

N rows are kept out of everything that predictions were fitted to, and counted by their scores
|y − m|/s, with noise (`cloakgp.privacy.questions.margins`). For a coverage c let β = (1 − c)/10 and
k = ⌈(c + β)(N + 1)⌉. The margin is the least end t_j of a cell such that at it, and at every end
above it,

    (noisy count of scores up to t_j) ≥ k − 1 + q_j,

with q_j the (1 − β) quantile of the noise of that count; infinite if there is none. The interval
is m ± t s, within the declared bounds.

Coverage
    If the kept rows and a new one are exchangeable given everything that was fitted, the interval
    at the new row holds its output (at the end of the bounds, if beyond these) with probability at
    least c, over kept rows, new row and noise; whatever model, prior and stages are. For: let S_(k)
    be the k-th smallest score of the kept rows (Vovk, Gammerman and Shafer 2005). The score of the
    new row is at most S_(k) with probability at least k/(N + 1) ≥ c + β. Let t* be the greatest end
    of a cell below S_(k): fewer than k scores are up to it. A margin below S_(k) is at most t*,
    and then the noisy count at t* was at least k − 1 + q*, while the true one is k − 1 or less:
    the noise was q* or more. Which end t* is does not depend on the noise, so that this has
    probability at most β. Searching from above for the first end that fails, rather than from
    below for the first that holds, is what makes the noise at one end count, and not that at all.
Noise
    The number of scores up to t_j is N less the counts of all cells above it, whose noise is a sum
    of J − j + 1 independent draws: `Noise.quantile_of_sum`.

That is marginal: on average over rows, not for each kind of them, and not for a given table of
kept rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloakgp.privacy.noise import Noise
from cloakgp.privacy.questions.margins import MarginQuestion
from cloakgp.release.measurement import Measurement
from cloakgp.utils.arrays import Array

# Of the probability that an interval misses, the part that is for the noise.
NOISE_PART = 0.1
# What noise on a grid may be larger by than as if there were none, in its sds.
OF_GRID = 1e-6
DAMAGED = "its margins are damaged"


@dataclass(frozen=True, eq=False)
class Margins:
    """The margins of intervals of any coverage, by noisy counts of scores.

    Attributes
    ----------
    counts : array of shape (J + 1,)
        Noisy.
    cells : array of shape (J,)
        Where they end, in predictive sds.
    rows : int
        N, how many were counted.
    noise_sd : float
        Of a count.
    noise : Noise

    Examples
    --------
    >>> from cloakgp.privacy.noise import GAUSSIAN
    >>> known = Margins(counts=np.array([700.0, 260.0, 39.0, 1.0]), cells=np.array([1.0, 2.0, 3.0]),
    ...                 rows=1000, noise_sd=1.0, noise=GAUSSIAN)
    >>> [known.margin(coverage) for coverage in (0.5, 0.9, 0.99, 0.999)]
    [1.0, 2.0, 3.0, inf]
    """

    counts: Array
    cells: Array
    rows: int
    noise_sd: float
    noise: Noise

    @classmethod
    def of(cls, measurement: Measurement) -> Margins:
        """Return the margins from the counts of a measurement.

        Parameters
        ----------
        measurement : Measurement
            That counted scores.

        Raises
        ------
        ValueError
            If it did not.
        """
        question, answers = measurement.question, measurement.answers
        if not isinstance(question, MarginQuestion) or not answers.noise_sd > 0:
            raise ValueError(DAMAGED)
        return cls(
            counts=answers.values[0],
            cells=question.cells,
            rows=question.rows,
            noise_sd=answers.noise_sd,
            noise=measurement.noise,
        )

    def margin(self, coverage: float) -> float:
        """Return how far an interval reaches on either side, in predictive sds.

        Parameters
        ----------
        coverage : float
            Between 0 and 1.

        Returns
        -------
        float
            Infinite where rows are too few for it, or noise or scores too large: the declared
            bounds then hold all that there is.
        """
        slack = noise_part(coverage)
        needed = least_count(coverage, rows=self.rows)
        if needed > self.rows:
            return np.inf
        above = np.cumsum(self.counts[::-1])[::-1]
        margin = np.inf
        for place in range(len(self.cells) - 1, -1, -1):
            counted = self.rows - above[place + 1]
            draws = len(self.cells) - place
            reach = self.noise_sd * quantile_of_noise(self.noise, draws, 1.0 - slack)
            # Written so that NaN fails.
            if not counted >= needed - 1 + reach:
                break
            margin = float(self.cells[place])
        return margin


def noise_part(coverage: float) -> float:
    """Return β, the probability that is left for the noise.

    Parameters
    ----------
    coverage : float
    """
    return NOISE_PART * (1.0 - coverage)


def least_count(coverage: float, *, rows: int) -> int:
    """Return k, how many of the kept rows an interval must hold.

    Parameters
    ----------
    coverage : float
    rows : int
        N.

    Examples
    --------
    >>> least_count(0.9, rows=99), least_count(0.9, rows=9)
    (91, 10)
    """
    return int(np.ceil((coverage + noise_part(coverage)) * (rows + 1)))


def quantile_of_noise(noise: Noise, draws: int, probability: float) -> float:
    """Return a quantile of the sum of some draws on a grid, in sds of one; rounded up.

    Parameters
    ----------
    noise : Noise
    draws : int
    probability : float
    """
    return noise.quantile_of_sum(draws, probability) * (1.0 + OF_GRID) + draws * OF_GRID
