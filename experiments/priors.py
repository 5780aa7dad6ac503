"""Which prior to give to somebody who has looked at no output: a comparison on many tables.

Every table is split at random into rows to fit and rows to predict; every prior sees bounds and
public inputs only. The measure is the RMSE on the held-out rows over their sd, so that tables count
alike. Every draw has a split of its own, the same for all shapes, and noise of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import typer
from rich.table import Table as Printed
from sklearn import datasets as sklearn_datasets
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel, Matern

from cloakgp.models import ExactPrior, default_kernel
from cloakgp.models.defaults import NOISE_SD_SHARE
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.workers import in_order
from cloakgp.utils.arrays import Array
from experiments.cloaking import LEARNINGS, Asked, Budget, learned
from experiments.cross_validation import root_mean_square
from experiments.datasets import load_citibike, load_hmeq, load_kung, load_london
from experiments.framework import (
    Experiment,
    Progress,
    Rows,
    Splits,
    Tick,
    no_tick,
    table_titled,
    ticked,
)
from experiments.spread import mean_and_error, with_error

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

    def prior(self, shape: Shape) -> ExactPrior:
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


@dataclass(frozen=True)
class DefaultShape:
    """The package's default: level + linear + Matérn 3/2 (`cloakgp.models.defaults`)."""

    noise: float = NOISE_SD_SHARE

    def kernel(self, X: Array, *, width: float) -> Kernel:
        """Return the kernel for public inputs and bounds of this width."""
        return default_kernel(X, width=width)

    def __str__(self) -> str:
        return "default: level + linear + Matérn 3/2"


