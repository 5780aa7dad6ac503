r"""Correlated noise over periods, beside independent noise: which of them is the better.

Where the same linear questions are asked in every period, A x_t for t = 1, …, T, and what matters
is their sum so far, noise of one period can take back part of that of earlier ones (matrix
factorisation; Fichtenberger, Henzinger and Upadhyay 2023, *Constant matters*; Denisov, McMahan,
Rush, Smith and Thakurta 2022). With A = B C for the lower triangle A of ones, C z is published, z
independent of unit sd times the ℓ2-sensitivity of C, and the error of the sum at T has the sd of
row T of B times that sensitivity. B = C is the lower Toeplitz matrix of c_k = C(2k, k)/4ᵏ, the
square root of A. By who is in which periods:

* in one each: neighbours move one column of C, and the sensitivity is the first column's norm, so
  that the sd at T is Σ_{k<T} c_k² ≈ 1.1 + ln(T)/π, where independent noise has √T;
* in all: neighbours move by C 1, whose norm is what a release of every period costs. Independent
  noise, with the same total, has sd √T √T = T.

What correlated noise cannot have are bands: questions of later periods are asked about the rest
beyond what is predicted, and are other questions each time (`cloakgp.fitting.visits`). A band of w
predictive sds makes a question cheaper by the width of the bounds over its own.
"""

from __future__ import annotations

import numpy as np

from cloakgp.privacy.cohorts import DISJOINT, People
from cloakgp.utils.arrays import Array


def toeplitz_root(periods: int) -> Array:
    """Return c_k = C(2k, k)/4ᵏ, shape (T,), the first column of the root of the triangle of ones.

    Parameters
    ----------
    periods : int
        T.

    Examples
    --------
    >>> toeplitz_root(4).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    k = np.arange(1, periods)
    return np.concatenate([[1.0], np.cumprod((2.0 * k - 1.0) / (2.0 * k))])


def sum_sds(periods: int, *, people: People) -> tuple[float, float]:
    """Return the noise sd of the sum over periods, independent and correlated, at one total.

    Parameters
    ----------
    periods : int
        T.
    people : {"overlapping", "disjoint"}
        Whether anybody is in all periods, or nobody in two.

    Returns
    -------
    independent, correlated : float
        In units of the noise of one question that is asked once with the whole budget.

    Examples
    --------
    >>> [round(sd, 2) for sd in sum_sds(12, people="disjoint")]
    [3.46, 1.85]
    >>> [round(sd, 2) for sd in sum_sds(12, people="overlapping")]
    [12.0, 13.3]
    """
    root = toeplitz_root(periods)
    row = float(np.linalg.norm(root))
    if people == DISJOINT:
        return float(np.sqrt(periods)), row * row
    moved = float(np.linalg.norm(np.cumsum(root)))
    return float(periods), row * moved
