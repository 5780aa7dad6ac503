r"""Designs of least noise, `trace` and `logdet`, for tables read in passes, to a certified gap.

The problem is that of `cloakgp.design.strategy` for a sparse model, whose cloaking matrix is
C = H Φ with H = V_*ᵀ (I + V Λ⁻¹ Vᵀ)⁻¹ and Φ = V Λ⁻¹ (2021 paper, section 3.2). Neither is formed:

1. one pass sums V Λ⁻¹ Vᵀ and Φ Φᵀ, which give H and the numerical range of C: with Φ Φᵀ = G Gᵀ, the
   singular values of H G are those of C, and its left singular vectors U turn a row's column of C
   into U ᵀH φ_j, in r dimensions;
2. the design is solved on few columns, at first a sample of the rows. A pass over all rows finds
   the longest column, and in each direction those that are too long. They join, and again, until no
   column of any row is longer than the gap allows (column generation).

Fewer columns need less noise, so what is certified for them holds for all rows; and the last pass
has seen every column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from cloakgp.design.objectives import Iterate
from cloakgp.design.screening import may_carry_weight
from cloakgp.design.solver import Progress, optimal_weights
from cloakgp.design.strategy import Certificate, warn_if_short
from cloakgp.design.streaming.row_model import RowModel
from cloakgp.design.streaming.rules import LinearRule
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import DEFAULT_GAP, CriterionName
from cloakgp.utils.passes import Chunk, Passes
from cloakgp.utils.threads import suitable_threads

# Singular values come from a Gram matrix here, which holds half the digits.
RANGE_TOLERANCE = 1e-7
ROUNDS = 30
# How many columns too long are taken of every direction and sign.
A_DIRECTION = 50
# How far towards the hull of all columns those reach that make few of them span every direction.
BETWEEN = 1e-3
# What the columns of fewer rows are solved to, of the gap asked for.
INNER_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class RuleDesign:
    """A rule for the columns of rows, and the map from answers to predictions.

    Attributes
    ----------
    rule : LinearRule
        Its longest column has norm 1.
    reconstruction : array of shape (P, k)
        L, with L R = C on the numerical range of C.
    certificate : Certificate
    """

    rule: LinearRule
    reconstruction: Array
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class _Moments:
    """V Λ⁻¹ Vᵀ, V Λ⁻² Vᵀ, and the number of rows."""

    precision: Array
    columns: Array
    count: int

    def merge(self, other: _Moments) -> _Moments:
        return _Moments(
            precision=self.precision + other.precision,
            columns=self.columns + other.columns,
            count=self.count + other.count,
        )


@dataclass(frozen=True, eq=False)
class _Summing:
    model: RowModel

    def __call__(self, chunk: Chunk) -> _Moments:
        features, noise = self.model.features_and_noise(chunk.X)
        scaled = features / noise
        return _Moments(
            precision=scaled @ features.T, columns=scaled @ scaled.T, count=len(chunk.X)
        )


@dataclass(frozen=True, eq=False)
class _Longest:
    """The gains of one design: the greatest, and columns among the greatest of each direction.

    Attributes
    ----------
    greatest : float
    columns : array of shape (r, m)
    gains : array of shape (m,)
    directions : array of shape (m,)
    """

    greatest: float
    columns: Array
    gains: Array
    directions: Array

    def merge(self, other: _Longest) -> _Longest:
        gains = np.concatenate([self.gains, other.gains])
        directions = np.concatenate([self.directions, other.directions])
        kept = _first_of_each(directions, gains)
        return _Longest(
            greatest=max(self.greatest, other.greatest),
            columns=np.hstack([self.columns, other.columns])[:, kept],
            gains=gains[kept],
            directions=directions[kept],
        )


@dataclass(frozen=True, eq=False)
class _Measuring:
    """The columns of one chunk that are too long for a design."""

    model: RowModel
    matrix: Array
    iterate: Iterate
    above: float

    def __call__(self, chunk: Chunk) -> _Longest:
        features, noise = self.model.features_and_noise(chunk.X)
        columns = (self.matrix @ features) / noise
        gains = self.iterate.gains(columns)
        long = np.flatnonzero(gains > self.above)
        directions = _directions(self.iterate.whiten(columns[:, long]))
        kept = _first_of_each(directions, gains[long])
        return _Longest(
            greatest=float(gains.max()),
            columns=columns[:, long[kept]],
            gains=gains[long[kept]],
            directions=directions[kept],
        )


def design_streamed(
    passes: Passes,
    queries: Array,
    *,
    model: RowModel,
    sample: Array,
    criterion: CriterionName = "trace",
    weights: Array | None = None,
    gap: float = DEFAULT_GAP,
    progress: Progress | None = None,
) -> RuleDesign:
    """Design the columns of rows so that C y follows from the answers with the least noise.

    Sees public arrays only.

    Parameters
    ----------
    passes : Passes
    queries : array of shape (M, P)
        The model's features of the query points.
    model : RowModel
    sample : array of shape (n, D)
        Some of the table's rows, to begin with.
    criterion : {"trace", "logdet"}
    weights : array of shape (P,), optional
        Positive importance of each prediction; for ``trace``.
    gap : float
        Relative gap to certify over all rows.
    progress : callable, optional
        Called with the gap certified so far.

    Returns
    -------
    RuleDesign

    Warns
    -----
    DesignGapWarning
        If the gap was not reached.
    """
    roots = np.ones(queries.shape[1]) if weights is None else np.sqrt(weights / weights.mean())
    moments = passes.over_inputs(_Summing(model=model), what="summing rows")
    smoothing = linalg.solve(
        moments.precision + np.eye(len(moments.precision)), queries, assume_a="pos"
    ).T
    squares, turned = linalg.eigh(moments.columns)
    # Smaller ones are rounding, which the smoothing of the others would make look large.
    lost = len(squares) * np.finfo(np.float64).eps * squares[-1]
    factor = turned * np.sqrt(np.where(squares > lost, squares, 0.0))
    left, scales, _ = np.linalg.svd((roots[:, None] * smoothing) @ factor, full_matrices=False)
    rank = int(np.count_nonzero(scales > RANGE_TOLERANCE * scales[0])) if scales[0] > 0 else 0
    if rank == 0:
        return RuleDesign(
            rule=LinearRule(matrix=np.zeros((0, len(queries)))),
            reconstruction=np.zeros((queries.shape[1], 0)),
            certificate=Certificate(criterion=criterion, gap=0.0),
        )
    matrix = left[:, :rank].T @ (roots[:, None] * smoothing)
    # log det is the same problem in every basis: take the orthonormal one.
    divisor = scales[:rank] if criterion == "logdet" else np.full(rank, scales[0])
    matrix = matrix / divisor[:, None]
    # Σ_j c_j c_jᵀ = diag(σ²), so σ_i e_i/√N lies between columns, whatever the sample lacks.
    between = np.diag(BETWEEN / np.sqrt(moments.count) * scales[:rank] / divisor)
    noisiest, found_gap, longest = _column_generation(
        passes,
        matrix,
        between,
        model=model,
        sample=sample,
        criterion=criterion,
        gap=gap,
        progress=progress,
    )
    rule = LinearRule(matrix=np.linalg.solve(noisiest, matrix) / longest)
    # C = H Φ and R = T Φ: L is C's least-squares image of R over all rows.
    covariance = rule.matrix @ moments.columns @ rule.matrix.T
    crossed = smoothing @ moments.columns @ rule.matrix.T
    reconstruction = linalg.solve(covariance, crossed.T, assume_a="pos").T
    certificate = Certificate(criterion=criterion, gap=found_gap)
    warn_if_short(certificate, gap=gap, allowed=gap)
    return RuleDesign(
        rule=rule,
        reconstruction=np.asarray(reconstruction, dtype=np.float64),
        certificate=certificate,
    )


def _column_generation(
    passes: Passes,
    matrix: Array,
    between: Array,
    *,
    model: RowModel,
    sample: Array,
    criterion: CriterionName,
    gap: float,
    progress: Progress | None,
) -> tuple[Array, float, float]:
    """Return L with M = L Lᵀ, the gap certified over all rows, and the longest column ‖L⁻¹c‖."""
    features, noise = model.features_and_noise(sample)
    working = np.hstack([between, (matrix @ features) / noise])
    best_gap, best_root = np.inf, np.eye(len(matrix))
    for number in range(ROUNDS):
        with suitable_threads(float(working.shape[0]) ** 2 * working.shape[1]):
            optimum = optimal_weights(working, criterion=criterion, gap=INNER_SHARE * gap)
        measured = passes.over_inputs(
            _Measuring(model=model, matrix=matrix, iterate=optimum.iterate, above=1 + gap / 2),
            what=f"designing, round {number + 1}",
        )
        if measured.greatest - 1 < best_gap:
            best_gap, best_root = max(measured.greatest - 1, 0.0), optimum.iterate.noise_root()
            longest = float(np.sqrt(measured.greatest))
        if progress is not None:
            progress(best_gap)
        if best_gap <= gap or len(measured.gains) == 0:
            break
        # What no optimal design over all rows can put weight on is dropped for good.
        kept = may_carry_weight(optimum.iterate, working, gap=measured.greatest - 1)
        kept[: len(between)] = True
        working = np.hstack([working[:, kept], measured.columns])
    return best_root, best_gap, longest


def _directions(columns: Array) -> Array:
    """Return in which direction each column is the longest, from 1, with its sign."""
    if columns.shape[1] == 0:
        return np.zeros(0)
    scaled = columns / np.maximum(np.abs(columns).max(axis=1, keepdims=True), 1e-300)
    main = np.abs(scaled).argmax(axis=0)
    signs = np.sign(columns[main, np.arange(columns.shape[1])])
    directions: Array = (main + 1.0) * signs
    return directions


def _first_of_each(directions: Array, gains: Array) -> NDArray[np.intp]:
    """Return where the columns of greatest gain are, a few of each direction."""
    order = np.lexsort((-gains, directions))
    ranked = directions[order]
    new = np.r_[True, ranked[1:] != ranked[:-1]]
    starts = np.flatnonzero(new)
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    return np.asarray(order[place < A_DIRECTION], dtype=np.intp)