Shape = PriorShape | DefaultShape
DEFAULT_SHAPE, MATERN_SHAPE = DefaultShape(), PriorShape("matern32", 0.5, signal=0.3)
SHAPES: tuple[Shape, ...] = (
    DEFAULT_SHAPE,
    MATERN_SHAPE,
    PriorShape("matern32", 0.25, signal=0.3),
    PriorShape("matern32", 1.0, signal=0.3),
    PriorShape("matern32", 0.5, signal=0.3, rooted=False),
    PriorShape("matern32", 0.5, signal=0.15),
    PriorShape("matern32", 0.5, signal=0.3, noise=0.2),
    PriorShape("matern52", 0.5, signal=0.3),
    PriorShape("rbf", 0.5, signal=0.3),
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
    return Table(name=name, X=inputs[chosen], outputs=limits.clip(values[chosen]), bounds=limits)


def compare_shapes(
    compared: Iterable[Table],
    *,
    shapes: Sequence[Shape] = SHAPES,
    scale: Scale,
    tick: Tick = no_tick,
    n_jobs: int | None = None,
) -> dict[str, Array]:
    """Return relative errors of declared priors, by name of table, shape (shapes, draws).

    Parameters
    ----------
    shapes : sequence of PriorShape or DefaultShape
    n_jobs : int, optional
        How many splits at a time; see `cloakgp.privacy.workers.in_order`.
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
    table: Table, draw: int, *, shapes: Sequence[Shape], scale: Scale
) -> list[float]:
    """Return the relative errors of declared priors on one split."""
    split = table.split(draw, rows=scale.rows)
    errors = []
    for shape in shapes:
        asked = Asked.designed(split.X, prior=split.prior(shape), budget=split.budget(scale))
        release = asked.released(split.outputs, insecure_seed=scale.seed(draw))
        errors.append(split.relative_error(release.predict(split.X_test)))
    return errors


EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
WAYS = ("None", "map", "average")


@dataclass(frozen=True, eq=False)
class Paired:
    """Relative errors of the ways to learn, on the same splits.

    Attributes
    ----------
    by_table : dict of str to array of shape (ways, draws)
        In the order of `WAYS`.
    """

    by_table: dict[str, Array]

    @property
    def errors(self) -> Array:
        """All of them, shape (ways, tables, draws)."""
        return np.stack(list(self.by_table.values()), axis=1)

    @property
    def differences(self) -> Array:
        """Relative errors less those of the declared prior, shape (ways, tables, draws)."""
        differences: Array = self.errors - self.errors[:1]
        return differences


def compare_learning(
    compared: Iterable[Table],
    *,
    epsilons: Sequence[float] = EPSILONS,
    scale: Scale,
    tick: Tick = no_tick,
) -> dict[float, Paired]:
    """Compare the ways to learn around the default prior, by ε.

    Parameters
    ----------
    scale : Scale
        Its ε is not used.
    """
    by_table = {table.name: table for table in compared}
    found = {}
    for epsilon in epsilons:
        spent = replace(scale, epsilon=epsilon)
        errors = {}
        for name, table in by_table.items():
            draws = [
                _errors_of(table.split(draw, rows=scale.rows), scale=spent, draw=draw)
                for draw in range(scale.draws)
            ]
            errors[name] = np.array(draws).T
            tick()
        found[epsilon] = Paired(by_table=errors)
    return found


def _errors_of(split: Split, *, scale: Scale, draw: int) -> list[float]:
    """Return the relative errors of `WAYS` for one split and one draw of the noise."""
    prior, seed = split.prior(DEFAULT_SHAPE), scale.seed(draw)
    asked = Asked.designed(split.X, prior=prior, budget=split.budget(scale))
    answered = asked.released(split.outputs, insecure_seed=seed)
    releases = [learned(answered, learning) for learning in LEARNINGS]
    return [split.relative_error(release.predict(split.X_test)) for release in releases]


def shapes_report(found: Mapping[str, Array], *, shapes: Sequence[Shape], title: str) -> Printed:
    """Lay out relative errors by shape, and less those of the first.

    Parameters
    ----------
    found : mapping of table to array of shape (shapes, draws)
    shapes : sequence of PriorShape or DefaultShape
    """
    heads = ("error (se)", "less the first", "better on", "median", "worst table")
    table = table_titled(title, "prior", right=heads)
    names, errors = list(found), np.stack(list(found.values()), axis=1)
    for shape, of_shape in zip(shapes, errors, strict=True):
        differences, by_table = of_shape - errors[0], of_shape.mean(axis=1)
        better = int((differences.mean(axis=1) < 0).sum())
        less = [with_error(*mean_and_error(differences), "+.3f"), f"{better} of {len(names)}"]
        table.add_row(
            str(shape),
            with_error(*mean_and_error(of_shape), ".3f"),
            *(["", ""] if shape == shapes[0] else less),
            f"{np.median(by_table):.3f}",
            f"{by_table.max():.3f} ({names[int(by_table.argmax())]})",
        )
    return table


def learning_report(found: Mapping[float, Paired], *, title: str) -> Printed:
    """Lay out what learning gains over the declared prior, by ε."""
    errors = ("ε", "learn", "error (se)", "less None's (se)")
    differences = ("25 %", "75 %", "worst", "worse in")
    table = table_titled(title, right=(*errors, *differences))
    for epsilon, paired in found.items():
        for way, name in enumerate(WAYS):
            mean, error = mean_and_error(paired.errors[way])
            cells = [f"{epsilon:g}", name, with_error(mean, error, ".4f")]
            if way:
                gains = paired.differences[way]
                gain, gain_error = mean_and_error(gains)
                cells.append(with_error(gain, gain_error, "+.4f"))
                quantiles = np.quantile(gains, (0.25, 0.75, 1.0))
                cells += [f"{quantile:+.3f}" for quantile in quantiles]
                cells.append(f"{np.mean(gains > 0):.0%}")
            table.add_row(*cells)
        table.add_section()
    return table


def learning_by_table_report(found: Mapping[float, Paired], *, way: int, title: str) -> Printed:
    """Lay out one way's mean difference to the declared prior, by table and ε.

    Parameters
    ----------
    way : int
        Position in `WAYS`.
    """
    columns = (f"ε = {epsilon:g}" for epsilon in found)
    table = table_titled(title, "table", right=columns)
    for number, name in enumerate(next(iter(found.values())).by_table):
        gains = (
            mean_and_error(paired.differences[way][number : number + 1])
            for paired in found.values()
        )
        table.add_row(name, *(with_error(gain, error, "+.3f") for gain, error in gains))
    return table


def first_tables(count: int | None) -> list[Table]:
    """Return so many of `tables`, or all for None."""
    return list(islice(tables(), count))


@dataclass(frozen=True, eq=False)
class Found:
    """Relative errors by table, of shape (shapes, draws), and of the ways to learn by ε."""

    by_shape: Mapping[str, Array]
    learning: Mapping[float, Paired]


@dataclass(frozen=True)
class Priors(Experiment[Found]):
    """Compare default priors on twelve tables, and learning from answers with not learning."""

    name: ClassVar[str] = "priors"
    small: ClassVar[Mapping[str, Any]] = {
        "draws": 2,
        "rows": 100,
        "epsilon": 1.0,
        "count": 2,
        "shapes": SHAPES[:2],
        "epsilons": (1.0,),
    }

    draws: Splits = 5
    rows: Rows = 250
    epsilon: Annotated[float, typer.Option(help="Where nothing is learned.")] = 1.0
    # Of tables; None: all.
    count: int | None = None
    shapes: Sequence[Shape] = SHAPES
    epsilons: Sequence[float] = EPSILONS

    @property
    def scale(self) -> Scale:
        """How large the comparison is."""
        return Scale(rows=self.rows, draws=self.draws, epsilon=self.epsilon)

    def compute(self, progress: Progress) -> Found:
        """Compare shapes, and ways to learn around the default."""
        compared = first_tables(self.count)
        with progress("shapes", steps=len(compared)) as tick:
            by_shape = compare_shapes(compared, shapes=self.shapes, scale=self.scale, tick=tick)
        with progress("learning", steps=len(compared) * len(self.epsilons)) as tick:
            learning = compare_learning(
                compared, epsilons=self.epsilons, scale=self.scale, tick=tick
            )
        return Found(by_shape=by_shape, learning=learning)

    def tables(self, found: Found) -> Iterable[Printed | str]:
        """Lay out errors by shape, and what learning gains."""
        scale = self.scale
        measure = (
            f"RMSE over the sd of held-out outputs, at most {scale.rows} rows, {scale.draws} "
            f"splits with noise of their own, δ = {scale.delta:g}; se over draws, tables as they "
            "are"
        )
        title = f"Declared priors, learn=None, ε = {scale.epsilon:g}: {measure}"
        yield shapes_report(found.by_shape, shapes=self.shapes, title=title)
        title = f"Learning around the default, in one stage: {measure}"
        yield learning_report(found.learning, title=title)
        for way in range(1, len(WAYS)):
            title = f"The same by table: learn={WAYS[way]} less None"
            yield learning_by_table_report(found.learning, way=way, title=title)
