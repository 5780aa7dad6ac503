"""Quadrature over hyperparameters: the posterior's maximum, and points that stand for all of it.

Hyperparameters are standardised: each less its declared value and divided by its prior sd, so that
the declared values are the origin and the prior is N(0, I).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg, optimize

from cloakgp.utils.arrays import Array
from cloakgp.utils.threads import suitable_threads

# Minus a log posterior and its gradient. Raises LinAlgError where it is not defined.
Objective = Callable[[Array], tuple[float, Array]]

# Restarts: all hyperparameters moved alike from their declared values.
STARTS = (0.0, 1.0, -1.0)
STEPS = 100
# A restart that comes this near to a maximum that was found, in prior sds, is on its way there.
NEAR = 0.1
# The farthest that a hyperparameter is looked for: by a factor of some 70 either way.
REACH = 12.0
# How much more probable than the declared values, in nats, others must be to replace them. Below
# that the answers hardly tell them apart, and on real tables the declared values do better.
EVIDENCE = 1.0
# Share below which a point is left out of an average.
NEGLIGIBLE_WEIGHT = 1e-9
# Stands for minus the logarithm of zero, finite so that a line search can step back from it.
IMPOSSIBLE = 1e30


def posterior_points(
    objective: Objective,
    *,
    size: int,
    average: bool,
    coarse: Objective | None = None,
    start: Array | None = None,
) -> list[tuple[Array, float]]:
    """Return points that represent a posterior, and their weights, which sum up to 1.

    Parameters
    ----------
    objective : callable
        Position, shape (size,) → minus the log posterior, up to a constant, and its gradient.
    size : int
        At least 1.
    average : bool
        Several points, rather than one: the maximum, if it is more probable than the origin by at
        least one nat, or else the origin.
    coarse : callable, optional
        About the objective, and cheaper: its maximum is where the search starts.
    start : array of shape (size,), optional
        The only place from which a maximum is looked for.

    Examples
    --------
    >>> [(position, weight)] = posterior_points(
    ...     lambda x: (float((x - 1) @ (x - 1)), 2 * (x - 1)), size=1, average=False)
    >>> position.round(6), weight
    (array([1.]), 1.0)
    """
    guarded = _guarded(objective)
    # Matrices of some hundred answers: a second thread would wait longer than it works.
    with suitable_threads(0.0):
        best = posterior_maximum(
            guarded, size=size, coarse=None if coarse is None else _guarded(coarse), start=start
        )
        if average:
            return _points_around(guarded, best)
        origin = np.zeros(size)
        learned = guarded(origin)[0] - guarded(best)[0] >= EVIDENCE
    return [(best if learned else origin, 1.0)]


def _guarded(objective: Objective) -> Objective:
    """Far from the declared values a kernel need not be a covariance: that is impossible."""

    def guarded(position: Array) -> tuple[float, Array]:
        try:
            return objective(position)
        except np.linalg.LinAlgError:
            return IMPOSSIBLE, np.zeros_like(position)

    return guarded


def posterior_maximum(
    objective: Objective,
    *,
    size: int,
    coarse: Objective | None = None,
    start: Array | None = None,
) -> Array:
    """Return the best of a few local maxima, the origin if none is possible.

    Parameters
    ----------
    objective : callable
        As for `posterior_points`, with `IMPOSSIBLE` where it is not defined.
    size : int
    coarse : callable, optional
        With such maxima: the best of them is the only start of this search.
    start : array of shape (size,), optional
        Instead of `STARTS`.
    """
    if coarse is not None:
        start = posterior_maximum(coarse, size=size, start=start)
    starts = [np.full(size, alike) for alike in STARTS] if start is None else [start]
    found: list[optimize.OptimizeResult] = []

    def watch(intermediate_result: optimize.OptimizeResult) -> None:
        reached = intermediate_result
        if any(np.abs(reached.x - one.x).max() < NEAR and reached.fun >= one.fun for one in found):
            raise StopIteration

    for place in starts:
        found.append(
            optimize.minimize(
                objective,
                np.clip(place, -REACH, REACH),
                jac=True,
                method="L-BFGS-B",
                callback=watch,
                bounds=[(-REACH, REACH)] * size,
                options={"maxiter": STEPS},
            )
        )
    best = min(found, key=lambda one: float(one.fun))
    return np.zeros(size) if best.fun >= IMPOSSIBLE else np.asarray(best.x)


def nearest_maximum(objective: Objective, *, start: Array) -> Array:
    """Return the local maximum that is reached from a place.

    Parameters
    ----------
    objective : callable
        As for `posterior_points`.
    start : array of shape (size,)
    """
    with suitable_threads(0.0):
        return posterior_maximum(_guarded(objective), size=len(start), start=start)


def _points_around(objective: Objective, best: Array) -> list[tuple[Array, float]]:
    """Integrate over the Gaussian approximation at the maximum, with corrected weights.

    The points are the maximum and a pair along each axis of the approximation (the central
    composite idea of Rue, Martino and Chopin 2009, section 6.5); each point's weight is multiplied
    by the ratio of the true density to the Gaussian.
    """
    size = len(best)
    spread = _posterior_root(objective, best)
    # With equal weights, this radius gives the Gaussian's second moments.
    radius = np.sqrt(size + 0.5)
    steps = [np.zeros(size)]
    steps += [sign * radius * axis for axis in np.eye(size) for sign in (1.0, -1.0)]
    floor = objective(best)[0]
    logs = [floor - objective(best + spread @ step)[0] + step @ step / 2 for step in steps]
    weights = np.exp(np.minimum(logs, 5.0))
    kept = weights > NEGLIGIBLE_WEIGHT * weights.sum()
    weights /= weights[kept].sum()
    return [(best + spread @ steps[index], float(weights[index])) for index in np.flatnonzero(kept)]


def _posterior_root(objective: Objective, best: Array) -> Array:
    """Return a root of the inverse Hessian at the maximum, by differences of gradients."""
    step = 1e-3
    axes = step * np.eye(len(best))
    hessian = np.array(
        [(objective(best + a)[1] - objective(best - a)[1]) / (2 * step) for a in axes]
    )
    eigenvalues, axes = linalg.eigh((hessian + hessian.T) / 2)
    # An axis and its opposite are one: which of them comes out depends on the last bits.
    axes *= np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(len(axes))])
    # The weak priors contribute 1 to every curvature; a maximum cannot be flatter than a part.
    root: Array = axes / np.sqrt(np.maximum(eigenvalues, 0.25))
    return root
