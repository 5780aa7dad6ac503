r"""Default kernels and noise, from bounds and public inputs: no output is looked at.

The default for numbers is a sum of three independent functions,

    level + linear + Matérn 3/2,   of sds 0.25, 0.1 and 0.15 of the width of the bounds,

on inputs that are standardised by public statistics of their own: so that a level far from the
middle of wide bounds, a trend, and a curve each cost what they should. How it compares with others
is recorded in ``docs/default-prior.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern

from cloakgp.models.kernels.blocks import BlockMatern
from cloakgp.models.kernels.linear import LinearKernel
from cloakgp.utils.arrays import Array

# Sds of the parts of the default prior, as shares of the bounds' width.
LEVEL_SD_SHARE, LINEAR_SD_SHARE, CURVE_SD_SHARE = 0.25, 0.1, 0.15
NOISE_SD_SHARE = 1 / 10
SMOOTHNESS = 1.5
# Of the Matérn part, in standard deviations of each input; distances over D inputs grow as √D.
LENGTHSCALE_SDS = 2.0
# The scale of an input that never varies, in its own magnitude: it then tells nothing.
UNVARIED = 1e9
# Of its largest absolute value, the range up to which an input is taken not to vary. Numbers that
# are equal in decimals differ by 1e-16 of themselves, and what is computed from dates by 2e-11.
LEAST_RANGE = 1e-10
# The Matérn kernel alone: sd as a share of the width, lengthscale as one of each input's range.
SIGNAL_SD_SHARE = 3 / 10
LENGTHSCALE_SHARE = 1 / 2
# So many inputs, with ranges of at most so many times their median, are of one unit.
FEWEST_OF_ONE_UNIT, ONE_UNIT = 16, 10.0
# More numbers of one block than a place has are a vector, if they have more than two values.
MOST_OF_PLACE = 3
# The least scale of a point on a circle; of points all around it is 1. Opposite of where all rows
# are, the linear part then has an sd of at most the width of the bounds.
LEAST_OF_CIRCLE = 2 * LINEAR_SD_SHARE
# As far from the circle may its points be.
CIRCLE_TOLERANCE = 1e-9
# Range over sd, of cosine and sine of points all around.
CIRCLE_RANGE_SDS = 2 * math.sqrt(2.0)
# Of each part of a latent function behind classes, and the lengthscale of vectors and of inputs of
# one unit there, in their scales: images have more classes right with half of what tables have.
LATENT_LINEAR_SD, LATENT_CURVE_SD = 1.5, 1.5
LATENT_VECTOR_SDS = LENGTHSCALE_SDS / 2
# Of bounds for which the Matérn kernel alone has an sd of 2, for such a function.
LATENT_WIDTH = 2.0 / SIGNAL_SD_SHARE


def default_kernel(X: Array, *, width: float, blocks: Sequence[int] | None = None) -> Kernel:
    """Return a level, a linear and a Matérn 3/2 part, scaled to the inputs and the bounds.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    width : float
        hi − lo, in output units.
    blocks : sequence of int, optional
        Which block each input is in, from 0, where several stand for one thing: a category, a
        place. Each block counts as one input, with one scale; that of points on a circle is at
        least a fifth of the radius, however short the arc is on which all rows lie.

    Examples
    --------
    >>> default_kernel(np.array([[0.0], [40.0]]), width=100.0)
    25**2 + 10**2 * Linear(20 ± 20) + 15**2 * Matern(length_scale=40, nu=1.5)
    """
    level = ConstantKernel((LEVEL_SD_SHARE * width) ** 2)
    linear, curve = _linear_and_curve(
        X, blocks=blocks, linear_sd=LINEAR_SD_SHARE * width, curve_sd=CURVE_SD_SHARE * width
    )
    return level + linear + curve


def _linear_and_curve(
    X: Array,
    *,
    blocks: Sequence[int] | None,
    linear_sd: float,
    curve_sd: float,
    vector_sds: float = LENGTHSCALE_SDS,
) -> tuple[Kernel, Kernel]:
    """Return a linear and a Matérn 3/2 part, scaled to the inputs, of given sds.

    Vectors, and inputs of one unit, have a lengthscale of ``vector_sds`` of their scales.
    """
    # Column by column, so that the sums do not depend on how the table lies in memory.
    centre = np.array([column.mean() for column in np.ascontiguousarray(X.T)])
    groups = _groups(blocks, inputs=X.shape[1])
    block_scales = _block_scales(X, blocks=blocks)
    # Inputs that never vary tell nothing, and are no dimensions.
    varying = max(int(_varying_blocks(X, groups).sum()), 1)
    lengths = np.full(len(block_scales), LENGTHSCALE_SDS)
    if blocks is not None:
        lengths[_vectors(X, groups)] = vector_sds
    elif _are_of_one_unit(X):
        lengths[:] = vector_sds
    lengthscales = lengths * np.sqrt(varying) * block_scales
    slope = linear_sd**2 * X.shape[1] / varying
    return (
        ConstantKernel(slope) * LinearKernel(centre, block_scales[groups]),
        ConstantKernel(curve_sd**2) * _matern(lengthscales, groups),
    )


def scales_by_block(X: Array, *, blocks: Sequence[int]) -> Array:
    """Return the typical deviation of each input from its mean, equal within a block, shape (D,).

    Parameters
    ----------
    X : array of shape (N, D)
    blocks : sequence of int
        As for `default_kernel`.

    Examples
    --------
    >>> scales_by_block(np.array([[0.0, 0.7, 0.0], [4.0, 0.0, 0.7]]), blocks=[0, 1, 1]).round(2)
    array([2.  , 0.49, 0.49])
    """
    return np.asarray(_block_scales(X, blocks=blocks)[_groups(blocks, inputs=X.shape[1])])


def _groups(blocks: Sequence[int] | None, *, inputs: int) -> NDArray[np.intp]:
    return np.arange(inputs) if blocks is None else np.asarray(blocks, dtype=np.intp)


def _block_scales(X: Array, *, blocks: Sequence[int] | None) -> Array:
    """Return one scale for each block of inputs, or for each input, shape (B,)."""
    if blocks is None:
        return input_scales(X)
    groups = _groups(blocks, inputs=X.shape[1])
    scales = _of_blocks(_own_scales(X), varies=find_varying(X), groups=groups)
    for block in _vectors(X, groups):
        scales[block] = _distance_from_mean(X[:, groups == block])
    for block in _circles(X, groups):
        scales[block] = max(scales[block], LEAST_OF_CIRCLE)
    return scales


def _vectors(X: Array, groups: NDArray[np.intp]) -> list[int]:
    """Return the blocks that are vectors: of many inputs, not of two values as levels have."""
    varied = np.array([len(np.unique(column)) > 2 for column in X.T])
    counts = np.bincount(groups, weights=varied)
    return np.flatnonzero(counts > MOST_OF_PLACE).tolist()


def _circles(X: Array, groups: NDArray[np.intp]) -> list[int]:
    """Return the blocks that are points on a circle, as cycles of dates are."""
    counts = np.bincount(groups)
    return [
        block
        for block in np.flatnonzero(counts == 2).tolist()
        if (abs(np.hypot(*X[:, groups == block].T) - 1.0) <= CIRCLE_TOLERANCE).all()
    ]


def _distance_from_mean(X: Array) -> float:
    """Return the root mean square distance of rows from their mean."""
    return math.hypot(*(_deviation(column) for column in np.ascontiguousarray(X.T)))


def _deviation(column: Array) -> float:
    """Return the standard deviation of values of any unit."""
    spread = float(np.ptp(column))
    if not spread:
        return 0.0
    # In units of the range: squares of tiny or huge values leave what float64 holds.
    return spread * float(((column - column[0]) / spread).std())


def _are_of_one_unit(X: Array) -> bool:
    """Return whether inputs are many, and vary alike: as pixels do, or components."""
    varied = np.ptp(X, axis=0)[find_varying(X)]
    return len(varied) >= FEWEST_OF_ONE_UNIT and bool(varied.max() <= ONE_UNIT * np.median(varied))


def _varying_blocks(X: Array, groups: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return which blocks vary, shape (B,)."""
    varies = find_varying(X)
    return np.array([varies[groups == block].any() for block in range(int(groups.max()) + 1)])


