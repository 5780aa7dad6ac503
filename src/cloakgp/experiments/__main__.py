"""Command line: ``python -m cloakgp.experiments``, and what to compute."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from joblib import parallel_config
from matplotlib.figure import Figure
from rich.console import Console

from cloakgp.datasets import DatasetUnavailableError, load_kung, load_london
from cloakgp.experiments import (
    citibike_report,
    classification_commands,
    comparison_commands,
    complex_kernel,
    figures,
    four_points,
    functional,
    kung,
    london,
    nonstationary_command,
    private_inputs_report,
    report,
    selection_report,
    smoothers_report,
)
from cloakgp.experiments.cloaked import PAPERS_NOISE, TRACE_NOISE
from cloakgp.experiments.crossvalidation import Protocol
from cloakgp.experiments.surfaces import Surface
from cloakgp.experiments.terminal import console, progress

app = typer.Typer(help="The papers' tables and figures, computed again.", no_args_is_help=True)
app.command("four-points")(four_points.run_four_points)
app.command("functional")(functional.run_functional)
app.command("nonstationary")(nonstationary_command.run_nonstationary)
app.command("private-inputs")(private_inputs_report.run_private_inputs)
app.command("stripes")(classification_commands.run_stripes)
app.command("home-equity")(classification_commands.run_home_equity)
app.command("digits")(classification_commands.run_digits)
app.command("breast-cancer")(classification_commands.run_breast_cancer)
app.command("citibike")(citibike_report.run_citibike)
app.command("figure-12")(complex_kernel.run_figure_12)
app.command("smoothers")(smoothers_report.run_smoothers)
app.command("kung2018")(comparison_commands.run_kung2018)
app.command("priors")(comparison_commands.run_priors)
app.command("coverage")(comparison_commands.run_coverage)
app.command("learning-or-selection")(comparison_commands.run_learning_or_selection)
app.command("table2")(selection_report.run_table2)

ALL_COUNTS = tuple(range(1, 21))
FEW_COUNTS = (1, 3, 5, 8, 12, 20)
FAST_DRAWS = 5
FIGURE_4_DRAWS = 20
FAST_LONDON_STEPS = 10
SHOWN_NOISES = (PAPERS_NOISE, TRACE_NOISE)

Draws = Annotated[int, typer.Option(min=1, help="Releases per fold and method.")]
OutputDir = Annotated[Path, typer.Option(help="Where pictures are written.")]
Fast = Annotated[bool, typer.Option("--fast", help="Fewer draws and points; rougher figures.")]
Shuffle = Annotated[bool, typer.Option("--shuffle", help="Deal rows to folds at random.")]


@app.callback()
def set_jobs(
    context: typer.Context,
    jobs: Annotated[
        int, typer.Option(help="Folds, draws or candidates at a time; -1: one a processor.")
    ] = 1,
) -> None:
    """Compute the papers' tables and figures again."""
    context.with_resource(parallel_config(n_jobs=jobs))


