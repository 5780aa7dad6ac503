"""Which prior to give to somebody who has looked at no output: a comparison on many tables.

Every table is split at random into rows to fit and rows to predict; every prior sees bounds and
public inputs only. The measure is the RMSE on the held-out rows over their sd, so that tables count
alike. Every draw has a split of its own, the same for all shapes, and noise of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from sklearn import datasets as sklearn_datasets
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel, Matern

from cloakgp.arrays import Array
from cloakgp.datasets import load_citibike, load_hmeq, load_kung, load_london
from cloakgp.experiments.asked import Asked
from cloakgp.experiments.cloaked import Budget
from cloakgp.experiments.crossvalidation import Tick, root_mean_square, ticked
from cloakgp.models import ExactPrior
from cloakgp.privacy import OutputBounds
from cloakgp.workers import in_order

TABLE_ROWS = 800
HELD_OUT = 200


@dataclass(frozen=True, eq=False)
class Table:
    """Public inputs, outputs, and bounds that are round numbers from general knowledge."""

    name: str
    X: Array
    outputs: Array
    bounds: OutputBounds

    def split(self, number: int, *, rows: int) -> Split:
        """Deal rows to fit and to predict at random; the same for the same number."""
        order = np.random.default_rng(number).permutation(len(self.X))
        held = min(HELD_OUT, len(order) // 4)
        test, train = order[:held], order[held : held + rows]
        return Split(
            X=self.X[train],
            outputs=self.outputs[train],
            X_test=self.X[test],
            outputs_test=self.outputs[test],
            bounds=self.bounds,
        )


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of one table, to fit and to predict."""

    X: Array
    outputs: Array
    X_test: Array
    outputs_test: Array
    bounds: OutputBounds

    def prior(self, shape: PriorShape) -> ExactPrior:
        """Return the prior of a shape for these rows and bounds."""
        width = self.bounds.width
        return ExactPrior(
            kernel=shape.kernel(self.X, width=width),
            noise_variance=(shape.noise * width) ** 2,
            mean=self.bounds.middle,
        )

    def budget(self, scale: Scale) -> Budget:
        """Return what a release of these rows may spend."""
        return Budget(bounds=self.bounds, epsilon=scale.epsilon, delta=scale.delta)

    def relative_error(self, predicted: Array) -> float:
        """Return the RMSE over the sd of the held-out outputs."""
        return root_mean_square(predicted - self.outputs_test) / float(self.outputs_test.std())


@dataclass(frozen=True)
class Scale:
    """How large a comparison is.

    Attributes
    ----------
    rows : int
        The most rows that are fitted.
    draws : int
        Splits, each with noise of its own.
    epsilon, delta : float
    insecure_seed : int or None
        Makes the noise reproducible. For tests.
    """

    rows: int = 250
    draws: int = 8
    epsilon: float = 1.0
    delta: float = 0.01
    insecure_seed: int | None = None

    def seed(self, draw: int) -> int | None:
        """Return the seed of a draw's noise, or None."""
        return None if self.insecure_seed is None else self.insecure_seed + draw


@dataclass(frozen=True)
class PriorShape:
    """A prior relative to the bounds and the ranges of the inputs.

    Attributes
    ----------
    family : {"rbf", "matern32", "matern52"}
    lengthscale : float
        Share of each input's range; of √D ranges if there are D inputs.
    signal, noise : float
        Sds as shares of the bounds' width.
    linear : bool
        Whether a linear trend is added, of the same size over the inputs' range.
    rooted : bool
        Whether lengthscales grow with √D, as distances do.
    """

    family: Literal["rbf", "matern32", "matern52"]
    lengthscale: float
    signal: float = 1 / 4
    noise: float = 1 / 10
    linear: bool = False
    rooted: bool = True

    def kernel(self, X: Array, *, width: float) -> Kernel:
        """Return the kernel for public inputs and bounds of this width."""
        grown = np.sqrt(X.shape[1]) if self.rooted else 1.0
        lengths = self.lengthscale * grown * np.ptp(X, axis=0)
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
            f"{self.family}, lengthscale {self.lengthscale:g}{' √D' * self.rooted}, "
            f"signal {self.signal:.3g}, noise {self.noise:.3g}{', linear' * self.linear}"
        )


DEFAULT_SHAPE = PriorShape("matern32", 0.5, signal=0.3)
SHAPES = (
    PriorShape("rbf", 0.25, signal=0.3),
    PriorShape("rbf", 0.5, signal=0.3),
    PriorShape("rbf", 1.0, signal=0.3),
    PriorShape("matern52", 0.5, signal=0.3),
    PriorShape("matern32", 0.25, signal=0.3),
    DEFAULT_SHAPE,
    PriorShape("matern32", 1.0, signal=0.3),
    PriorShape("matern32", 0.5, signal=0.3, rooted=False),
    PriorShape("matern32", 0.5, signal=0.15),
    PriorShape("matern32", 0.4, signal=0.25),
    PriorShape("matern32", 0.5, signal=0.4),
    PriorShape("matern32", 0.5, signal=0.3, noise=0.05),
    PriorShape("matern32", 0.5, signal=0.3, noise=0.2),
    PriorShape("matern32", 0.5, signal=0.3, linear=True),
)


def tables() -> Iterator[Table]:
    """Yield the papers' tables and scikit-learn's, at most TABLE_ROWS rows of each."""
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
    chosen = np.random.default_rng(0).permutation(len(inputs))[:TABLE_ROWS]
    limits = OutputBounds(*map(float, bounds))
    return Table(
        name=name,
        X=inputs[chosen],
        outputs=limits.clip(values[chosen]),
        bounds=limits,
    )


def compare_shapes(
    compared: Iterable[Table],
    *,
    shapes: Sequence[PriorShape] = SHAPES,
    scale: Scale,
    tick: Tick | None = None,
    n_jobs: int | None = None,
) -> dict[str, Array]:
    """Return relative errors of declared priors, by name of table, shape (shapes, draws).

    Parameters
    ----------
    compared : iterable of Table
    shapes : sequence of PriorShape
    scale : Scale
    tick : callable, optional
        Called after every table.
    n_jobs : int, optional
        How many splits at a time; see `cloakgp.workers.in_order`.
    """
    compared = list(compared)
    tasks = (
        partial(_errors_of_shapes, table, draw, shapes=shapes, scale=scale)
        for table in compared
        for draw in range(scale.draws)
    )
    errors = ticked(in_order(tasks, n_jobs=n_jobs), tick=tick, every=scale.draws)
    by_table = np.array(list(errors)).reshape(len(compared), scale.draws, len(shapes))
    return {table.name: one.T for table, one in zip(compared, by_table, strict=True)}


def _errors_of_shapes(
    table: Table, draw: int, *, shapes: Sequence[PriorShape], scale: Scale
) -> list[float]:
    """Return the relative errors of declared priors on one split."""
    split = table.split(draw, rows=scale.rows)
    errors = []
    for shape in shapes:
        asked = Asked.designed(split.X, prior=split.prior(shape), budget=split.budget(scale))
        release = asked.released(split.outputs, insecure_seed=scale.seed(draw))
        errors.append(split.relative_error(release.predict(split.X_test)))
    return errors
