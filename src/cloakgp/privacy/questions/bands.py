r"""Bands: outputs clipped to an interval of their own, and where they lie in it.

Mechanism
---------
Given a public strategy R of shape (k, N) and a public band [l_j, u_j] for every row, of width w_j,
publish a = R v + s z, where z is independent noise on a grid (Gaussian or Laplace) and

    v_j = (clip(y_j; l_j, u_j) − (l_j + u_j)/2) / w_j,  brought into [−½, ½].

Bands come from answers that were published before (`cloakgp.fitting.bands`): outputs are known to
lie in narrow ones by then, and what a question costs is its column's length in units of the band.

Neighbours
    One output changes, to any number; everything else is equal. With groups, all outputs of one
    group change. Bands are equal: they are functions of public inputs and published answers.
Sensitivity
    v_j lies in [−½, ½] whatever y_j is: that is brought about last, by a clip to two numbers that
    float64 holds, so that no rounding before it matters. So one output moves R v by at most
    max_j ‖r_j‖, and a group by its gauge: `cloakgp.privacy.ask` with bounds (−½, ½), which
    counts the rounding of R v, in the norm of the noise.
Theorem
    As for `cloakgp.privacy.ask`. Several stages, the bands and questions of each chosen from
    the answers of those before, are together exactly √(Σ μ_t²)-Gaussian DP (Dong, Roth and Su 2022,
    corollary 3.3), or Σ ε_t-DP with Laplace noise: see `cloakgp.privacy.accounting.compose`.
Argument
    Given all earlier answers, bands and R are constants. The mechanism is then that of
    `cloakgp.privacy.ask` on numbers in [−½, ½], each a function of one output: μ_t-Gaussian DP
    or ε_t-DP for every value of the earlier answers, which is what adaptive composition asks for.
    How many outputs were clipped is not published.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cloakgp.privacy.entries import INFINITE, MISSING, number_faults
from cloakgp.privacy.questions.base import Question, numbers
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import amount

UNIT_INTERVAL = OutputBounds(-0.5, 0.5)


class UnitQuestion(Question):
    """A question chosen from earlier answers, under which every output is a number in [−½, ½]."""

    channels: ClassVar[int] = 1
    complaints: ClassVar[tuple[str, ...]] = (MISSING, INFINITE)
    follows_answers: ClassVar[bool] = True
    distance: ClassVar[float] = UNIT_INTERVAL.distance
    absolute_distance: ClassVar[float] = UNIT_INTERVAL.absolute_distance
    largest: ClassVar[float] = UNIT_INTERVAL.largest

    def faults(self, entries: Array) -> tuple[bool, ...]:
        """Return whether outputs are missing, and whether any is infinite."""
        return number_faults(entries)

    def encode(self, entries: Array) -> Array:
        """Return where outputs are placed, from −½ to ½, shape (n, 1)."""
        return np.clip(self.place(entries), UNIT_INTERVAL.lo, UNIT_INTERVAL.hi)[:, None]

    @property
    def limits(self) -> None:
        """None: it is about outputs within the limits of an earlier question."""
        return

    def place(self, outputs: Array) -> Array:
        """Return where outputs are placed, from −½ to ½ but for rounding, shape (n,).

        Parameters
        ----------
        outputs : array of shape (n,)
            Private; finite.

        Raises
        ------
        TypeError
            If the inputs of rows say what is asked of them: then `of_rows` has the question.
        """
        del outputs
        raise TypeError("a question about rows needs their inputs: see of_rows")


@dataclass(frozen=True, eq=False)
class Bands(UnitQuestion):
    """A public interval for the output of every row.

    Attributes
    ----------
    lower, upper : arrays of shape (N,)
        In output units; lower below upper.

    Examples
    --------
    >>> bands = Bands(lower=np.array([0.0, 4.0]), upper=np.array([2.0, 8.0]))
    >>> bands.place(np.array([0.5, 90.0]))
    array([-0.25,  0.5 ])
    """

    name: ClassVar[str] = "bands"

    lower: Array
    upper: Array

    def validate(self) -> None:
        """Refuse intervals that are none.

        Raises
        ------
        ValueError
            If ends are missing, infinite, or not in order.
        """
        ends = self.lower, self.upper
        fit = self.lower.ndim == 1 and self.lower.shape == self.upper.shape
        # Ends as far apart as float64 reaches have no width in it; a tiny one has no inverse.
        with np.errstate(over="ignore", divide="ignore"):
            if not (
                fit
                and np.isfinite(ends).all()
                and (self.width > 0).all()
                and np.isfinite((self.width, 1.0 / self.width)).all()
            ):
                raise ValueError("its bands are damaged")

    @property
    def width(self) -> Array:
        """U − l, in output units."""
        return self.upper - self.lower

    @property
    def middle(self) -> Array:
        """In output units."""
        return self.lower + self.width / 2

    @property
    def rows(self) -> int:
        """N."""
        return len(self.lower)

    def at(self, places: NDArray[np.intp]) -> Bands:
        """Return the bands of rows at some places."""
        return Bands(lower=self.lower[places], upper=self.upper[places])

    def describe_answers(self, count: int, *, noise: Callable[[str], str], output: str) -> str:
        """Describe published sums of outputs within bands."""
        unit = " in units of a row's band"
        return (
            f"{numbers(count)} with {noise(unit)}. Bands are around the predictions from the "
            "answers before; values outside were clipped to them, uncounted. "
            f"Their widths: {amount(float(np.median(self.width)), 4)} (median), in units of "
            f"{output}."
        )

    def place(self, outputs: Array) -> Array:
        """Return where outputs lie in their bands, from −½ to ½."""
        placed: Array = (np.clip(outputs, self.lower, self.upper) - self.middle) / self.width
        return placed
