r"""Outside: whether an output lies outside of an interval, one half if it does and −½ if not.

Mechanism
---------
Given public ends l < u (or one of them) and a public partition of the rows into S strata, publish
R v + s z, where z is independent noise on a grid (Gaussian or Laplace), R_sj is 1 where row j is of
stratum s and 0 elsewhere, and v_j = 1[y_j < l or y_j > u] − ½. With the sizes of strata, which are
public, that says how many outputs of each lie outside. Everybody is in one stratum, so that asking
by strata costs nothing more than asking of all rows together.

Neighbours
    One output changes, to any number; everything else is equal. With groups, all outputs of one
    group change. Ends and strata are equal: they are functions of public inputs and of answers that
    were published before.
Sensitivity
    v_j is one of two numbers that float64 holds, 1 apart, by comparisons, which are exact. A column
    of R has a single 1. So one output moves one of the S answers by 1: 1 in ℓ1 and in ℓ2 norm; a
    group moves them by its gauge. Every strategy is measured as it is asked
    (`cloakgp.privacy.ask`).
    Of several outputs of a person each is asked about by questions of its own, in whose R the
    entries of other outputs have columns of zeros: see `cloakgp.privacy.questions.counts`.
Theorem
    As for `cloakgp.privacy.ask`, in S dimensions. Answers decide whether this is asked, and how
    much is left for what comes after: parts that add up to the whole on every path, as at
    `cloakgp.privacy.questions.counts`.
Argument
    Given all earlier answers, ends and strata are constants, and this is the mechanism of
    `cloakgp.privacy.ask` on numbers in [−½, ½], each a function of one output.
Tables in chunks
    A row counts 1 in its stratum, or one over the number of its group's rows, as in counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cloakgp.privacy.questions.bands import UnitQuestion
from cloakgp.privacy.questions.base import numbers
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import amount


@dataclass(frozen=True, eq=False)
class OutsideQuestion(UnitQuestion):
    """Which outputs lie outside of an interval.

    Attributes
    ----------
    lo, hi : float or None
        Its ends, in output units; both belong to it. None where it has no end.

    Examples
    --------
    >>> OutsideQuestion(0.0, 2.0).place(np.array([-0.1, 0.0, 1.0, 9.0]))
    array([ 0.5, -0.5, -0.5,  0.5])
    """

    name: ClassVar[str] = "outside"
    locates: ClassVar[bool] = False
    precedes_choice: ClassVar[bool] = True

    lo: float | None
    hi: float | None

    def validate(self) -> None:
        """Refuse an interval that is none.

        Raises
        ------
        ValueError
            If an end is not finite, they are not in order, or there is none.
        """
        ends = [end for end in (self.lo, self.hi) if end is not None]
        if not (ends and np.isfinite(ends).all() and (len(ends) < 2 or ends[0] < ends[1])):
            raise ValueError("its interval is damaged")

    def in_units(self, limits: OutputBounds) -> OutsideQuestion:
        """Return the question about outputs in widths of some bounds, from their middle.

        Parameters
        ----------
        limits : OutputBounds
        """
        middle, width = limits.middle, limits.width
        ends = [None if end is None else (end - middle) / width for end in (self.lo, self.hi)]
        return OutsideQuestion(*ends)

    def in_output_units(self, limits: OutputBounds) -> OutsideQuestion:
        """Return a question that is `in_units` as it was before."""
        middle, width = limits.middle, limits.width
        ends = [None if end is None else middle + width * end for end in (self.lo, self.hi)]
        return OutsideQuestion(*ends)

    def place(self, outputs: Array) -> Array:
        """Return one half for outputs outside, and −½ for those inside."""
        outside = np.zeros(len(outputs), dtype=bool)
        if self.lo is not None:
            outside |= outputs < self.lo
        if self.hi is not None:
            outside |= outputs > self.hi
        return np.where(outside, 0.5, -0.5)

    def check_weights(self, weights: Array) -> None:
        """Refuse to count rows otherwise than once each, in one stratum."""
        once = ((weights == 0.0) | (weights == 1.0)).all() and (weights.sum(axis=0) <= 1.0).all()
        if not once:
            raise ValueError("its arrays do not fit each other")

    def how_many(self, values: Array, sizes: Array) -> Array:
        """Return the numbers of outputs outside, by noisy answers, shape (S,).

        Parameters
        ----------
        values : array of shape (S, 1)
            R V + noise.
        sizes : array of shape (S,)
            Of the strata, R 1.
        """
        counted: Array = values[:, 0] + sizes / 2
        return counted

    def describe_answers(self, count: int, *, noise: Callable[[str], str], output: str) -> str:
        """Describe counts of outputs outside of an interval."""
        return (
            f"{numbers(count)} with {noise(' rows')}: how many values of {output} lie "
            f"{self.where()}, in each of so many groups of rows with like inputs."
        )

    def where(self) -> str:
        """Describe the place of the counted outputs.

        Examples
        --------
        >>> OutsideQuestion(0.0, None).where()
        'under 0'
        """
        parts = [(self.lo, "under"), (self.hi, "over")]
        return " or ".join(f"{word} {amount(end, 6)}" for end, word in parts if end is not None)