@app.command("kung")
def run_kung(
    draws: Draws = 100,
    output_dir: OutputDir = Path("output"),
    fast: Fast = False,
    shuffle: Shuffle = False,
) -> None:
    """Table 1 and figures 3, 4 and 5 of the 2021 paper: heights of 287 !Kung women."""
    women = load_kung(male=False)
    protocol = Protocol(draws=FAST_DRAWS if fast else draws, shuffle=shuffle)
    counts = FEW_COUNTS if fast else ALL_COUNTS
    started = time.monotonic()
    with progress("table 1", steps=len(kung.TABLE_1) * protocol.folds) as tick:
        table_1 = kung.table_1(women, protocol=protocol, tick=tick)
    order = "shuffled" if shuffle else "in file order"
    title = (
        f"Table 1 of the 2021 paper, (1, 0.01)-DP and below without privacy: ± sd of the means of "
        f"{protocol.folds} folds {order}; {protocol.draws} draws a fold, se over draws; raw "
        "predictions unless it says posterior mean"
    )
    console.print(
        f"Prior mean: {kung.PRIOR_MEAN:g} cm, a fixed number. The papers' code subtracts the "
        "un-noised mean of the heights, which leaks it."
    )
    by_mean = kung.errors_by_prior_mean(women, means=kung.COMPARED_MEANS, protocol=protocol)
    console.print(report.prior_mean_report(by_mean))
    console.print(report.table_1_report(table_1, title=title))
    console.print(report.spread_report(table_1))
    comparison_commands.print_posterior_rows(women, protocol=protocol, fast=fast)

    figure_4_protocol = Protocol(draws=min(protocol.draws, FIGURE_4_DRAWS), shuffle=shuffle)
    with progress("figure 4", steps=len(counts) * protocol.folds) as tick:
        figure_4 = kung.figure_4(women, counts=counts, protocol=figure_4_protocol, tick=tick)
    console.print(report.figure_4_report(figure_4))

    standard_1d, sparse_1d, standard_2d, sparse_2d = kung.TABLE_1
    curves = {
        name: {
            noise.name: kung.age_curve(women, setting=setting, noise=noise)
            for noise in SHOWN_NOISES
        }
        for name, setting in (("A, standard", standard_1d), ("C, sparse", sparse_1d))
    }
    surfaces = {
        name: {
            noise.name: kung.weight_age_surface(women, setting=setting, noise=noise)
            for noise in SHOWN_NOISES
        }
        for name, setting in (("A, standard", standard_2d), ("B, sparse", sparse_2d))
    }
    weight, age = kung.NAMED_POINT
    console.print(f"Noise sd at {weight:g} kg and {age:g} years (2021 paper, A: 40 cm):")
    for name, by_noise in surfaces.items():
        for noise, surface in by_noise.items():
            console.print(f"  {name}, {noise}: {kung.noise_sd_at_named_point(surface):.1f} cm")
    _write(
        figures.curves_figure(
            curves,
            X=standard_1d.rows(women)[:, 0],
            y=kung.heights(women),
            title="Heights of !Kung women by age, (1, 0.01)-DP (2021 paper, figure 3)",
        ),
        output_dir / "kung-figure-3.png",
    )
    _write(figures.inducing_inputs_figure(figure_4), output_dir / "kung-figure-4.png")
    _write(
        figures.surfaces_figure(
            surfaces,
            style=figures.SurfaceStyle(
                transparent_at=40.0,
                area=1.8,
                levels=np.arange(60.0, 200.0, 10.0),
                output=lambda height: f"{height:.0f} cm",
                horizontal="weight (kg)",
                vertical="age (years)",
            ),
            title="Heights of !Kung women by weight and age, (1, 0.01)-DP (2021 paper, figure 5)\n"
            "Disc area: released height. Fainter: more privacy noise, gone at 40 cm.",
        ),
        output_dir / "kung-figure-5.png",
    )
    console.print(f"{time.monotonic() - started:.0f} s")


@app.command("london")
def run_london(output_dir: OutputDir = Path("output"), fast: Fast = False) -> None:
    """Figure 3 of the 2018 paper: sale prices around London."""
    prices = load_london()
    started = time.monotonic()
    since = london.sales_between(prices, years=london.PAPERS_YEARS)
    first, last = london.PAPERS_YEARS
    console.print(
        f"The table has {len(prices)} sales, {len(since)} of them in {first} to {last}; the paper "
        f"has {london.PAPERS_ROWS} of these years."
    )
    sets = {f"{len(since)}, {first}–{last}": since}
    if not fast:
        latest = london.latest_sales(prices, count=london.PAPERS_ROWS)
        sets[f"{len(latest)}, since {latest['years'].min()}"] = latest
    steps = FAST_LONDON_STEPS if fast else london.QUERY_STEPS
    surfaces: dict[str, dict[str, Surface]] = {name: {} for name in sets}
    with progress("figure 3", steps=len(sets) * len(SHOWN_NOISES)) as tick:
        for name, sales in sets.items():
            for noise in SHOWN_NOISES:
                surfaces[name][noise.name] = london.price_surface(sales, noise=noise, steps=steps)
                tick()
    console.print(
        report.london_report(
            {
                name: {noise: london.summarise_noise(one) for noise, one in by_noise.items()}
                for name, by_noise in surfaces.items()
            }
        )
    )
    for name, by_noise in surfaces.items():
        mean = by_noise[PAPERS_NOISE.name].mean
        console.print(
            f"{name}: mean without privacy £{mean.min() / 1e3:.0f}k to £{mean.max() / 1e3:.0f}k "
            "(the paper's contours: £215k to £437k)"
        )
    width = london.BUDGET.bounds.width
    _write(
        figures.surfaces_figure(
            surfaces,
            style=figures.SurfaceStyle(
                transparent_at=london.TRANSPARENT_SHARE * width,
                area=5e-4 * (london.QUERY_STEPS / steps) ** 2,
                levels=np.arange(200e3, 500e3, 25e3),
                output=lambda price: f"£{price / 1e3:.0f}k",
                horizontal="easting (km)",
                vertical="northing (km)",
                input_unit=1e3,
                equal=True,
            ),
            title="Sale prices around London, (1, 0.01)-DP (2018 paper, figure 3)\n"
            "Disc area: released price. Fainter: more privacy noise, gone at 40 % of Δ = £400k.",
        ),
        output_dir / "london-figure-3.png",
    )
    console.print(f"{time.monotonic() - started:.0f} s")


def _write(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=figures.DPI)
    console.print(f"wrote {path}")


def main() -> None:
    """Run, and say in one line where a missing table can be had."""
    try:
        app()
    except DatasetUnavailableError as error:
        Console(stderr=True).print(str(error), style="red", markup=False)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
