"""The private column: its declared bounds, its shape, and how it is brought inside them.

Errors here name shapes and bounds, never a value of y. Values outside the bounds are clipped
silently: how many there were is private too.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import DataConversionWarning

from cloakgp.arrays import Array
from cloakgp.privacy.rounding import UNIT_ROUNDOFF

AnyArray = NDArray[Any]

# Widths whose square, or whose share on the noise grid, float64 can still hold.
SMALLEST_WIDTH, LARGEST_WIDTH = 1e-100, 1e100


@dataclass(frozen=True)
class OutputBounds:
    """Public bounds [lo, hi] of one output.

    They must come from knowledge, never from the data at hand: bounds computed from y leak it.

    Attributes
    ----------
    lo, hi : float
        In output units.

    Examples
    --------
    >>> OutputBounds.checked((84.6, 184.6)).width
    100.0
    """

    lo: float
    hi: float

    @classmethod
    def checked(cls, bounds: object) -> OutputBounds:
        """Return bounds, or say what is wrong with them.

        Raises
        ------
        ValueError
            Unless they are a pair of finite numbers, the lower first.
        """
        advice = "give bounds=(lo, hi), the range that an output can have, known without the data"
        if bounds is None:
            raise ValueError(f"bounds are missing: {advice}")
        pair = tuple(bounds) if isinstance(bounds, tuple | list | np.ndarray) else ()
        if len(pair) != 2 or not all(isinstance(end, int | float | np.number) for end in pair):
            raise ValueError(f"bounds must be a pair of numbers: {advice}")
        lo, hi = float(pair[0]), float(pair[1])
        if not (math.isfinite(lo) and math.isfinite(hi)):
            raise ValueError(f"bounds must be finite, got ({lo}, {hi}): {advice}")
        if lo >= hi:
            raise ValueError(f"the lower bound must be below the upper, got ({lo}, {hi}): {advice}")
        if not SMALLEST_WIDTH < hi - lo < LARGEST_WIDTH:
            raise ValueError(f"bounds ({lo}, {hi}) are too close or too far apart: rescale y")
        return cls(lo=lo, hi=hi)

    @property
    def width(self) -> float:
        """The most that one output can change, d = hi − lo, in output units."""
        return self.hi - self.lo

    @property
    def middle(self) -> float:
        """The middle of the bounds, in output units."""
        return self.lo + self.width / 2

    def about(self, centre: float) -> tuple[float, float]:
        """Return how far an output less a number can move, and how far from zero it can be.

        Rounding is monotone, so a clipped output less the centre lies between the rounded ends; the
        first is the distance between these, rounded up.

        Parameters
        ----------
        centre : float
            In output units.

        Examples
        --------
        >>> width, largest = OutputBounds(0.0, 4.0).about(1.0)
        >>> width > 4.0, round(width, 12), largest
        (True, 4.0, 3.0)
        """
        lowest, highest = self.lo - centre, self.hi - centre
        return (highest - lowest) * (1 + 4 * UNIT_ROUNDOFF), max(abs(lowest), abs(highest))

    def clip(self, outputs: Array) -> Array:
        """Return outputs brought inside the bounds."""
        return np.clip(outputs, self.lo, self.hi)


def checked_outputs(y: ArrayLike, *, rows: int) -> Array:
    """Return y as finite float64 numbers, one per row.

    Parameters
    ----------
    y : array-like of shape (N,) or (N, 1)
        Private.
    rows : int
        N, the number of rows of X.

    Raises
    ------
    ValueError
        If y is missing, of another length, not numeric, or holds NaN or infinity. No message shows
        a value, and no exception that could is kept as its cause.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    outputs = _as_floats(y)
    if outputs is None:
        raise ValueError("y must be numeric: encode or remove the other values first")
    outputs = one_column(outputs, rows=rows)
    if np.isnan(outputs).any():
        raise ValueError("Input y contains NaN: remove those rows, or impute them, first")
    if np.isinf(outputs).any():
        raise ValueError(
            "Input y contains infinity or a value too large for dtype('float64'): "
            "remove those rows first"
        )
    return outputs


def as_column(y: ArrayLike, *, rows: int) -> AnyArray:
    """Return y as one column of whatever it holds, one entry per row.

    Parameters
    ----------
    y : array-like of shape (N,) or (N, 1)
        Private.
    rows : int
        N, the number of rows of X.

    Raises
    ------
    ValueError
        If y is missing, ragged, or of another length. No message shows a value.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    try:
        # A list is taken entry by entry: numpy would give all of it one type, and so one person's
        # entry would decide how all others are read.
        column = np.asarray(y, dtype=None if hasattr(y, "dtype") else object)
    except ValueError:
        column = None
    if column is None:
        raise ValueError("y must have one dimension, with one entry per row")
    return one_column(column, rows=rows)


def one_column(outputs: AnyArray, *, rows: int) -> AnyArray:
    """Return an array without a second dimension of one, after checking its length.

    Raises
    ------
    ValueError
        If it has more dimensions, or another length.
    """
    if outputs.ndim == 2 and outputs.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of "
            "y to (n_samples,), for example using ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        outputs = outputs[:, 0]
    if outputs.ndim != 1:
        raise ValueError(f"y must have one dimension, got {outputs.ndim} dimensions")
    if len(outputs) != rows:
        raise ValueError(f"X has {rows} rows and y has {len(outputs)}: they must agree")
    return outputs


def as_floats(values: ArrayLike) -> Array:
    """Return numbers as float64, every entry read on its own.

    numpy gives a list one type, and dates and durations the finest unit that one of them has: one
    person's entry would change how all others are read. So a list is converted entry by entry, and
    dates and durations are refused.

    Raises
    ------
    TypeError, ValueError, OverflowError
        If they are not numbers; these may quote one, and must not reach anybody.
    """
    array = np.asarray(values, dtype=None if hasattr(values, "dtype") else object)
    if array.dtype.kind in "mMcO" and any(
        isinstance(one, complex | np.complexfloating | np.datetime64 | np.timedelta64)
        for one in (array.flat if array.dtype.kind == "O" else array.flat[:1])
    ):
        raise TypeError("dates, durations and complex numbers are not outputs")
    return np.array(array, dtype=np.float64)


def _as_floats(y: ArrayLike) -> Array | None:
    """Convert, or return None: the conversion's own error would quote the value it stumbled on."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return as_floats(y)
    except (TypeError, ValueError, OverflowError, Warning):
        return None
