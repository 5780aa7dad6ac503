r"""Integer grid: answers as whole numbers with noise, exact sensitivity, calibration.

A mechanism asks a public strategy R of shape (k, N) about private numbers V of shape (N, C), one
column for an ordinary output. R V is rounded to multiples of a power of two and discrete Gaussian
noise is added, so that no digit of a float can tell. How far R V can move between neighbours is
the mechanism's own affair, stated as a `Sensitivity`; rounding is counted here, for all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cloakgp.privacy.accounting import (
    Calibration,
    Guarantee,
    discretisation_delta,
    exact_noise_multiplier,
    papers_noise_multiplier,
)
from cloakgp.privacy.bounds import OutputBounds
from cloakgp.privacy.encoding import Encoding
from cloakgp.privacy.groups import Groups, column_lengths, greatest_gauge
from cloakgp.privacy.rounding import UNIT_ROUNDOFF, gamma
from cloakgp.privacy.sampler import Integers, add_discrete_gaussian, add_insecure_gaussian
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
        At least the greatest Frobenius norm of R (V − V').
    largest : float
        At least the magnitude of every entry of V.
    columns : int
        C, the number of columns of V.
    """

    distance: float
    largest: float
    columns: int = 1

    @classmethod
    def of_one_output(cls, strategy: Array, *, bounds: OutputBounds) -> Sensitivity:
        """One row's output changes, anywhere within the bounds; V is y less their middle.

        As `of_one_row`, for the width between the rounded ends.
        """
        return cls.of_one_row(max_column_norm(strategy), encoding=bounds)

    @classmethod
    def of_one_row(cls, longest: float, *, encoding: Encoding) -> Sensitivity:
        """One row's private entry changes to any other that there can be.

        Row j of V enters through column r_j alone: R V moves by the outer product of r_j with how
        row j moves, whose Frobenius norm is ‖r_j‖ times the length of that.

        Parameters
        ----------
        longest : float
            At least max_j ‖r_j‖.
        encoding : Encoding
        """
        return cls(
            distance=encoding.distance * longest * (1 + 2 * UNIT_ROUNDOFF),
            largest=encoding.largest,
            columns=encoding.channels,
        )

    @classmethod
    def of_groups(cls, strategy: Array, *, bounds: OutputBounds, groups: Groups) -> Sensitivity:
        """All outputs of one group of rows change, each anywhere within the bounds.

        R V moves by at most w·max_g q(R_g), with q the greatest ‖R_g s‖ over signs s: see
        `cloakgp.privacy.groups`, which rounds it up.
        """
        row = cls.of_one_output(strategy, bounds=bounds)
        width, _ = bounds.about(bounds.middle)
        moved = width * greatest_gauge(strategy, groups=groups) * (1 + 2 * UNIT_ROUNDOFF)
        return cls(distance=max(row.distance, moved), largest=row.largest)


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
        At least the norm of (‖r_i‖₁)_i, over the rows of one floating-point sum.
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
        the columns' lengths long.

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
    def of(cls, strategy: Array) -> Magnitudes:
        """Measure a strategy of shape (k, N); the sums are inflated by what they may round."""
        answers, rows = strategy.shape
        totals = np.abs(strategy).sum(axis=1) * (1 + 2 * gamma(rows))
        return cls(
            answers=answers,
            rows=rows,
            entry=float(np.abs(strategy).max(initial=0.0)),
            summed=float(np.linalg.norm(totals)) * (1 + 2 * gamma(answers + 2)),
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
    """

    step: float
    sensitivity: int
    scale: float

    @property
    def noise_sd(self) -> float:
        """Of each answer, in output units."""
        return self.scale * self.step


def calibrate(
    strategy: Array | Magnitudes,
    *,
    sensitivity: Sensitivity,
    epsilon: float,
    delta: float,
    calibration: Calibration = "exact",
) -> tuple[Grid, Guarantee]:
    """Choose the grid and the noise for a strategy, and state what they guarantee.

    Sees public arrays only.

    Parameters
    ----------
    strategy : array of shape (k, N), or Magnitudes
        Not all zero.
    sensitivity : Sensitivity
    epsilon, delta : float
    calibration : {"exact", "papers"}

    Returns
    -------
    Grid
    Guarantee

    Raises
    ------
    ValueError
        If δ is too small for any grid of 64-bit integers, or the calibration is unknown or refused.
    """
    if calibration not in ("exact", "papers"):
        raise ValueError(f"calibration must be 'exact' or 'papers', got {calibration!r}")
    magnitudes = strategy if isinstance(strategy, Magnitudes) else Magnitudes.of(strategy)
    if not SMALLEST_ENTRY < magnitudes.entry < 1 / SMALLEST_ENTRY:
        raise ValueError("the strategy's entries are too small or too large: rescale it")
    sigma = _noise_multiplier(epsilon, delta, calibration=calibration)
    step = _grid_step(magnitudes, sensitivity=sensitivity, sigma=sigma)
    steps = integer_sensitivity(magnitudes, sensitivity=sensitivity, step=step)
    scale, guarantee = noise_scale(
        steps,
        answers=magnitudes.answers * sensitivity.columns,
        epsilon=epsilon,
        delta=delta,
        calibration=calibration,
    )
    return Grid(step=step, sensitivity=steps, scale=scale), guarantee


def noise_scale(
    sensitivity: int,
    *,
    answers: int,
    epsilon: float,
    delta: float,
    calibration: Calibration = "exact",
) -> tuple[float, Guarantee]:
    """Return the noise parameter τ for rounded answers, in steps, and what it guarantees.

    What discretisation costs is taken from δ before σ is calibrated. τ only grows by that, so the
    cost computed with the first τ is an upper bound for the last.

    Parameters
    ----------
    sensitivity : int
        Of the rounded answers, in steps.
    answers : int
        How many numbers are published.
    epsilon, delta : float
    calibration : {"exact", "papers"}

    Raises
    ------
    ValueError
        If δ is too small for the grid.

    Examples
    --------
    >>> scale, guarantee = noise_scale(2**40, answers=1, epsilon=1.0, delta=0.01)
    >>> round(scale / 2**40, 3), guarantee.answers
    (1.878, 1)
    """
    sigma = _noise_multiplier(epsilon, delta, calibration=calibration)
    first_scale = sigma * sensitivity
    cost = discretisation_delta(epsilon, answers=answers, coarseness=answers / first_scale**2)
    if cost >= delta / 2:
        raise ValueError(
            f"delta = {delta} is too small: drawing noise on a grid costs {cost:.1e} of it"
        )
    if calibration == "exact":
        sigma = exact_noise_multiplier(epsilon, delta - cost)
    # The margin covers the few roundings on the way from σ to τ to the μ that is stated.
    scale = sigma * sensitivity * (1 + 16 * UNIT_ROUNDOFF)
    guarantee = Guarantee(
        epsilon=epsilon,
        delta=delta,
        mu=math.nextafter(sensitivity / scale, math.inf),
        answers=answers,
        coarseness=answers / scale**2 * (1 + 4 * UNIT_ROUNDOFF),
    )
    if guarantee.delta_at(epsilon) > delta:
        raise RuntimeError("the calibration does not hold its guarantee; nothing released")
    return scale, guarantee


def _noise_multiplier(epsilon: float, delta: float, *, calibration: Calibration) -> float:
    multiplier = exact_noise_multiplier if calibration == "exact" else papers_noise_multiplier
    return multiplier(epsilon, delta)


def integer_sensitivity(
    strategy: Array | Magnitudes, *, sensitivity: Sensitivity, step: float
) -> int:
    r"""Bound how far the rounded answers can move between neighbours, in grid steps.

    Argument. In exact arithmetic R V moves by at most its distance. In floating point,
    any order of summation and any fused operations give |fl(r·v) − r·v| ≤ γ_N Σ_j |r_j||v_j| with
    γ_n = n u/(1 − n u) (Higham 2002, *Accuracy and Stability of Numerical Algorithms*, §3.1), so
    each of the two answers is off by at most γ_N·B·√C·‖(‖r_i‖₁)_i‖₂, for entries of V at most B in
    C columns. Division by a power of two is exact, and rounding to integers moves each of kC
    entries by at most ½, the two answers together by √(kC). The sums here are themselves inflated
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
    magnitudes = strategy if isinstance(strategy, Magnitudes) else Magnitudes.of(strategy)
    if magnitudes.rows > MOST_TERMS:
        raise ValueError(f"{magnitudes.rows} rows are too many to be summed at once")
    columns = math.sqrt(sensitivity.columns) * (1 + 4 * UNIT_ROUNDOFF)
    arithmetic = 2 * gamma(magnitudes.rows + 2) * sensitivity.largest * magnitudes.summed * columns
    arithmetic *= magnitudes.sums * (1 + 4 * UNIT_ROUNDOFF)
    rounding = math.sqrt(magnitudes.answers) * columns * (1 + 4 * UNIT_ROUNDOFF) * magnitudes.sums
    moved = (sensitivity.distance + arithmetic) / step * (1 + 8 * UNIT_ROUNDOFF) + rounding
    return math.ceil(moved * (1 + 4 * UNIT_ROUNDOFF))


def max_column_norm(strategy: Array) -> float:
    """Return max_j ‖r_j‖ over every column, rounded up."""
    return float(column_lengths(strategy).max())


def rounded(answers: Array, *, grid: Grid) -> Integers:
    """Return answers as whole numbers of grid steps, of the same shape. Private."""
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
    if insecure_seed is None:
        moved = add_discrete_gaussian(
            integers.ravel(), scale=grid.scale, sensitivity=grid.sensitivity
        )
    else:
        moved = add_insecure_gaussian(integers.ravel(), scale=grid.scale, seed=insecure_seed)
    return moved.astype(np.float64).reshape(integers.shape) * grid.step


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


def _grid_step(magnitudes: Magnitudes, *, sensitivity: Sensitivity, sigma: float) -> float:
    """Return a power of two, 2⁴⁰ times finer than the noise unless 64 bits are too few."""
    noise_sd = sigma * sensitivity.distance
    largest_answer = 2 * magnitudes.answer * sensitivity.largest
    finest = math.floor(math.log2(noise_sd)) - GRID_BITS
    fitting = math.ceil(math.log2(largest_answer + noise_sd)) - INTEGER_BITS
    return math.ldexp(1.0, max(finest, fitting))
