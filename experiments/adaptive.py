"""Asking in stages, with bands, beside one stage: errors, coverage and calibration on tables.

Every table of `experiments.priors` is split at random into rows to fit and rows to predict, anew
for every draw, and the ways of `experiments.ways` predict the same rows. The same with outputs
dealt to rows at random, where nothing is to be predicted, and with bounds that are far too wide,
shows what a way does where its prior is wrong. At one ε the default prior is compared with a Matérn
kernel alone, too. Errors are also set beside those that are forecast before anything is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from rich.table import Table as Printed

from cloakgp import DPGPRegressor
from cloakgp.privacy import OutputBounds
from cloakgp.utils.arrays import Array
from experiments import citibike_folds
from experiments.citibike_folds import Trips
from experiments.datasets import load_citibike
from experiments.framework import Experiment, Progress, Rows, Splits, table_titled
from experiments.priors import Split, Table, first_tables
from experiments.spread import mean_and_error, with_error
from experiments.ways import (
    DECILES,
    DEFAULT,
    MATERN,
    NO_PRIVACY,
    NOISY_MEAN,
    ONE_STAGE,
    STAGED_MATERN,
    Compared,
    Setting,
    chosen_ways,
    compare,
)

EPSILONS = (0.1, 0.3, 1.0, 3.0)
# Where priors are compared, and bounds are widened.
PRIORS_EPSILON = 1.0
STAGES = ONE_STAGE, DEFAULT, NO_PRIVACY, NOISY_MEAN
PRIORS = *STAGES, MATERN, STAGED_MATERN
WITH_WIDE_BOUNDS = ONE_STAGE, DEFAULT, MATERN, STAGED_MATERN, NOISY_MEAN
SHUFFLED = DEFAULT, NOISY_MEAN
SHUFFLED_EPSILONS = (0.1, 1.0)
# Deciles that are laid out.
SHOWN = (0.1, 0.3, 0.5, 0.7, 0.9)
CITIBIKE_DELTA, CITIBIKE_INDUCING = 1e-5, 200
# The paper's folds hold out 100 trips; with more of the same trips errors vary less.
CITIBIKE_HELD_OUT = 1000
# How many times as wide as they were bounds are made.
WIDENED = 4.0


def unchanged(table: Table, draw: int) -> Table:
    """Return a table as it is."""
    del draw
    return table


def permuted(table: Table, draw: int) -> Table:
    """Deal the outputs to rows at random, anew for every draw: inputs then tell nothing."""
    # Not the generator that deals rows to splits.
    rng = np.random.default_rng((draw, 1))
    return replace(table, outputs=rng.permutation(table.outputs))


def widened(table: Table, draw: int) -> Table:
    """Put the upper bound so far up that outputs fill the lowest part of the bounds alone."""
    del draw
    lowest = table.bounds.lo
    return replace(table, bounds=OutputBounds(lowest, lowest + WIDENED * table.bounds.width))


def split_tables(
    compared: Iterable[Table],
    *,
    draws: int,
    rows: int,
    change: Callable[[Table, int], Table] = unchanged,
) -> dict[str, list[Split]]:
    """Return the splits of tables, after a change of each.

    Parameters
    ----------
    change : callable
        Table and draw → table.
    """
    return {
        table.name: [change(table, draw).split(draw, rows=rows) for draw in range(draws)]
        for table in compared
    }


def split_trips(
    trips: Trips, *, draws: int, training: int = citibike_folds.TRAINING
) -> dict[str, list[Split]]:
    """Return folds of trips: those of `experiments.citibike`, with more of them held out."""
    folds = trips.folds(draws, training=training, held_out=CITIBIKE_HELD_OUT)
    return {
        "Citi Bike": [
            Split(
                X=fold.X,
                outputs=fold.y,
                X_test=fold.X_query,
                outputs_test=fold.truth,
                bounds=citibike_folds.BOUNDS,
            )
            for fold in folds
        ]
    }


def forecast_errors(splits: Mapping[str, Sequence[Split]], *, epsilon: float) -> Array:
    """Return forecast errors of new outputs, over the sd of those held out, shape (tables, draws).

    Parameters
    ----------
    splits : mapping of table to sequence of Split
    epsilon : float
        At the δ of a `Setting`.
    """
    setting = Setting(epsilon=epsilon)

    def forecast(split: Split) -> float:
        bounds = (split.bounds.lo, split.bounds.hi)
        model = DPGPRegressor(bounds=bounds, epsilon=epsilon, delta=setting.delta)
        (found,) = model.forecast(split.X, split.X_test)
        return found.output_error / float(split.outputs_test.std())

    return np.array([[forecast(split) for split in each] for each in splits.values()])


def overall_report(found: Mapping[float, Compared], *, title: str) -> Printed:
    """Lay out mean errors by ε and way, beside one stage's, and by table, where it is one.

    The worst table is that where the mean over draws is farthest above one stage's.
    """
    columns = ("error (se)", "less one stage (se)", "better on", "worst table", "the same there")
    table = table_titled(title, "ε", "way", right=columns)
    for epsilon, compared in found.items():
        base = compared.errors_of(ONE_STAGE)
        for way in compared.ways:
            errors = compared.errors_of(way)
            cells = [f"{epsilon:g}", way, with_error(*mean_and_error(errors), ".3f")]
            if way != ONE_STAGE:
                losses = errors - base
                worst = int(losses.mean(axis=1).argmax())
                better = int((losses.mean(axis=1) < 0).sum())
                cells += [
                    with_error(*mean_and_error(losses), "+.3f"),
                    f"{better} of {len(losses)}",
                    compared.tables[worst],
                    with_error(*mean_and_error(losses[worst : worst + 1]), "+.3f"),
                ]
            table.add_row(*cells)
        table.add_section()
    return table


def won_back_report(found: Mapping[float, Compared], *, title: str) -> Printed:
    """Lay out which part of one stage's loss to no privacy the default wins back, by ε."""
    table = table_titled(title, "ε", right=("lost by one stage", "by the default", "won back"))
    for epsilon, compared in found.items():
        best = compared.errors_of(NO_PRIVACY).mean()
        alone, staged = (compared.errors_of(way).mean() - best for way in (ONE_STAGE, DEFAULT))
        table.add_row(f"{epsilon:g}", f"{alone:.3f}", f"{staged:.3f}", f"{1 - staged / alone:.0%}")
    return table


