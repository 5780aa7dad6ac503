r"""Question by cells: each row of a public cell is asked what stands for the cell.

Mechanism
---------
Rows are gathered in public cells by their inputs (`cloakgp.fitting.gathered`), and there is a
question with something of its own for every cell: thresholds, a band, a predicted mean. A row of
cell c has the question of c, and the column w r_c: w is 1, or, where all rows of a person are
protected together, one over the number of rows that the person has.

Neighbours
    As for the question, of rows: one output changes, or all outputs of one person. Cells, weights
    and what stands for a cell are equal: functions of public inputs, of who has which rows, which
    is public, and of answers that were published before.
Sensitivity
    The question of a row is a function of its inputs, and is a constant for neighbours. One output
    moves V in its own row alone, by the question's distance d, and answers by d ‖r_c‖. The rows of
    a person in cells c_1, …, c_n move them by at most d Σ_i ‖r_ci‖/n, by the triangle inequality,
    whichever cells these are, and so by no more than d max_c ‖r_c‖. That decides how useful a
    release is: `cloakgp.privacy.ask` measures every column, and adds up those of every person, in
    the pass that asks, and releases nothing if they are longer than noise was calibrated to.
Theorem
    As for the question.
Argument
    This is the mechanism of `cloakgp.privacy.ask` for rows in chunks, with a question about rows.
    That rows of a cell are asked alike concerns what answers tell, and not what they protect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cloakgp.privacy.questions.base import Question
from cloakgp.utils.arrays import Array


class Cells(Protocol):
    """A public partition of rows by their inputs."""

    def nearest(self, X: Array) -> NDArray[np.intp]:
        """Return which cell each row belongs to, shape (n,)."""


@dataclass(frozen=True, eq=False)
class CellQuestion(Question):
    """A question of rows by the cells that they are in.

    Attributes
    ----------
    of_cells : Question
        With something of its own for every cell, or alike for all.
    cells : Cells
    """

    of_cells: Question
    cells: Cells

    @property
    def channels(self) -> int:
        """C."""
        return self.of_cells.channels

    @property
    def distance(self) -> float:
        """Of the question."""
        return self.of_cells.distance

    @property
    def absolute_distance(self) -> float:
        """Of the question."""
        return self.of_cells.absolute_distance

    @property
    def largest(self) -> float:
        """Of the question."""
        return self.of_cells.largest

    @property
    def complaints(self) -> tuple[str, ...]:
        """Of the question."""
        return self.of_cells.complaints

    def validate(self) -> None:
        """Refuse an invalid question."""
        self.of_cells.validate()

    def of_rows(self, X: Array) -> Question:
        """Return the question about rows with inputs of shape (n, D), or with more columns."""
        return self.of_cells.at(self.cells.nearest(X))

    def faults(self, entries: Array) -> tuple[bool, ...]:
        """Return which of the complaints there are about some entries."""
        return self.of_cells.faults(entries)

    def encode(self, entries: Array) -> Array:
        """Refuse outputs without the inputs of their rows: `of_rows` has the question."""
        del entries
        raise TypeError("a question about rows needs their inputs: see of_rows")
