r"""Numbers in [−½, ½]: the encoding of outputs relative to earlier predictions.

One output moves a row of V by at most 1, whatever was done to it: the last thing that happens to it
is a clip to two numbers that float64 holds, so that no rounding before it matters.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.questions.reading import INFINITE, MISSING, number_faults
from cloakgp.utils.arrays import Array

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
