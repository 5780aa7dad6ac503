"""Bounds of the private column: declared, checked, and the range of clipping.

Errors here name bounds, never a value of y. Values outside the bounds are clipped silently: how
many there were is private too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cloakgp.privacy.entries import INFINITE, MISSING, number_faults
from cloakgp.privacy.questions.base import Question, numbers
from cloakgp.privacy.rounding import UNIT_ROUNDOFF
from cloakgp.utils.arrays import Array

# Widths whose square, or whose share on the noise grid, float64 can still hold.
SMALLEST_WIDTH, LARGEST_WIDTH = 1e-100, 1e100


@dataclass(frozen=True)
class OutputBounds(Question):
    """Public bounds [lo, hi] of one output.

    They must come from knowledge, never from the data at hand: bounds computed from y leak it.
    As a question: the output clipped to them, less their middle.

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

    name: ClassVar[str] = "bounds"
    channels: ClassVar[int] = 1
    complaints: ClassVar[tuple[str, ...]] = (MISSING, INFINITE)

    def __post_init__(self) -> None:
        # In 32 bits widths and middles would be rounded before anything is counted.
        object.__setattr__(self, "lo", float(self.lo))
        object.__setattr__(self, "hi", float(self.hi))

    @classmethod
    def checked(cls, bounds: object) -> OutputBounds:
        """Return valid bounds, or raise an error that explains the fault.

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
        """The largest change of a clipped output less the middle, rounded up."""
        return self.about(self.middle)[0]

    @property
    def absolute_distance(self) -> float:
        """The same: there is one column."""
        return self.distance

    @property
    def largest(self) -> float:
        """The largest absolute value of a clipped output less the middle."""
        return self.about(self.middle)[1]

    def about(self, centre: float) -> tuple[float, float]:
        """Return the largest change, and the largest absolute value, of an output less a number.

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
        """Return whether outputs are missing, and whether any is infinite."""
        return number_faults(entries)

    def encode(self, entries: Array) -> Array:
        """Return outputs clipped, less the middle, shape (n, 1).

        Parameters
        ----------
        entries : array of shape (n,)
            Private.
        """
        centred: Array = self.clip(entries) - self.middle
        return centred[:, None]

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds."""
        return self.lo, self.hi

    def describe_answers(self, count: int, *, noise: Callable[[str], str], output: str) -> str:
        """Describe published sums of outputs."""
        return f"{numbers(count)} with {noise(f', in units of {output}')}."

    def about_outputs(self, values: Array, totals: Array, *means: float) -> Array:
        """Return answers about outputs less a mean, R (y − mean) + noise, shape (k, 1)."""
        return values + np.asarray((self.middle - sum(means)) * totals)[:, None]
