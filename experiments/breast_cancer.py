"""Scikit-learn's breast-cancer table at several budgets: malignant or not, from 30 measurements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp.fitting.strategies import Budget
from cloakgp.utils.arrays import Array
from experiments.classification import (
    Mean,
    Method,
    Outcome,
    Task,
    compare,
    ours,
    papers_method,
    percent,
    without_privacy,
)
from experiments.framework import Experiment, Progress, RowDraws, Tick, no_tick, table_titled

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
    """Yield so many splits into 400 rows to learn from and 169 to be judged on."""
    X, y = _table()
    for number in range(draws):
        drawn = np.random.default_rng([SEED, number]).permutation(len(y))
        learned, judged = drawn[:LEARNED], drawn[LEARNED:]
        yield Task(X=X[learned], y=y[learned], X_test=X[judged], y_test=y[judged])


def methods(epsilon: float) -> dict[str, Method]:
    """Return what is compared at one budget; the papers' noise is none above ε = 1."""
    budget = Budget(epsilon=epsilon, delta=DELTA)
    found = {
        NO_PRIVACY: without_privacy(KERNEL),
        DECLARED: ours(KERNEL, learn=None, budget=budget),
        DEFAULTS: ours(budget=budget),
    }
    if epsilon <= 1.0:
        found[PAPERS] = papers_method(KERNEL, budget=budget)
    return found


def by_epsilon(*, draws: int, tick: Tick = no_tick) -> dict[float, dict[str, Outcome]]:
    """Compute the comparison at every budget."""
    drawn = list(tasks(draws))
    return {epsilon: compare(drawn, methods(epsilon), tick=tick) for epsilon in EPSILONS}


def budgets_report(found: Mapping[float, Mapping[str, Outcome]], *, title: str) -> Table:
    """Lay out accuracy by ε."""
    columns = (f"ε = {epsilon:g}" for epsilon in found)
    table = table_titled(title, "accuracy, %", right=columns)
    for name in (PAPERS, DECLARED, DEFAULTS, NO_PRIVACY):
        cells = (
            percent(Mean.of(outcomes[name].hits)) if name in outcomes else ""
            for outcomes in found.values()
        )
        table.add_row(name, *cells)
    return table


@dataclass(frozen=True)
class BreastCancer(Experiment[dict[float, dict[str, Outcome]]]):
    """Scikit-learn's breast-cancer table by epsilon: not in the papers."""

    name: ClassVar[str] = "breast-cancer"
    small: ClassVar[Mapping[str, Any]] = {"draws": 2}

    draws: RowDraws = 25

    def compute(self, progress: Progress) -> dict[float, dict[str, Outcome]]:
        """Compare all methods at every budget."""
        with progress("breast cancer", steps=self.draws * len(EPSILONS)) as tick:
            return by_epsilon(draws=self.draws, tick=tick)

    def tables(self, found: dict[float, dict[str, Outcome]]) -> Iterable[Table | str]:
        """Lay out accuracies by ε."""
        title = (
            f"Malignant or not, {LEARNED} rows to learn from, 169 to judge, δ = {DELTA:g}, "
            f"{self.draws} splits and draws of the noise, ± standard error"
        )
        yield budgets_report(found, title=title)
