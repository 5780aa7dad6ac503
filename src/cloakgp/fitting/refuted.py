r"""Likelihood ratio: whether noisy counts speak against half of the outputs outside an interval.

Counts of few rows have noise of which one draw in hundreds is as large as the number of rows. An
interval may then be favoured where hardly an output lies, and a release would be far off and claim
to be near. So no interval is taken unless the counts refute that half of the outputs lie outside:
with m_i ≥ 0 outputs in the finest intervals, Σ_i m_i = N, and the noise's density p, unless

    max_m log p(answers | m)  −  max { log p(answers | m) : half of Σ m or more outside }  ≥  3.

It is a function of published counts and public numbers: it costs nothing. It goes by the noise's
own law (`Noise.fit_amounts`), as sums of squares take what Laplace noise does once in a while for
certain.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cloakgp.privacy import Answers
from cloakgp.privacy.noise import NOISES
from cloakgp.utils.arrays import Array

# The share of outputs, and how many nats less likely it must be that it lies outside.
HALF, REFUTED = 0.5, 3.0


def refutes_half_outside(
    asked: Sequence[tuple[Array, Answers]], start: float, stop: float, *, rows: float
) -> bool:
    """Return whether counts refute that half of the outputs lie outside of an interval.

    Parameters
    ----------
    asked : sequence of pairs of array and Answers
        Where the intervals of each round end, and their noisy counts.
    start, stop : float
        Where the interval begins and ends.
    rows : float
        N.

    Examples
    --------
    >>> edges = np.array([0.0, 1.0, 2.0, 3.0])
    >>> for counts in ([3.0, 95.0, 6.0], [40.0, 95.0, -31.0]):
    ...     answers = Answers(np.array([counts]), noise_sd=20.0, guarantee=None, noise="laplace")
    ...     print(refutes_half_outside([(edges, answers)], 1.0, 2.0, rows=100))
    True
    False
    """
    places = np.unique(np.concatenate([edges for edges, _ in asked]))
    # An interval that is partly outside may have all of its outputs within.
    outside = (places[1:] <= start) | (places[:-1] >= stop)
    if not outside.any():
        return True
    whole, half = np.ones(len(outside)), outside.astype(np.float64)
    law = NOISES[asked[0][1].noise]
    sds = np.concatenate([np.full(len(edges) - 1, one.noise_sd) for edges, one in asked])
    memberships = np.vstack([_membership(edges, places) for edges, _ in asked])
    questions = memberships / sds[:, None]
    answers = np.concatenate([one.values[0] for _, one in asked]) / sds
    sums, totals = np.array([whole, half]), np.array([rows, HALF * rows])
    best = law.fit_amounts(questions, answers, sums=sums[:1], totals=totals[:1])
    if best is None or best[0] @ half >= HALF * rows:
        return False
    # What is convex in the share outside, and least below a half, is least of all halves or more
    # at a half.
    halved = law.fit_amounts(questions, answers, sums=sums, totals=totals)
    return halved is not None and halved[1] - best[1] >= REFUTED


def _membership(edges: Array, places: Array) -> NDArray[np.float64]:
    """Return which of the finest intervals each counted one consists of, as ones."""
    start, stop = edges[:-1, None], edges[1:, None]
    return ((places[:-1] >= start) & (places[1:] <= stop)).astype(np.float64)