def by_table_report(compared: Compared, *, title: str) -> Printed:
    """Lay out errors with their standard errors, and coverage, by table and way."""
    table = table_titled(title, "table", right=compared.ways)
    for number, name in enumerate(compared.tables):
        cells = []
        for way in compared.ways:
            mean, error = mean_and_error(compared.errors_of(way)[number : number + 1])
            held = _percent(compared.coverage_of(way)[number].mean())
            cells.append(f"{with_error(mean, error, '.3f')} {held}".rstrip())
        table.add_row(name, *cells)
    return table


def calibration_report(found: Mapping[float, Compared], *, title: str) -> Printed:
    """Lay out which shares of outputs lie below predicted deciles and within intervals, by ε."""
    heads = (*(f"{level:.0%}" for level in SHOWN), "95 % hold")
    table = table_titled(title, "ε", "way", right=heads)
    places = [DECILES.index(level) for level in SHOWN]
    for epsilon, compared in found.items():
        for way in compared.ways:
            shares, held = compared.deciles_of(way), compared.coverage_of(way).mean(axis=1)
            if np.isfinite(shares).all():
                cells = [f"{shares[place]:.1%}" for place in places]
                ends = f"({held.min():.0%} to {held.max():.0%})"
                table.add_row(f"{epsilon:g}", way, *cells, f"{held.mean():.0%} {ends}")
        table.add_section()
    return table


