"""Which prior to give to somebody who has looked at no output: a comparison on many tables.

Every table is split at random into rows to fit and rows to predict; every prior sees bounds and
public inputs only. The measure is the RMSE on the held-out rows over their sd, so that tables count
alike, averaged over splits and draws of the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn import datasets as sklearn_datasets
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel, Matern

from cloakgp.arrays import Array
from cloakgp.choices import choose_query
from cloakgp.datasets import load_citibike, load_hmeq, load_kung, load_london
from cloakgp.fitting import release_regression
from cloakgp.models import ExactPrior
from cloakgp.privacy import OutputBounds
from cloakgp.release import Hyperprior

ROWS = 600
HELD_OUT = 200


@dataclass(frozen=True, eq=False)
class Table:
    """Public inputs, outputs, and bounds that are round numbers from general knowledge."""

    name: str
    X: Array
    outputs: Array
    bounds: tuple[float, float]


@dataclass(frozen=True)
class PriorShape:
    """A prior relative to the bounds and the ranges of the inputs.

    Attributes
    ----------
    family : {"rbf", "matern32", "matern52"}
    lengthscale : float
        Share of each input's range.
    signal, noise : float
        Sds as shares of the bounds' width.
    linear : bool
        Whether a linear trend is added, of the same size over the inputs' range.
    """

    family: Literal["rbf", "matern32", "matern52"]
    lengthscale: float
    signal: float = 1 / 4
    noise: float = 1 / 10
    linear: bool = False

    def kernel(self, X: Array, *, width: float) -> Kernel:
        """Return the kernel for public inputs and bounds of this width."""
        lengths = self.lengthscale * np.ptp(X, axis=0)
        families: dict[str, Callable[[], Kernel]] = {
            "rbf": lambda: RBF(lengths),
            "matern32": lambda: Matern(lengths, nu=1.5),
            "matern52": lambda: Matern(lengths, nu=2.5),
        }
        kernel = ConstantKernel((self.signal * width) ** 2) * families[self.family]()
        if not self.linear:
            return kernel
        slope = (self.signal * width / np.abs(X).max()) ** 2
        return kernel + ConstantKernel(slope) * DotProduct(sigma_0=1.0, sigma_0_bounds="fixed")

    def __str__(self) -> str:
        return (
            f"{self.family}, lengthscale {self.lengthscale:g}, signal {self.signal:.3g}, "
            f"noise {self.noise:.3g}{', linear' * self.linear}"
        )


SHAPES = (
    PriorShape("rbf", 0.25),
    PriorShape("rbf", 0.5),
    PriorShape("rbf", 1.0),
    PriorShape("matern52", 0.5),
    PriorShape("matern32", 0.25),
    PriorShape("matern32", 0.5),
    PriorShape("matern32", 1.0),
    PriorShape("matern32", 0.5, signal=0.15),
    PriorShape("matern32", 0.5, signal=0.4),
    PriorShape("matern32", 0.5, noise=0.05),
    PriorShape("matern32", 0.5, noise=0.2),
    PriorShape("matern32", 0.5, linear=True),
)


def tables() -> Iterator[Table]:
    """Yield the papers' tables and scikit-learn's, at most ROWS + HELD_OUT rows of each."""
    women = load_kung().query("male == 0")
    yield _cut("!Kung, age", women[["age"]], women["height"], (40, 190))
    yield _cut("!Kung, age and weight", women[["age", "weight"]], women["height"], (40, 190))
    yield _cut("!Kung, weight by age", women[["age"]], women["weight"], (0, 80))
    london = load_london()
    places = london[["easting", "northing"]]
    yield _cut("London, place", places, np.log10(london["price"]), (4, 7))
    dated = london[["easting", "northing", "years"]]
    yield _cut("London, place and year", dated, np.log10(london["price"]), (4, 7))
    trips = load_citibike()
    ends = trips[["start_lat", "start_lon", "end_lat", "end_lon"]]
    yield _cut("Citi Bike, trip", ends, trips["tripduration"], (0, 3600))
    starts = trips[["start_lat", "start_lon"]]
    yield _cut("Citi Bike, start", starts, np.log10(trips["tripduration"]), (1.5, 4.5))
    loans = load_hmeq().dropna()
    yield _cut("loans, value", loans[["MORTDUE", "CLNO"]], loans["VALUE"], (0, 400_000))
    patients = sklearn_datasets.load_diabetes(scaled=False)
    yield _cut("diabetes, 3 inputs", patients.data[:, [0, 2, 3]], patients.target, (0, 350))
    wine = sklearn_datasets.load_wine().data
    yield _cut("wine, alcohol", wine[:, [9, 12]], wine[:, 0], (10, 16))
    flowers = sklearn_datasets.load_iris().data
    yield _cut("iris, petal width", flowers[:, :2], flowers[:, 3], (0, 4))
    cells = sklearn_datasets.load_breast_cancer().data
    yield _cut("cells, compactness", cells[:, [0, 4]], cells[:, 5], (0, 0.5))


def _cut(name: str, X: object, outputs: object, bounds: tuple[float, float]) -> Table:
    inputs, values = np.asarray(X, dtype=np.float64), np.asarray(outputs, dtype=np.float64)
    chosen = np.random.default_rng(0).permutation(len(inputs))[: ROWS + HELD_OUT]
    limits = OutputBounds(*map(float, bounds))
    return Table(
        name=name,
        X=inputs[chosen],
        outputs=limits.clip(values[chosen]),
        bounds=(limits.lo, limits.hi),
    )


def relative_error(
    table: Table,
    shape: PriorShape,
    *,
    epsilon: float,
    delta: float,
    learn: Literal["map", "average"] | None,
    draws: int,
    budget_split: float | None = None,
) -> Array:
    """Return RMSE over the sd of the held-out outputs, one per draw of split and noise, (draws,).

    Parameters
    ----------
    table : Table
    shape : PriorShape
    epsilon, delta : float
    learn : {"map", "average"} or None
    draws : int
    budget_split : float, optional
    """
    width = table.bounds[1] - table.bounds[0]
    errors = []
    for draw in range(draws):
        order = np.random.default_rng(draw).permutation(len(table.X))
        held = min(HELD_OUT, len(order) // 4)
        test, train = order[:held], order[held:]
        X = table.X[train]
        prior = ExactPrior(
            kernel=shape.kernel(X, width=width),
            noise_variance=(shape.noise * width) ** 2,
            mean=(table.bounds[0] + table.bounds[1]) / 2,
        )
        release = release_regression(
            X,
            table.outputs[train],
            prior=prior,
            query=choose_query(X),
            bounds=OutputBounds(*table.bounds),
            epsilon=epsilon,
            delta=delta,
            hyperprior=None if learn is None else Hyperprior(),
            average=learn == "average",
            budget_split=budget_split,
        )
        squares = np.square(release.predict(table.X[test]) - table.outputs[test])
        errors.append(np.sqrt(squares.mean()) / table.outputs[test].std())
    return np.array(errors)
