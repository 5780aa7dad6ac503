r"""Likelihood ratio: whether noisy counts speak against half of the outputs outside an interval.

Counts of few rows have noise of which one draw in hundreds is as large as the number of rows. An
interval may then be favoured where hardly an output lies, and a release would be far off and claim
to be near. So no interval is taken unless the counts refute that half of the outputs lie outside:
with m_i ≥ 0 outputs in the finest intervals, Σ_i m_i = N, and the noise's density p, unless

    max_m log p(answers | m)  −  max { log p(answers | m) : half of Σ m or more outside }  ≥  3.

It is a function of published counts and public numbers: it costs nothing. It goes by the noise's
own law, as sums of squares take what Laplace noise does once in a while for certain. Laplace noise
makes it a linear programme, Gaussian noise least squares without negative numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from cloakgp.privacy import Answers
from cloakgp.utils.arrays import Array

# The share of outputs, and how many nats less likely it must be that it lies outside.
HALF, REFUTED = 0.5, 3.0
# Of what must hold exactly, beside answers, in sds of their noise.
EXACT = 1e4


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
    best = _fit_counts(asked, places, sums=[(whole, rows)])
    if best is None or best.outputs @ half >= HALF * rows:
        return False
    # What is convex in the share outside, and least below a half, is least of all halves or more
    # at a half.
    halved = _fit_counts(asked, places, sums=[(whole, rows), (half, HALF * rows)])
    return halved is not None and halved.misfit - best.misfit >= REFUTED


@dataclass(frozen=True, eq=False)
class _Fit:
    """Numbers of outputs in the finest intervals, and the negative log likelihood of answers."""

    outputs: Array
    misfit: float


def _fit_counts(
    asked: Sequence[tuple[Array, Answers]], places: Array, *, sums: Sequence[tuple[Array, float]]
) -> _Fit | None:
    """Return the most likely numbers of outputs; None if the programme is given up.

    Parameters
    ----------
    asked : sequence of pairs of array and Answers
    places : array of shape (n + 1,)
        Where the finest intervals end.
    sums : sequence of (array of shape (n,), float)
        What sums of outputs in these are.
    """
    memberships = np.vstack([_membership(edges, places) for edges, _ in asked])
    sds = np.concatenate([np.full(len(edges) - 1, one.noise_sd) for edges, one in asked])
    scaled = memberships / sds[:, None]
    answers = np.concatenate([one.values[0] for _, one in asked]) / sds
    wanted, totals = np.array([one for one, _ in sums]), np.array([total for _, total in sums])
    if asked[0][1].noise == "gaussian":
        exact = EXACT / sds.min()
        outputs, misfit = optimize.nnls(
            np.vstack([scaled, exact * wanted]), np.concatenate([answers, exact * totals])
        )
        return _Fit(outputs, float(misfit) ** 2 / 2.0)
    # min Σ t over m ≥ 0 and t ≥ |scaled m − answers|.
    count, slack = len(answers), np.eye(len(answers))
    found = optimize.linprog(
        np.concatenate([np.zeros(len(places) - 1), np.ones(count)]),
        A_ub=np.block([[scaled, -slack], [-scaled, -slack]]),
        b_ub=np.concatenate([answers, -answers]),
        A_eq=np.hstack([wanted, np.zeros((len(wanted), count))]),
        b_eq=totals,
        bounds=(0.0, None),
        method="highs",
    )
    if not found.success or found.x is None:
        return None
    # The sd of Laplace noise is √2 times its scale.
    slacks = found.x[len(places) - 1 :]
    return _Fit(found.x[: len(places) - 1], math.sqrt(2.0) * float(slacks.sum()))


def _membership(edges: Array, places: Array) -> NDArray[np.float64]:
    """Return which of the finest intervals each counted one consists of, as ones."""
    start, stop = edges[:-1, None], edges[1:, None]
    return ((places[:-1] >= start) & (places[1:] <= stop)).astype(np.float64)