def beside_the_mean_report(found: Mapping[float, Compared], *, title: str) -> Printed:
    """Lay out errors by ε and way, by how much they exceed the noisy mean's, and coverage."""
    heads = ("error (se)", "less noisy mean (se)", "95 % hold")
    table = table_titled(title, "ε", "way", right=heads)
    for epsilon, compared in found.items():
        base = compared.errors_of(NOISY_MEAN)
        for way in compared.ways:
            errors = compared.errors_of(way)
            less = with_error(*mean_and_error(errors - base), "+.3f")
            table.add_row(
                f"{epsilon:g}",
                way,
                with_error(*mean_and_error(errors), ".3f"),
                "" if way == NOISY_MEAN else less,
                _percent(compared.coverage_of(way).mean()),
            )
        table.add_section()
    return table


def priors_report(good: Compared, wide: Compared, *, title: str) -> Printed:
    """Lay out errors by way with bounds as they are and with wide ones, and less the default's."""
    heads = ("bounds of round numbers", "less the default", f"{WIDENED:g} times as wide")
    table = table_titled(title, "way", right=(*heads, "less the default there"))
    for way in wide.ways:
        cells = []
        for compared in (good, wide):
            errors = compared.errors_of(way)
            less = with_error(*mean_and_error(errors - compared.errors_of(DEFAULT)), "+.3f")
            cells += [
                with_error(*mean_and_error(errors), ".3f"),
                "" if way == DEFAULT else less,
            ]
        table.add_row(way, *cells)
    return table


def forecast_report(
    found: Mapping[float, Compared], forecasts: Mapping[float, Array], *, title: str
) -> Printed:
    """Lay out errors of the default over those that were forecast, by ε: mean, least and most."""
    table = table_titled(title, "ε", right=("mean over tables", "least", "most"))
    for epsilon, compared in found.items():
        ratios = compared.errors_of(DEFAULT).mean(axis=1) / forecasts[epsilon].mean(axis=1)
        ends = (
            f"{ratios[place]:.2f} ({compared.tables[place]})"
            for place in map(int, (ratios.argmin(), ratios.argmax()))
        )
        table.add_row(f"{epsilon:g}", f"{ratios.mean():.2f}", *ends)
    return table


def trips_report(compared: Compared, *, title: str) -> Printed:
    """Lay out the RMSE in seconds, paired with that of one stage, and coverage."""
    table = table_titled(title, "way", right=("RMSE (s)", "less one stage (s)", "held"))
    seconds = {way: compared.errors_of(way) * compared.spread for way in compared.ways}
    for way, errors in seconds.items():
        mean, error = mean_and_error(errors)
        gain, gain_error = mean_and_error(errors - seconds[ONE_STAGE])
        table.add_row(
            way,
            with_error(mean, error, ".1f"),
            "" if way == ONE_STAGE else with_error(gain, gain_error, "+.1f"),
            _percent(compared.coverage_of(way).mean()),
        )
    return table


def _percent(share: float) -> str:
    return f"{share:.0%}" if np.isfinite(share) else ""


@dataclass(frozen=True, eq=False)
class Found:
    """What ways did, by ε, and on trips.

    Attributes
    ----------
    real, permuted : mapping of ε to Compared
        On the tables, and with outputs dealt to rows at random.
    wide : Compared
        Priors, with wide bounds.
    forecasts : mapping of ε to array of shape (tables, draws)
    trips : Compared or None
    """

    real: Mapping[float, Compared]
    permuted: Mapping[float, Compared]
    wide: Compared
    forecasts: Mapping[float, Array]
    trips: Compared | None


