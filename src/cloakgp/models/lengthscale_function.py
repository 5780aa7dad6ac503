r"""Lengthscales that follow the density of public inputs (2021 paper, section 3.1).

The density ρ(x) counts rows per unit of volume. It is a sum of normal densities, one for every
centre, so that it is described by arrays and numbers alone and can be stored with a release.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from cloakgp.arrays import Array, as_matrix

# Places along every input, in both directions, at which the smallest density is looked for.
PLACES_EACH_WAY = 5


def row_density(
    X: Array,
    *,
    centres: ArrayLike,
    bandwidth: ArrayLike,
    weights: ArrayLike | None = None,
) -> Array:
    r"""Return ρ(x) = Σ_j w_j N(x; z_j, diag(h²)), a kernel density estimate times the rows counted.

    Parameters
    ----------
    X : array of shape (n, D)
    centres : array of shape (M, D)
        The public inputs, or fewer places that stand for them.
    bandwidth : float or array of shape (D,)
        h, in the units of the inputs.
    weights : array of shape (M,), optional
        How many rows each centre stands for; one each if not given.

    Returns
    -------
    array of shape (n,)
        Rows per unit of volume of the inputs.

    Raises
    ------
    ValueError
        If shapes do not fit, a bandwidth is not positive, or a weight is negative.

    Examples
    --------
    Two rows at zero; the standard normal density there is 0.3989.

    >>> row_density(np.zeros((1, 1)), centres=np.zeros((2, 1)), bandwidth=1.0).round(4)
    array([0.7979])
    """
    places = as_matrix(centres, name="centres", columns=X.shape[1])
    spread = _per_input(bandwidth, inputs=X.shape[1], name="bandwidth")
    if not (spread > 0).all():
        raise ValueError("bandwidth must be positive")
    counted = np.ones(len(places)) if weights is None else np.asarray(weights, dtype=np.float64)
    if counted.shape != (len(places),) or not (np.isfinite(counted) & (counted >= 0)).all():
        raise ValueError(f"weights must be {len(places)} numbers that are finite and at least 0")
    squares = cdist(X / spread, places / spread, "sqeuclidean")
    height = float(np.prod(spread)) * (2.0 * np.pi) ** (X.shape[1] / 2)
    density: Array = np.exp(-squares / 2.0) @ counted / height
    return density


def smallest_density(
    X: Array,
    *,
    centres: ArrayLike,
    bandwidth: ArrayLike,
    radius: ArrayLike,
    weights: ArrayLike | None = None,
) -> Array:
    """Return the smallest density near each input, the 2021 paper's amendment of its section 3.1.

    It is looked for at the input itself and at five places each way along every axis, out to the
    radius: their number grows with the inputs, not with a power of them.

    Parameters
    ----------
    X : array of shape (n, D)
    centres, bandwidth, weights
        As for `row_density`.
    radius : float or array of shape (D,)
        In the units of the inputs; at zero this is `row_density`.

    Returns
    -------
    array of shape (n,)

    Raises
    ------
    ValueError
        As `row_density`, and if a radius is negative.

    Examples
    --------
    >>> near = smallest_density(np.zeros((1, 1)), centres=np.zeros((1, 1)), bandwidth=1.0, radius=2)
    >>> there = row_density(np.full((1, 1), 2.0), centres=np.zeros((1, 1)), bandwidth=1.0)
    >>> bool(near == there)
    True
    """
    reach = _per_input(radius, inputs=X.shape[1], name="radius")
    if not (reach >= 0).all():
        raise ValueError("radius must be at least 0")
    smallest = row_density(X, centres=centres, bandwidth=bandwidth, weights=weights)
    shares = np.arange(1, PLACES_EACH_WAY + 1) / PLACES_EACH_WAY
    for axis in np.flatnonzero(reach):
        for share in np.concatenate([-shares, shares]):
            moved = X.copy()
            moved[:, axis] += share * reach[axis]
            near = row_density(moved, centres=centres, bandwidth=bandwidth, weights=weights)
            smallest = np.minimum(smallest, near)
    return smallest


def density_lengthscale(density: Array, *, longest: float, crowd: float) -> Array:
    """Return r = 1 / (1/m + ρ/n) (2021 paper, section 3.1).

    Parameters
    ----------
    density : array of shape (n,)
        ρ, at least zero.
    longest : float
        m, the lengthscale where there are no rows.
    crowd : float
        n: where rows are dense the lengthscale is n/ρ, so that, with one input, as many rows lie
        within a lengthscale.

    Returns
    -------
    array of shape (n,)

    Raises
    ------
    ValueError
        Unless both are positive.

    Examples
    --------
    >>> density_lengthscale(np.array([0.0, 1.0, 100.0]), longest=50.0, crowd=10.0).round(2)
    array([50.  ,  8.33,  0.1 ])
    """
    if not (longest > 0 and crowd > 0):
        raise ValueError("longest and crowd must be positive")
    lengthscale: Array = 1.0 / (1.0 / longest + density / crowd)
    return lengthscale


def _per_input(value: ArrayLike, *, inputs: int, name: str) -> Array:
    """Return one number per input, shape (D,), of a number or of D numbers."""
    numbers = np.asarray(value, dtype=np.float64)
    if numbers.shape not in {(), (inputs,)} or not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be one finite number, or one for each of {inputs} inputs")
    return np.broadcast_to(numbers, (inputs,))
