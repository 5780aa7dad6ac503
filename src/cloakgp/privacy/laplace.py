r"""Laplace mechanism: `measure_laplace`, for a guarantee without δ.

Mechanism
---------
Given a public strategy R of shape (k, N), publish a = R (clip(y) − c) + b·t with c the middle of
the bounds and t_i independent, in proportion to exp(−|t_i|) up to a grid: variance 2b² an answer.

Neighbours
    One output changes, within [lo, hi]; everything else is equal.
Sensitivity
    Row j's output enters through column r_j alone, so R (clip(y) − c) moves by at most
    Δ = d·max_j ‖r_j‖₁ in ℓ1 norm. It is computed here from the very R that is asked, and inflated
    for rounding (`absolute_sensitivity`).
Theorem
    Laplace mechanism: Dwork, McSherry, Nissim and Smith 2006, *Calibrating noise to sensitivity in
    private data analysis*, proposition 1; on integers, the geometric mechanism of Ghosh,
    Roughgarden and Sundararajan 2012, *Universally utility-maximizing privacy mechanisms*.
Argument
    The answers are rounded to integers x on a grid, and each gets an independent integer t, drawn
    with probability (1 − q)/(1 + q) q^|t|, q = e^(−1/τ). If a neighbour's integers are x', then for
    every outcome o, P(o)/P'(o) = exp(Σ_i (|o_i − x'_i| − |o_i − x_i|)/τ) ≤ exp(‖x − x'‖₁/τ). The
    integers are at most the sensitivity apart, so τ = sensitivity/ε gives e^ε: ε-DP exactly, with
    nothing lost to the grid, unlike the Gaussian. Multiplying by the grid's step is
    post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.privacy.accounting import check_budget
from cloakgp.privacy.bounds import OutputBounds, checked_outputs
from cloakgp.privacy.grid import (
    GRID_BITS,
    INTEGER_BITS,
    SMALLEST_ENTRY,
)
from cloakgp.privacy.pure_dp import PureGuarantee
from cloakgp.privacy.rounding import UNIT_ROUNDOFF, gamma
from cloakgp.privacy.sampler import Integers, add_discrete_laplace, add_insecure_laplace
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array, as_matrix

# `check_budget` asks for a δ, and there is none here.
ANY_DELTA = 0.5
# Noise of more steps than this could leave 64 bits; so it would for an ε below the other.
LARGEST_SCALE, SMALLEST_EPSILON = 2.0**57, 2.0**-40


@dataclass(frozen=True)
class LaplaceGrid:
    """The integers on which one release with Laplace noise lives.

    Attributes
    ----------
    step : float
        A power of two, in output units.
    sensitivity : int
        Of the rounded answers in ℓ1 norm, in steps.
    scale : float
        τ of the discrete Laplace noise, in steps.
    """

    step: float
    sensitivity: int
    scale: float


@dataclass(frozen=True, eq=False)
class LaplaceAnswers:
    """Answers with Laplace noise: public.

    Attributes
    ----------
    values : array of shape (k,)
        R (clip(y) − centre) + noise, in output units.
    scale : float
        b of the noise on each, in output units.
    centre : float
        The middle of the bounds, which was subtracted from y.
    bounds : tuple of float
    guarantee : PureGuarantee
    insecure : bool
        True if the noise came from a fixed seed: such a release is not private.
    """

    values: Array
    scale: float
    centre: float
    bounds: tuple[float, float]
    guarantee: PureGuarantee
    insecure: bool = False

    @property
    def noise_sd(self) -> float:
        """Of each answer, √2 b, in output units."""
        return math.sqrt(2.0) * self.scale


@forget_on_failure
def measure_laplace(
    strategy: Array,
    y: ArrayLike,
    *,
    bounds: object,
    epsilon: float,
    insecure_seed: int | None = None,
) -> LaplaceAnswers:
    """Answer the questions of a strategy about y, under ε-differential privacy.

    Mechanism, neighbours, theorem and argument stand at the head of this module.

    Parameters
    ----------
    strategy : array of shape (k, N)
        R: public, one column per row of y; not all zero. Laplace noise pays for the sum of the
        absolute entries of a column, so columns of a single one, as of a histogram, suit it.
    y : array-like of shape (N,)
        Private outputs; clipped to the bounds.
    bounds : (float, float)
        Public range of one output.
    epsilon : float
        The budget.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**. For experiments only.

    Returns
    -------
    LaplaceAnswers

    Raises
    ------
    ValueError
        For bounds, budgets or outputs that do not make sense (never quoting an output), or a
        strategy that asks nothing.

    Examples
    --------
    >>> answers = measure_laplace(np.full((1, 4), 0.5), [1.0, 0.0, 1.0, 1.0], bounds=(0, 1),
    ...                           epsilon=1.0)
    >>> round(answers.scale, 2), round(answers.noise_sd, 2)
    (0.5, 0.71)
    """
    check_budget(epsilon, ANY_DELTA)
    # numpy compares a float16 with a float64 in 16 bits: everything below is done in 64.
    epsilon = float(epsilon)
    limits = OutputBounds.checked(bounds)
    questions = as_matrix(strategy, name="strategy")
    outputs = checked_outputs(y, rows=questions.shape[1])
    grid = calibrate_laplace(questions, bounds=limits, epsilon=epsilon)
    centred = limits.clip(outputs) - limits.middle
    integers: Integers = np.rint((questions @ centred) / grid.step).astype(np.int64)
    if insecure_seed is None:
        noisy = add_discrete_laplace(integers, scale=grid.scale, sensitivity=grid.sensitivity)
    else:
        noisy = add_insecure_laplace(integers, scale=grid.scale, seed=insecure_seed)
    return LaplaceAnswers(
        values=noisy.astype(np.float64) * grid.step,
        scale=grid.scale * grid.step,
        centre=limits.middle,
        bounds=(limits.lo, limits.hi),
        guarantee=PureGuarantee(epsilon=epsilon, answers=len(questions)),
        insecure=insecure_seed is not None,
    )


def calibrate_laplace(strategy: Array, *, bounds: OutputBounds, epsilon: float) -> LaplaceGrid:
    """Choose the grid and the noise for a strategy. Sees public arrays only.

    Parameters
    ----------
    strategy : array of shape (k, N)
        Not all zero.
    bounds : OutputBounds
    epsilon : float

    Returns
    -------
    LaplaceGrid

    Raises
    ------
    ValueError
        If the strategy asks nothing or is out of scale, or ε is too small.
    """
    largest = float(np.abs(strategy).max())
    if not SMALLEST_ENTRY < largest < 1 / SMALLEST_ENTRY:
        raise ValueError("the strategy's entries are too small or too large: rescale it")
    if epsilon < SMALLEST_EPSILON:
        raise ValueError(f"epsilon = {epsilon} is too small for noise on 64-bit integers")
    step = _grid_step(strategy, bounds=bounds, epsilon=epsilon)
    sensitivity = absolute_sensitivity(strategy, bounds=bounds, step=step)
    scale = sensitivity / epsilon * (1 + 4 * UNIT_ROUNDOFF)
    if scale > LARGEST_SCALE:
        raise ValueError(f"epsilon = {epsilon} is too small for noise on 64-bit integers")
    # OpenDP takes τ for the rational number that it is: so does this.
    if Fraction(sensitivity) > Fraction(scale) * Fraction(epsilon):
        raise RuntimeError("the calibration does not hold its guarantee; nothing released")
    return LaplaceGrid(step=step, sensitivity=sensitivity, scale=scale)


def absolute_sensitivity(strategy: Array, *, bounds: OutputBounds, step: float) -> int:
    r"""Bound in ℓ1 norm how far the rounded answers can move between neighbours, in grid steps.

    Argument. As for `cloakgp.privacy.grid.integer_sensitivity`, in another norm. In exact
    arithmetic R v moves by at most w·max_j ‖r_j‖₁. In floating point |fl(r·v) − r·v| ≤
    γ_N Σ_j |r_j||v_j| (Higham 2002, §3.1), so over all k answers each of the two vectors is off by
    at most γ_N·B·Σ_ij |r_ij|. Division by a power of two is exact, and rounding to integers moves
    each of k entries by at most ½ in each of the two vectors, together k. Sums of column entries
    are inflated by γ of their lengths, and the result is rounded up to an integer.

    Parameters
    ----------
    strategy : array of shape (k, N)
    bounds : OutputBounds
    step : float

    Returns
    -------
    int
    """
    answers, rows = len(strategy), int(strategy.shape[1])
    width, largest = bounds.about(bounds.middle)
    entries = np.abs(strategy)
    longest = float(entries.sum(axis=0).max()) * (1 + 2 * gamma(answers))
    total = float(entries.sum()) * (1 + 2 * gamma(answers * rows))
    arithmetic = 2 * gamma(rows + 2) * largest * total
    moved = (width * longest + arithmetic) / step * (1 + 8 * UNIT_ROUNDOFF) + answers
    return math.ceil(moved * (1 + 4 * UNIT_ROUNDOFF))


def _grid_step(strategy: Array, *, bounds: OutputBounds, epsilon: float) -> float:
    """Return a power of two, 2⁴⁰ times finer than the noise unless 64 bits are too few."""
    entries = np.abs(strategy)
    scale = bounds.width * float(entries.sum(axis=0).max()) / epsilon
    largest_answer = float(entries.sum(axis=1).max()) * bounds.width
    finest = math.floor(math.log2(scale)) - GRID_BITS
    fitting = math.ceil(math.log2(largest_answer + scale)) - INTEGER_BITS
    return math.ldexp(1.0, max(finest, fitting))
