"""Asking in stages, with bands: errors, coverage and calibration beside one stage.

Every table of `experiments.priors` is split at random into rows to fit and rows to predict, anew
for every draw, and every way predicts the same rows. Estimators have their untouched defaults
unless a way's name says more. What outputs are predicted with is a normal law: its mean gives the
error, its quantiles coverage and calibration. The same with outputs dealt to rows at random, where
nothing is to be predicted, shows what a way does where there is nothing to win.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from rich.table import Table as Printed
from scipy import special

from cloakgp import DPGPRegressor
from cloakgp.fitting.bands import Stages
from cloakgp.fitting.defaults import choose_prior
from cloakgp.models import matern_kernel
from cloakgp.privacy.laplace import measure_laplace
from cloakgp.privacy.workers import in_order
from cloakgp.release import Release
from cloakgp.utils.arrays import Array
from experiments import citibike_folds
from experiments.citibike_folds import Trips
from experiments.cloaking import mean_without_privacy, sd_without_privacy
from experiments.cross_validation import Protocol
from experiments.datasets import load_citibike
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
from experiments.priors import Split, Table, first_tables, mean_and_error

EPSILONS = (0.1, 0.3, 1.0, 3.0)
DECILES = tuple(round(0.1 * step, 1) for step in range(1, 10))
# Ends of a 95 % interval, around the deciles.
LEVELS = (0.025, *DECILES, 0.975)
CITIBIKE_DELTA, CITIBIKE_INDUCING = 1e-5, 200
# The paper's folds hold out 100 trips; with more of the same trips errors vary less.
CITIBIKE_HELD_OUT = 1000


@dataclass(frozen=True)
class Setting:
    """What every way is given.

    Attributes
    ----------
    epsilon, delta : float
    inducing : int or None
    insecure_seed : int or None
        Makes the noise reproducible. For tests.
    """

    epsilon: float
    delta: float = 0.01
    inducing: int | None = None
    insecure_seed: int | None = None

    def for_draw(self, draw: int) -> Setting:
        """Return the setting with a seed of its own for a draw, if there is one."""
        return replace(self, insecure_seed=Protocol(insecure_seed=self.insecure_seed).seed(draw))


@dataclass(frozen=True, eq=False)
class Predicted:
    """Normal laws of new outputs.

    Attributes
    ----------
    mean : array of shape (P,)
    sd : array of shape (P,) or None
        None if a way does not say.
    """

    mean: Array
    sd: Array | None = None

    @classmethod
    def by(cls, release: Release, X: Array) -> Predicted:
        """Return what a release predicts."""
        return cls(*release.predict(X, return_std=True, new_output=True))

    def shares_below(self, outputs: Array) -> Array:
        """Return which share of outputs lies below each predicted quantile, shape (levels,).

        NaN if there are none. In the order of `LEVELS`.
        """
        if self.sd is None:
            return np.full(len(LEVELS), np.nan)
        standardised = (outputs - self.mean) / self.sd
        shares: Array = np.mean(standardised[:, None] <= special.ndtri(LEVELS), axis=0)
        return shares


def released(
    split: Split, setting: Setting, *, stages: Stages = "auto", matern: bool = False
) -> Predicted:
    """Fit `DPGPRegressor`, its defaults untouched but for these."""
    bounds = split.bounds
    model = DPGPRegressor(
        kernel=matern_kernel(split.X, width=bounds.width) if matern else None,
        bounds=(bounds.lo, bounds.hi),
        epsilon=setting.epsilon,
        delta=setting.delta,
        inducing=setting.inducing,
        stages=stages,
        insecure_seed=setting.insecure_seed,
    )
    return Predicted.by(model.fit(split.X, split.outputs).release_, split.X_test)


def without_privacy(split: Split, setting: Setting) -> Predicted:
    """Condition the default prior, as declared, on the outputs themselves."""
    prior = choose_prior(split.X, bounds=split.bounds, inducing=setting.inducing)
    mean = mean_without_privacy(
        split.X, split.outputs, X_query=split.X_test, prior=prior, bounds=split.bounds
    )
    sd = sd_without_privacy(split.X, X_query=split.X_test, prior=prior)
    return Predicted(mean, np.sqrt(np.square(sd) + prior.noise_variance))


def noisy_mean(split: Split, setting: Setting) -> Predicted:
    """Spend all of ε on the mean of the outputs, with Laplace noise, and predict it everywhere."""
    bounds, rows = split.bounds, len(split.X)
    answers = measure_laplace(
        np.full((1, rows), 1.0 / rows),
        split.outputs,
        bounds=(bounds.lo, bounds.hi),
        epsilon=setting.epsilon,
        insecure_seed=setting.insecure_seed,
    )
    mean = bounds.clip(answers.values + answers.centre)
    return Predicted(np.broadcast_to(mean, len(split.X_test)))


Way = Callable[[Split, Setting], Predicted]
ONE_STAGE, DEFAULT = "one stage", "default"
MATERN, STAGED_MATERN = "Matérn alone, one stage", "Matérn alone, in stages"
NO_PRIVACY, NOISY_MEAN = "no privacy", "noisy mean"
WAYS: Mapping[str, Way] = MappingProxyType(
    {
        ONE_STAGE: partial(released, stages=None),
        DEFAULT: released,
        MATERN: partial(released, stages=None, matern=True),
        STAGED_MATERN: partial(released, matern=True),
        NO_PRIVACY: without_privacy,
        NOISY_MEAN: noisy_mean,
    }
)


@dataclass(frozen=True, eq=False)
class Compared:
    """What ways did on the same splits.

    Attributes
    ----------
    ways, tables : tuple of str
    errors : array of shape (ways, tables, draws)
        RMSE over the sd of the held-out outputs.
    below : array of shape (ways, tables, draws, levels)
        Share of held-out outputs below each predicted quantile.
    spread : array of shape (tables, draws)
        Sd of the held-out outputs.
    """

    ways: tuple[str, ...]
    tables: tuple[str, ...]
    errors: Array
    below: Array
    spread: Array

    def errors_of(self, way: str) -> Array:
        """Return the relative errors of a way, shape (tables, draws)."""
        chosen: Array = self.errors[self.ways.index(way)]
        return chosen

    def coverage_of(self, way: str) -> Array:
        """Return which share of outputs its 95 % intervals hold, shape (tables, draws)."""
        below = self.below[self.ways.index(way)]
        held: Array = below[..., -1] - below[..., 0]
        return held

    def deciles_of(self, way: str) -> Array:
        """Return the shares below predicted deciles, over tables and draws, shape (9,)."""
        shares: Array = self.below[self.ways.index(way), ..., 1:-1].mean(axis=(0, 1))
        return shares


def compare(
    splits: Mapping[str, Sequence[Split]],
    *,
    ways: Mapping[str, Way] = WAYS,
    setting: Setting,
    tick: Tick = no_tick,
    n_jobs: int | None = None,
) -> Compared:
    """Let all ways predict all splits.

    Parameters
    ----------
    splits : mapping of table to sequence of Split
        As many of each table.
    n_jobs : int, optional
        How many splits at a time; see `cloakgp.privacy.workers.in_order`. Workers get the tables,
        outputs and all: they are an experiment's.
    """
    tasks = (
        partial(_judged, split, ways=ways, setting=setting.for_draw(draw))
        for of_table in splits.values()
        for draw, split in enumerate(of_table)
    )
    judged = np.array(list(ticked(in_order(tasks, n_jobs=n_jobs), tick=tick)))
    # Tables and draws, ways, and of each the error before the shares.
    shaped = judged.reshape(len(splits), -1, len(ways), 1 + len(LEVELS))
    return Compared(
        ways=tuple(ways),
        tables=tuple(splits),
        errors=np.moveaxis(shaped[..., 0], 2, 0),
        below=np.moveaxis(shaped[..., 1:], 2, 0),
        spread=np.array([[one.outputs_test.std() for one in each] for each in splits.values()]),
    )


def _judged(split: Split, *, ways: Mapping[str, Way], setting: Setting) -> list[list[float]]:
    """Return the relative error of every way, and its shares below quantiles."""
    predictions = [way(split, setting) for way in ways.values()]
    return [
        [split.relative_error(one.mean), *one.shares_below(split.outputs_test)]
        for one in predictions
    ]


def split_tables(
    compared: Iterable[Table], *, draws: int, rows: int, permuted: bool = False
) -> dict[str, list[Split]]:
    """Return the splits of tables; with outputs dealt to rows at random if they are permuted."""
    return {
        table.name: [
            (_permuted(table, draw) if permuted else table).split(draw, rows=rows)
            for draw in range(draws)
        ]
        for table in compared
    }


def _permuted(table: Table, number: int) -> Table:
    # Not the generator that deals rows to splits.
    rng = np.random.default_rng((number, 1))
    return replace(table, outputs=rng.permutation(table.outputs))


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
            cells = [f"{epsilon:g}", way, f"{mean:.3f} ({error:.3f})"]
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
                    f"{loss:+.3f} ({loss_error:.3f})",
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
            cells.append(f"{mean:.3f} ({error:.3f}) {held}".rstrip())
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
            more = "" if way == NOISY_MEAN else f"; {loss:+.3f} ({loss_error:.3f})"
            cells.append(f"{mean:.3f} ({error:.3f}){more}")
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
            f"{mean:.1f} ({error:.1f})",
            "" if way == ONE_STAGE else f"{gain:+.1f} ({gain_error:.1f})",
            _percent(compared.coverage_of(way).mean()),
        )
    return table


def _percent(share: float) -> str:
    return f"{share:.0%}" if np.isfinite(share) else ""


def chosen_ways(*names: str) -> dict[str, Way]:
    """Return some of `WAYS`, by name."""
    return {name: WAYS[name] for name in names}


@dataclass(frozen=True, eq=False)
class Found:
    """By ε on the tables, and on tables with permuted outputs; and on trips."""

    real: Mapping[float, Compared]
    permuted: Mapping[float, Compared]
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

    def setting(self, epsilon: float) -> Setting:
        """Return what every way is given on the tables."""
        return Setting(epsilon=epsilon, insecure_seed=self.insecure_seed)

    def compute(self, progress: Progress) -> Found:
        """Compare on tables, on permuted tables, and on trips."""
        compared = first_tables(self.count)
        real = split_tables(compared, draws=self.draws, rows=self.rows)
        permuted = split_tables(compared, draws=self.draws, rows=self.rows, permuted=True)
        steps = len(self.epsilons) * len(compared) * self.draws
        with progress("tables", steps=steps) as tick:
            on_real = {
                epsilon: compare(real, setting=self.setting(epsilon), tick=tick)
                for epsilon in self.epsilons
            }
        few = chosen_ways(ONE_STAGE, DEFAULT, NOISY_MEAN)
        with progress("permuted outputs", steps=steps) as tick:
            on_permuted = {
                epsilon: compare(permuted, ways=few, setting=self.setting(epsilon), tick=tick)
                for epsilon in self.epsilons
            }
        return Found(real=on_real, permuted=on_permuted, trips=self._trips(progress))

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
        if found.trips is not None:
            title = (
                f"Citi Bike, (1, {CITIBIKE_DELTA:g})-DP, {citibike_folds.TRAINING} trips to fit, "
                f"{CITIBIKE_HELD_OUT} to predict, {CITIBIKE_INDUCING} inducing inputs, "
                f"{self.trips_draws} folds with noise of their own; se over folds"
            )
            yield trips_report(found.trips, title=title)
