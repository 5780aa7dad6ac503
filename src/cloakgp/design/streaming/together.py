r"""The joint effect on answers of the entries of one row, and of the rows of one group.

A row may have T entries, which are protected together and stand next to each other. Where all of
them move by one at most, answers move by no more than (Σ_tu |r_t·r_u|)^½ in the ℓ2 norm and
Σ_t ‖r_t‖₁ in the ℓ1 norm (`cloakgp.privacy.groups` has the proof, and measures what is asked).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from cloakgp.design.streaming.rules import Columns
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import Ball
from cloakgp.utils.passes import GROUP_NUMBERS, Chunk, Passes


def lengths_of_rows(columns: Columns, *, together: int = 1, ball: Ball = "l2") -> Array:
    """Return the effect of each row on answers, shape (n / T,).

    Parameters
    ----------
    columns : array or sparse array of shape (k, n)
    together : int
        T, how many columns next to each other are those of one row.
    ball : {"l1", "l2"}

    Examples
    --------
    >>> lengths_of_rows(np.array([[3.0, 0.0, 2.0, 2.0], [0.0, 4.0, 0.0, 0.0]]), together=2)
    array([5., 4.])
    """
    if ball == "l1":
        sizes: Columns = abs(columns)  # type: ignore[assignment]
        sums = np.asarray(sizes.sum(axis=0), dtype=np.float64)
        added: Array = sums.reshape(-1, together).sum(axis=1)
        return added
    dense: Array = columns.toarray() if isinstance(columns, sparse.csr_array) else columns
    if together == 1:
        return np.asarray(np.sqrt(np.einsum("kn,kn->n", dense, dense)))
    rows = dense.T.reshape(-1, together, len(dense))
    return np.asarray(np.sqrt(np.abs(rows @ rows.transpose(0, 2, 1)).sum(axis=(1, 2))))


@dataclass(frozen=True, eq=False)
class ColumnSums:
    """Sums over the columns of rows.

    Attributes
    ----------
    totals : array of shape (k,)
        R 1.
    count : int
        How many entries there are.
    longest : float
        How far any row moves answers.
    by_group : array of shape (GROUP_NUMBERS,) or None
        How far the rows of each number of groups do, added up.
    """

    totals: Array
    count: int
    longest: float
    by_group: Array | None = None

    def merge(self, other: ColumnSums) -> ColumnSums:
        """Return the sums over the rows of both."""
        together = None
        if self.by_group is not None and other.by_group is not None:
            together = self.by_group + other.by_group
        return ColumnSums(
            totals=self.totals + other.totals,
            count=self.count + other.count,
            # Unlike Python's max, this lets no NaN pass unseen.
            longest=float(np.maximum(self.longest, other.longest)),
            by_group=together,
        )

    @property
    def furthest(self) -> float:
        """The largest effect on answers of one row, or of all rows of one group."""
        return self.longest if self.by_group is None else float(self.by_group.max())


@dataclass(frozen=True, eq=False)
class _Summing:
    """The sums of one chunk."""

    columns: Callable[[Array], Columns]
    together: int
    ball: Ball
    grouped: bool

    def __call__(self, chunk: Chunk) -> ColumnSums:
        columns = self.columns(chunk.X)
        lengths = lengths_of_rows(columns, together=self.together, ball=self.ball)
        by_group = None
        if self.grouped:
            assert chunk.groups is not None
            numbers = chunk.groups[:: self.together]
            summed = np.bincount(numbers, weights=lengths, minlength=GROUP_NUMBERS)
            by_group = summed.astype(np.float64)
        return ColumnSums(
            totals=np.asarray(columns.sum(axis=1), dtype=np.float64),
            count=len(chunk.X),
            longest=float(lengths.max(initial=0.0)),
            by_group=by_group,
        )


def sum_columns(
    passes: Passes,
    columns: Callable[[Array], Columns],
    *,
    together: int = 1,
    ball: Ball = "l2",
    grouped: bool = False,
    what: str,
) -> ColumnSums:
    """Sum the columns of all rows, in one pass.

    Parameters
    ----------
    passes : Passes
    columns : callable
        Inputs of shape (n, D) → what is asked of these, shape (k, n). Picklable.
    together : int
        T, how many entries next to each other are those of one row.
    ball : {"l1", "l2"}
        In whose norm.
    grouped : bool
        Whether all rows of a group are protected together.
    what : str
        Shown to whoever waits.
    """
    summing = _Summing(columns=columns, together=together, ball=ball, grouped=grouped)
    return passes.over_inputs(summing, what=what)
