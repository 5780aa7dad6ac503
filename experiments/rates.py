"""Rates of simulated counts: their likelihood beside plain regression of counts over exposure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from rich.table import Table

from cloakgp import DPGPRegressor
from cloakgp.models.likelihoods.counts import count_distribution
from cloakgp.utils.arrays import Array
from experiments.framework import Experiment, Progress, RowDraws, Rows, table_titled
from experiments.spread import draw_by_draw, means_with_errors

BOUNDS, COVERAGE, NEW = (0, 200), 0.9, 2000
# Rates from 0.2 to 20 about their middle; with r of a negative binomial, and Poisson.
MIDDLE, RATIO, OVERDISPERSIONS = 2.0, 10.0, (8.0, 0.5, 0.0)
# Rates that counts are high for.
HIGH = 8.0
INDUCING, EXACT_ROWS = 100, 1000
# As the normal distribution has them: what 90 % intervals of numbers reach, in sds.
REACH = 1.645
MEASURES = (
    "error of rates",
    "of their logarithms",
    "limits hold 95 %",
    "holds 90 %",
    "of rates above 8",
    "numbers wide",
)


@dataclass(frozen=True, eq=False)
class Counted:
    """Rows: inputs, rates, exposures and counts."""

    X: Array
    rates: Array
    exposure: Array
    counts: Array

    @classmethod
    def drawn(cls, rng: np.random.Generator, rows: int, *, overdispersion: float) -> Counted:
        """Draw rows of two inputs."""
        X = rng.uniform(0, 1, (rows, 2))
        wave = np.sin(2.2 * np.pi * X[:, 0] + 0.5) * np.cos(1.5 * X[:, 1])
        rates, exposure = MIDDLE * RATIO**wave, rng.uniform(0.5, 2.0, rows)
        counts = count_distribution(exposure * rates, overdispersion).rvs(random_state=rng)
        return cls(X, rates, exposure, np.asarray(counts, dtype=np.float64))


def measured(
    rows: int, *, overdispersion: float, epsilon: float, draw: int
) -> dict[str, tuple[float, ...]]:
    """Return what each way measures in one draw of rows and noise.

    Parameters
    ----------
    rows : int
    overdispersion : float
        Of the truth: α = 1/r.
    epsilon : float
    draw : int
    """
    rng = np.random.default_rng(draw)
    known = Counted.drawn(rng, rows, overdispersion=overdispersion)
    new = Counted.drawn(rng, NEW, overdispersion=overdispersion)
    settings: dict[str, Any] = {
        "bounds": BOUNDS,
        "epsilon": epsilon,
        "inducing": None if rows <= EXACT_ROWS else INDUCING,
        "insecure_seed": 1000 + draw,
    }
    counts = DPGPRegressor(likelihood="counts", **settings)
    counts.fit(known.X, known.counts, exposure=known.exposure)
    interval = counts.release_.predict_interval(new.X, COVERAGE, exposure=new.exposure)
    plain = DPGPRegressor(**settings).fit(known.X, known.counts / known.exposure).release_
    mean, sd = plain.predict(new.X, return_std=True, new_output=True)
    ends = [new.exposure * (mean + sign * REACH * sd) for sign in (-1.0, 1.0)]
    whole = np.maximum(np.floor(ends[0]), 0.0), np.ceil(ends[1])
    return {
        "counts": _measures(
            counts.release_.predict(new.X), counts.release_.predict_limits(new.X), interval, new
        ),
        "numbers": _measures(np.maximum(mean, 0.0), plain.predict_limits(new.X), whole, new),
    }


def _measures(
    rates: Array, limits: tuple[Array, Array], interval: tuple[Array, Array], new: Counted
) -> tuple[float, ...]:
    lower, upper = interval
    held, high = (lower <= new.counts) & (new.counts <= upper), new.rates > HIGH
    # Of no rate there is no logarithm.
    logs = np.log(np.maximum(rates, 0.05)) - np.log(new.rates)
    return (
        float(np.abs(rates - new.rates).mean()),
        float(np.abs(logs).mean()),
        float(np.mean((limits[0] <= new.rates) & (new.rates <= limits[1]))),
        float(held.mean()),
        float(held[high].mean()),
        float((upper - lower + 1).mean()),
    )


Found = dict[tuple[float, str], list[tuple[float, ...]]]


@dataclass(frozen=True)
class Rates(Experiment[Found]):
    """Rates of simulated counts, by their likelihood and by plain regression.

    Attributes
    ----------
    rows, draws : int
    epsilon : float
    """

    name: ClassVar[str] = "rates"
    small: ClassVar[Mapping[str, Any]] = MappingProxyType({"rows": 60, "draws": 2, "epsilon": 5.0})

    rows: Rows = 500
    draws: RowDraws = 10
    epsilon: Annotated[float, typer.Option(help="Budget; all of it Laplace noise.")] = 1.0

    def compute(self, progress: Progress) -> Found:
        """Return what is measured, draw by draw."""

        def measure(overdispersion: float, draw: int) -> dict[str, tuple[float, ...]]:
            return measured(
                self.rows, overdispersion=overdispersion, epsilon=self.epsilon, draw=draw
            )

        with progress("rates", steps=len(OVERDISPERSIONS) * self.draws) as tick:
            return draw_by_draw(OVERDISPERSIONS, draws=self.draws, measure=measure, tick=tick)

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out means over draws with their standard errors."""
        table = table_titled(f"Rates of {self.rows:,} rows", "truth", "way", right=MEASURES)
        for (overdispersion, way), draws in found.items():
            truth = f"r = {1 / overdispersion:g}" if overdispersion else "Poisson"
            table.add_row(truth, way, *means_with_errors(draws))
        yield table
