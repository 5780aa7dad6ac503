"""Gradient descent for the noise covariance: algorithm 2 of the 2018 paper, as it is printed.

Also equation 7 of the 2021 paper. With C the cloaking matrix and M = Σ λ_j c_j c_jᵀ, λ begins at
random between .1 and .9 and moves by .05 (c_jᵀ M⁺ c_j − 1) until no step is larger than 10⁻⁵; it is
said that this sometimes fails to converge, and to be run a few times. Nothing printed keeps λ from
becoming negative, where M⁺ may be no inverse of a covariance; that λ is kept at zero or above is
tried, too. The noise is then scaled by Δ = max_j c_jᵀ M⁺ c_j. Printed is Δ itself, which is the
square of the distance that counts; its root is taken here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloakgp.utils.arrays import Array

RATE, SMALLEST_STEP = 0.05, 1e-5
START = (0.1, 0.9)


@dataclass(frozen=True)
class Descent:
    """What a descent came to.

    Attributes
    ----------
    rms : float
        Root mean square of the noise at the query points, per unit of the noise's multiplier: one
        output moves the predictions by a distance of 1 at most.
    largest : float
        max_j c_jᵀ M⁺ c_j, which is 1 at the optimum.
    negative : int
        How many λ are below zero.
    steps : int
    converged : bool
        Whether it ended by itself.
    """

    rms: float
    largest: float
    negative: int
    steps: int
    converged: bool


def descend(
    cloaking: Array, *, rng: np.random.Generator, steps: int, stays_positive: bool
) -> Descent:
    """Run the descent from one start.

    Parameters
    ----------
    cloaking : array of shape (P, N)
        C.
    rng : numpy.random.Generator
    steps : int
        The most.
    stays_positive : bool
        Whether λ is kept at zero or above, which is not printed.

    Examples
    --------
    >>> found = descend(np.eye(2), rng=np.random.default_rng(0), steps=2_000, stays_positive=False)
    >>> round(found.rms, 3), found.converged
    (1.0, True)
    """
    rates = rng.uniform(*START, size=cloaking.shape[1])
    converged, step = False, 0
    while not converged and step < steps:
        moved = rates + RATE * (_lengths(cloaking, rates)[1] - 1.0)
        if stays_positive:
            moved = np.maximum(moved, 0.0)
        # Line 23 reads "while Δ > 10⁻⁵", which would end at once where all λ fall.
        converged = bool((np.abs(moved - rates) <= SMALLEST_STEP).all())
        rates = moved
        step += 1
    covariance, lengths = _lengths(cloaking, rates)
    largest = float(lengths.max())
    return Descent(
        rms=float(np.sqrt(max(np.trace(covariance), 0.0) * max(largest, 0.0) / len(cloaking))),
        largest=largest,
        negative=int(np.sum(rates < 0)),
        steps=step,
        converged=converged,
    )


def _lengths(cloaking: Array, rates: Array) -> tuple[Array, Array]:
    """Return M, and c_jᵀ M⁺ c_j for every j."""
    covariance = (cloaking * rates) @ cloaking.T
    lengths: Array = np.einsum("ij,ij->j", cloaking, np.linalg.pinv(covariance) @ cloaking)
    return covariance, lengths