@dataclass(frozen=True)
class Adaptive(Experiment[Found]):
    """Compare stages with bands with one stage, on twelve tables and on Citi Bike trips."""

    name: ClassVar[str] = "adaptive"
    small: ClassVar[Mapping[str, Any]] = {
        "draws": 2,
        "rows": 40,
        "trips_draws": 0,
        "epsilons": (1.0,),
        "count": 1,
    }

    draws: Splits = 5
    rows: Rows = 250
    trips_draws: Annotated[
        int, typer.Option(min=0, help="Folds of Citi Bike trips; none for 0.")
    ] = 5
    epsilons: Sequence[float] = EPSILONS
    # Of tables; None: all.
    count: int | None = None
    insecure_seed: int | None = None

    def compute(self, progress: Progress) -> Found:
        """Compare on tables, permuted, with wide bounds, and on trips."""
        tables = first_tables(self.count)
        plain = split_tables(tables, draws=self.draws, rows=self.rows)
        shuffled = split_tables(tables, draws=self.draws, rows=self.rows, change=permuted)
        wide = split_tables(tables, draws=self.draws, rows=self.rows, change=widened)
        # Forecasts are of inputs alone: those of another split are hardly different.
        first = {name: each[:1] for name, each in plain.items()}
        steps = len(tables) * self.draws

        def compared(
            splits: Mapping[str, Sequence[Split]], ways: Sequence[str], epsilon: float
        ) -> Compared:
            setting = Setting(epsilon=epsilon, insecure_seed=self.insecure_seed)
            return compare(splits, ways=chosen_ways(*ways), setting=setting, tick=tick)

        parts = len(self.epsilons) + len(SHUFFLED_EPSILONS) + 1
        with progress("tables", steps=steps * parts) as tick:
            return Found(
                real={
                    one: compared(plain, PRIORS if one == PRIORS_EPSILON else STAGES, one)
                    for one in self.epsilons
                },
                permuted={one: compared(shuffled, SHUFFLED, one) for one in SHUFFLED_EPSILONS},
                wide=compared(wide, WITH_WIDE_BOUNDS, PRIORS_EPSILON),
                forecasts={one: forecast_errors(first, epsilon=one) for one in self.epsilons},
                trips=self._trips(progress),
            )

    def _trips(self, progress: Progress) -> Compared | None:
        if self.trips_draws == 0:
            return None
        splits = split_trips(Trips.of(load_citibike()), draws=self.trips_draws)
        with progress("Citi Bike", steps=self.trips_draws) as tick:
            return compare(
                splits,
                ways=chosen_ways(ONE_STAGE, DEFAULT, NO_PRIVACY),
                setting=Setting(
                    epsilon=1.0,
                    delta=CITIBIKE_DELTA,
                    inducing=CITIBIKE_INDUCING,
                    insecure_seed=self.insecure_seed,
                ),
                tick=tick,
            )

    def tables(self, found: Found) -> Iterable[Printed | str]:
        """Lay out errors, coverage, permuted outputs, priors, forecasts and trips."""
        scale = f"δ = 0.01, at most {self.rows} rows, {self.draws} splits; se over splits"
        measure = f"RMSE over the sd of held-out outputs; {scale}"
        yield overall_report(found.real, title=measure)
        title = f"Mean error less that of the prior given the outputs themselves; {scale}"
        yield won_back_report(found.real, title=title)
        title = f"Held-out outputs below predicted deciles, and in 95 % intervals (tables); {scale}"
        yield calibration_report(found.real, title=title)
        title = f"Outputs dealt to rows at random: {measure}"
        yield beside_the_mean_report(found.permuted, title=title)
        title = f"Priors, ε = {PRIORS_EPSILON:g}: {measure}"
        yield priors_report(found.real[PRIORS_EPSILON], found.wide, title=title)
        title = f"Error on held-out rows over that forecast for new outputs (one split); {scale}"
        yield forecast_report(found.real, found.forecasts, title=title)
        for epsilon, compared in found.real.items():
            title = f"By table, ε = {epsilon:g}: error (se), share held by 95 % intervals; {scale}"
            yield by_table_report(compared, title=title)
        if found.trips is not None:
            title = (
                f"Citi Bike, (1, {CITIBIKE_DELTA:g})-DP, {citibike_folds.TRAINING} trips to fit, "
                f"{CITIBIKE_HELD_OUT} to predict, {CITIBIKE_INDUCING} inducing inputs, "
                f"{self.trips_draws} folds with noise of their own; se over folds"
            )
            yield trips_report(found.trips, title=title)
