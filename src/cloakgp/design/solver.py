r"""Optimal column weights, to a certified gap.

Four standard pieces, in the order in which they help:

1. multiplicative updates u_j ← u_j g_j^p from uniform weights, which find the region of the optimum
   in a few passes over all columns (Silvey, Titterington and Torsney 1978);
2. with many dimensions and columns, L-BFGS on u = w²/Σw², whose passes cost no second derivatives;
3. a primal-dual interior-point method on the columns that still matter (Nocedal and Wright 2006,
   chapter 19), which converges in some ten Newton steps whatever the conditioning;
4. column generation: the gains of *all* columns are computed, those above 1 enter, and the
   interior-point method runs again. The last pass over all columns is the certificate.

Every iterate has positive weights, hence is a usable design; see `cloakgp.design.strategy`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize

from cloakgp.arrays import Array
from cloakgp.design.criteria import CriterionName, Iterate, factorise

MULTIPLICATIVE_POWER = {"logdet": 1.0, "trace": 2.0}
MULTIPLICATIVE_STEPS = 15
# With so many dimensions and columns, a round of Newton steps is worth many gradients.
QUASI_NEWTON_DIMENSION = 120
QUASI_NEWTON_COLUMNS = 1000
QUASI_NEWTON_STEPS = 150
NEWTON_STEPS = 60
ROUNDS = 50
# So many columns the interior-point method takes on whole; its cost grows with their cube. Of more
# it begins with the heaviest, and lets a few times as many as there are dimensions enter a round.
WORKING_COLUMNS = 500
FIRST_COLUMNS = 200
ENTERING_SHARE = 8
CENTRING = 0.1
STEP_TO_BOUNDARY = 0.98
# Optimal weights need not be unique (alike columns); this picks among them.
RIDGE = 1e-12

Progress = Callable[[float], None]


@dataclass(frozen=True)
class ColumnWeights:
    """Weights on the simplex and the relative gap that they certify.

    Attributes
    ----------
    weights : array of shape (n,)
    gap : float
        max_j g_j − 1 over all columns; zero at the optimum.
    passes : int
        Passes over all columns that were made.
    """

    weights: Array
    gap: float
    passes: int


def optimal_weights(
    columns: Array,
    *,
    criterion: CriterionName,
    gap: float,
    rounds: int = ROUNDS,
    progress: Progress | None = None,
) -> ColumnWeights:
    """Maximise the criterion's dual over the simplex.

    Parameters
    ----------
    columns : array of shape (r, n)
        Of full row rank, with no zero column.
    criterion : {"logdet", "trace"}
    gap : float
        The relative gap to stop at.
    rounds : int
        Rounds of column generation at most.
    progress : callable, optional
        Called with the gap certified so far after every pass over all columns.

    Returns
    -------
    ColumnWeights
        The best design seen, with the gap that it certifies: larger than asked if the rounds ran
        out, which costs accuracy and never privacy.

    Examples
    --------
    >>> found = optimal_weights(np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]]),
    ...                         criterion="logdet", gap=1e-6)
    >>> found.weights.round(3)
    array([0.5, 0.5, 0. ])
    """
    dimension, count = columns.shape
    weights = np.full(count, 1.0 / count)
    best = ColumnWeights(weights=weights, gap=np.inf, passes=0)
    passes = 0

    def certify(candidate: Array, iterate: Iterate | None = None) -> Array:
        nonlocal best, passes
        passes += 1
        iterate = iterate or factorise(criterion, columns, candidate)
        gains = iterate.gains(columns)
        certified = float(gains.max() - 1.0)
        if certified < best.gap:
            best = ColumnWeights(weights=candidate, gap=max(certified, 0.0), passes=passes)
        if progress is not None:
            progress(best.gap)
        return gains

    def enough() -> bool:
        return best.gap <= gap

    gains = certify(weights)
    for _ in range(MULTIPLICATIVE_STEPS):
        if enough():
            return best
        weights = weights * gains ** MULTIPLICATIVE_POWER[criterion]
        weights /= weights.sum()
        gains = certify(weights)

    if dimension > QUASI_NEWTON_DIMENSION and count > QUASI_NEWTON_COLUMNS:
        _descend(columns, weights, criterion=criterion, certify=certify, enough=enough)
        weights = best.weights

    working = _first_working_set(columns, weights)
    for _ in range(rounds):
        if enough():
            break
        inner = interior_point(
            columns[:, working], weights[working], criterion=criterion, gap=gap / 4
        )
        weights = np.zeros(count)
        weights[working] = inner
        previous = best.gap
        gains = certify(weights)
        entering = np.flatnonzero(gains > 1.0 + gap / 2)
        entering = np.setdiff1d(entering, working)
        if len(entering) == 0 and best.gap >= previous:
            break
        if len(entering):
            entering = entering[np.argsort(-gains[entering])][: ENTERING_SHARE * dimension]
            kept = working[(inner > 1e-6) | (gains[working] > 0.99)]
            # What is left must still span every dimension.
            _, pivots = linalg.qr(columns * np.sqrt(weights), mode="r", pivoting=True)
            kept = np.union1d(kept, pivots[:dimension])
            # A copy: `best` may hold this very array.
            weights = weights.copy()
            weights[entering] = 1e-3 / len(entering)
            weights /= weights.sum()
            working = np.union1d(kept, entering)
    return best


def _first_working_set(columns: Array, weights: Array) -> NDArray[np.intp]:
    """Return the columns of most weight, and enough of the others to span every dimension."""
    dimension, count = columns.shape
    if count <= WORKING_COLUMNS:
        return np.arange(count)
    heaviest = np.argsort(-weights)[: max(FIRST_COLUMNS, 2 * dimension)]
    _, pivots = linalg.qr(columns * np.sqrt(weights), mode="r", pivoting=True)
    return np.union1d(heaviest, pivots[:dimension])


def _descend(
    columns: Array,
    start: Array,
    *,
    criterion: CriterionName,
    certify: Callable[[Array, Iterate], Array],
    enough: Callable[[], bool],
) -> None:
    """Improve the weights by L-BFGS, certifying every one of its iterates on the way."""

    def value_and_gradient(roots: Array) -> tuple[float, Array]:
        total = float(roots @ roots)
        weights = np.square(roots) / total
        iterate = factorise(criterion, columns, weights)
        gains = certify(weights, iterate)
        # On the simplex Σ u_j g_j = 1, so the derivative along the scaling vanishes.
        return iterate.value(), (1.0 - gains) * 2.0 * roots / total

    def stop_when_enough(xk: Array) -> None:  # noqa: ARG001
        if enough():
            raise StopIteration

    optimize.minimize(
        value_and_gradient,
        np.sqrt(start * len(start)),
        jac=True,
        method="L-BFGS-B",
        callback=stop_when_enough,
        options={"maxiter": QUASI_NEWTON_STEPS, "ftol": 0.0, "gtol": 0.0},
    )


def interior_point(columns: Array, start: Array, *, criterion: CriterionName, gap: float) -> Array:
    """Solve min φ(u) + Σu over u ≥ 0 for one of the criteria, on few columns.

    Parameters
    ----------
    columns : array of shape (r, m)
    start : array of shape (m,)
        Non-negative weights.
    criterion : {"logdet", "trace"}
    gap : float
        Stop when max_j g_j − 1 is below it.

    Returns
    -------
    array of shape (m,)
        Positive weights that sum to 1.
    """
    count = columns.shape[1]
    weights = np.maximum(start / start.sum(), 1e-3 / count)
    weights /= weights.sum()
    iterate = factorise(criterion, columns, weights)
    gains = iterate.gains(columns)
    slack = np.maximum(1.0 - gains, 1e-2)
    best, best_gap = weights, float(gains.max() - 1.0)
    for _ in range(NEWTON_STEPS):
        if best_gap <= gap:
            break
        barrier = CENTRING * float(weights @ slack) / count
        # Newton on (1 − g − z = 0, u z = ν) with z eliminated (Nocedal and Wright, 19.12), scaled
        # by √u on both sides: the system stays well conditioned as weights go to zero.
        root = np.sqrt(weights)
        system = iterate.curvature(columns) * np.outer(root, root)
        system[np.diag_indices(count)] += slack + RIDGE
        step = root * linalg.cho_solve(
            linalg.cho_factor(system, overwrite_a=True, check_finite=False),
            root * (gains - 1.0 + barrier / weights),
        )
        slack_step = (barrier - slack * step) / weights - slack
        weights = weights + _reach(weights, step) * step
        slack = slack + _reach(slack, slack_step) * slack_step
        iterate = factorise(criterion, columns, weights)
        gains = iterate.gains(columns)
        # On the simplex the gains scale with Σu, so normalising changes no optimum.
        certified = float(gains.max() * weights.sum() - 1.0)
        if certified < best_gap:
            best, best_gap = weights / float(weights.sum()), certified
    return np.asarray(best, dtype=np.float64)


def _reach(position: Array, step: Array) -> float:
    """Return the longest step, at most 1, that stays inside the positive orthant."""
    shrinking = step < 0
    if not shrinking.any():
        return 1.0
    return min(1.0, STEP_TO_BOUNDARY * float((-position[shrinking] / step[shrinking]).min()))
