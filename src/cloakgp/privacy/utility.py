"""The error of a candidate as a number, and how far that number can move between neighbours.

The argument without floating point stands at the head of `cloakgp.privacy.select`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import erf

from cloakgp.arrays import Array
from cloakgp.privacy.heldout import HeldOutErrors
from cloakgp.privacy.outputs import OutputBounds
from cloakgp.privacy.rounding import UNIT_ROUNDOFF, gamma

Loss = Literal["squared", "absolute"]
LOSSES: tuple[Loss, ...] = ("squared", "absolute")

# The grid is this many binary digits finer than the sensitivity, if 64-bit integers can hold the
# errors then.
GRID_BITS = 32
INTEGER_BITS = 60
# Roundings in one term of an error, library functions included, with room to spare.
TERM_ROUNDINGS = 256
# Beyond this many sd, erf is 1 and exp(−x²) is 0 in float64.
FAR = 40.0


@dataclass(frozen=True)
class ErrorBand:
    """What is public about one candidate's error.

    Attributes
    ----------
    moved : float
        The most that the computed error can move between neighbours, in output units.
    largest : float
        The most that it can be.
    """

    moved: float
    largest: float


def error_band(public: HeldOutErrors, *, bounds: OutputBounds, loss: Loss) -> ErrorBand:
    r"""Bound one candidate's error, and its move between neighbours, rounding included.

    Argument. Let v = clip(y) − m in float64. Rounding is monotone, so v_j lies between the rounded
    ends, which are w apart and at most B from zero. In exact arithmetic the error of W v moves by
    at most w times the longest column (`cloakgp.privacy.select`). In floating point each residual
    is off by at most γ_N·B·‖row i‖₁ (Higham 2002, §3.1, as in `cloakgp.privacy.measure`), and the
    error, which moves by no more than the residuals do in the norm of the loss, by the norm of
    these. What follows is a sum of at most N + 1 positive terms, each a few roundings from exact,
    and at most the largest error: γ of their number times that. Both neighbours may be off: twice.

    Parameters
    ----------
    public : HeldOutErrors
    bounds : OutputBounds
    loss : {"squared", "absolute"}

    Returns
    -------
    ErrorBand
    """
    rows = len(public.residual_map)
    width, reach = bounds.about(public.mean)
    inflation = 1 + 2 * gamma(rows + TERM_ROUNDINGS)
    magnitudes = np.abs(public.residual_map)
    furthest = reach * magnitudes.sum(axis=1) * inflation
    order = 2 if loss == "squared" else 1
    longest = float(np.linalg.norm(magnitudes, ord=order, axis=0).max()) * inflation
    residuals_off = gamma(rows + 2) * float(np.linalg.norm(furthest, ord=order)) * inflation
    largest = error_of(furthest, public.noise_variance, loss=loss) * inflation + residuals_off
    rounding = 2 * (residuals_off + gamma(rows + TERM_ROUNDINGS) * largest)
    return ErrorBand(
        moved=(width * longest + rounding) * (1 + 8 * UNIT_ROUNDOFF), largest=largest + rounding
    )


def score_sensitivity(bands: Sequence[ErrorBand]) -> tuple[float, int]:
    """Choose a grid for the errors, and bound how far they can move on it between neighbours.

    Two numbers at most m apart, divided by a power of two and rounded to integers, are at most
    ⌊m/step⌋ + 1 apart.

    Parameters
    ----------
    bands : sequence of ErrorBand

    Returns
    -------
    step : float
        A power of two, in output units.
    sensitivity : int
        In steps.
    """
    moved = max(band.moved for band in bands)
    largest = max(band.largest for band in bands)
    finest = math.floor(math.log2(moved)) - GRID_BITS
    fitting = math.ceil(math.log2(largest + moved)) - INTEGER_BITS
    step = math.ldexp(1.0, max(finest, fitting))
    return step, math.floor(moved / step) + 1


def error_of(residuals: Array, noise_variance: Array, *, loss: Loss) -> float:
    """Return the error e that residuals and the variance of their noise lead one to expect.

    Never decreases when a residual grows in size.

    Parameters
    ----------
    residuals : array of shape (N,)
        In output units.
    noise_variance : array of shape (N,)
        In squared output units.
    loss : {"squared", "absolute"}

    Returns
    -------
    float
        In output units.

    Examples
    --------
    >>> error_of(np.array([3.0, 0.0]), np.array([0.0, 16.0]), loss="squared")
    5.0
    """
    if loss == "squared":
        return math.sqrt(float(np.square(residuals).sum() + noise_variance.sum()))
    # The mean of a folded normal variable; its terms are positive, and grow with |residual|.
    sd = np.sqrt(noise_variance)
    far = np.copysign(FAR, residuals)
    with np.errstate(over="ignore"):
        shifted = np.divide(residuals, math.sqrt(2.0) * sd, out=far, where=sd > 0)
    shifted = np.clip(shifted, -FAR, FAR)
    spread = math.sqrt(2.0 / math.pi) * sd * np.exp(-np.square(shifted))
    return float((spread + residuals * erf(shifted)).sum())
