r"""Integral kernel: covariances of averages of a latent function over boxes.

A histogram's bin tells the average of the function over the bin, not its value at a point. With an
RBF of one lengthscale per dimension, the covariance of two such averages is a product over
dimensions (2018 paper, supplement, "integral kernel")

    k̄(A, B) = Π_i 1/(w_i w'_i) ∫_{A_i} ∫_{B_i} exp(−(u − v)²/2ℓ_i²) dv du.

The papers integrate where this averages: their k_FF is k̄ times both volumes, their k_Ff is k̄ with
one box of no width, times the volume of the other. Averages have a limit when a box shrinks to a
point, integrals vanish there; so one kernel serves box with box, box with point, and point with
point, where it is the RBF.

Averages of the bell exp(−z²/2) over pairs of intervals, to nearly full float64 precision
-----------------------------------------------------------------------------------------
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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erfc, erfcx
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from cloakgp.utils.arrays import Array, as_matrix

# Up to this width, in lengthscales, a dozen nodes integrate to the last digit.
NARROW = 1.0
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
HALF_MASS = np.sqrt(np.pi / 2)


class IntegralRBF(Kernel):
    """RBF kernel between averages over boxes.

    Each row is a box in D dimensions: its lower corner, then its upper corner, 2D columns. A box
    without width is a point. The covariance is that of the averages over the boxes of a function
    whose own covariance is an RBF of unit variance; multiply by a `ConstantKernel` for another.

    Parameters
    ----------
    length_scale : float or sequence of D floats
        In the units of the inputs: one for all dimensions, or one each.
    length_scale_bounds : pair of floats, sequence of D pairs, or "fixed"
        As for scikit-learn's RBF.

    See Also
    --------
    points_as_boxes : Points in the form that this kernel needs.

    Notes
    -----
    Values are within a few units in the last place of 1 of the exact ones for boxes from no width
    to thousands of lengthscales, touching or far apart.

    Examples
    --------
    The average over [0, 2] with itself, with the value at 1, and the value at 1 with itself:

    >>> boxes = np.array([[0.0, 2.0], [1.0, 1.0]])
    >>> IntegralRBF(length_scale=1.0)(boxes).round(3)
    array([[0.764, 0.856],
           [0.856, 1.   ]])
    """

    def __init__(
        self,
        length_scale: float | Sequence[float] | Array = 1.0,
        length_scale_bounds: Any = (1e-5, 1e5),
    ) -> None:
        self.length_scale = length_scale
        self.length_scale_bounds = length_scale_bounds

    @property
    def anisotropic(self) -> bool:
        """Whether every dimension has a lengthscale of its own."""
        return np.iterable(self.length_scale) and np.size(self.length_scale) > 1

    @property
    def hyperparameter_length_scale(self) -> Hyperparameter:
        """As scikit-learn's kernels state their hyperparameters."""
        if self.anisotropic:
            return Hyperparameter(
                "length_scale", "numeric", self.length_scale_bounds, np.size(self.length_scale)
            )
        return Hyperparameter("length_scale", "numeric", self.length_scale_bounds)

    def __call__(
        self, X: Array, Y: Array | None = None, eval_gradient: bool = False
    ) -> Array | tuple[Array, Array]:
        """Return the covariances of averages over boxes.

        Parameters
        ----------
        X : array of shape (n, 2D)
        Y : array of shape (m, 2D), optional
            X if not given.
        eval_gradient : bool
            Also return the derivatives with respect to the logarithms of the lengthscales; only
            without Y.

        Returns
        -------
        array of shape (n, m)
        array of shape (n, n, 1) or (n, n, D)
            If asked for; without entries if the lengthscales are fixed.

        Raises
        ------
        ValueError
            If rows are no boxes, lengthscales do not fit them, or the gradient is asked for with Y.
        """
        if eval_gradient and Y is not None:
            raise ValueError("Gradient can only be evaluated when Y is None.")
        left = _intervals(X)
        right = left if Y is None else _intervals(Y)
        scales = self._scales(len(left))
        if len(right) != len(left):
            raise ValueError(f"boxes have {len(left)} dimensions in X and {len(right)} in Y")
        factors = [
            _on_distinct(bell_average, sides, other_sides, scale)
            for sides, other_sides, scale in zip(left, right, scales, strict=True)
        ]
        covariance: Array = np.prod(factors, axis=0)
        if not eval_gradient:
            return covariance
        if self.hyperparameter_length_scale.fixed:
            return covariance, np.empty((*covariance.shape, 0))
        slopes = np.empty((*covariance.shape, len(left)))
        for dimension, (sides, scale) in enumerate(zip(left, scales, strict=True)):
            others = [factor for index, factor in enumerate(factors) if index != dimension]
            slope = _on_distinct(bell_slope, sides, sides, scale)
            slopes[:, :, dimension] = np.prod([slope, *others], axis=0)
        if not self.anisotropic:
            slopes = slopes.sum(axis=2, keepdims=True)
        return covariance, slopes

    def diag(self, X: Array) -> Array:
        """Return the variances of the averages over boxes, shape (n,)."""
        intervals = _intervals(X)
        variance = np.ones(len(intervals[0]))
        for sides, scale in zip(intervals, self._scales(len(intervals)), strict=True):
            widths = (sides[:, 1] - sides[:, 0]) / scale
            variance *= bell_average(np.zeros_like(widths), widths, widths)
        return variance

    def is_stationary(self) -> bool:
        """Return True: moving all boxes together changes nothing."""
        return True

    def __repr__(self) -> str:
        scales = ", ".join(f"{scale:.3g}" for scale in np.atleast_1d(self.length_scale))
        if self.anisotropic:
            scales = f"[{scales}]"
        return f"{type(self).__name__}(length_scale={scales})"

    def _scales(self, dimensions: int) -> Array:
        scales = np.atleast_1d(np.asarray(self.length_scale, dtype=np.float64))
        if scales.ndim != 1 or len(scales) not in (1, dimensions):
            raise ValueError(
                f"length_scale has shape {scales.shape}: give one number, or one for each of the "
                f"{dimensions} dimensions of the boxes"
            )
        return np.broadcast_to(scales, dimensions)


