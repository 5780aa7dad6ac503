"""Corners of a simplex for classes, and probabilities as coordinates among corners.

Each class is a corner of the regular simplex of C corners in C − 1 dimensions, at distance 1 from
its middle: for two classes, −1 and 1. So a class weighs as much as any other, and the mean of the
corners of labels, given inputs, is Σ_c π_c (corner c): the probabilities are its barycentric
coordinates.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from cloakgp.utils.arrays import Array

# Within which probabilities of two classes are stated; of many, a tenth of an even share.
LEAST, LEAST_OF_EVEN = 0.01, 0.1


def simplex_corners(count: int) -> Array:
    """Return the corners of the regular simplex about 0, each of length 1, shape (C, C − 1).

    Parameters
    ----------
    count : int
        C, at least 2.

    Examples
    --------
    >>> simplex_corners(2).tolist()
    [[-1.0], [1.0]]
    >>> (simplex_corners(3) @ simplex_corners(3).T).round(6)
    array([[ 1. , -0.5, -0.5],
           [-0.5,  1. , -0.5],
           [-0.5, -0.5,  1. ]])
    """
    columns = linalg.helmert(count).T
    return np.ascontiguousarray(-columns / np.linalg.norm(columns, axis=1, keepdims=True))


def coordinates(points: Array, corners: Array) -> Array:
    """Return the weights of corners, adding up to 1, whose mean each point is, shape (P, C).

    Some are negative for points outside.

    Parameters
    ----------
    points : array of shape (P, C − 1)
    corners : array of shape (C, C − 1)

    Examples
    --------
    >>> coordinates(np.array([[0.5]]), np.array([[-1.0], [1.0]])).round(6)
    array([[0.25, 0.75]])
    """
    middle = corners.mean(axis=0)
    shares = linalg.lstsq((corners - middle).T, (points - middle).T)[0].T
    found: Array = 1.0 / len(corners) + shares - shares.mean(axis=1, keepdims=True)
    return found


def least_probability(count: int) -> float:
    """Return what is the least probability that is stated of one of so many classes.

    Examples
    --------
    >>> least_probability(2), least_probability(20)
    (0.01, 0.005)
    """
    return min(LEAST, LEAST_OF_EVEN / count)


def nearest_probabilities(weights: Array, *, least: float) -> Array:
    """Return the nearest rows, in sum of squares, of at least `least` that add up to 1.

    Parameters
    ----------
    weights : array of shape (P, C)
        Adding up to 1 in every row.
    least : float

    Examples
    --------
    >>> nearest_probabilities(np.array([[1.2, -0.2], [0.3, 0.7]]), least=0.01).round(6)
    array([[0.99, 0.01],
           [0.3 , 0.7 ]])
    """
    # Held, Wolfe and Crowder 1974: what the largest entries have above the rest is taken off them.
    mass = 1.0 - least * weights.shape[1]
    falling = -np.sort(-(weights - least), axis=1)
    excess = (np.cumsum(falling, axis=1) - mass) / np.arange(1, weights.shape[1] + 1)
    kept = np.count_nonzero(falling > excess, axis=1)
    taken = excess[np.arange(len(weights)), kept - 1]
    nearest: Array = np.maximum(weights - least - taken[:, None], 0.0) + least
    return nearest
