"""Asking in stages, with bands, beside one stage: errors, coverage and calibration on tables.

Every table of `experiments.priors` is split at random into rows to fit and rows to predict, anew
for every draw, and every way of `experiments.ways` predicts the same rows. The same with outputs
dealt to rows at random, where nothing is to be predicted, and with bounds that are far too wide,
shows what a way does where its prior is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from rich.table import Table as Printed

from cloakgp.privacy import OutputBounds
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
    WAYS,
    Compared,
    Setting,
    Way,
    chosen_ways,
    compare,
)

EPSILONS = (0.1, 0.3, 1.0, 3.0)
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


def overall_report(found: Mapping[float, Compared], *, title: str) -> Printed:
    """Lay out mean errors and coverage by ε and way; beside one stage, by table, where it is one.

    The worst table is that where the mean over draws is farthest above one stage's.
    """
    columns = ("error (se)", "better on", "worst table", "less one stage (se)", "held", "least")
    table = table_titled(title, "ε", "way", right=columns)
    for epsilon, compared in found.items():
        base = compared.errors_of(ONE_STAGE)
        for way in compared.ways:
            errors, held = compared.errors_of(way), compared.coverage_of(way).mean(axis=1)
            mean, error = mean_and_error(errors)
            cells = [f"{epsilon:g}", way, with_error(mean, error, ".3f")]
            losses = errors - base
            worst = int(losses.mean(axis=1).argmax())
            loss, loss_error = mean_and_error(losses[worst : worst + 1])
            better = int((losses.mean(axis=1) < 0).sum())
            cells += (
                ["", "", ""]
                if way == ONE_STAGE
                else [
                    f"{better} of {len(losses)}",
                    compared.tables[worst],
                    with_error(loss, loss_error, "+.3f"),
                ]
            )
            cells += [_percent(held.mean()), _percent(held.min())]
            table.add_row(*cells)
        table.add_section()
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
    """Lay out which share of outputs lies below each predicted decile, by ε and way."""
    table = table_titled(title, "ε", "way", right=(f"{level:.0%}" for level in DECILES))
    for epsilon, compared in found.items():
        for way in compared.ways:
            shares = compared.deciles_of(way)
            if np.isfinite(shares).all():
                table.add_row(f"{epsilon:g}", way, *(f"{share:.1%}" for share in shares))
        table.add_section()
    return table


def beside_the_mean_report(found: Mapping[float, Compared], *, title: str) -> Printed:
    """Lay out errors by ε and way, and by how much they exceed those of the noisy mean."""
    ways = next(iter(found.values())).ways
    table = table_titled(title, "ε", right=ways)
    for epsilon, compared in found.items():
        base = compared.errors_of(NOISY_MEAN)
        cells = []
        for way in ways:
            mean, error = mean_and_error(compared.errors_of(way))
            loss, loss_error = mean_and_error(compared.errors_of(way) - base)
            more = "" if way == NOISY_MEAN else f"; {with_error(loss, loss_error, '+.3f')}"
            cells.append(with_error(mean, error, ".3f") + more)
        table.add_row(f"{epsilon:g}", *cells)
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
    """By ε on the tables, on tables with permuted outputs, and with wide bounds; and on trips."""

    real: Mapping[float, Compared]
    permuted: Mapping[float, Compared]
    wide: Mapping[float, Compared]
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

    draws: Splits = 4
    rows: Rows = 250
    trips_draws: Annotated[
        int, typer.Option(min=0, help="Folds of Citi Bike trips; none for 0.")
    ] = 3
    epsilons: Sequence[float] = EPSILONS
    # Of tables; None: all.
    count: int | None = None
    insecure_seed: int | None = None

    def compute(self, progress: Progress) -> Found:
        """Compare on tables, permuted, with wide bounds, and on trips."""
        tables = first_tables(self.count)
        few = chosen_ways(ONE_STAGE, DEFAULT, NOISY_MEAN)
        priors = chosen_ways(ONE_STAGE, DEFAULT, MATERN, STAGED_MATERN, NOISY_MEAN)
        return Found(
            real=self._by_epsilon(tables, WAYS, progress),
            permuted=self._by_epsilon(tables, few, progress, change=permuted),
            wide=self._by_epsilon(tables, priors, progress, change=widened),
            trips=self._trips(progress),
        )

    def _by_epsilon(
        self,
        tables: Sequence[Table],
        ways: Mapping[str, Way],
        progress: Progress,
        *,
        change: Callable[[Table, int], Table] = unchanged,
    ) -> dict[float, Compared]:
        splits = split_tables(tables, draws=self.draws, rows=self.rows, change=change)
        steps = len(self.epsilons) * len(tables) * self.draws
        with progress(f"tables, {change.__name__}", steps=steps) as tick:
            return {
                epsilon: compare(
                    splits,
                    ways=ways,
                    setting=Setting(epsilon=epsilon, insecure_seed=self.insecure_seed),
                    tick=tick,
                )
                for epsilon in self.epsilons
            }

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
        """Lay out errors, coverage, calibration, permuted outputs and trips."""
        scale = f"δ = 0.01, at most {self.rows} rows, {self.draws} splits; se over splits"
        measure = f"RMSE over the sd of held-out outputs; {scale}, tables as they are"
        held = "held: by 95 % intervals of new outputs, over all tables and on the least of them"
        yield overall_report(found.real, title=f"{measure}; {held}")
        for epsilon, compared in found.real.items():
            title = f"The same by table, ε = {epsilon:g}: error (se), share held"
            yield by_table_report(compared, title=title)
        title = f"Share of held-out outputs below each predicted decile; {scale}"
        yield calibration_report(found.real, title=title)
        title = f"Outputs dealt to rows at random: {measure}; and how much more than the noisy mean"
        yield beside_the_mean_report(found.permuted, title=title)
        title = f"Bounds {WIDENED:g} times as wide, outputs in their lowest part: {measure}; {held}"
        yield overall_report(found.wide, title=title)
        if found.trips is not None:
            title = (
                f"Citi Bike, (1, {CITIBIKE_DELTA:g})-DP, {citibike_folds.TRAINING} trips to fit, "
                f"{CITIBIKE_HELD_OUT} to predict, {CITIBIKE_INDUCING} inducing inputs, "
                f"{self.trips_draws} folds with noise of their own; se over folds"
            )
            yield trips_report(found.trips, title=title)
