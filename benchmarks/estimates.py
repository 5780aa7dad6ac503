"""Estimated memory beside what fits take: the peak of Python's own count, by kind of fit.

``python -m benchmarks.estimates`` prints a line for each; a share between a half and two is what
plans promise. ``--small`` takes fewer rows, as the tests do.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cloakgp import DPGPClassifier, DPGPMultiOutputRegressor, DPGPRegressor
from cloakgp.fitting.planning import fit_cost

BUDGET = {"epsilon": 1.0, "delta": 1e-6, "gap": 0.1}


@dataclass(frozen=True)
class Kind:
    """A kind of fit: its numbers of rows, its shape for so many, and the fit itself."""

    rows: int
    small: int
    shape: Callable[[int], dict[str, int]]
    fit: Callable[[Any, Any], object]

    def share(self, rows: int) -> float:
        """Return the peak of memory of a fit of so many rows, as a share of the estimate."""
        X, y = table(rows)
        # What is loaded and cached once is nobody's cost.
        self.fit(X[:30], y[:30])
        tracemalloc.start()
        try:
            self.fit(X, y)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        return peak / fit_cost(**self.shape(rows)).memory


def table(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return an output of two inputs, one of which matters."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(rows, 2))
    return X, np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=rows)


def _regressor(**settings: Any) -> DPGPRegressor:
    return DPGPRegressor(bounds=(-1, 1), **BUDGET, **settings)


KINDS = {
    "exact": Kind(
        450, 200, lambda rows: {"rows": rows, "queries": rows}, lambda X, y: _regressor().fit(X, y)
    ),
    "exact, few query points": Kind(
        450,
        200,
        lambda rows: {"rows": rows, "queries": 20},
        lambda X, y: _regressor().fit(X, y, X[:20]),
    ),
    "exact, raw predictions": Kind(
        400,
        300,
        lambda rows: {"rows": rows, "queries": rows},
        lambda X, y: _regressor(criterion="trace").fit(X, y),
    ),
    "sparse": Kind(
        1000,
        400,
        lambda rows: {"rows": rows, "queries": min(rows, 500), "inducing": 60},
        lambda X, y: _regressor(inducing=60).fit(X, y),
    ),
    "classes": Kind(
        700,
        200,
        lambda rows: {"rows": rows, "queries": min(rows, 500)},
        lambda X, y: DPGPClassifier(classes=[0, 1], **BUDGET).fit(X, (y > 0.5) * 1),
    ),
    "two outputs": Kind(
        200,
        100,
        lambda rows: {"rows": 2 * rows, "queries": 2 * rows},
        lambda X, y: DPGPMultiOutputRegressor(bounds=[(-1, 1), (-1, 1)], **BUDGET).fit(
            X, np.column_stack([y, -y])
        ),
    ),
}


def main(*, small: bool) -> None:
    """Print what each kind of fit takes, as a share of the estimate."""
    for name, kind in KINDS.items():
        rows = kind.small if small else kind.rows
        print(f"{name}, {rows} rows: {kind.share(rows):.2f} of the estimate")


if __name__ == "__main__":
    main(small="--small" in sys.argv[1:])
