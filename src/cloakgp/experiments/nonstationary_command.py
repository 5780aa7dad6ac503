"""Command: nonstationary."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import Progress

from cloakgp.datasets import load_kung
from cloakgp.design.row_noise import STEPS
from cloakgp.experiments import figures, kung, nonstationary
from cloakgp.experiments import nonstationary_report as report
from cloakgp.experiments.cloaked import PAPERS_NOISE, TRACE_NOISE
from cloakgp.experiments.crossvalidation import Protocol, Tick

console = Console(highlight=False)

FAST_DRAWS, FAST_STEPS, FAST_FOLDS = 2, 2, 3
SHOWN_NOISES = (PAPERS_NOISE, TRACE_NOISE)


def run_nonstationary(
    draws: Annotated[int, typer.Option(min=2, help="Releases per fold and method.")] = 20,
    output_dir: Annotated[Path, typer.Option(help="Where pictures are written.")] = Path("output"),
    fast: Annotated[bool, typer.Option("--fast", help="Fewer draws; rougher figures.")] = False,
    shuffle: Annotated[
        bool, typer.Option("--shuffle", help="Deal rows to folds at random.")
    ] = False,
) -> None:
    """Table 1's third column and figures 3B, 3D and 5C of the 2021 paper, and row noises."""
    women = load_kung(male=False)
    started = time.monotonic()
    protocol = Protocol(draws=FAST_DRAWS if fast else draws, shuffle=shuffle)
    for setting in nonstationary.NONSTATIONARY:
        console.print(
            f"{setting.inputs}: lengthscale 1 / (1/{setting.longest:g} + ρ/{setting.crowd:g}), ρ "
            f"the smallest density within {nonstationary.RADIUS:g} along an axis, bandwidth "
            f"{nonstationary.BANDWIDTH:g}. The paper gives none of these; chosen near its table."
        )
    settings = len(nonstationary.NONSTATIONARY)
    with _progress("table 1", steps=2 * settings * protocol.folds) as tick:
        found = nonstationary.third_column(women, protocol=protocol, tick=tick)
        posterior = nonstationary.bayes_rows(women, protocol=protocol, tick=tick)
    order = "shuffled" if shuffle else "in file order"
    how = f"(1, 0.01)-DP, folds {order}, {protocol.draws} draws a fold, ± sd over folds, se over"
    title = f"Table 1 of the 2021 paper, non-stationary: {how} draws; {protocol.folds} folds"
    console.print(report.third_column_report(found, posterior, title=title))

    dealt = replace(protocol, folds=FAST_FOLDS) if fast else protocol
    with _progress("row noises", steps=len(nonstationary.STANDARD) * dealt.folds) as tick:
        noises = nonstationary.row_noises(
            women, protocol=dealt, steps=FAST_STEPS if fast else STEPS, tick=tick
        )
    title = (
        f"Row noises in table 1's standard column, trace design, exact calibration: {how} draws; "
        f"{dealt.folds} folds"
    )
    console.print(report.row_noise_report(noises, title=title))
    for name, figure in _figures(women).items():
        output_dir.mkdir(parents=True, exist_ok=True)
        figure.savefig(output_dir / name, dpi=figures.DPI)
        console.print(f"wrote {output_dir / name}")
    console.print(f"{time.monotonic() - started:.0f} s")


def _figures(women: pd.DataFrame) -> dict[str, Figure]:
    ages = women["age"].to_numpy(dtype=float)
    curves = {noise.name: nonstationary.age_curve(women, noise=noise) for noise in SHOWN_NOISES}
    surfaces = {
        noise.name: nonstationary.weight_age_surface(women, noise=noise) for noise in SHOWN_NOISES
    }
    weight, age = kung.NAMED_POINT
    for noise, surface in surfaces.items():
        console.print(
            f"Noise sd at {weight:g} kg and {age:g} years, {noise}: "
            f"{kung.noise_sd_at_named_point(surface):.1f} cm (2021 paper, standard: 40 cm)"
        )
    return {
        "nonstationary-figure-3b.png": figures.curves_figure(
            {"B, non-stationary": curves},
            X=ages,
            y=kung.heights(women),
            title="Heights of !Kung women by age, (1, 0.01)-DP (2021 paper, figure 3B)",
        ),
        "nonstationary-figure-3d.png": report.lengthscale_figure(
            nonstationary.lengthscales_by_age(women),
            X=ages,
            title="Lengthscale by age (2021 paper, figure 3D)",
        ),
        "nonstationary-figure-5c.png": figures.surfaces_figure(
            {"C, non-stationary": surfaces},
            style=figures.SurfaceStyle(
                transparent_at=40.0,
                area=1.8,
                levels=np.arange(60.0, 200.0, 10.0),
                output=lambda height: f"{height:.0f} cm",
                horizontal="weight (kg)",
                vertical="age (years)",
            ),
            title="Heights of !Kung women by weight and age, (1, 0.01)-DP (2021 paper, figure 5C)\n"
            "Disc area: released height. Fainter: more privacy noise, gone at 40 cm.",
        ),
    }


@contextmanager
def _progress(what: str, *, steps: int) -> Iterator[Tick]:
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(what, total=steps)
        yield lambda: progress.advance(task)
