"""Errors of sparse processes of many rows, by how many inducing inputs they have.

Ours with 200 inducing inputs and with as many as the kernel that is learned is worth, beside two
references without privacy: boosted trees (scikit-learn's histogram gradient boosting with its
defaults) and linear regression. Inputs are public, outputs are private; a row is a person's.

Tables: Friedman's function of five of nine uniform inputs, with noise of sd 1 (Friedman 1991);
trips by Citi Bike (`experiments.datasets.load_citibike`), logarithms of durations by places; and
logarithms of prices of 53,940 diamonds by nine columns, from the package plotnine where it is
installed (its `data/diamonds.csv`).

Every fit is a process of its own, so that its processor time and its peak of memory are its own.
"""

from __future__ import annotations

import hashlib
import importlib.util
import resource
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
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

EPSILONS = (0.3, 1.0, 3.0)
HELD_OUT = 4_000
FRIEDMAN_ROWS, FRIEDMAN_INPUTS, FRIEDMAN_BOUNDS = 50_000, 9, (-5.0, 35.0)
TRIP_BOUNDS, PRICE_BOUNDS = (60.0, 7200.0), (245.0, 22_000.0)
DIAMONDS_SHA256 = "9574730b03aba241d899c4a97511c5061b19358fab89510774fb6c24168345c4"
GRADES = {
    "cut": ("Fair", "Good", "Very Good", "Premium", "Ideal"),
    "color": tuple("JIHGFED"),
    "clarity": ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
}
NOT_THERE = "diamonds: left out, as plotnine is not installed"


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


def diamonds() -> Rows | None:
    """Return diamonds, with logarithms of their prices; None where there is no table."""
    found = importlib.util.find_spec("plotnine")
    places = [] if found is None else list(found.submodule_search_locations or ())
    files = [Path(place) / "data" / "diamonds.csv" for place in places]
    file = next((one for one in files if one.exists()), None)
    if file is None:
        return None
    if hashlib.sha256(file.read_bytes()).hexdigest() != DIAMONDS_SHA256:
        raise ValueError(f"{file} is another table of diamonds than this was measured on")
    table = pd.read_csv(file)
    grades = [table[name].map(grades.index) for name, grades in GRADES.items()]
    sizes = [table[name] for name in ("depth", "table", "x", "y", "z")]
    X = np.column_stack([np.log(table["carat"]), *grades, *sizes]).astype(float)
    lo, hi = np.log(PRICE_BOUNDS)
    return Rows(X=X, y=np.log(table["price"].to_numpy(dtype=float)), bounds=(float(lo), float(hi)))


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
        list[str] | None, typer.Option("--table", help="friedman, trips, diamonds.")
    ] = None
    epsilons: Annotated[list[float] | None, typer.Option("--epsilon", help="Budgets.")] = None
    rows: int = FRIEDMAN_ROWS
    held_out: int = HELD_OUT

    def _tables(self) -> dict[str, Rows]:
        made: dict[str, Callable[[], Rows | None]] = {
            "friedman": lambda: friedman(self.rows + self.held_out),
            "trips": trips,
            "diamonds": diamonds,
        }
        found = {name: made[name]() for name in self.names or made}
        return {name: one for name, one in found.items() if one is not None}

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
                for inducing in (200, "auto")
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
        if "diamonds" in (self.names or ["diamonds"]) and not any(
            table == "diamonds" for table, *_ in found
        ):
            yield NOT_THERE


def _span(values: Sequence[float], form: str) -> str:
    """Return a value, the mean of several and their ends, or nothing for none."""
    if not values:
        return ""
    if len(values) == 1:
        return form.format(values[0])
    ends = f"({form.format(min(values))} to {form.format(max(values))})"
    mean = float(np.mean(values))
    return f"{form.format(round(mean) if form == '{:,}' else mean)} {ends}"
