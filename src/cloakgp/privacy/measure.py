r"""`measure`, where y meets noise: the one door.

Mechanism
---------
Given a public strategy R of shape (k, N), publish a = R (clip(y) − c) + s z, with c the middle of
the bounds and z standard normal up to a grid.

Neighbours
    One output changes, within [lo, hi]; everything else is equal.
Sensitivity
    Row j's output enters through column r_j alone, so R (clip(y) − c) moves by at most
    d·max_j ‖r_j‖. It is computed here from the very R that is asked, over all columns, and inflated
    for rounding (`integer_sensitivity`).
Theorem
    Balle and Wang 2018, theorem 8, for the Gaussian mechanism; `discretisation_delta` for the
    discrete noise. See `cloakgp.privacy.guarantee`.
Argument
    With s = σ·sensitivity and σ = σ(ε, δ − what discretisation costs), the answers are (ε, δ)-DP.
    All that is published later is computed from them and from public arrays: post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.arrays import Array, as_matrix
from cloakgp.privacy.guarantee import (
    Calibration,
    Guarantee,
    check_budget,
    discretisation_delta,
    exact_noise_multiplier,
    papers_noise_multiplier,
)
from cloakgp.privacy.outputs import OutputBounds, checked_outputs
from cloakgp.privacy.sampler import Integers, add_discrete_gaussian, add_insecure_gaussian

# The grid is about this many binary digits finer than the noise.
GRID_BITS = 40
# Answers and noise must fit a 64-bit integer with room for the noise's tail.
INTEGER_BITS = 60
UNIT_ROUNDOFF = 2.0**-53
# The largest entry of a strategy must lie between this and its inverse: squares neither vanish nor
# overflow then, and what vanishes beside it is smaller than any rounding that is counted.
SMALLEST_ENTRY = 1e-100


@dataclass(frozen=True, eq=False)
class Answers:
    """The noisy answers: public, and the only thing that leaves the private side.

    Attributes
    ----------
    values : array of shape (k,)
        R (clip(y) − centre) + noise, in output units.
    noise_sd : float
        Of each answer, in output units; 0 only if nothing was asked.
    centre : float
        The middle of the bounds, which was subtracted from y.
    bounds : tuple of float
    guarantee : Guarantee
    insecure : bool
        True if the noise came from a fixed seed: such a release is not private.
    """

    values: Array
    noise_sd: float
    centre: float
    bounds: tuple[float, float]
    guarantee: Guarantee
    insecure: bool = False


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


def measure(
    strategy: Array,
    y: ArrayLike,
    *,
    bounds: object,
    epsilon: float,
    delta: float,
    calibration: Calibration = "exact",
    insecure_seed: int | None = None,
) -> Answers:
    """Answer the questions of a strategy about y, under (ε, δ)-differential privacy.

    Mechanism, neighbours, theorem and argument stand at the head of this module.

    Parameters
    ----------
    strategy : array of shape (k, N)
        R: public, one column per row of y. k = 0 asks nothing and costs nothing.
    y : array-like of shape (N,)
        Private outputs; clipped to the bounds.
    bounds : (float, float)
        Public range of one output.
    epsilon, delta : float
        The budget.
    calibration : {"exact", "papers"}
        The papers' noise is for comparison, and refused for ε > 1.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**. For experiments only.

    Returns
    -------
    Answers

    Raises
    ------
    ValueError
        For bounds, budgets or outputs that do not make sense (never quoting an output), or a δ that
        is too small for the grid.

    Examples
    --------
    >>> answers = measure(np.full((1, 4), 0.5), [1.0, 0.0, 1.0, 1.0], bounds=(0, 1),
    ...                   epsilon=1.0, delta=1e-6)
    >>> round(answers.noise_sd, 2)
    2.11
    """
    check_budget(epsilon, delta)
    # numpy compares a float16 with a float64 in 16 bits: everything below is done in 64.
    epsilon, delta = float(epsilon), float(delta)
    limits = OutputBounds.checked(bounds)
    outputs = checked_outputs(y, rows=strategy.shape[1])
    if strategy.shape[0] == 0 or not np.any(strategy):
        return Answers(
            values=np.zeros(strategy.shape[0]),
            noise_sd=0.0,
            centre=limits.middle,
            bounds=(limits.lo, limits.hi),
            guarantee=Guarantee(epsilon=epsilon, delta=delta, mu=0.0),
            insecure=insecure_seed is not None,
        )
    questions = as_matrix(strategy, name="strategy")
    grid, guarantee = calibrate(
        questions, bounds=limits, epsilon=epsilon, delta=delta, calibration=calibration
    )
    centred = limits.clip(outputs) - limits.middle
    integers: Integers = np.rint((questions @ centred) / grid.step).astype(np.int64)
    if insecure_seed is None:
        noisy = add_discrete_gaussian(integers, scale=grid.scale, sensitivity=grid.sensitivity)
    else:
        noisy = add_insecure_gaussian(integers, scale=grid.scale, seed=insecure_seed)
    return Answers(
        values=noisy.astype(np.float64) * grid.step,
        noise_sd=grid.scale * grid.step,
        centre=limits.middle,
        bounds=(limits.lo, limits.hi),
        guarantee=guarantee,
        insecure=insecure_seed is not None,
    )


def calibrate(
    strategy: Array,
    *,
    bounds: OutputBounds,
    epsilon: float,
    delta: float,
    calibration: Calibration = "exact",
) -> tuple[Grid, Guarantee]:
    """Choose the grid and the noise for a strategy, and state what they guarantee.

    Sees public arrays only.

    Parameters
    ----------
    strategy : array of shape (k, N)
        Not all zero.
    bounds : OutputBounds
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
    longest = float(np.abs(strategy).max())
    if not SMALLEST_ENTRY < longest < 1 / SMALLEST_ENTRY:
        raise ValueError("the strategy's entries are too small or too large: rescale it")
    multiplier = exact_noise_multiplier if calibration == "exact" else papers_noise_multiplier
    sigma = multiplier(epsilon, delta)
    step = _grid_step(strategy, bounds=bounds, sigma=sigma)
    sensitivity = integer_sensitivity(strategy, bounds=bounds, step=step)
    answers = len(strategy)
    # What discretisation costs is taken from δ before σ is calibrated. τ only grows by that, so the
    # cost computed with the first τ is an upper bound for the last.
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
    return Grid(step=step, sensitivity=sensitivity, scale=scale), guarantee


