"""Command: private-inputs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sklearn.gaussian_process.kernels import RBF, Matern

from cloakgp.datasets import load_kung
from cloakgp.experiments import kung
from cloakgp.experiments.crossvalidation import Protocol, Tick
from cloakgp.experiments.posterior_rows import TUNED_LENGTHSCALES, TUNED_NOISE, TUNED_SIGNAL
from cloakgp.experiments.private_inputs import (
    DELTA,
    Found,
    errors_without_privacy,
    kung_errors,
    simulated_coverage,
)
from cloakgp.privacy.statistics_grid import NEIGHBOURS
from cloakgp.privacy.varah import NotDominantError, dominance_bound

EPSILONS = (0.5, 1.0, 2.0, 5.0)
FAST_EPSILONS, FAST_DRAWS = (1.0,), 2
TABLES, FAST_TABLES = 60, 10
GAPS = (50.0, 90.0)

console = Console(highlight=False)


def run_private_inputs(
    draws: Annotated[int, typer.Option(min=2, help="Releases per fold and method.")] = 20,
    fast: Annotated[bool, typer.Option("--fast", help="Fewer draws; rougher figures.")] = False,
) -> None:
    """Ages and heights both private: statistics against the histogram, and their intervals."""
    started = time.monotonic()
    women = load_kung(male=False)
    protocol = Protocol(draws=FAST_DRAWS if fast else draws)
    epsilons = FAST_EPSILONS if fast else EPSILONS
    print_dominance(len(women))
    without = errors_without_privacy(women, protocol=protocol)
    console.print(
        "Without privacy: " + ", ".join(f"{name} {one:.2f} cm" for name, one in without.items())
    )
    for neighbours in NEIGHBOURS:
        with _progress(neighbours, steps=len(epsilons) * protocol.folds) as tick:
            found = {
                epsilon: kung_errors(
                    women, epsilon=epsilon, neighbours=neighbours, protocol=protocol, tick=tick
                )
                for epsilon in epsilons
            }
        console.print(errors_report(found, neighbours=neighbours, protocol=protocol))
    tables = FAST_TABLES if fast else TABLES
    for kernel in (0.49 * Matern(0.5, nu=1.5), 0.49 * RBF(0.2)):
        for neighbours in NEIGHBOURS:
            for epsilon in epsilons:
                share, error, z = simulated_coverage(
                    kernel, epsilon=epsilon, neighbours=neighbours, tables=tables
                )
                console.print(
                    f"95 % intervals, simulated, {kernel}, {neighbours}, ε = {epsilon:g}, "
                    f"{tables} tables: {share:.1%} (se {error:.1%}), rms z {z:.2f}"
                )
    console.print(f"{time.monotonic() - started:.0f} s")


def print_dominance(rows: int) -> None:
    """Print what the papers' way would give for so many rows: a bound, or a refusal.

    Parameters
    ----------
    rows : int
    """
    for gap in GAPS:
        ages = np.arange(5.0, 100.0, gap)[:, None]
        try:
            bound = dominance_bound(
                ages,
                signal_variance=TUNED_SIGNAL,
                lengthscale=TUNED_LENGTHSCALES["1d"],
                noise_variance=TUNED_NOISE,
                rows=rows,
                width=kung.BUDGET.bounds.width,
            )
        except NotDominantError as error:
            said = f"refused: {error}"
        else:
            said = f"one row moves a prediction by at most {bound.prediction_move:.0f} cm"
        console.print(f"Diagonal dominance, inducing ages {gap:g} years apart: {said}")


def errors_report(found: dict[float, Found], *, neighbours: str, protocol: Protocol) -> Table:
    """Lay out errors by method and ε.

    Parameters
    ----------
    found : dict of ε to Found
    neighbours : str
    protocol : Protocol
    """
    table = Table(
        title=f"RMSE (cm) of heights by age, both private, {neighbours}, δ = {DELTA:g}, "
        f"{protocol.folds} folds, {protocol.draws} draws (se over draws); last: share of held-out "
        "heights in 95 % intervals",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("method")
    for epsilon in found:
        table.add_column(f"ε = {epsilon:g}", justify="right")
    first = next(iter(found.values()))
    for name in first.errors:
        cells = (one.errors[name] for one in found.values())
        table.add_row(name, *(f"{one.mean:.2f} ({one.standard_error or 0:.2f})" for one in cells))
    for name in first.coverage:
        shares = (one.coverage[name] for one in found.values())
        table.add_row(f"coverage, {name}", *(f"{share:.1%}" for share in shares))
    return table


@contextmanager
def _progress(what: str, *, steps: int) -> Iterator[Tick]:
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(what, total=steps)
        yield lambda: progress.advance(task)
