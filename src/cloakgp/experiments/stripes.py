"""Diagonal stripes in two dimensions (2021 paper, section 6.5 and figure 7).

The paper gives 200 noisy points, more of them near the bottom, a test grid of 10 × 10 with 50 of
each class, and a lengthscale of 3.5. The rest is ours, and public: the stripes' width, place and
noise, chosen so that accuracy without privacy comes near the published 81 %.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF

from cloakgp.arrays import Array
from cloakgp.experiments.classes import Method, Outcome, Task
from cloakgp.experiments.classifiers import ours, papers_method, without_privacy

ROWS, SIDE = 200, 10
KERNEL = RBF(3.5)
# Along the horizontal axis. Two stripes of 5 repeat after the grid's 10: 50 of each class, always.
STRIPE_WIDTH = 5.0
FLIPPED = 0.1
# Density falls with height t as (1 − t/10)^0.75, from dense at the bottom to nothing at the top.
GRADIENT = 1.75
SEED = 20210605

NO_PRIVACY = "no privacy, this kernel"
PAPERS_ONE, PAPERS_TWO = "papers' mechanism, one step", "papers' mechanism, two steps"
SAME_KERNEL, DEFAULTS = "bayes, this kernel", "bayes, untouched defaults"
# Accuracy in the paper.
PUBLISHED = {NO_PRIVACY: 0.81, PAPERS_ONE: 0.69, PAPERS_TWO: 0.51}
LAPLACE: dict[str, Any] = {
    "mechanism": "laplace",
    "criterion": "logdet",
    "link": "logit",
    "learn": None,
}

METHODS: dict[str, Method] = {
    NO_PRIVACY: without_privacy(KERNEL),
    PAPERS_ONE: papers_method(KERNEL),
    PAPERS_TWO: papers_method(KERNEL, steps=2),
    "the same, exact noise, one step": ours(KERNEL, steps=1, **LAPLACE),
    "the same, exact noise, two steps": ours(KERNEL, steps=2, **LAPLACE),
    "bayes, this kernel, nothing learned": ours(KERNEL, learn=None),
    SAME_KERNEL: ours(KERNEL),
    DEFAULTS: ours(),
    "bayes, defaults, for the grid": ours(places="test"),
    "bayes, defaults, averaged": ours(learn="average"),
}


def grid() -> Array:
    """Return the test grid, integers 0 to 9 in both inputs, shape (100, 2)."""
    across, up = np.meshgrid(np.arange(SIDE), np.arange(SIDE))
    return np.column_stack([across.ravel(), up.ravel()]).astype(float)


def striped(X: Array, *, phase: float) -> NDArray[np.bool_]:
    """Return which points lie in a positive stripe.

    Parameters
    ----------
    X : array of shape (N, 2)
    phase : float
        How far the stripes are moved to the left.

    Examples
    --------
    >>> int(striped(grid(), phase=1.3).sum())
    50
    """
    along = (X[:, 0] - X[:, 1] + phase) / STRIPE_WIDTH
    return np.asarray(np.floor(along) % 2 == 0)


def task(seed: int) -> Task:
    """Return one draw of rows, judged on the grid without noise.

    Parameters
    ----------
    seed : int
        Of the simulated, public data; not of privacy noise.
    """
    rng = np.random.default_rng([SEED, seed])
    across = rng.uniform(0.0, SIDE, size=ROWS)
    up = SIDE * (1.0 - rng.uniform(size=ROWS) ** (1.0 / GRADIENT))
    X, phase = np.column_stack([across, up]) - 0.5, rng.uniform(0.0, 2 * STRIPE_WIDTH)
    y = striped(X, phase=phase) ^ (rng.uniform(size=ROWS) < FLIPPED)
    points = grid()
    return Task(X=X, y=y, X_test=points, y_test=striped(points, phase=phase))


def tasks(draws: int) -> Iterator[Task]:
    """Yield so many draws of rows."""
    return (task(number) for number in range(draws))


def with_noisy_labels(outcome: Outcome) -> Outcome:
    """Return an outcome judged by labels as noisy as the rows': those that probabilities are of.

    Parameters
    ----------
    outcome : Outcome
    """
    flipped = np.random.default_rng(SEED).uniform(size=outcome.truths.shape) < FLIPPED
    return replace(outcome, truths=np.where(flipped, 1 - outcome.truths, outcome.truths))


def repeated(method: Method, one: Task, *, releases: int, privacy_noise: bool = True) -> Array:
    """Return the probability of a positive label at every grid point, in many releases of one draw.

    Parameters
    ----------
    method : Method
    one : Task
    releases : int
    privacy_noise : bool
        Whether probabilities integrate over it; the papers' figure leaves it out.

    Returns
    -------
    array of shape (releases, P)
    """
    said = (method(one, number) for number in range(releases))
    chosen = (each.integrated if privacy_noise else each.plugged for each in said)
    return np.array([probabilities[:, 1] for probabilities in chosen])
