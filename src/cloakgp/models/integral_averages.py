r"""Averages of the bell exp(−z²/2) over pairs of intervals, to nearly full float64 precision.

Lengths are in lengthscales. Two intervals of widths w and w', whose middles are c apart, have

    k̄(c, w, w') = 1/(w w') ∫∫ φ(z) du dv,   z = u − v,   φ(z) = exp(−z²/2),

and the derivative of that with respect to the logarithm of the lengthscale is the same average of
z² φ(z). With Φ₁ an odd first and Φ₂ an even second antiderivative of φ (or of z² φ),

    one interval and a point:   [Φ₁(c + w/2) − Φ₁(c − w/2)] / w,
    two intervals:              [Φ₂(c + a) + Φ₂(c − a) − Φ₂(c + b) − Φ₂(c − b)] / (w w'),

with a = (w + w')/2 and b = (w − w')/2. Both differences lose all digits when a width vanishes, and
the second when the intervals are far apart. So

* an interval of at most one lengthscale is averaged over by Gauss–Legendre quadrature, whose terms
  are all positive;
* Φ₁ and Φ₂ are written as what they tend to, √(π/2) sign z and √(π/2) |z|, plus a remainder that
  vanishes; the former are subtracted exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import erfc, erfcx

from cloakgp.arrays import Array

# Up to this width, in lengthscales, a dozen nodes integrate to the last digit.
NARROW = 1.0
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
HALF_MASS = np.sqrt(np.pi / 2)


@dataclass(frozen=True)
class _Integrand:
    """An even function of mass √(2π), and what is left of its antiderivatives, for z ≥ 0.

    Attributes
    ----------
    value : callable
    first : callable
        √(π/2) − Φ₁(z).
    second : callable
        Φ₂(z) − √(π/2) z.
    """

    value: Callable[[Array], Array]
    first: Callable[[Array], Array]
    second: Callable[[Array], Array]


def _bell(z: Array) -> Array:
    value: Array = np.exp(-np.square(z) / 2)
    return value


def _bell_first(z: Array) -> Array:
    rest: Array = HALF_MASS * erfc(z / np.sqrt(2))
    return rest


def _bell_second(z: Array) -> Array:
    rest: Array = _bell(z) * (1 - z * HALF_MASS * erfcx(z / np.sqrt(2)))
    return rest


_BELL = _Integrand(value=_bell, first=_bell_first, second=_bell_second)
# (−z φ)' = (z² − 1) φ and φ'' = (z² − 1) φ.
_SQUARE_BELL = _Integrand(
    value=lambda z: np.square(z) * _bell(z),
    first=lambda z: _bell_first(z) + z * _bell(z),
    second=lambda z: _bell_second(z) + _bell(z),
)


def bell_average(distance: Array, width: Array, other_width: Array) -> Array:
    """Return the average of exp(−z²/2) over pairs of intervals.

    Parameters
    ----------
    distance : array
        Between the middles, in lengthscales.
    width, other_width : arrays of the same shape
        At least 0, in lengthscales.

    Returns
    -------
    array of the same shape

    Examples
    --------
    >>> bell_average(np.array([0.0, 1.0]), np.array([0.0, 2.0]), np.array([0.0, 2.0])).round(6)
    array([1.      , 0.574686])
    """
    return _average(_BELL, distance, width, other_width)


def bell_slope(distance: Array, width: Array, other_width: Array) -> Array:
    """Return the average of z² exp(−z²/2), the derivative in the logarithm of the lengthscale.

    Parameters and result are as for `bell_average`.

    Examples
    --------
    >>> bell_slope(np.array([1.0]), np.array([0.0]), np.array([0.0])).round(6)
    array([0.606531])
    """
    return _average(_SQUARE_BELL, distance, width, other_width)


def _average(of: _Integrand, distance: Array, width: Array, other_width: Array) -> Array:
    distance = np.abs(distance)
    wide, narrow = np.maximum(width, other_width), np.minimum(width, other_width)
    result = np.empty(distance.shape)
    for case, function in (
        (narrow > NARROW, _two_wide),
        ((narrow <= NARROW) & (wide > NARROW), _wide_and_narrow),
        (wide <= NARROW, _two_narrow),
    ):
        if case.any():
            result[case] = function(of, distance[case], wide[case], narrow[case])
    return result


def _two_narrow(of: _Integrand, distance: Array, wide: Array, narrow: Array) -> Array:
    """Return the averages over two intervals, both narrow: quadrature over both."""
    if not wide.any():
        return of.value(distance)
    total = np.zeros(distance.shape)
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        from_middle = distance + node * narrow / 2
        values = of.value(from_middle[:, None] + NODES * wide[:, None] / 2)
        total += weight / 2 * (values @ (WEIGHTS / 2))
    return total


def _wide_and_narrow(of: _Integrand, distance: Array, wide: Array, narrow: Array) -> Array:
    """Return the averages over a wide interval and a narrow one: quadrature over the latter."""
    if not narrow.any():
        return _wide_and_point(of, distance, wide)
    total = np.zeros(distance.shape)
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        total += weight / 2 * _wide_and_point(of, distance + node * narrow / 2, wide)
    return total


def _wide_and_point(of: _Integrand, distance: Array, width: Array) -> Array:
    """Return the averages over a wide interval, seen from a point."""
    distance = np.abs(distance)
    far, near = distance + width / 2, distance - width / 2
    # Φ₁ is odd: where the point is inside, its two parts add up.
    inside = near < 0
    missing = of.first(far) + np.where(inside, 1.0, -1.0) * of.first(np.abs(near))
    average: Array = (2 * HALF_MASS * inside - missing) / width
    return average


def _two_wide(of: _Integrand, distance: Array, wide: Array, narrow: Array) -> Array:
    """Return the averages over two intervals, neither of them narrow."""
    sum_, difference = (wide + narrow) / 2, (wide - narrow) / 2
    # |c + a| + |c − a| − |c + b| − |c − b| is twice this.
    kinks = np.maximum(distance, sum_) - np.maximum(distance, difference)
    rest = (
        of.second(distance + sum_)
        + of.second(np.abs(distance - sum_))
        - of.second(distance + difference)
        - of.second(np.abs(distance - difference))
    )
    average: Array = (2 * HALF_MASS * kinks + rest) / (wide * narrow)
    return average
