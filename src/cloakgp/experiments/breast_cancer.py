"""Scikit-learn's breast-cancer table at several budgets: malignant or not, from 30 measurements."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp.arrays import Array
from cloakgp.experiments.classes import Method, Outcome, Task, compare
from cloakgp.experiments.classifiers import ours, papers_method, without_privacy
from cloakgp.experiments.crossvalidation import Tick
from cloakgp.release import Budget

LEARNED = 400
# Below one over the number of rows.
DELTA = 1e-3
EPSILONS = (0.1, 0.3, 1.0, 3.0)
SEED = 20210607
# For inputs of sd 1: distances among 30 of them are about √60.
KERNEL = ConstantKernel(4.0) * RBF(8.0)

NO_PRIVACY, PAPERS = "no privacy, declared kernel", "papers' mechanism, declared kernel"
DECLARED, DEFAULTS = "bayes, declared kernel", "bayes, untouched defaults"


@lru_cache
def _table() -> tuple[Array, NDArray[np.bool_]]:
    """Return the measurements, each less its mean and divided by its sd, and what is malignant.

    Measurements are public here, so their means and sds are.
    """
    measured, benign = load_breast_cancer(return_X_y=True)
    return (measured - measured.mean(axis=0)) / measured.std(axis=0), benign == 0


def tasks(draws: int) -> Iterator[Task]:
    """Yield so many splits into 400 rows to learn from and 169 to be judged on.

    Parameters
    ----------
    draws : int
    """
    X, y = _table()
    for number in range(draws):
        drawn = np.random.default_rng([SEED, number]).permutation(len(y))
        learned, judged = drawn[:LEARNED], drawn[LEARNED:]
        yield Task(X=X[learned], y=y[learned], X_test=X[judged], y_test=y[judged])


def methods(epsilon: float) -> dict[str, Method]:
    """Return what is compared at one budget; the papers' noise is none above ε = 1.

    Parameters
    ----------
    epsilon : float
    """
    budget = Budget(epsilon=epsilon, delta=DELTA)
    found = {
        NO_PRIVACY: without_privacy(KERNEL),
        DECLARED: ours(KERNEL, learn=None, budget=budget),
        DEFAULTS: ours(budget=budget),
    }
    if epsilon <= 1.0:
        found[PAPERS] = papers_method(KERNEL, budget=budget)
    return found


def by_epsilon(*, draws: int, tick: Tick = lambda: None) -> dict[float, dict[str, Outcome]]:
    """Compute the comparison at every budget.

    Parameters
    ----------
    draws : int
    tick : callable, optional
        Called after every draw of every budget.
    """
    drawn = list(tasks(draws))
    return {epsilon: compare(drawn, methods(epsilon), tick=tick) for epsilon in EPSILONS}
