"""The interval first: what it costs where bounds are good, and wins where they are too wide.

Three parts: the tables of `experiments.priors` with bounds as they are, ten and a hundred times as
wide; heights of !Kung women with bounds that nobody would choose; and a map over numbers of rows
and ε of the error of a noisy mean on outputs of several shapes. Bounds are widened to both sides,
by how much to which is drawn. What was computed can be kept in a file, and is not computed again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from rich.table import Table as Printed
from sklearn.model_selection import KFold

from cloakgp import DPGPRegressor
from cloakgp.fitting.interval import find_interval, plan_search
from cloakgp.fitting.strategies import Budget
from cloakgp.privacy import OutputBounds, ask
from cloakgp.utils.arrays import Array
from experiments.cross_validation import root_mean_square
from experiments.datasets import load_kung
from experiments.framework import Experiment, Progress, Rows, table_titled
from experiments.keeping import JsonLines
from experiments.priors import Table, first_tables
from experiments.spread import mean_and_error, with_error
from experiments.ways import Setting, Way, noisy_mean, released

EPSILONS, FACTORS = (1.0, 3.0), (1, 10, 100)
MAP_ROWS = (100, 300, 1_000, 10_000)
MAP_EPSILONS = (0.1, 0.3, 1.0, 3.0)
MAP_FACTORS = (1, 10, 100)
FOUND, DECLARED, MEAN = "interval", "no interval", "noisy mean"
# How many times too wide bounds are tried without a search.
FACTORS_DECLARED = (1, 10)
KUNG_BOUNDS = ((0.0, 250.0), (-1000.0, 1000.0))
KUNG_EPSILON, KUNG_DELTA, FOLDS = 1.0, 0.01, 14

WAYS: Mapping[str, Way] = MappingProxyType(
    {FOUND: released, DECLARED: partial(released, interval=False), MEAN: noisy_mean}
)


def _clusters(rng: np.random.Generator, count: int, *, share: float) -> Array:
    places = np.where(rng.uniform(size=count) < share, 0.05, 0.95)
    return np.clip(places + 0.01 * rng.normal(size=count), 0.0, 1.0)


def _half_at_a_bound(rng: np.random.Generator, count: int) -> Array:
    return np.where(rng.uniform(size=count) < 0.5, 0.0, rng.uniform(size=count))


# Outputs from 0 to 1.
SHAPES: Mapping[str, Callable[[np.random.Generator, int], Array]] = MappingProxyType(
    {
        "normal": lambda rng, n: np.clip(0.5 + rng.normal(size=n) / 6, 0.0, 1.0),
        "uniform": lambda rng, n: rng.uniform(size=n),
        "two clusters": partial(_clusters, share=0.5),
        "a small cluster": partial(_clusters, share=0.9),
        "heavy tails": lambda rng, n: np.clip(0.5 + rng.standard_t(2, size=n) / 40, 0.0, 1.0),
        "integers": lambda rng, n: rng.integers(0, 5, size=n) / 4,
        "half at a bound": _half_at_a_bound,
    }
)


def widened(bounds: OutputBounds, *, factor: float, rng: np.random.Generator) -> OutputBounds:
    """Return bounds so many times as wide, with these anywhere within.

    Examples
    --------
    >>> widened(OutputBounds(0.0, 1.0), factor=1, rng=np.random.default_rng(0))
    OutputBounds(lo=0.0, hi=1.0)
    """
    lo = bounds.lo - rng.uniform(0.0, factor - 1.0) * bounds.width
    return OutputBounds(lo, lo + factor * bounds.width)


def error_of_table(
    table: Table,
    way: Way,
    *,
    epsilon: float,
    factor: float,
    draw: int,
    rows: int,
    insecure_seed: int | None = None,
) -> float:
    """Return the relative error of a way on one split, with bounds so many times as wide."""
    rng = np.random.default_rng((draw, int(factor)))
    wide = replace(table, bounds=widened(table.bounds, factor=factor, rng=rng))
    split = wide.split(draw, rows=rows)
    setting = Setting(epsilon=epsilon, delta=0.0, insecure_seed=insecure_seed)
    return split.relative_error(way(split, setting).mean)


def seed_of_draw(draw: int, *, insecure_seed: int | None) -> int:
    """Return the seed of the noise of a draw: a fresh one, if none is given to count from."""
    if insecure_seed is not None:
        return insecure_seed + draw
    return int(np.random.default_rng().integers(2**31))


def errors_of_ways(
    table: Table,
    ways: Mapping[str, Way],
    *,
    epsilon: float,
    factor: float,
    draw: int,
    rows: int,
    insecure_seed: int | None = None,
) -> dict[str, tuple[float, ...]]:
    """Return what `error_of_table` has of every way, with the same noise: they differ by less."""
    shared = seed_of_draw(draw, insecure_seed=insecure_seed)
    return {
        name: (
            error_of_table(
                table,
                way,
                epsilon=epsilon,
                factor=factor,
                draw=draw,
                rows=rows,
                insecure_seed=shared,
            ),
        )
        for name, way in ways.items()
    }


def width_in_words(factor: int) -> str:
    """Say how wide bounds are."""
    return "of round numbers" if factor == 1 else f"{factor} times as wide"


def kung_error(bounds: tuple[float, float]) -> float:
    """Return the mean over folds of the RMSE in cm of heights by age, by one release of each."""
    women = load_kung().query("male == 0")
    X, y = women[["age"]].to_numpy(dtype=float), women["height"].to_numpy(dtype=float)
    errors = []
    for train, test in KFold(FOLDS).split(X):
        model = DPGPRegressor(bounds=bounds, epsilon=KUNG_EPSILON, delta=KUNG_DELTA)
        errors.append(root_mean_square(model.fit(X[train], y[train]).predict(X[test]) - y[test]))
    return float(np.mean(errors))


def mean_with_interval(
    y: Array, *, bounds: OutputBounds, epsilon: float, interval: bool = True
) -> float:
    """Return a noisy mean, after a search for an interval where the rule allows one.

    Examples
    --------
    >>> y = np.full(1000, 3.0)
    >>> abs(mean_with_interval(y, bounds=OutputBounds(0.0, 1000.0), epsilon=5.0) - 3.0) < 5
    True
    """
    rows, left = len(y), epsilon
    budget = Budget(epsilon, 0.0, noise="laplace")
    plan = plan_search(bounds, budget=budget, rows=rows)
    if interval and plan.rounds:
        made = []

        def count(question: Any, part: Budget) -> Any:
            made.append(part.epsilon)
            return ask(
                np.ones((1, rows)),
                y,
                question=question,
                epsilon=part.epsilon,
                delta=0.0,
                noise="laplace",
            )

        bounds = find_interval(count, bounds=bounds, rows=rows, rounds=plan.rounds)
        left -= math.fsum(made)
    answers = ask(
        np.full((1, rows), 1.0 / rows),
        y,
        question=bounds,
        epsilon=left,
        delta=0.0,
        noise="laplace",
    )
    return float(bounds.clip(answers.values[:, 0] + bounds.middle)[0])


def map_error(
    shape: str, *, rows: int, epsilon: float, factor: float, interval: bool, draw: int
) -> float:
    """Return the RMSE of a noisy mean of outputs of a shape, over these outputs' sd."""
    rng = np.random.default_rng((draw, rows, int(factor)))
    y = SHAPES[shape](rng, rows)
    bounds = widened(OutputBounds(0.0, 1.0), factor=factor, rng=rng)
    predicted = mean_with_interval(y, bounds=bounds, epsilon=epsilon, interval=interval)
    return math.hypot(1.0, (predicted - float(y.mean())) / float(y.std()))


