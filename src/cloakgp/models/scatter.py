r"""Scatter: by how much the noise of outputs is larger here than there.

The noise sd of an output at x is that of the prior, times e^{h(x)}. h is a combination of Gaussian
bumps around a few public centres, and falls to 0 away from all of them: where nothing was asked the
noise is that of the prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import distance

from cloakgp.utils.arrays import Array

# Of a lengthscale, in distances of a centre to the next one.
LENGTH_IN_STEPS = 1.5
# No output is more than so many times as noisy as another, in logarithms of sds.
LARGEST_LOG = 5.0


@dataclass(frozen=True, eq=False)
class Scatter:
    """The logarithm of the noise sd, less that of the prior, as a function of inputs.

    Attributes
    ----------
    centres : array of shape (B, D)
    units : array of shape (D,)
        Positive; distances are measured in these.
    length : float
        Lengthscale of the bumps, in units.
    weights : array of shape (B,)
        Of the bumps.

    Examples
    --------
    >>> scatter = Scatter(centres=np.array([[0.0], [9.0]]), units=np.ones(1), length=1.0,
    ...                   weights=np.array([0.5, 0.0]))
    >>> scatter.log_factor(np.array([[0.0], [9.0]])).round(3)
    array([0.5, 0. ])
    """

    centres: Array
    units: Array
    length: float
    weights: Array

    def validate(self) -> None:
        """Refuse a function that is none.

        Raises
        ------
        ValueError
            If its arrays do not fit each other, or hold what is no number.
        """
        fit = (
            self.centres.ndim == 2
            and self.units.shape == self.centres.shape[1:]
            and self.weights.shape == self.centres.shape[:1]
        )
        # Written so that NaN fails.
        if not (
            fit
            and len(self.centres)
            and np.isfinite(self.centres).all()
            and np.isfinite(self.weights).all()
            and ((self.units > 0) & (self.units < np.inf)).all()
            and 0 < self.length < np.inf
        ):
            raise ValueError("how noise varies with the inputs is damaged")

    def log_factor(self, X: Array) -> Array:
        """Return h at P points, shape (P,).

        Parameters
        ----------
        X : array of shape (P, D), or with more columns, which are passed over
        """
        bumps = similarity(X, self.centres, units=self.units, length=self.length)
        log_factor: Array = np.clip(bumps @ self.weights, -LARGEST_LOG, LARGEST_LOG)
        return log_factor

    def factor(self, X: Array) -> Array:
        """Return by how much noise variances at P points are multiplied, shape (P,)."""
        factor: Array = np.exp(2.0 * self.log_factor(X))
        return factor


def same_scatter(one: Scatter | None, other: Scatter | None) -> bool:
    """Return whether noise varies alike, or not at all.

    Parameters
    ----------
    one, other : Scatter or None
    """
    if one is None or other is None:
        return one is other
    return one.length == other.length and all(
        np.array_equal(mine, theirs)
        for mine, theirs in (
            (one.centres, other.centres),
            (one.units, other.units),
            (one.weights, other.weights),
        )
    )


def similarity(X: Array, centres: Array, *, units: Array, length: float) -> Array:
    """Return Gaussian bumps around centres at P points, shape (P, B).

    Parameters
    ----------
    X : array of shape (P, D), or with more columns, which are passed over
    centres : array of shape (B, D)
    units : array of shape (D,)
    length : float
    """
    scale = units * length
    squared = distance.cdist(X[:, : len(units)] / scale, centres / scale, "sqeuclidean")
    bumps: Array = np.exp(-0.5 * squared)
    return bumps


def length_between(centres: Array, *, units: Array) -> float:
    """Return a lengthscale by which neighbouring centres are alike, in units.

    Parameters
    ----------
    centres : array of shape (B, D)
        At least two, all different.
    units : array of shape (D,)

    Examples
    --------
    >>> length_between(np.array([[0.0], [2.0], [4.0]]), units=np.ones(1))
    3.0
    """
    apart = distance.cdist(centres / units, centres / units)
    np.fill_diagonal(apart, np.inf)
    return LENGTH_IN_STEPS * float(np.median(apart.min(axis=1)))
