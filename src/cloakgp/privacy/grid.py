r"""Integer grid: answers as whole numbers with noise, exact sensitivity, calibration.

A mechanism asks a public strategy R of shape (k, N) about private numbers V of shape (N, C), one
column for an ordinary output. R V is rounded to multiples of a power of two and discrete noise is
added, so that no digit of a float can tell. How far R V can move between neighbours, in the norm in
which the noise counts, is the mechanism's own affair, stated as a `Sensitivity`; rounding is
counted here, for all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from cloakgp.privacy.accounting import Calibration, Guarantee
from cloakgp.privacy.groups import Groups
from cloakgp.privacy.noise import GAUSSIAN, Noise
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.rounding import UNIT_ROUNDOFF, gamma
from cloakgp.privacy.sampler import Integers
from cloakgp.utils.arrays import Array

# The grid is about this many binary digits finer than the noise.
GRID_BITS = 40
# Answers and noise must fit a 64-bit integer with room for the noise's tail.
INTEGER_BITS = 60
# The largest entry of a strategy must lie between this and its inverse: squares neither vanish nor
# overflow then, and what vanishes beside it is smaller than any rounding that is counted.
SMALLEST_ENTRY = 1e-100
# Terms of one sum: γ_n, which bounds what rounding adds, has no meaning from 2⁵³ on.
MOST_TERMS = 2**50


@dataclass(frozen=True)
class Sensitivity:
    """How R V can differ between neighbours, in exact arithmetic.

    Attributes
    ----------
    distance : float
        At least the greatest norm of R (V − V'), over all entries.
    largest : float
        At least the magnitude of every entry of V.
    columns : int
        C, the number of columns of V.
    """

    distance: float
    largest: float
    columns: int = 1

    @classmethod
    def of_one_row(
        cls, longest: float, *, question: Question, noise: Noise = GAUSSIAN
    ) -> Sensitivity:
        """One row's private entry changes to any other that there can be.

        Row j of V enters through column r_j alone: R V moves by the outer product of r_j with how
        row j moves, whose norm over all entries is ‖r_j‖ times that of how row j moves.

        Parameters
        ----------
        longest : float
            At least max_j ‖r_j‖.
        question : Question
        noise : Noise
            In whose norm.
        """
        return cls(
            distance=noise.distance(question) * longest * (1 + 2 * UNIT_ROUNDOFF),
            largest=question.largest,
            columns=question.channels,
        )

    @classmethod
    def of_strategy(
        cls,
        strategy: Array,
        *,
        question: Question,
        groups: Groups | None = None,
        noise: Noise = GAUSSIAN,
    ) -> Sensitivity:
        """One row's private entry changes to any other; with groups, all entries of one group do.

        One row: as `of_one_row`, for the longest column. Of a group and one channel R V moves by at
        most w·max_g q(R_g), with q the greatest ‖R_g s‖ over signs s: see `cloakgp.privacy.groups`,
        which rounds it up. Of several it is a sum of outer products r_j δ_jᵀ, each of norm w ‖r_j‖
        at most: w·max_g Σ_j ‖r_j‖.
        """
        row = cls.of_one_row(float(noise.lengths(strategy).max()), question=question, noise=noise)
        if groups is None:
            return row
        gauge = noise.gauge(strategy, groups=groups, channels=question.channels)
        distance = noise.distance(question) * gauge * (1 + 2 * UNIT_ROUNDOFF)
        return replace(row, distance=max(row.distance, distance))


@dataclass(frozen=True)
class Magnitudes:
    """How large the entries of a strategy are, which decides how its answers round.

    Attributes
    ----------
    answers : int
        k.
    rows : int
        The most terms that one floating-point sum adds up.
    entry : float
        The largest entry of R.
    summed : float
        At least the noise's norm of (‖r_i‖₁)_i, over the rows of one floating-point sum.
    answer : float
        At least the largest ‖r_i‖₁, over all rows.
    sums : int
        In how many floating-point sums, each rounded to integers, one neighbour can differ.
    """

    answers: int
    rows: int
    entry: float
    summed: float
    answer: float
    sums: int = 1

    @classmethod
    def of_columns(
        cls, *, answers: int, longest: float, rows: int, count: int, sums: int = 1
    ) -> Magnitudes:
        """Bound a strategy from the lengths of its columns, none longer than stated.

        No entry is larger than its column is long, and (‖r_i‖₁)_i = Σ_j |r_j| is at most the sum of
        the columns' lengths long, in either norm.

        Parameters
        ----------
        answers : int
        longest : float
        rows : int
            The most of a chunk.
        count : int
            Of all chunks together.
        sums : int
            The most chunks that one neighbour has rows in.
        """
        length = longest * (1 + 4 * UNIT_ROUNDOFF)
        return cls(
            answers=answers,
            rows=rows,
            entry=length,
            summed=rows * length,
            answer=count * length,
            sums=sums,
        )

    @classmethod
    def of(cls, strategy: Array, *, noise: Noise = GAUSSIAN) -> Magnitudes:
        """Measure a strategy of shape (k, N); the sums are inflated by their rounding errors."""
        answers, rows = strategy.shape
        totals = np.abs(strategy).sum(axis=1) * (1 + 2 * gamma(rows))
        return cls(
            answers=answers,
            rows=rows,
            entry=float(np.abs(strategy).max(initial=0.0)),
            summed=noise.norm(totals),
            answer=float(totals.max(initial=0.0)),
        )


@dataclass(frozen=True)
class Grid:
    """The integers on which one release lives.

    Attributes
    ----------
    step : float
        A power of two, in output units.
    sensitivity : int
        Of the rounded answers, in steps.
    scale : float
        Noise parameter τ, in steps.
    noise : Noise
    """

    step: float
    sensitivity: int
    scale: float
    noise: Noise = GAUSSIAN

    @property
    def noise_sd(self) -> float:
        """Of each answer, in output units."""
        return self.noise.sd(self.scale) * self.step


def calibrate(
    strategy: Array | Magnitudes,
    *,
    sensitivity: Sensitivity,
    epsilon: float,
    delta: float,
    noise: Noise = GAUSSIAN,
    calibration: Calibration = "exact",
) -> tuple[Grid, Guarantee]:
    """Choose the grid and the noise for a strategy, and state their guarantee.

    Sees public arrays only.

    Parameters
    ----------
    strategy : array of shape (k, N), or Magnitudes
        Not all zero.
    sensitivity : Sensitivity
        In the noise's norm.
    epsilon, delta : float
    noise : Noise
    calibration : {"exact", "papers"}

    Returns
    -------
    Grid
    Guarantee

    Raises
    ------
    ValueError
        If the budget is too small for any grid of 64-bit integers, or the calibration is unknown or
        refused.
    """
    epsilon, delta = noise.check(epsilon, delta, calibration=calibration)
    magnitudes = _magnitudes_of(strategy, noise=noise)
    if not SMALLEST_ENTRY < magnitudes.entry < 1 / SMALLEST_ENTRY:
        raise ValueError("the strategy's entries are too small or too large: rescale it")
    step = _grid_step(magnitudes, sensitivity=sensitivity, noise_sd=noise.unit_sd(epsilon, delta))
    steps = integer_sensitivity(magnitudes, sensitivity=sensitivity, step=step, noise=noise)
    scale, guarantee = noise.scale(
        steps,
        answers=magnitudes.answers * sensitivity.columns,
        epsilon=epsilon,
        delta=delta,
        calibration=calibration,
    )
    return Grid(step=step, sensitivity=steps, scale=scale, noise=noise), guarantee


def integer_sensitivity(
    strategy: Array | Magnitudes,
    *,
    sensitivity: Sensitivity,
    step: float,
    noise: Noise = GAUSSIAN,
) -> int:
    r"""Bound the change of the rounded answers between neighbours, in grid steps.

    Argument. In exact arithmetic R V moves by at most its distance. In floating point,
    any order of summation and any fused operations give |fl(r·v) − r·v| ≤ γ_N Σ_j |r_j||v_j| with
    γ_n = n u/(1 − n u) (Higham 2002, *Accuracy and Stability of Numerical Algorithms*, §3.1), so
    each of the two answers is off by at most γ_N·B·‖1_C‖·‖(‖r_i‖₁)_i‖ in the noise's norm, for
    entries of V at most B in C columns; ‖1_C‖ is √C for the Euclidean norm, and C for the sum of
    absolute entries. Division by a power of two is exact, and rounding to integers moves each of kC
    entries by at most ½, the two answers together by ‖1_kC‖. The sums here are themselves inflated
    by γ of their own lengths, and the result is rounded up to an integer.

    Where R V is summed chunk by chunk, every chunk is rounded to integers before these are added,
    which is exact. Neighbours differ in one chunk, or in as many as ``sums`` says where all rows of
    a group change: by the triangle inequality, what rounding adds to each of these adds up. The
    others are the same for both.

    Parameters
    ----------
    strategy : array of shape (k, N), or Magnitudes
    sensitivity : Sensitivity
    step : float

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If one sum has more than 2⁵⁰ terms.
    """
    magnitudes = _magnitudes_of(strategy, noise=noise)
    if magnitudes.rows > MOST_TERMS:
        raise ValueError(f"{magnitudes.rows} rows are too many to be summed at once")
    columns = noise.norm_of_ones(sensitivity.columns)
    arithmetic = 2 * gamma(magnitudes.rows + 2) * sensitivity.largest * magnitudes.summed * columns
    arithmetic *= magnitudes.sums * (1 + 4 * UNIT_ROUNDOFF)
    rounding = noise.norm_of_ones(magnitudes.answers) * columns * magnitudes.sums
    rounding *= 1 + 4 * UNIT_ROUNDOFF
    steps = (sensitivity.distance + arithmetic) / step * (1 + 8 * UNIT_ROUNDOFF) + rounding
    return math.ceil(steps * (1 + 4 * UNIT_ROUNDOFF))


def _magnitudes_of(strategy: Array | Magnitudes, *, noise: Noise) -> Magnitudes:
    if isinstance(strategy, Magnitudes):
        return strategy
    return Magnitudes.of(strategy, noise=noise)


def rounded(answers: Array, *, grid: Grid) -> Integers:
    """Return answers as whole numbers of grid steps, of the same shape. Private."""
    # Whatever numpy was told to do about underflow, a warning would tell of answers.
    with np.errstate(all="ignore"):
        integers: Integers = np.rint(answers / grid.step).astype(np.int64)
    return integers


def with_noise(integers: Integers, *, grid: Grid, insecure_seed: int | None) -> Array:
    """Add noise to rounded answers, and return them in output units.

    Parameters
    ----------
    integers : array of shape (k,) or (k, C)
        Private.
    grid : Grid
    insecure_seed : int or None
        Makes the noise reproducible and the result **not private**.
    """
    noisy = grid.noise.add(
        integers.ravel(),
        scale=grid.scale,
        sensitivity=grid.sensitivity,
        insecure_seed=insecure_seed,
    )
    return noisy.astype(np.float64).reshape(integers.shape) * grid.step


def noisy(answers: Array, *, grid: Grid, insecure_seed: int | None) -> Array:
    """Round answers to a grid and add noise, in output units.

    Parameters
    ----------
    answers : array of shape (k,) or (k, C)
        Private.
    grid : Grid
    insecure_seed : int or None
        Makes the noise reproducible and the result **not private**.
    """
    return with_noise(rounded(answers, grid=grid), grid=grid, insecure_seed=insecure_seed)


def _grid_step(magnitudes: Magnitudes, *, sensitivity: Sensitivity, noise_sd: float) -> float:
    """Return a power of two, 2⁴⁰ times finer than the noise unless 64 bits are too few."""
    noise_sd *= sensitivity.distance
    largest_answer = 2 * magnitudes.answer * sensitivity.largest
    finest = math.floor(math.log2(noise_sd)) - GRID_BITS
    fitting = math.ceil(math.log2(largest_answer + noise_sd)) - INTEGER_BITS
    return math.ldexp(1.0, max(finest, fitting))
