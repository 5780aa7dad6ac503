r"""`measure_rows`, where the outputs of a table in chunks meet noise: the one door, in passes.

Mechanism
---------
That of `cloakgp.privacy.gaussian`, a = R (clip(y) − c) + s z, for a table that no memory holds.
Each chunk's columns R_c are had from its public inputs, its outputs are asked where they are, and
n_c = round(R_c (clip(y_c) − c) / step), whole numbers of grid steps, is all that leaves it. These
are added, exactly, and noise is drawn once, when the last of them is in.

Neighbours
    One output changes, within [lo, hi]; everything else is equal.
Sensitivity
    Neighbours differ in one chunk, so Σ_c n_c moves by what one n_c can: at most d·L/step for
    columns at most L long, and what rounding adds (`cloakgp.privacy.grid.integer_sensitivity`, for
    the sums of one chunk). L is promised before noise is calibrated. The very columns that are
    asked, every one of them, are measured in the pass that asks them; if one is longer than was
    promised, or a chunk has more rows, nothing is released. That depends on public inputs only.
Theorem
    Balle and Wang 2018, theorem 8; `discretisation_delta` for the discrete noise.
Argument
    As for `measure`: the integers differ from those of `measure` by their rounding alone, which is
    counted. Integers add up the same in every order, so it does not matter which chunk came when,
    or whether one was computed twice because a machine failed: the sum is the same, no noise exists
    before it is complete, and one draw is made. Another machine may round a chunk's last digit
    otherwise; given which machine did what, which is no matter of outputs, all chunks but one are
    the same for neighbours, and what rounding adds to that one is counted for any machine.
    Outputs of a chunk that is not as promised are not multiplied at all, so that no warning or
    overflow on the way can tell of them.

Before noise, the sums of chunks are private. On one machine they stay in this process. On a cluster
they travel: see `cloakgp.data.dask.rows` for whom one must trust.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cloakgp.privacy.accounting import check_budget
from cloakgp.privacy.bounds import OutputBounds
from cloakgp.privacy.gaussian import Answers
from cloakgp.privacy.grid import Grid, Magnitudes, Movement, calibrate, rounded, with_noise
from cloakgp.privacy.groups import column_lengths
from cloakgp.privacy.sampler import Integers
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Chunk, PartOf

# Of a promised length, to allow for another order of summation when columns are had again.
LENGTH_SLACK = 1e-9

MISSING = "y contains NaN, or cells that are empty or no numbers: remove those rows, or impute them"
INFINITE = "y contains infinity, or a value too large for float64: remove those rows first"


class PrivateRows(Protocol):
    """A table whose private outputs can be gone through; for this module alone."""

    def over_rows(self, work: Callable[[Chunk, Array], PartOf], *, what: str) -> PartOf:
        """Do some work on every chunk and its outputs, and merge the parts."""


@dataclass(frozen=True)
class Promise:
    """What is known of a strategy before any output is read; the pass itself verifies it.

    Attributes
    ----------
    answers : int
        k.
    longest : float
        At least the length of every column.
    chunk_rows : int
        The most rows of a chunk.
    count : int
        Rows in all.
    """

    answers: int
    longest: float
    chunk_rows: int
    count: int

    @property
    def limit(self) -> float:
        """The longest column that is let through."""
        return float(self.longest) * (1 + LENGTH_SLACK)


@dataclass(frozen=True, eq=False, repr=False)
class _Answered:
    """Rounded answers of some chunks, and whether they were as promised. Private."""

    integers: Integers
    count: int
    as_promised: bool
    missing: bool
    infinite: bool

    def merged(self, other: _Answered) -> _Answered:
        return _Answered(
            integers=self.integers + other.integers,
            count=self.count + other.count,
            as_promised=self.as_promised and other.as_promised,
            missing=self.missing or other.missing,
            infinite=self.infinite or other.infinite,
        )


@dataclass(frozen=True, eq=False)
class _Answering:
    """The rounded answers of one chunk."""

    columns: Callable[[Array], Array]
    promise: Promise
    bounds: OutputBounds
    grid: Grid

    def __call__(self, chunk: Chunk, outputs: Array) -> _Answered:
        count = len(chunk.X)
        columns = self.columns(chunk.X)
        # Other shapes would broadcast, and others' precision is not what the proofs count with.
        if columns.shape != (self.promise.answers, count) or columns.dtype != np.float64:
            raise TypeError("columns must be float64, one question per row and one column per row")
        if outputs.shape != (count,) or outputs.dtype != np.float64:
            raise TypeError("rows must give one float64 output for each of their inputs")
        longest = float(column_lengths(columns).max(initial=0.0))
        # Written so that NaN fails.
        as_promised = longest <= self.promise.limit and count <= self.promise.chunk_rows
        missing, infinite = bool(np.isnan(outputs).any()), bool(np.isinf(outputs).any())
        if as_promised and not (missing or infinite):
            centred = self.bounds.clip(outputs) - self.bounds.middle
            integers = rounded(columns @ centred, grid=self.grid)
        else:
            # Not computed: what overflows on the way would warn, and so tell of outputs.
            integers = np.zeros(self.promise.answers, dtype=np.int64)
        return _Answered(
            integers=integers,
            count=count,
            as_promised=as_promised,
            missing=missing,
            infinite=infinite,
        )


@forget_on_failure
def measure_rows(
    rows: PrivateRows,
    columns: Callable[[Array], Array],
    *,
    promise: Promise,
    bounds: OutputBounds,
    epsilon: float,
    delta: float,
    insecure_seed: int | None = None,
) -> Answers:
    """Answer the questions of a strategy about a table in chunks, under (ε, δ)-DP.

    Mechanism, neighbours, theorem and argument stand at the head of this module.

    Parameters
    ----------
    rows : PrivateRows
    columns : callable
        Public, and picklable: inputs of shape (n, D) → the rows' columns r_j, shape (k, n).
    promise : Promise
        Verified over every column that is asked.
    bounds : OutputBounds
    epsilon, delta : float
        The budget.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**. For experiments only.

    Returns
    -------
    Answers

    Raises
    ------
    ValueError
        For budgets or outputs that do not make sense, never quoting an output or telling where it
        is; or if the public inputs are not those that were promised.
    TypeError
        If columns or outputs have another shape or type than they must, whatever their values.
    """
    check_budget(epsilon, delta)
    epsilon, delta = float(epsilon), float(delta)
    # Bounds that were made by hand may be none, or of low precision.
    bounds = OutputBounds.checked((bounds.lo, bounds.hi))
    if promise.answers == 0 or promise.longest == 0:
        return Answers.of_nothing(
            promise.answers,
            bounds=bounds,
            epsilon=epsilon,
            delta=delta,
            insecure=insecure_seed is not None,
        )
    grid, guarantee = calibrate(
        Magnitudes.of_columns(
            answers=promise.answers,
            longest=promise.limit,
            rows=promise.chunk_rows,
            count=promise.count,
        ),
        movement=Movement.of_longest(promise.limit, bounds=bounds),
        epsilon=epsilon,
        delta=delta,
    )
    answered = rows.over_rows(
        _Answering(columns=columns, promise=promise, bounds=bounds, grid=grid),
        what="asking the private column",
    )
    if not answered.as_promised or answered.count != promise.count:
        raise ValueError(
            "the table's inputs changed while it was read, so nothing was released: run it again"
        )
    if answered.missing or answered.infinite:
        # Whichever of them came first.
        raise ValueError(MISSING if answered.missing else INFINITE)
    return Answers(
        values=with_noise(answered.integers, grid=grid, insecure_seed=insecure_seed),
        noise_sd=grid.noise_sd,
        centre=bounds.middle,
        bounds=(bounds.lo, bounds.hi),
        guarantee=guarantee,
        insecure=insecure_seed is not None,
    )
