"""Citi Bike: the command, its table and its picture."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from matplotlib.figure import Figure
from rich.table import Table

from cloakgp.arrays import Array
from cloakgp.datasets import load_citibike
from cloakgp.experiments import citibike, citibike_table
from cloakgp.experiments.citibike_gp import INDUCING
from cloakgp.experiments.citibike_table import (
    COLUMNS,
    PUBLISHED,
    PUBLISHED_NAMES,
    Found,
    Key,
    Scale,
    best_at,
    cost_of_privacy,
    interval,
)
from cloakgp.experiments.crossvalidation import Errors, Protocol
from cloakgp.experiments.figures import BLACK, BLUE, DPI, RED
from cloakgp.experiments.terminal import console, progress, table_titled

FAST = Scale(
    protocol=Protocol(folds=2, draws=1),
    bayes_folds=1,
    training=1000,
    lengthscales=(0.125,),
    bayes_lengthscales=(0.125,),
    bins=(3,),
)
SHOWN_TRIPS, BAR = 5000, 100.0
GOAL_EPSILON, GOAL_LENGTHSCALE = 0.2, 0.125


def run_citibike(
    folds: Annotated[int, typer.Option(min=2, help="Samples of 5000 trips.")] = citibike.FOLDS,
    bayes_folds: Annotated[
        int, typer.Option(min=1, help="The first of them also by bayes and by the defaults.")
    ] = 6,
    draws: Annotated[int, typer.Option(min=1, help="Releases per fold and method.")] = 3,
    output_dir: Annotated[Path, typer.Option(help="Where pictures are written.")] = Path("output"),
    fast: Annotated[bool, typer.Option("--fast", help="Fewer trips; rougher figures.")] = False,
) -> None:
    """Table 1 and figure 4 of the 2018 paper: durations of Citi Bike trips."""
    started = time.monotonic()
    trips = citibike.Trips.of(load_citibike())
    scale = (
        FAST
        if fast
        else Scale(protocol=Protocol(folds=folds, draws=draws), bayes_folds=min(bayes_folds, folds))
    )
    with progress("folds", steps=scale.protocol.folds) as tick:
        found = citibike_table.table_1(trips, scale=scale, tick=tick)
    console.print(table_1_report(found, title=_title(scale)))
    for line in goal_lines(found):
        console.print(line)
    output_dir.mkdir(parents=True, exist_ok=True)
    path = output_dir / "citibike-figure-4.png"
    durations_figure(trips.durations[:SHOWN_TRIPS]).savefig(path, dpi=DPI)
    console.print(f"wrote {path}")
    console.print(f"{time.monotonic() - started:.0f} s")


def table_1_report(found: Found, *, title: str) -> Table:
    """Lay out table 1, each published row above the one that reproduces it.

    Parameters
    ----------
    found : mapping of Key to mapping of budget to Errors
    title : str
    """
    table = table_titled(title)
    table.add_column("RMSE (s)")
    table.add_column("")
    for column in COLUMNS:
        table.add_column("no privacy" if column is None else f"ε = {column:g}", justify="right")
    table.add_column("folds", justify="right")
    reproduced = {name: method for method, name in PUBLISHED_NAMES.items()}
    previous = ""
    for key in sorted(found, key=_order(found)):
        if previous and key.method != previous:
            table.add_section()
        previous = key.method
        if key.method in reproduced:
            printed = PUBLISHED[Key(reproduced[key.method], key.setting)]
            table.add_row(
                "published",
                key.setting,
                *(f"{mean:g} ± {half:g}" for mean, half in printed),
                str(citibike.FOLDS),
                style="dim",
            )
        errors = found[key]
        table.add_row(
            key.method,
            key.setting,
            *(_figure(errors[column]) for column in COLUMNS),
            str(len(errors[None].by_fold)),
        )
    return table


def goal_lines(found: Found) -> list[str]:
    """Say which row is best at each budget, and what privacy costs it.

    Parameters
    ----------
    found : mapping of Key to mapping of budget to Errors
    """
    lines = ["(Rows are compared by their errors on held-out trips, which no release shows.)"]
    for epsilon in citibike.EPSILONS:
        key = best_at(found, epsilon)
        lines.append(
            f"Best at ε = {epsilon:g}: {_named(key)}, {found[key][epsilon].mean:.0f} s, "
            f"{cost_of_privacy(found[key], epsilon) - 1:+.1%} on the same model without privacy"
        )
    setting = citibike_table.degrees(GOAL_LENGTHSCALE)
    lines += [
        f"At ε = {GOAL_EPSILON:g}, {_named(key)}: "
        f"{cost_of_privacy(errors, GOAL_EPSILON) - 1:+.1%} on the same model without privacy"
        for key, errors in found.items()
        if key.setting == setting
    ]
    return lines


def durations_figure(durations: Array) -> Figure:
    """Draw figure 4 of the 2018 paper: how long trips take, and what the threshold does.

    Parameters
    ----------
    durations : array of shape (N,)
        In seconds.
    """
    figure = Figure(figsize=(7.4, 3.8), layout="constrained")
    axes = figure.subplots()
    limit = citibike.BOUNDS.hi
    edges = np.arange(0.0, 2 * limit + 1, BAR).tolist()
    beyond = float(np.mean(durations > limit))
    axes.hist(
        citibike.BOUNDS.clip(durations),
        bins=edges,
        color=BLUE,
        alpha=0.35,
        label=f"thresholded at {limit:g} s",
    )
    axes.hist(durations, bins=edges, histtype="step", color=BLACK, label="as recorded")
    axes.axvline(limit, color=RED, linestyle="--", linewidth=1.2)
    axes.text(
        limit * 1.08,
        axes.get_ylim()[1] * 0.62,
        f"{beyond:.1%} of trips take longer,\n"
        f"{np.mean(durations > edges[-1]):.1%} longer than this axis",
        fontsize=9,
        color=RED,
    )
    axes.set_xlim(0, edges[-1])
    axes.set_xlabel("duration (s)")
    axes.set_ylabel(f"trips per {BAR:g} s")
    axes.set_title(
        f"Durations of {len(durations)} Citi Bike trips, June 2017 (2018 paper, figure 4)",
        fontsize=11,
    )
    axes.legend(fontsize=9, frameon=False)
    return figure


def _title(scale: Scale) -> str:
    folds = scale.protocol.folds
    return (
        f"Table 1 of the 2018 paper, δ = {citibike.DELTA:g}. Published: trips of June 2016, 30 "
        "folds. Ours: trips of four days of June 2017, so no privacy differs too; "
        f"{scale.training} trips to train and {citibike.HELD_OUT} to test in each of {folds} "
        f"folds, {scale.protocol.draws} draws of the noise (1 where defaults learn), ± 95 % over "
        "folds. Durations, and those compared with, are clipped to 0 to 2000 s. bayes: posterior "
        f"mean, questions for the test inputs, {INDUCING} k-means inducing inputs; "
        "it and the defaults in the first "
        f"{scale.bayes_folds} folds"
    )


def _named(key: Key) -> str:
    return key.method + (f" {key.setting}" if key.setting else "")


def _figure(errors: Errors) -> str:
    half = interval(errors)
    return f"{errors.mean:.0f}" + ("" if half is None else f" ± {half:.0f}")


def _order(found: Found) -> Callable[[Key], tuple[int, int]]:
    """Methods in the order in which they appear, settings within them likewise."""
    methods = list(dict.fromkeys(key.method for key in found))
    keys = list(found)
    return lambda key: (methods.index(key.method), keys.index(key))