def _told(errors: Array) -> str:
    return with_error(*mean_and_error(errors), ".3f")


@dataclass(frozen=True, eq=False)
class Found:
    """Relative errors on tables, in cm on the !Kung, and of means of synthetic outputs.

    Attributes
    ----------
    tables : mapping of (ε, factor, way) to array of shape (tables, draws)
    names : tuple of str
    kung : mapping of bounds to array of shape (draws,)
    means : mapping of (rows, ε, factor, interval) to array of shape (shapes, draws)
    """

    tables: Mapping[tuple[float, int, str], Array]
    names: tuple[str, ...]
    kung: Mapping[tuple[float, float], Array]
    means: Mapping[tuple[int, float, int, bool], Array]


@dataclass(frozen=True)
class Interval(Experiment[Found]):
    """Compare releases that look for an interval first with those that go by the bounds."""

    name: ClassVar[str] = "interval"
    small: ClassVar[Mapping[str, Any]] = {
        "draws": 2,
        "rows": 120,
        "epsilons": (1.0,),
        "factors": (1, 10),
        "count": 1,
        "kung_draws": 0,
        "map_draws": 2,
        "map_rows": (100, 1_000),
        "map_epsilons": (1.0,),
    }

    draws: Annotated[int, typer.Option(min=0, help="Splits of tables, with their noise.")] = 5
    rows: Rows = 250
    kung_draws: Annotated[int, typer.Option(min=0, help="Releases of each !Kung fold.")] = 5
    map_draws: Annotated[int, typer.Option(min=0, help="Of outputs for the map.")] = 20
    kept: Annotated[Path | None, typer.Option(help="A file to keep figures in.")] = None
    epsilons: Sequence[float] = EPSILONS
    factors: Sequence[int] = FACTORS
    # Of tables; None: all.
    count: int | None = None
    map_rows: Sequence[int] = MAP_ROWS
    map_epsilons: Sequence[float] = MAP_EPSILONS

    def compute(self, progress: Progress) -> Found:
        """Compare on tables, on the !Kung, and on synthetic outputs."""
        kept = JsonLines(self.kept)
        tables = tuple(first_tables(self.count)) if self.draws else ()
        return Found(
            tables=self._of_tables(tables, kept, progress),
            names=tuple(table.name for table in tables),
            kung=self._of_kung(kept, progress),
            means=self._of_means(kept, progress),
        )

    def _of_tables(
        self, tables: Sequence[Table], kept: JsonLines, progress: Progress
    ) -> dict[tuple[float, int, str], Array]:
        found = {
            (epsilon, factor, way): np.zeros((len(tables), self.draws))
            for epsilon in self.epsilons
            for way in WAYS
            for factor in self._factors_of(way)
            if tables
        }
        with progress("tables", steps=len(found) * len(tables) * self.draws) as tick:
            for draw in range(self.draws):
                for number, table in enumerate(tables):
                    for (epsilon, factor, way), errors in found.items():
                        errors[number, draw] = kept.get(
                            ("table", table.name, self.rows, epsilon, factor, way, draw),
                            partial(
                                error_of_table,
                                table,
                                WAYS[way],
                                epsilon=epsilon,
                                factor=factor,
                                draw=draw,
                                rows=self.rows,
                            ),
                        )
                        tick()
        return found

    def _factors_of(self, way: str) -> tuple[int, ...]:
        """Return how many times too wide the bounds are with which a way is tried."""
        tried = {FOUND: self.factors, DECLARED: FACTORS_DECLARED, MEAN: (1,)}[way]
        return tuple(factor for factor in self.factors if factor in tried)

    def _of_kung(self, kept: JsonLines, progress: Progress) -> dict[tuple[float, float], Array]:
        found: dict[tuple[float, float], Array] = {}
        with progress("!Kung", steps=len(KUNG_BOUNDS) * self.kung_draws) as tick:
            for bounds in KUNG_BOUNDS if self.kung_draws else ():
                errors = []
                for draw in range(self.kung_draws):
                    errors.append(kept.get(("kung", *bounds, draw), partial(kung_error, bounds)))
                    tick()
                found[bounds] = np.array(errors)
        return found

    def _of_means(
        self, kept: JsonLines, progress: Progress
    ) -> dict[tuple[int, float, int, bool], Array]:
        found = {
            (rows, epsilon, factor, interval): np.zeros((len(SHAPES), self.map_draws))
            for rows in self.map_rows
            for epsilon in self.map_epsilons
            for factor in MAP_FACTORS
            for interval in (True, False)
            if self.map_draws
        }
        with progress("map", steps=len(found)) as tick:
            for (rows, epsilon, factor, interval), errors in found.items():
                for number, shape in enumerate(SHAPES):
                    for draw in range(self.map_draws):
                        errors[number, draw] = kept.get(
                            ("map", shape, rows, epsilon, factor, interval, draw),
                            partial(
                                map_error,
                                shape,
                                rows=rows,
                                epsilon=epsilon,
                                factor=factor,
                                interval=interval,
                                draw=draw,
                            ),
                        )
                tick()
        return found

    def tables(self, found: Found) -> Iterable[Printed | str]:
        """Lay out errors on tables, on the !Kung, and the map."""
        if found.tables:
            yield from self._table_reports(found)
        for (lo, hi), errors in found.kung.items():
            mean, error = mean_and_error(errors[None])
            yield (
                f"!Kung, height by age at ({KUNG_EPSILON:g}, {KUNG_DELTA:g}), bounds {lo:g} to "
                f"{hi:g}: {with_error(mean, error)} cm, {len(errors)} draws of {FOLDS} folds"
            )
        if found.means:
            yield self._map_report(found)

    def _table_reports(self, found: Found) -> Iterable[Printed]:
        measure = (
            f"RMSE over the sd of held-out outputs (se), δ = 0, at most {self.rows} rows, "
            f"{self.draws} splits"
        )
        heads = [width_in_words(factor) for factor in self.factors]
        table = table_titled(f"{measure}; mean over tables, by bounds", "ε", "way", right=heads)
        for epsilon in self.epsilons:
            for way in WAYS:
                tried = self._factors_of(way)
                cells = (
                    _told(found.tables[epsilon, factor, way]) if factor in tried else ""
                    for factor in self.factors
                )
                table.add_row(f"{epsilon:g}", way, *cells)
        yield table
        columns = [(way, factor) for way in WAYS for factor in self._factors_of(way)]
        for epsilon in self.epsilons:
            table = table_titled(
                f"By table, ε = {epsilon:g}: {measure}, by how many times too wide bounds are",
                "table",
                right=[f"{way}, {factor} ×" for way, factor in columns],
            )
            for number, name in enumerate(found.names):
                errors = (found.tables[epsilon, factor, way] for way, factor in columns)
                table.add_row(name, *(_told(one[number : number + 1]) for one in errors))
            yield table

    def _map_report(self, found: Found) -> Printed:
        title = (
            "RMSE of a noisy mean, over that with good bounds and no search: mean over "
            f"{len(SHAPES)} shapes and {self.map_draws} draws, and the largest of the shapes' "
            "means; with a search for an interval, and in brackets the mean without"
        )
        heads = [f"{factor} × too wide" if factor > 1 else "good bounds" for factor in MAP_FACTORS]
        table = table_titled(title, "rows", "ε", right=heads)
        for rows in self.map_rows:
            for epsilon in self.map_epsilons:
                base = found.means[rows, epsilon, 1, False].mean(axis=1)
                cells = []
                for factor in MAP_FACTORS:
                    looked, declared = (
                        found.means[rows, epsilon, factor, way].mean(axis=1) / base
                        for way in (True, False)
                    )
                    cells.append(f"{looked.mean():.2f}, {looked.max():.2f} ({declared.mean():.2f})")
                table.add_row(f"{rows}", f"{epsilon:g}", *cells)
        return table
