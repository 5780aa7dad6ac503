r"""Primal-dual interior-point step for min φ(u) + Σu over u ≥ 0, φ one of the objectives.

With slacks z = 1 − g(u) ≥ 0, the optimality conditions are 1 − g − z = 0 and u z = 0. The step is
Newton's on u z = ν (Nocedal and Wright 2006, section 19.3), with z eliminated and the rest scaled
by √u on both sides, so that the system stays well conditioned as weights go to zero; ν and a
second-order term come from a first, greedy solution (Mehrotra 1992; Nocedal and Wright, 14.2).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from cloakgp.utils.arrays import Array

STEP_TO_BOUNDARY = 0.98
CENTRING_POWER = 3.0
LEAST_CENTRING = 1e-4
# Below this first step the curve that the second-order term follows is no guide.
SHORT_STEP = 0.1
# Optimal weights need not be unique (alike columns); this picks among them.
RIDGE = 1e-12


def newton_step(
    weights: Array, slack: Array, *, gains: Array, curvature: Array
) -> tuple[Array, Array]:
    """Return the next weights and slacks.

    Parameters
    ----------
    weights, slack : array of shape (m,)
        Positive.
    gains : array of shape (m,)
        Minus the gradient of φ.
    curvature : array of shape (m, m)
        Second derivatives of φ, which are overwritten.

    Returns
    -------
    weights, slack : array of shape (m,)
        Positive.

    Examples
    --------
    For φ(u) = −log u the optimum is u = 1.

    >>> weights, slack = np.array([0.5]), np.array([0.1])
    >>> for _ in range(9):
    ...     weights, slack = newton_step(
    ...         weights, slack, gains=1 / weights, curvature=np.diag(weights**-2)
    ...     )
    >>> weights.round(6)
    array([1.])
    """
    root = np.sqrt(weights)
    curvature *= root
    curvature *= root[:, None]
    factor = _factor(curvature, slack)

    def solve(right: Array) -> Array:
        solution, _ = lapack.dpotrs(factor, root * right, lower=1)
        return np.asarray(root * solution, dtype=np.float64)

    step = solve(gains - 1.0)
    slack_step = -slack * step / weights - slack
    reach, slack_reach = _reach(weights, step), _reach(slack, slack_step)
    pairing = float(weights @ slack)
    greedy = float((weights + reach * step) @ (slack + slack_reach * slack_step))
    centring = min(max((greedy / pairing) ** CENTRING_POWER, LEAST_CENTRING), 1.0)
    target = np.full(len(weights), centring * pairing / len(weights))
    if min(reach, slack_reach) > SHORT_STEP:
        target -= step * slack_step
    step = solve(gains - 1.0 + target / weights)
    slack_step = (target - slack * step) / weights - slack
    return (
        weights + _reach(weights, step) * step,
        slack + _reach(slack, slack_step) * slack_step,
    )


def _factor(system: Array, slack: Array) -> Array:
    """Return the lower factor of the system plus its slacks, with as little ridge as does."""
    diagonal = np.diag(system).copy()
    ridge = RIDGE
    while True:
        np.fill_diagonal(system, diagonal + slack + ridge)
        # Of the transpose, which is the layout that LAPACK overwrites.
        factor, failed = lapack.dpotrf(system.T, lower=1, clean=0)
        if not failed:
            return np.asarray(factor, dtype=np.float64)
        ridge *= 1e3


def _reach(position: Array, step: Array) -> float:
    """Return the longest step, at most 1, that stays inside the positive orthant."""
    shrinking = step < 0
    if not shrinking.any():
        return 1.0
    return min(1.0, STEP_TO_BOUNDARY * float((-position[shrinking] / step[shrinking]).min()))