def _of_blocks(scales: Array, *, varies: NDArray[np.bool_], groups: NDArray[np.intp]) -> Array:
    """Return one scale for each block of inputs, shape (B,).

    √2 times the root mean square of those of its inputs that vary: of a point in the plane, the sd
    of its distance from the centre; of categories, whose levels lie at distance 1, one half, as of
    an input with two values at that distance, however many there are. Vectors have others.
    """
    found = []
    for block in range(int(groups.max()) + 1):
        own = groups == block
        if own.sum() == 1:
            found.append(float(scales[own][0]))
            continue
        chosen = scales[own & varies] if (own & varies).any() else scales[own]
        largest = float(chosen.max())
        found.append(np.sqrt(2.0) * largest * float(np.sqrt(np.square(chosen / largest).mean())))
    return np.array(found)


def find_varying(X: Array) -> NDArray[np.bool_]:
    """Return which inputs vary by more than rounding does, shape (D,).

    Parameters
    ----------
    X : array of shape (N, D)

    Examples
    --------
    >>> find_varying(np.array([[0.3, 5.0, 1e-9], [0.1 + 0.2, 6.0, 2e-9]]))
    array([False,  True,  True])
    """
    lowest, highest = X.min(axis=0), X.max(axis=0)
    largest = np.maximum(np.abs(lowest), np.abs(highest))
    varies: NDArray[np.bool_] = highest - lowest > LEAST_RANGE * largest
    return varies