def _intervals(boxes: Array) -> list[Array]:
    """Return for each dimension the lower and upper ends, shape (n, 2)."""
    boxes = np.atleast_2d(boxes)
    # A chunk of which no row is kept has none.
    if len(boxes):
        boxes = as_matrix(boxes, name="X")
    if boxes.shape[1] % 2:
        raise ValueError(
            "a box is a row of its lower corner and then its upper corner, an even number of "
            f"columns; got shape {boxes.shape}"
        )
    dimensions = boxes.shape[1] // 2
    if not (boxes[:, :dimensions] <= boxes[:, dimensions:]).all():
        raise ValueError("the upper corner of a box must not lie below its lower corner")
    return [boxes[:, [index, dimensions + index]] for index in range(dimensions)]


def _on_distinct(of: Any, intervals: Array, other_intervals: Array, scale: float) -> Array:
    """Return a function of pairs of intervals, computed once for each distinct pair.

    The bins of a grid have few distinct sides, however many bins or rows there are.
    """
    left, left_at = np.unique(intervals, axis=0, return_inverse=True)
    right, right_at = np.unique(other_intervals, axis=0, return_inverse=True)
    left, right = left / scale, right / scale
    # Halves are added before they are subtracted, so that equal intervals are exactly 0 apart.
    distance = left.sum(axis=1)[:, None] / 2 - right.sum(axis=1)[None, :] / 2
    widths = (left[:, 1] - left[:, 0])[:, None], (right[:, 1] - right[:, 0])[None, :]
    distance, *both = np.broadcast_arrays(distance, *widths)
    table: Array = of(distance, *both)
    return table[np.ix_(left_at.ravel(), right_at.ravel())]


def points_as_boxes(X: Array) -> Array:
    """Return points as boxes of no width.

    Parameters
    ----------
    X : array of shape (P, D)

    Returns
    -------
    array of shape (P, 2D)

    Raises
    ------
    ValueError
        If X is no matrix of finite numbers.

    Examples
    --------
    >>> points_as_boxes(np.array([[1.0, 5.0]]))
    array([[1., 5., 1., 5.]])
    """
    return np.tile(as_matrix(X, name="X"), 2)


@dataclass(frozen=True)
class _Integrand:
    """An even function of mass √(2π), and the tails of its antiderivatives, for z ≥ 0.

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
