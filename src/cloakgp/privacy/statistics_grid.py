"""How far noisy sufficient statistics can move between neighbours, and the noise that covers it.

The mechanism, and the proof of the sensitivity, stand at the head of `cloakgp.privacy.statistics`.
Nothing here sees a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cloakgp.arrays import Array
from cloakgp.privacy.grid import noise_scale
from cloakgp.privacy.guarantee import Guarantee, exact_noise_multiplier
from cloakgp.privacy.rounding import UNIT_ROUNDOFF, gamma

Neighbours = Literal["replace", "add-remove"]
NEIGHBOURS: tuple[Neighbours, ...] = ("replace", "add-remove")

# The grid is this many binary digits finer than the noise: sums over hundreds of millions of rows
# still fit 64 bits, and the discretisation costs about 1e-15 of δ.
GRID_BITS = 32
INTEGER_BITS = 61


@dataclass(frozen=True)
class StatisticsGrid:
    """The integers on which the statistics live.

    Attributes
    ----------
    step : float
        A power of two.
    sensitivity : int
        Of the integer sums, in steps.
    scale : float
        Noise parameter τ, in steps.
    most_rows : int
        So many rows fit 64 bits.
    """

    step: float
    sensitivity: int
    scale: float
    most_rows: int


def joint_sensitivity(
    weighting: float, *, neighbours: Neighbours, exclusive: bool = False
) -> float:
    """Return the greatest distance between neighbours' sums, in exact arithmetic.

    Proved at the head of `cloakgp.privacy.statistics`.

    Parameters
    ----------
    weighting : float
        β, of outputs scaled to [−1, 1].
    neighbours : {"replace", "add-remove"}
    exclusive : bool

    Examples
    --------
    >>> joint_sensitivity(2.0, neighbours="replace")
    4.0
    """
    # In the precision of what is given, a square could round below what is asked.
    u = float(weighting) ** 2
    if neighbours == "add-remove":
        square = 1.0 + u
    elif exclusive:
        square = max(2.0 + 2.0 * u, 4.0 * u)
    else:
        square = (2.0 + u) ** 2 / 2.0 if u <= 2.0 else 4.0 * u
    return math.sqrt(square)


def best_weighting(
    weight_covariance: Array, *, neighbours: Neighbours, exclusive: bool = False
) -> float:
    r"""Return the β for which noise disturbs Φᵀ v = Φᵀ Φ w least, on average over the prior of w.

    Noise of sd s on the vector t puts variance s²/β² on each moment, and, through w, s²W on each
    entry of (Φᵀ Φ) w, with W = ½(1 + 1/M) E‖w‖² (exclusive: E‖w‖²/M). So β minimises
    Δ(β)²(1/β² + W). With u = β² the minimum is at u = W^−½ for add-remove, at min(1, W^−½) for
    exclusive features replaced, and else where 2u(1 + W u) = 2 + u. It is public, and any other
    would be as private.

    Parameters
    ----------
    weight_covariance : array of shape (M, M)
        For outputs scaled to [−1, 1].
    neighbours : {"replace", "add-remove"}
    exclusive : bool

    Examples
    --------
    >>> best_weighting(np.diag([1.0, 0.0]) * 4 / 3, neighbours="add-remove")
    1.0
    """
    features = len(weight_covariance)
    expected = float(np.trace(weight_covariance))
    per_entry = expected / features if exclusive else (1 + 1 / features) * expected / 2
    if neighbours == "add-remove":
        u = per_entry**-0.5
    elif exclusive:
        u = min(1.0, per_entry**-0.5)
    else:
        u = 4.0 / (1.0 + math.sqrt(1.0 + 16.0 * per_entry))
    return math.sqrt(u)


def calibrate_statistics(
    *,
    features: int,
    weighting: float,
    neighbours: Neighbours,
    exclusive: bool,
    epsilon: float,
    delta: float,
) -> tuple[StatisticsGrid, Guarantee]:
    """Choose the grid and the noise, and state what they guarantee. Sees public numbers only.

    Parameters
    ----------
    features : int
        M.
    weighting : float
    neighbours : {"replace", "add-remove"}
    exclusive : bool
    epsilon, delta : float

    Raises
    ------
    ValueError
        If δ is too small for the grid, or the weighting out of scale.
    """
    weighting = float(weighting)
    if not 1e-6 < weighting < 1e6:
        raise ValueError(f"the weighting must lie between 1e-6 and 1e6, got {weighting}")
    entries = 2 * features if exclusive else features * (features + 3) // 2
    sigma = exact_noise_multiplier(epsilon, delta)
    exact = joint_sensitivity(weighting, neighbours=neighbours, exclusive=exclusive)
    step = math.ldexp(1.0, math.floor(math.log2(sigma * exact)) - GRID_BITS)
    sensitivity = integer_sensitivity(
        features=features,
        entries=entries,
        weighting=weighting,
        step=step,
        neighbours=neighbours,
        exclusive=exclusive,
    )
    scale, guarantee = noise_scale(sensitivity, answers=entries, epsilon=epsilon, delta=delta)
    most_rows = math.floor(2.0**INTEGER_BITS / (max(1.0, weighting) / step + 1.0))
    return StatisticsGrid(step, sensitivity, scale, most_rows), guarantee


def integer_sensitivity(
    *,
    features: int,
    entries: int,
    weighting: float,
    step: float,
    neighbours: Neighbours,
    exclusive: bool,
) -> int:
    r"""Bound how far neighbours' integer sums can be apart, in steps, rounding included.

    Argument. A row's φ is shortened in float64, so ‖φ‖ ≤ 1 + γ_{M+4}, γ_n = n u/(1 − n u) (Higham
    2002, §3.1), by which the squared-feature part of the sensitivity grows twice and the other
    once; |v| ≤ 1 exactly. Each entry of t has at most four roundings, so t is off by at most
    γ_4‖t‖ ≤ γ_4 √(1 + β²)(1 + γ_{M+4})². Dividing by a power of two is exact, and rounding to
    integers moves the vector by at most ½ per entry. Under ``replace`` two rows are so computed.

    Parameters
    ----------
    features, entries : int
        M, and the length of t.
    weighting, step : float
    neighbours : {"replace", "add-remove"}
    exclusive : bool
    """
    two = 2 if neighbours == "replace" else 1
    stretched = (1 + gamma(features + 4)) ** 2
    exact = joint_sensitivity(weighting, neighbours=neighbours, exclusive=exclusive)
    arithmetic = two * gamma(4) * math.hypot(1.0, weighting)
    moved = (exact + arithmetic) * stretched / step * (1 + 16 * UNIT_ROUNDOFF)
    return math.ceil((moved + two * math.sqrt(entries) / 2) * (1 + 8 * UNIT_ROUNDOFF))
