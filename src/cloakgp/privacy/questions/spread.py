r"""Spread: the distance of an output outside its predicted interval, at most 1.

Its mean over the rows tells how noisy outputs are, which sums of outputs hardly do. Predictions
come from answers that were published before: given these it is a function of one output, and all
that stands at `cloakgp.privacy.questions.bands` holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cloakgp.privacy.questions.bands import UnitQuestion
from cloakgp.utils.arrays import Array


@dataclass(frozen=True, eq=False)
class SpreadQuestion(UnitQuestion):
    """The distance of the output of every row outside its predicted interval.

    0 within 1.5 predictive sds of its predicted mean, 1 beyond 3, and in between along a line.

    Attributes
    ----------
    mean, sd : arrays of shape (N,)
        Predicted, in output units.

    Examples
    --------
    >>> question = SpreadQuestion(mean=np.zeros(3), sd=np.ones(3))
    >>> question.place(np.array([0.0, -2.25, 9.0]))
    array([-0.5,  0. ,  0.5])
    """

    name: ClassVar[str] = "spread"
    locates: ClassVar[bool] = False
    # In predictive sds: where outputs begin to count as outside, and where they are wholly so.
    begins: ClassVar[float] = 1.5
    full: ClassVar[float] = 3.0

    mean: Array
    sd: Array

    def validate(self) -> None:
        """Refuse predictions that are none.

        Raises
        ------
        ValueError
            If they are missing or infinite, or an sd is not above zero.
        """
        fit = self.mean.ndim == 1 and self.mean.shape == self.sd.shape
        if not (fit and np.isfinite((self.mean, self.sd)).all() and (self.sd > 0).all()):
            raise ValueError("its predicted intervals are damaged")

    def outside(self, distances: Array) -> Array:
        """Return the excess of a distance from the mean over the interval, from 0 to 1.

        Parameters
        ----------
        distances : array
            In predictive sds; not negative.
        """
        share: Array = np.clip((distances - self.begins) / (self.full - self.begins), 0.0, 1.0)
        return share

    @property
    def rows(self) -> int:
        """N."""
        return len(self.mean)

    def describe_answers(self, count: int, *, noise: Callable[[str], str], output: str) -> str:
        """Describe a count of rows outside of their predicted intervals."""
        del count, output
        return (
            "1 number: on how many rows, in all, values lie outside of the predictions from the "
            f"answers before (counting from {self.begins:g} predictive sds, in full from "
            f"{self.full:g}), with {noise(' rows')}."
        )

    def place(self, outputs: Array) -> Array:
        """Return the distances of outputs outside, less a half."""
        # Finite outputs far from the mean may overflow: infinitely far outside is outside.
        with np.errstate(over="ignore"):
            distances = np.abs(outputs - self.mean) / self.sd
        placed: Array = self.outside(distances) - 0.5
        return placed

    def check_weights(self, weights: Array) -> None:
        """Refuse more than one number about the rows."""
        if len(weights) != 1:
            raise ValueError("its arrays do not fit each other")