def integer_sensitivity(strategy: Array, *, bounds: OutputBounds, step: float) -> int:
    r"""Bound how far the rounded answers can move between neighbours, in grid steps.

    Argument. Let v = clip(y) − c in float64. Rounding is monotone, so each v_j lies between the
    rounded ends of the bounds, which are w apart and at most B from zero. In exact arithmetic R v
    moves by at most w·max_j ‖r_j‖. In floating point, any order of summation and any fused
    operations give |fl(r·v) − r·v| ≤ γ_N Σ_j |r_j||v_j| with γ_n = n u/(1 − n u) (Higham 2002,
    *Accuracy and Stability of Numerical Algorithms*, §3.1), so each of the two vectors is off by at
    most γ_N·B·‖(‖r_i‖₁)_i‖₂. Division by a power of two is exact, and rounding to integers moves
    each of k entries by at most ½, the two vectors together by √k. The column norms and the sums
    here are themselves inflated by γ of their own lengths, and the result is rounded up to an
    integer.

    Parameters
    ----------
    strategy : array of shape (k, N)
    bounds : OutputBounds
    step : float

    Returns
    -------
    int
    """
    answers, rows = strategy.shape
    lowest, highest = bounds.lo - bounds.middle, bounds.hi - bounds.middle
    width = (highest - lowest) * (1 + 4 * UNIT_ROUNDOFF)
    largest = max(abs(lowest), abs(highest))
    longest = float(np.sqrt(np.einsum("ij,ij->j", strategy, strategy).max()))
    longest *= 1 + 2 * _gamma(answers + 4)
    total = float(np.linalg.norm(np.abs(strategy).sum(axis=1))) * (1 + 2 * _gamma(rows + answers))
    arithmetic = 2 * _gamma(rows + 2) * largest * total
    rounding = math.sqrt(answers) * (1 + 4 * UNIT_ROUNDOFF)
    moved = (width * longest + arithmetic) / step * (1 + 8 * UNIT_ROUNDOFF) + rounding
    return math.ceil(moved * (1 + 4 * UNIT_ROUNDOFF))


def _grid_step(strategy: Array, *, bounds: OutputBounds, sigma: float) -> float:
    """Return a power of two, 2⁴⁰ times finer than the noise unless 64 bits are too few."""
    longest = float(np.sqrt(np.einsum("ij,ij->j", strategy, strategy).max()))
    noise_sd = sigma * bounds.width * longest
    largest_answer = float(np.abs(strategy).sum(axis=1).max()) * bounds.width
    finest = math.floor(math.log2(noise_sd)) - GRID_BITS
    fitting = math.ceil(math.log2(largest_answer + noise_sd)) - INTEGER_BITS
    return math.ldexp(1.0, max(finest, fitting))


def _gamma(operations: int) -> float:
    """Return Higham's γ_n = n u / (1 − n u)."""
    return operations * UNIT_ROUNDOFF / (1 - operations * UNIT_ROUNDOFF)
