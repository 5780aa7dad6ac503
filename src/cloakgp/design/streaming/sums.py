r"""Sums of a strategy over all rows: small, and all that later steps need.

With R the strategy, V the rows' features and Λ their noise variances, answers R y + noise have the
covariance A Aᵀ + B + s² I with A = R Vᵀ and B = R Λ Rᵀ, and covariance A v_* with the latent
function at a point of features v_*. So A, B and R 1 say all that predictions need of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cloakgp.design.streaming.binning import Cells
from cloakgp.design.streaming.rules import RowModel, Rule
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Chunk, Passes


@dataclass(frozen=True, eq=False)
class StrategySums:
    """Sums over rows of what a rule asks of them.

    Attributes
    ----------
    features : array of shape (k, M)
        A = R Vᵀ.
    noise : array of shape (k, k)
        B = R Λ Rᵀ.
    totals : array of shape (k,)
        R 1.
    count : int
        N, the number of rows.
    chunk_rows : int
        The most rows that were seen together.
    longest : float
        max_j ‖r_j‖ over every row.
    cells : array of shape (k, n) or None
        R summed over the rows of cells, if they were asked for.
    squares : array of shape (n,) or None
        Σ ‖r_j‖² over the rows of each cell.
    """

    features: Array
    noise: Array
    totals: Array
    count: int
    chunk_rows: int
    longest: float
    cells: Array | None = None
    squares: Array | None = None

    def merged(self, other: StrategySums) -> StrategySums:
        """Return the sums over the rows of both."""
        return StrategySums(
            features=self.features + other.features,
            noise=self.noise + other.noise,
            totals=self.totals + other.totals,
            count=self.count + other.count,
            chunk_rows=max(self.chunk_rows, other.chunk_rows),
            # Unlike Python's max, this lets no NaN pass unseen.
            longest=float(np.maximum(self.longest, other.longest)),
            cells=_added(self.cells, other.cells),
            squares=_added(self.squares, other.squares),
        )


def _added(mine: Array | None, theirs: Array | None) -> Array | None:
    return None if mine is None or theirs is None else mine + theirs


@dataclass(frozen=True, eq=False)
class _Several:
    """Sums under several models."""

    parts: tuple[StrategySums, ...]

    def merged(self, other: _Several) -> _Several:
        pairs = zip(self.parts, other.parts, strict=True)
        return _Several(parts=tuple(mine.merged(theirs) for mine, theirs in pairs))


@dataclass(frozen=True, eq=False)
class _Asking:
    """The sums of one chunk, over what one rule asks, or several under each other."""

    asked: tuple[tuple[RowModel, Rule], ...]
    seen_by: tuple[RowModel, ...]
    cells: Cells | None

    def __call__(self, chunk: Chunk) -> _Several:
        known = [model.features_and_noise(chunk.X) for model, _ in self.asked]
        columns = np.vstack(
            [rule.columns(*each) for (_, rule), each in zip(self.asked, known, strict=True)]
        )
        features, noise = known[0]
        squares = np.einsum("kn,kn->n", columns, columns)
        membership = None if self.cells is None else self.cells.membership(chunk.X)
        first = StrategySums(
            features=columns @ features.T,
            noise=(columns * noise) @ columns.T,
            totals=columns.sum(axis=1),
            count=len(chunk.X),
            chunk_rows=len(chunk.X),
            longest=float(np.sqrt(squares.max(initial=0.0))),
            cells=None if membership is None else (membership @ columns.T).T,
            squares=None if membership is None else membership @ squares,
        )
        others = []
        for model in self.seen_by:
            features, noise = model.features_and_noise(chunk.X)
            others.append(
                replace(first, features=columns @ features.T, noise=(columns * noise) @ columns.T)
            )
        return _Several(parts=(first, *others))


def sum_strategy(
    passes: Passes,
    *,
    model: RowModel,
    rule: Rule,
    cells: Cells | None = None,
    what: str = "summing questions",
) -> StrategySums:
    """Go through a table once and sum what a rule asks of every row.

    Parameters
    ----------
    passes : Passes
    model : RowModel
    rule : Rule
    cells : Cells, optional
        Sum over the rows of each of these, too.
    what : str
        Shown to whoever waits.
    """
    asking = _Asking(asked=((model, rule),), seen_by=(), cells=cells)
    return passes.over_inputs(asking, what=what).parts[0]


def sum_strategy_under(
    passes: Passes, models: Sequence[RowModel], *, asked: Sequence[tuple[RowModel, Rule]]
) -> tuple[StrategySums, ...]:
    """Sum what rules ask of every row as other models see the rows, in one pass.

    Parameters
    ----------
    passes : Passes
    models : sequence of RowModel
        Whose features and noise variances the sums are of.
    asked : sequence of pairs of RowModel and Rule
        Each rule with the model whose features and noise variances it goes by. With several, their
        columns are put under each other, and noise says what they have in common.
    """
    asking = _Asking(asked=tuple(asked), seen_by=tuple(models), cells=None)
    return passes.over_inputs(asking, what="summing what was learned").parts[1:]
