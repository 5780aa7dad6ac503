r"""Spread: how far from their predicted means outputs lie, by the logarithm of the distance.

With a public predicted mean m_j and sd s_j > 0 of the output of every row j,

    v_j = min(max(log(8 |y_j − m_j|/s_j)/log 16, 0), 1) − ½,  brought into [−½, ½].

The sum over the rows tells how noisy outputs are, which sums of outputs hardly do. Distances count
by their logarithm, from an eighth of a predictive sd to two: of Gaussian outputs the mean of v_j
grows by .31 with the logarithm of their sd where that is predicted right, and by .14 and more from
a seventh to three and a half times of it.

Predictions come from answers that were published before: given these it is a function of one
output, and all that stands at `cloakgp.privacy.questions.bands` holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cloakgp.privacy.questions.bands import UnitQuestion
from cloakgp.utils.arrays import Array


@dataclass(frozen=True, eq=False)
class SpreadQuestion(UnitQuestion):
    """How far from its predicted mean the output of every row lies, to be added up.

    0 within an eighth of a predictive sd of its predicted mean, 1 beyond 2, and a quarter more for
    every doubling in between.

    Attributes
    ----------
    mean, sd : arrays of shape (N,)
        Predicted, in output units.

    Examples
    --------
    >>> question = SpreadQuestion(mean=np.zeros(3), sd=np.ones(3))
    >>> question.place(np.array([0.1, -0.5, 9.0]))
    array([-0.5,  0. ,  0.5])
    """

    name: ClassVar[str] = "spread"
    locates: ClassVar[bool] = False
    # In predictive sds: below which distances outputs count as 0, and from which as 1.
    begins: ClassVar[float] = 1 / 8
    full: ClassVar[float] = 2.0

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

    def share_of(self, distances: Array) -> Array:
        """Return how far a distance from the mean is, from 0 to 1, by its logarithm.

        Parameters
        ----------
        distances : array
            In predictive sds; not negative.
        """
        octaves = np.log(np.clip(distances, self.begins, self.full) / self.begins)
        share: Array = octaves / np.log(self.full / self.begins)
        return share

    @property
    def rows(self) -> int:
        """N."""
        return len(self.mean)

    def at(self, places: NDArray[np.intp]) -> SpreadQuestion:
        """Return the question about rows at some places."""
        return replace(self, mean=self.mean[places], sd=self.sd[places])

    def describe_answers(self, count: int, *, noise: Callable[[str], str], output: str) -> str:
        """Say that distances from predicted means were added up."""
        del count
        return (
            f"1 number: how far values of {output} lie, in all, from what was predicted of them "
            f"{COUNTED}, with {noise(' rows')}."
        )

    def place(self, outputs: Array) -> Array:
        """Return how far from their predicted means outputs lie, less a half."""
        # Finite outputs far from the mean may overflow: infinitely far outside is outside.
        with np.errstate(over="ignore"):
            distances = np.abs(outputs - self.mean) / self.sd
        placed: Array = self.share_of(distances) - 0.5
        return placed

    def check_weights(self, weights: Array) -> None:
        """Refuse more than one number about the rows."""
        if len(weights) != 1:
            raise ValueError("its arrays do not fit each other")


COUNTED = (
    f"(a row counts from {SpreadQuestion.begins:g} of a predictive sd, in full from "
    f"{SpreadQuestion.full:g}, a quarter more for every doubling)"
)
