"""Public inputs in memory as a table that is read in passes, for designs of many rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce

from cloakgp.arrays import Array
from cloakgp.passes import Chunk, PartOf
from cloakgp.rows.local import CHUNK_ROWS


@dataclass(frozen=True, eq=False)
class InputRows:
    """Rows of which nothing private is known.

    Attributes
    ----------
    X : array of shape (N, D)
        Public inputs, at least one row.
    chunk_rows : int
        The most rows that are worked on at once.

    Examples
    --------
    >>> import numpy as np
    >>> from cloakgp.models.summary import summarise
    >>> summarise(InputRows(np.zeros((3, 2)))).count
    3
    """

    X: Array
    chunk_rows: int = CHUNK_ROWS

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs."""
        return int(self.X.shape[1])

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows in the order of the table."""
        for number, first in enumerate(range(0, len(self.X), self.chunk_rows)):
            yield Chunk(number=number, X=self.X[first : first + self.chunk_rows])

    def over_inputs(self, work: Callable[[Chunk], PartOf], *, what: str) -> PartOf:  # noqa: ARG002
        """Do some work on every chunk, and merge the parts in the order of the table.

        Parameters
        ----------
        work : callable
            Called with a chunk.
        what : str
            What this pass is for.
        """
        return reduce(lambda before, part: before.merged(part), map(work, self.chunks()))
