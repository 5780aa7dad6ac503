"""Posteriors of other Gaussian-process libraries beside ours, on the same numbers.

Our mathematics is written by hand; theirs was, too, by others. A problem is a sum of kernels,
public inputs, outputs, and perhaps inducing inputs: everybody returns the posterior mean and
variance of the latent function, and their largest differences from ours are what is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel, Matern

from benchmarks import peers, processes
from benchmarks.processes import OK, Limits, Outcome
from benchmarks.tables import Cell, Table, for_page
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import OutputBounds
from cloakgp.utils.arrays import Array
from experiments.cloaking import mean_without_privacy, sd_without_privacy

Part = Mapping[str, Any]
Model = Literal["exact", "fitc", "dtc"]
COLUMNS = ("problem", "library", "rows", "inducing", "mean differs", "sd differs", "status")
# A library's runner, and the environment that it needs.
LIBRARIES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"GPy": ("gpy_posterior.py", "dp4gp"), "GPflow": ("gpflow_posterior.py", "gpflow")}
)
ROWS, QUERIES, INDUCING, INPUTS = 60, 40, 12, 2
NOISE_VARIANCE = 0.09
# Wider than any output: nothing is clipped.
BOUNDS = OutputBounds(-100.0, 100.0)
SEED = 20261123


def part(kind: str, *, variance: float, lengthscales: Sequence[float] = ()) -> Part:
    """Return one kernel of a sum, as runners are told of it."""
    return {"kind": kind, "variance": variance, "lengthscales": list(lengthscales)}


KERNELS: Mapping[str, tuple[Part, ...]] = MappingProxyType(
    {
        "RBF": (part("rbf", variance=1.7, lengthscales=[0.8, 0.8]),),
        "RBF, a lengthscale each": (part("rbf", variance=0.6, lengthscales=[0.5, 2.0]),),
        "Matérn 1/2": (part("matern 1/2", variance=1.2, lengthscales=[1.1, 0.7]),),
        "Matérn 3/2": (part("matern 3/2", variance=1.2, lengthscales=[1.1, 0.7]),),
        "Matérn 5/2": (part("matern 5/2", variance=1.2, lengthscales=[1.1, 0.7]),),
        "level, trend and Matérn 3/2": (
            part("constant", variance=2.0),
            part("linear", variance=0.5),
            part("matern 3/2", variance=0.8, lengthscales=[0.6, 1.5]),
        ),
    }
)


def _kernel_of(one: Part) -> Kernel:
    variance = ConstantKernel(one["variance"])
    makers: Mapping[str, Callable[[], Kernel]] = {
        "rbf": lambda: RBF(one["lengthscales"]),
        "matern 1/2": lambda: Matern(one["lengthscales"], nu=0.5),
        "matern 3/2": lambda: Matern(one["lengthscales"], nu=1.5),
        "matern 5/2": lambda: Matern(one["lengthscales"], nu=2.5),
        "linear": lambda: DotProduct(0.0, sigma_0_bounds="fixed"),
        "constant": lambda: ConstantKernel(1.0),
    }
    return variance * makers[one["kind"]]()


@dataclass(frozen=True, eq=False)
class Problem:
    """A prior, rows, and points at which the latent function is asked for.

    Attributes
    ----------
    name : str
    kernel : tuple of Part
        Which are added.
    model : {"exact", "fitc", "dtc"}
    X, X_query, inducing : arrays of shape (N, D), (P, D) and (M, D)
        Inducing inputs serve sparse models alone.
    y : array of shape (N,)
    """

    name: str
    kernel: tuple[Part, ...]
    model: Model
    X: Array
    X_query: Array
    inducing: Array
    y: Array

    @property
    def prior(self) -> ExactPrior | SparsePrior:
        """Ours."""
        kernel = reduce(add, map(_kernel_of, self.kernel))
        if self.model == "exact":
            return ExactPrior(kernel=kernel, noise_variance=NOISE_VARIANCE, mean=0.0)
        return SparsePrior(
            kernel=kernel,
            noise_variance=NOISE_VARIANCE,
            mean=0.0,
            inducing=self.inducing,
            approximation=self.model,
        )

    def our_posterior(self) -> tuple[Array, Array]:
        """Return the mean and sd of the latent function, shapes (P,)."""
        mean = mean_without_privacy(
            self.X, self.y, X_query=self.X_query, prior=self.prior, bounds=BOUNDS
        )
        return mean, sd_without_privacy(self.X, X_query=self.X_query, prior=self.prior)

    def their_posterior(self, library: str, *, limits: Limits) -> Outcome:
        """Return what another library finds, in a process of its own."""
        runner, environment = LIBRARIES[library]
        arrays = {name: getattr(self, name) for name in ("X", "X_query", "inducing", "y")}
        options = {
            "kernel": [dict(one) for one in self.kernel],
            "model": self.model,
            "noise_variance": NOISE_VARIANCE,
        }
        return processes.run(
            peers.RUNNERS / runner,
            peer=environment,
            arrays=arrays,
            options=options,
            limits=limits,
        )


def all_problems() -> Iterator[Problem]:
    """Yield every kernel with every model, on the same rows."""
    rng = np.random.default_rng(SEED)
    X, X_query = (rng.uniform(-2, 2, size=(count, INPUTS)) for count in (ROWS, QUERIES))
    inducing = rng.uniform(-2, 2, size=(INDUCING, INPUTS))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=ROWS)
    models: tuple[Model, ...] = ("exact", "fitc", "dtc")
    for model in models:
        for name, kernel in KERNELS.items():
            yield Problem(f"{name}, {model}", kernel, model, X, X_query, inducing, y)


def compare(problem: Problem, library: str, *, limits: Limits) -> dict[str, Cell]:
    """Return the largest differences of a library's posterior from ours.

    Means are compared in units of the outputs' sd, and sds as ratios.

    Parameters
    ----------
    problem : Problem
    library : str
        A key of `LIBRARIES`.
    limits : Limits
    """
    found = problem.their_posterior(library, limits=limits)
    row: dict[str, Cell] = {
        "problem": problem.name,
        "library": library,
        "rows": len(problem.X),
        "inducing": None if problem.model == "exact" else len(problem.inducing),
        "status": found.said,
    }
    if not found.arrays:
        return row
    mean, sd = problem.our_posterior()
    theirs = np.sqrt(found.arrays["variance"])
    return row | {
        "library": f"{library} {found.report['version']}",
        "mean differs": float(np.abs(found.arrays["mean"] - mean).max() / problem.y.std()),
        "sd differs": float(np.abs(theirs / sd - 1.0).max()),
    }


def compare_all(*, limits: Limits, only: Sequence[str] = ()) -> Iterator[dict[str, Cell]]:
    """Yield a row for every problem and library, or some libraries."""
    for problem in all_problems():
        for library in only or LIBRARIES:
            yield compare(problem, library, limits=limits)


def table_for_pages(found: Sequence[Mapping[str, Cell]]) -> Table:
    """Return the largest differences over kernels, of each library and model.

    Parameters
    ----------
    found : sequence of mapping
        Of `compare_all`.
    """
    groups: dict[tuple[str, str], list[Mapping[str, Cell]]] = {}
    for row in found:
        model = str(row["problem"]).rpartition(", ")[2]
        groups.setdefault((str(row["library"]), model), []).append(row)
    rows: list[dict[str, Cell]] = [
        {
            "library": library,
            "model": model.upper() if model != "exact" else model,
            "kernels": len(of_group),
            "means, in sds of the outputs": max(_numbers(of_group, "mean differs"), default=None),
            "sds, relative": max(_numbers(of_group, "sd differs"), default=None),
            "failed": sum(row["status"] != OK for row in of_group) or None,
        }
        for (library, model), of_group in groups.items()
    ]
    title = "Largest differences of posteriors of the latent function from ours"
    return for_page(title, rows, {column: column for column in rows[0]})


def _numbers(rows: Sequence[Mapping[str, Cell]], column: str) -> list[float]:
    return [float(row[column] or 0.0) for row in rows if column in row]


def report(found: Sequence[Mapping[str, Cell]], *, folder: Path) -> Table:
    """Write all rows as CSV and Markdown; return the table."""
    notes = (
        "Largest over query points: of means in units of the outputs' sd, of sds relative to ours.",
        "To the variances of inducing inputs ours adds a share of 1e-8, and theirs 1e-12.",
    )
    title = "Posteriors of the latent function beside ours"
    table = Table(title, COLUMNS, found, notes=notes)
    table.write(folder, stem="posteriors")
    return table
