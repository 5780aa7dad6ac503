"""Bounds of the private column: declared, checked, and what values are clipped to.

Errors here name shapes and bounds, never a value of y. Values outside the bounds are clipped
silently: how many there were is private too.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import DataConversionWarning

from cloakgp.privacy.entries import Entries, as_entries, read_entries
from cloakgp.privacy.rounding import UNIT_ROUNDOFF
from cloakgp.utils.arrays import Array

AnyArray = NDArray[Any]

# Widths whose square, or whose share on the noise grid, float64 can still hold.
SMALLEST_WIDTH, LARGEST_WIDTH = 1e-100, 1e100

MISSING = "y contains NaN, or cells that are empty or no numbers: remove those rows, or impute them"
INFINITE = "y contains infinity, or a value too large for float64: remove those rows first"


@dataclass(frozen=True)
class OutputBounds:
    """Public bounds [lo, hi] of one output.

    They must come from knowledge, never from the data at hand: bounds computed from y leak it.
    An `Encoding` of outputs: what questions are asked about is clipped, less the middle.

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

    labels: ClassVar[None] = None
    channels: ClassVar[int] = 1
    complaints: ClassVar[tuple[str, ...]] = (MISSING, INFINITE)

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

    @property
    def distance(self) -> float:
        """How far a clipped output less the middle can move, rounded up."""
        return self.about(self.middle)[0]

    @property
    def absolute_distance(self) -> float:
        """The same: there is one column."""
        return self.distance

    @property
    def largest(self) -> float:
        """How far from zero a clipped output less the middle can be."""
        return self.about(self.middle)[1]

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

    def validate(self) -> None:
        """Refuse bounds that are none; see `checked`."""
        OutputBounds.checked((self.lo, self.hi))

    def clip(self, outputs: Array) -> Array:
        """Return outputs brought inside the bounds."""
        return np.clip(outputs, self.lo, self.hi)

    def faults(self, entries: Array) -> tuple[bool, ...]:
        """Return whether outputs are missing, and whether any is infinite.

        Parameters
        ----------
        entries : array of shape (n,)
            Private.
        """
        return bool(np.isnan(entries).any()), bool(np.isinf(entries).any())

    def encoded(self, entries: Array) -> Array:
        """Return outputs clipped, less the middle, shape (n, 1).

        Parameters
        ----------
        entries : array of shape (n,)
            Private.
        """
        centred: Array = self.clip(entries) - self.middle
        return centred[:, None]


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
        If y is missing, of another length, not numeric, or holds NaN, infinity, or entries that are
        masked or missing. No message shows a value, and no exception that could is kept as its
        cause.
    """
    entries = read_entries(_passed(y))
    outputs = one_column(entries.values, rows=rows)
    check_numbers(entries)
    return outputs


def check_numbers(entries: Entries) -> None:
    """Check that outputs are finite numbers.

    Raises
    ------
    ValueError
        If not. No message shows a value, or tells which.
    """
    if entries.unreadable:
        raise ValueError("y must be numeric: encode or remove the other values first")
    if entries.missing.any():
        raise ValueError(
            "Input y contains NaN, or entries that are masked or missing: remove those rows, or "
            "impute them, first"
        )
    if np.isinf(entries.values).any():
        raise ValueError(
            "Input y contains infinity or a value too large for dtype('float64'): "
            "remove those rows first"
        )


def as_column(y: ArrayLike, *, rows: int) -> AnyArray:
    """Return y as one column of whatever it holds, one entry per row.

    Parameters
    ----------
    y : array-like of shape (N,) or (N, 1)
        Private. Entries that are masked become None.
    rows : int
        N, the number of rows of X.

    Raises
    ------
    ValueError
        If y is missing, ragged, or of another length. No message shows a value.
    """
    return one_column(as_entries(_passed(y)), rows=rows)


def _passed(y: ArrayLike) -> ArrayLike:
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    return y


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
