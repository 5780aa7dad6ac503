"""Laplace noise without δ, Gaussian noise with one, and which of both is expected to be better.

Two parts: what releases are expected to be worth under the default prior, by ε, δ, rows and inputs,
from public inputs alone; and what they were worth on the tables of `experiments.priors`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from rich.table import Table as Printed

from cloakgp import DPGPRegressor
from cloakgp.privacy.noise_choice import LEAD
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseName
from experiments.adaptive import split_tables
from experiments.framework import Experiment, Progress, Rows, Splits, table_titled
from experiments.priors import Split, first_tables
from experiments.spread import mean_and_error, with_error
from experiments.ways import Compared, Predicted, Setting, Way, compare, noisy_mean, released

EPSILONS = (0.1, 0.3, 1.0, 3.0)
DELTAS = (1e-2, 1e-5, 1e-8)
FORECAST_ROWS, FORECAST_INPUTS = (100, 1000), (1, 2, 5)
# Width of bounds: errors are told as shares of it.
WIDTH = 1.0
QUERIES = 100

PURE, MEAN = "Laplace, δ = 0", "noisy mean, δ = 0"


def gaussian_way(delta: float) -> str:
    """Return the name of releases with Gaussian noise."""
    return f"Gaussian, δ = {delta:g}"


def ways_for(deltas: Sequence[float]) -> dict[str, Way]:
    """Return ways to release a table with either noise; their own δ replaces the setting's."""
    ways: dict[str, Way] = {PURE: partial(_with_delta, delta=0.0, noise="laplace")}
    for delta in deltas:
        ways[gaussian_way(delta)] = partial(_with_delta, delta=delta, noise="gaussian")
    return ways | {MEAN: noisy_mean}


def _with_delta(split: Split, setting: Setting, *, delta: float, noise: NoiseName) -> Predicted:
    return released(split, replace(setting, delta=delta), noise=noise)


@dataclass(frozen=True)
class Forecasts:
    """Expected errors of the curve at query points, as shares of the bounds' width.

    Attributes
    ----------
    laplace : mapping of (ε, rows, inputs) to float
    gaussian : mapping of (ε, δ, rows, inputs) to float
    """

    laplace: Mapping[tuple[float, int, int], float]
    gaussian: Mapping[tuple[float, float, int, int], float]


def forecast_error(rows: int, inputs: int, *, epsilon: float, delta: float) -> float:
    """Return the expected error of a release of uniform inputs, Laplace where δ is 0.

    Examples
    --------
    >>> bool(forecast_error(50, 1, epsilon=1.0, delta=0.0) < 0.3)
    True
    """
    X: Array = np.random.default_rng((rows, inputs)).uniform(size=(rows, inputs))
    noise: NoiseName = "laplace" if delta == 0 else "gaussian"
    model = DPGPRegressor(bounds=(0.0, WIDTH), epsilon=epsilon, delta=delta, noise=noise)
    [forecast] = model.forecast(X, X[:QUERIES])
    return forecast.error / WIDTH


def expected_ratio(split: Split, *, epsilon: float, delta: float) -> float:
    """Return the expected error of a curve with Gaussian noise over that with Laplace noise."""
    bounds = (split.bounds.lo, split.bounds.hi)
    noises: tuple[NoiseName, NoiseName] = ("gaussian", "laplace")
    gaussian, laplace = (
        DPGPRegressor(bounds=bounds, epsilon=epsilon, delta=delta, noise=noise).forecast(split.X)[0]
        for noise in noises
    )
    return gaussian.error / laplace.error


@dataclass(frozen=True, eq=False)
class Found:
    """Forecasts, what was found on tables by ε, and what was expected there by ε and δ.

    Attributes
    ----------
    forecasts : Forecasts
    tables : mapping of ε to Compared
    ratios : mapping of (ε, δ) to array of shape (tables,)
        Expected errors with Gaussian noise over those with Laplace noise, of the first splits.
    """

    forecasts: Forecasts
    tables: Mapping[float, Compared]
    ratios: Mapping[tuple[float, float], Array]


