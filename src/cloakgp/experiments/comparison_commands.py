"""Commands: kung2018, priors and coverage."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import islice
from typing import Annotated

import pandas as pd
import typer

from cloakgp.datasets import load_kung
from cloakgp.experiments import comparison_report as report
from cloakgp.experiments import (
    coverage,
    kung2018,
    learning,
    learning_or_selection,
    posterior_rows,
    priors,
    selection2018,
)
from cloakgp.experiments.crossvalidation import Protocol
from cloakgp.experiments.terminal import console, progress

# Learning costs some hundred times what a release costs.
POSTERIOR_DRAWS, FAST_POSTERIOR_DRAWS = 20, 2
FAST = priors.Scale(rows=100, draws=2)
FAST_TABLES, FAST_SHAPES, FAST_EPSILONS = 2, 2, (1.0,)
FAST_SHARES, FAST_RUNS, FAST_EVERY = (0.3,), 3, 5

Fast = Annotated[bool, typer.Option("--fast", help="Fewer draws; rougher figures.")]
Draws = Annotated[int, typer.Option(min=2, help="Splits and draws of the noise.")]
Rows = Annotated[int, typer.Option(min=20, help="The most rows that are fitted.")]


def print_posterior_rows(women: pd.DataFrame, *, protocol: Protocol, fast: bool) -> None:
    """Print table 1's columns `bayes` and defaults.

    Parameters
    ----------
    women : DataFrame
    protocol : Protocol
    fast : bool
    """
    most = FAST_POSTERIOR_DRAWS if fast else POSTERIOR_DRAWS
    fewer = replace(protocol, draws=min(protocol.draws, most))
    with progress("bayes and defaults", steps=2 * fewer.folds) as tick:
        found = posterior_rows.kung_posterior_errors(women, protocol=fewer, tick=tick)
    title = (
        f"Posterior means under the bayes design, (1, 0.01)-DP, {fewer.folds} folds, "
        f"{fewer.draws} draws a fold, se over draws. Defaults: DPGPRegressor with bounds and "
        "budget alone. Lengthscales of the second row: 15 (1d) and 25 (2d)"
    )
    console.print(report.posterior_report(found, title=title))


def run_kung2018(
    draws: Annotated[int, typer.Option(min=2, help="Releases per fold and method.")] = 40,
    fast: Fast = False,
    shuffle: Annotated[
        bool, typer.Option("--shuffle", help="Deal rows to folds at random.")
    ] = False,
    splits: Annotated[
        int, typer.Option(min=2, help="Validation sets for the private choice.")
    ] = 10,
) -> None:
    """Section 4 of the 2018 paper: heights of 287 !Kung women by age, and a private choice."""
    women = load_kung(male=False)
    started = time.monotonic()
    folds = kung2018.FOLDS[:1] if fast else kung2018.FOLDS
    protocol = Protocol(draws=FAST.draws if fast else draws, shuffle=shuffle)
    with progress("folds", steps=2 * sum(folds)) as tick:
        found = kung2018.errors_by_folds(women, protocol=protocol, folds=folds, tick=tick)
    order = "shuffled" if shuffle else "in file order"
    title = (
        f"2018 paper, section 4 (published: 6.8 without privacy, 12.2 with), (1, 0.01)-DP, folds "
        f"{order}, {protocol.draws} draws a fold: mean over folds (se over draws), and pooled rows"
    )
    console.print(report.kung2018_report(found, title=title))
    splits = FAST.draws if fast else splits
    runs = FAST_RUNS if fast else selection2018.RUNS
    candidates = selection2018.CANDIDATES[:: FAST_EVERY if fast else 1]
    with progress("choice", steps=splits) as tick:
        chosen = selection2018.compare(
            women, splits=splits, candidates=candidates, runs=runs, tick=tick
        )
    title = (
        f"2018 paper, a lengthscale and a noise chosen: a choice at ε = 1 and a release at (1, "
        f"0.01), or together (2, 0.01); {len(candidates)} candidates, "
        f"{splits} validation sets of a tenth; {runs} Monte-Carlo runs for the paper's choice"
    )
    console.print(report.selection2018_report(chosen, title=title))
    console.print(f"{time.monotonic() - started:.0f} s")


def run_priors(
    draws: Draws = 8, rows: Rows = 250, epsilon: float = 1.0, fast: Fast = False
) -> None:
    """Compare default priors on twelve tables, and learning from answers with not learning."""
    started = time.monotonic()
    scale = FAST if fast else priors.Scale(rows=rows, draws=draws, epsilon=epsilon)
    tables = _tables(fast)
    shapes = priors.SHAPES[:FAST_SHAPES] if fast else priors.SHAPES
    with progress("shapes", steps=len(tables)) as tick:
        by_shape = priors.compare_shapes(tables, shapes=shapes, scale=scale, tick=tick)
    measure = (
        f"RMSE over the sd of held-out outputs, at most {scale.rows} rows, {scale.draws} splits "
        f"with noise of their own, δ = {scale.delta:g}; se over draws, tables as they are"
    )
    console.print(
        report.shapes_report(
            by_shape,
            shapes=shapes,
            title=f"Declared priors, learn=None, ε = {scale.epsilon:g}: {measure}",
        )
    )
    epsilons = FAST_EPSILONS if fast else learning.EPSILONS
    with progress("learning", steps=len(tables) * len(epsilons)) as tick:
        found = learning.compare_learning(tables, epsilons=epsilons, scale=scale, tick=tick)
    console.print(
        report.learning_report(
            found,
            title=f"Learning around {priors.DEFAULT_SHAPE}, paired with learn=None: {measure}",
        )
    )
    for way in range(1, len(learning.WAYS)):
        console.print(
            report.learning_by_table_report(
                found, way=way, title=f"The same by table: learn={learning.WAYS[way]} less None"
            )
        )
    console.print(f"{time.monotonic() - started:.0f} s")


def run_coverage(
    draws: Annotated[int, typer.Option(min=2, help="Synthetic data sets.")] = 60,
    table_draws: Draws = 8,
    rows: Rows = 250,
    epsilon: float = 1.0,
    fast: Fast = False,
) -> None:
    """Count how often 95 % intervals hold the truth, on synthetic data and on twelve tables."""
    started = time.monotonic()
    scale = FAST if fast else priors.Scale(rows=rows, draws=draws, epsilon=epsilon)
    latent, outputs = {}, {}
    with progress("synthetic", steps=len(coverage.WORLDS) * scale.draws) as tick:
        for world in coverage.WORLDS:
            latent[world.name], outputs[world.name] = coverage.synthetic_coverage(
                world, scale=scale, tick=tick
            )
    budget = f"({scale.epsilon:g}, {scale.delta:g})-DP, {scale.rows} rows, se over"
    synthetic = f"{budget} {scale.draws} data sets"
    for what, found in (("the latent function", latent), ("new outputs", outputs)):
        title = f"95 % intervals of {what}, by learn; synthetic, {synthetic}"
        console.print(report.coverage_report(found, title=title))
    tables = _tables(fast)
    scale = scale if fast else replace(scale, draws=table_draws)
    with progress("tables", steps=len(tables)) as tick:
        real = coverage.table_coverage(tables, scale=scale, tick=tick)
    title = f"95 % intervals of held-out outputs, by learn; {budget} {scale.draws} splits"
    console.print(report.coverage_report(real, title=title))
    console.print(f"{time.monotonic() - started:.0f} s")


def run_learning_or_selection(draws: Draws = 12, rows: Rows = 250, fast: Fast = False) -> None:
    """Compare hyperparameters learned from answers with private choices of the same total."""
    started = time.monotonic()
    scale = FAST if fast else priors.Scale(rows=rows, draws=draws)
    compared = [table for table in priors.tables() if table.name in learning_or_selection.COMPARED]
    compared = compared[: FAST_TABLES if fast else None]
    epsilons = FAST_EPSILONS if fast else learning.EPSILONS
    shares = FAST_SHARES if fast else learning_or_selection.SHARES
    with progress("learning or selection", steps=len(compared) * len(epsilons)) as tick:
        found = learning_or_selection.compare(
            compared, epsilons=epsilons, shares=shares, scale=scale, tick=tick
        )
    for table in compared:
        unit = learning_or_selection.COMPARED[table.name]
        title = f"{table.name}: RMSE ({unit}) at the same total (ε, {scale.delta:g})"
        console.print(
            report.learning_or_selection_report(found, name=table.name, shares=shares, title=title)
        )
    title = (
        f"How much larger errors are than learn=map's: mean over {len(compared)} tables (se over "
        f"draws). {scale.draws} splits with noise of their own, at most {scale.rows} rows, "
        f"{len(learning_or_selection.CANDIDATES)} candidates"
    )
    console.print(report.against_map_report(found, title=title))
    console.print(f"{time.monotonic() - started:.0f} s")


def _tables(fast: bool) -> list[priors.Table]:
    return list(islice(priors.tables(), FAST_TABLES if fast else None))