def input_scales(X: Array) -> Array:
    """Return the typical deviation of each input from its mean, shape (D,); never zero.

    The standard deviation. Of an input with two values, half their distance, however rare one is: a
    rare category is no farther off than a common one. Of one that never varies (`find_varying`), so
    much that it tells nothing. Sixteen inputs or more whose ranges are at most ten times their
    median are taken to be of one unit, as pixels and components are, and have the root mean square
    of their standard deviations: what varies little among them counts little.

    Parameters
    ----------
    X : array of shape (N, D)

    Examples
    --------
    >>> input_scales(np.array([[0.0, 1.0, 5.0], [0.0, 0.0, 5.0], [6.0, 0.0, 5.0]]))
    array([3.e+00, 5.e-01, 5.e+09])
    """
    if _are_of_one_unit(X):
        varying = int(find_varying(X).sum())
        return np.full(X.shape[1], _distance_from_mean(X) / np.sqrt(varying))
    return _own_scales(X)


def _own_scales(X: Array) -> Array:
    """Return the typical deviation of each input from its mean, whatever others are."""
    scales = []
    for column, varies in zip(np.ascontiguousarray(X.T), find_varying(X), strict=True):
        values = np.unique(column)
        if not varies:
            scales.append(UNVARIED * max(abs(float(values[0])), 1.0))
        elif len(values) == 2:
            scales.append(float(np.ptp(values)) / 2)
        else:
            scales.append(_deviation(column))
    return np.array(scales)


def matern_kernel(X: Array, *, width: float, blocks: Sequence[int] | None = None) -> Kernel:
    """Return a Matérn 3/2 kernel alone, scaled to the inputs and the bounds.

    Signal sd: 0.3 of the width of the bounds. Lengthscale: 0.5 √D of each of D inputs' ranges. Of
    an input that never varies it is so great that it does not matter. The range of a vector, and of
    many inputs of one unit (`input_scales`) together, is twice the root mean square distance of
    rows from their mean: that of points on a sphere, where vectors of many numbers lie. Of points
    on a circle it is at least a fifth of what it is all around.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    width : float
        hi − lo, in output units.
    blocks : sequence of int, optional
        As for `default_kernel`.

    Examples
    --------
    >>> matern_kernel(np.array([[0.0], [40.0]]), width=100.0)
    30**2 * Matern(length_scale=20, nu=1.5)
    """
    groups, varying = _groups(blocks, inputs=X.shape[1]), find_varying(X)
    varies = _varying_blocks(X, groups)
    # One, of what does not vary, is a number that can be divided by: another follows below.
    ranges = np.where(varying, np.ptp(X, axis=0), 1.0)
    extents = _of_blocks(ranges, varies=varying, groups=groups)
    if blocks is None and _are_of_one_unit(X):
        extents = 2 * input_scales(X)
    elif blocks is not None:
        for block in _vectors(X, groups):
            extents[block] = 2 * _distance_from_mean(X[:, groups == block])
        for block in _circles(X, groups):
            extents[block] = max(extents[block], CIRCLE_RANGE_SDS * LEAST_OF_CIRCLE)
    # Inputs that never vary tell nothing, and are no dimensions.
    largest = np.array([np.abs(X[:, groups == block]).max() for block in range(len(varies))])
    extents = np.where(varies, extents, UNVARIED * np.maximum(largest, 1.0))
    lengthscales = LENGTHSCALE_SHARE * np.sqrt(max(int(varies.sum()), 1)) * extents
    return ConstantKernel((SIGNAL_SD_SHARE * width) ** 2) * _matern(lengthscales, groups)


def _matern(lengthscales: Array, groups: NDArray[np.intp]) -> Kernel:
    if len(lengthscales) < len(groups):
        return BlockMatern(lengthscales, blocks=groups)
    return Matern(lengthscales if len(lengthscales) > 1 else float(lengthscales[0]), nu=SMOOTHNESS)


def default_noise_variance(*, width: float) -> float:
    """Return the square of a tenth of the width of the bounds."""
    return (NOISE_SD_SHARE * width) ** 2


def default_latent_kernel(X: Array, *, blocks: Sequence[int] | None = None) -> Kernel:
    """Return the kernel of a latent function behind classes: a linear and a Matérn 3/2 part.

    Each with an sd of 1.5, on inputs that are scaled as by `default_kernel`; the lengthscale of
    vectors, and of inputs of one unit, is half of what it is there. At two sds of both
    together a probit link gives nearly everything to one class wherever the latent function is
    known: classes may, and need not, be told apart well. There is no level, as class rates have a
    prior of their own.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    blocks : sequence of int, optional
        As for `default_kernel`.

    Examples
    --------
    >>> default_latent_kernel(np.array([[0.0], [40.0]]))
    1.5**2 * Linear(20 ± 20) + 1.5**2 * Matern(length_scale=40, nu=1.5)
    """
    linear, curve = _linear_and_curve(
        X,
        blocks=blocks,
        linear_sd=LATENT_LINEAR_SD,
        curve_sd=LATENT_CURVE_SD,
        vector_sds=LATENT_VECTOR_SDS,
    )
    return linear + curve