@dataclass(frozen=True)
class Noises(Experiment[Found]):
    """Compare Laplace noise without δ and Gaussian noise with one, by forecast and on tables."""

    name: ClassVar[str] = "noises"
    small: ClassVar[Mapping[str, Any]] = {
        "draws": 2,
        "rows": 40,
        "epsilons": (1.0,),
        "deltas": (1e-5,),
        "table_deltas": (1e-5,),
        "count": 1,
        "forecast_rows": (50,),
        "forecast_inputs": (1,),
    }

    draws: Splits = 5
    rows: Rows = 250
    epsilons: Sequence[float] = EPSILONS
    deltas: Sequence[float] = DELTAS
    # On tables.
    table_deltas: Sequence[float] = (1e-5,)
    # Of tables; None: all.
    count: int | None = None
    forecast_rows: Sequence[int] = FORECAST_ROWS
    forecast_inputs: Sequence[int] = FORECAST_INPUTS
    insecure_seed: int | None = None

    def compute(self, progress: Progress) -> Found:
        """Forecast, and compare on tables."""
        splits = split_tables(first_tables(self.count), draws=self.draws, rows=self.rows)
        return Found(
            forecasts=self._forecasts(progress),
            tables=self._tables(splits, progress),
            ratios={
                (epsilon, delta): np.array(
                    [
                        expected_ratio(of_table[0], epsilon=epsilon, delta=delta)
                        for of_table in splits.values()
                    ]
                )
                for epsilon in self.epsilons
                for delta in self.table_deltas
            },
        )

    def _forecasts(self, progress: Progress) -> Forecasts:
        laplace: dict[tuple[float, int, int], float] = {}
        gaussian: dict[tuple[float, float, int, int], float] = {}
        shapes = [(rows, inputs) for rows in self.forecast_rows for inputs in self.forecast_inputs]
        steps = len(shapes) * len(self.epsilons) * (1 + len(self.deltas))
        with progress("forecasts", steps=steps) as tick:
            for rows, inputs in shapes:
                for epsilon in self.epsilons:
                    laplace[epsilon, rows, inputs] = forecast_error(
                        rows, inputs, epsilon=epsilon, delta=0.0
                    )
                    tick()
                    for delta in self.deltas:
                        gaussian[epsilon, delta, rows, inputs] = forecast_error(
                            rows, inputs, epsilon=epsilon, delta=delta
                        )
                        tick()
        return Forecasts(laplace=laplace, gaussian=gaussian)

    def _tables(
        self, splits: Mapping[str, Sequence[Split]], progress: Progress
    ) -> dict[float, Compared]:
        steps = len(self.epsilons) * len(splits) * self.draws
        with progress("tables", steps=steps) as tick:
            return {
                epsilon: compare(
                    splits,
                    ways=ways_for(self.table_deltas),
                    setting=Setting(epsilon=epsilon, insecure_seed=self.insecure_seed),
                    tick=tick,
                )
                for epsilon in self.epsilons
            }

    def tables(self, found: Found) -> Iterable[Printed | str]:
        """Lay out forecasts, and errors on tables."""
        yield self._forecast_table(found.forecasts)
        title = (
            f"RMSE over the sd of held-out outputs; at most {self.rows} rows, {self.draws} splits "
            "with noise of their own; se over splits; share held by 95 % intervals"
        )
        ways = next(iter(found.tables.values())).ways
        table = table_titled(title, "ε", right=ways)
        for epsilon, compared in found.tables.items():
            cells = []
            for way in ways:
                mean, error = mean_and_error(compared.errors_of(way))
                held = compared.coverage_of(way).mean()
                share = f" {held:.0%}" if np.isfinite(held) else ""
                cells.append(with_error(mean, error, ".3f") + share)
            table.add_row(f"{epsilon:g}", *cells)
        yield table
        yield self._ratio_table(found)

    def _ratio_table(self, found: Found) -> Printed:
        tables = len(next(iter(found.ratios.values())))
        title = (
            "Error with Gaussian noise over error with Laplace noise, mean over tables: of the "
            "curve, as expected under the default prior, and of held-out outputs, as it was; and "
            f"on how many of {tables} tables noise='auto' is Gaussian"
        )
        table = table_titled(title, "ε", "δ", right=("expected", "was", "auto is Gaussian"))
        for (epsilon, delta), expected in found.ratios.items():
            compared = found.tables[epsilon]
            gaussian, laplace = (
                compared.errors_of(way).mean(axis=1) for way in (gaussian_way(delta), PURE)
            )
            was = float((gaussian / laplace).mean())
            taken = np.count_nonzero(expected < LEAD)
            figures = (f"{expected.mean():.2f}", f"{was:.2f}", f"{taken}")
            table.add_row(f"{epsilon:g}", f"{delta:g}", *figures)
        return table

    def _forecast_table(self, forecasts: Forecasts) -> Printed:
        title = (
            "Expected error of the curve under the default prior, uniform inputs, in per cent of "
            "the bounds' width: Laplace noise without δ, and Gaussian noise by δ"
        )
        right = ("Laplace", *(f"δ = {delta:g}" for delta in self.deltas), "Gaussian wins at")
        table = table_titled(title, "rows", "inputs", "ε", right=right)
        for (epsilon, rows, inputs), error in forecasts.laplace.items():
            others = [forecasts.gaussian[epsilon, delta, rows, inputs] for delta in self.deltas]
            wins = [
                f"{delta:g}"
                for delta, other in zip(self.deltas, others, strict=True)
                if other < error
            ]
            cells = (f"{100 * each:.1f}" for each in (error, *others))
            table.add_row(f"{rows}", f"{inputs}", f"{epsilon:g}", *cells, ", ".join(wins) or "none")
        return table
