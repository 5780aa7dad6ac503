"""Section 6.7, table 2, figures 10 and 11 of the 2021 paper beside sound choices: ``table2``."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from matplotlib.figure import Figure
from rich.table import Table

from cloakgp.datasets import load_kung
from cloakgp.experiments import selection_figures, sound_selection, table2
from cloakgp.experiments.selection_papers import DELTA, EPSILON
from cloakgp.experiments.selection_study import MECHANISMS, Study
from cloakgp.experiments.terminal import console, progress, table_titled
from cloakgp.privacy.mixed import compose_with_selection, worst_release

DPI = 130

OutputDir = Annotated[Path, typer.Option(help="Where pictures are written.")]
Fast = Annotated[bool, typer.Option("--fast", help="Fewer draws and budgets; weight alone.")]

# 2021 paper, section 6.7, and the authors' code run again for this project: expected RMSE in cm on
# the half that chose and on the other half.
PUBLISHED = {
    "weight": {
        "published (as if of age)": ("19.0", ""),
        "authors' code re-run, 5 steps": ("18.5", "23.2"),
        "authors' code re-run, 100 steps": ("15.7", "20.6"),
    },
    "age": {"authors' code re-run, 100 steps": ("19.2", "26.7")},
}
UNITS = {"weight": "kg", "age": "years"}

EPSILONS = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
FAST_EPSILONS = (100.0, 1.0, 0.1)
DRAWS, FAST_DRAWS = 20, 1


def run_table2(output_dir: OutputDir = Path("output"), fast: Fast = False) -> None:
    """Section 6.7 of the 2021 paper: one of 80 configurations for 144 !Kung women, and the rest."""
    women = load_kung(male=False)
    started = time.monotonic()
    for column in ("weight",) if fast else ("weight", "age"):
        with progress(f"cloaking by {column}", steps=4 * len(table2.GRID)) as tick:
            study = Study.of(women, column=column, tick=tick)
        console.print(table2_report(study, draws=FAST_DRAWS if fast else DRAWS))
        if column == "weight":
            _write(figure_10(study), output_dir / "selection-figure-10.png")
        epsilons = FAST_EPSILONS if fast else EPSILONS
        with progress("figure 11", steps=len(table2.GRID) * len(epsilons)) as tick:
            _write(
                figure_11(study, epsilons=epsilons, tick=tick),
                output_dir / f"selection-figure-11-{column}.png",
            )
    console.print(_guarantees())
    console.print(f"{time.monotonic() - started:.0f} s")


def table2_report(study: Study, *, draws: int) -> Table:
    """Lay out expected RMSEs, the papers' above ours.

    Parameters
    ----------
    study : Study
    draws : int
        Releases per fold of the defaults.
    """
    table = table_titled(
        f"Expected RMSE (cm) of heights from {study.column}: 80 configurations, a choice at "
        f"ε = 1 and a release at (1, 0.01)"
    )
    table.add_column("way of choosing")
    table.add_column("half that chose", justify="right")
    table.add_column("other half", justify="right")
    for name, (same, other) in PUBLISHED[study.column].items():
        table.add_row(name, same, other, style="dim")
    sections = (
        ("papers' noise, raw predictions; not private: the bound fails", study.papers_rows()),
        ("exact noise, posterior means; private", study.our_rows()),
        ("no choice, all the budget in one release: (2, 0.01)", study.default_rows(draws=draws)),
    )
    for heading, rows in sections:
        table.add_section()
        table.add_row(heading, style="bold")
        for name, rmse in rows.items():
            table.add_row(f"  {name}", *(f"{one:.1f}" for one in rmse))
    return table


def figure_10(study: Study) -> Figure:
    """Draw figure 10: the papers' configurations by error, as wide as probable; and ours.

    Parameters
    ----------
    study : Study
    """
    chooser = study.halves[0]
    alike = np.full(len(table2.GRID), 1 / len(table2.GRID))
    theirs = table2.papers_rmse(study.papers[0], chooser)
    ours = sound_selection.our_rmse(study.ours[0], chooser)
    chosen = table2.papers_choice(study.papers[0], chooser, sensitivity=table2.NOTEBOOK_SENSITIVITY)
    bars = {
        "algorithm 1 (bound fails)": (theirs, chosen.probabilities),
        "papers' noise, all alike": (theirs, alike),
        "ours, root of squares": (ours, sound_selection.our_choice(study.ours[0], chooser)),
        "ours, absolute errors": (
            ours,
            sound_selection.our_choice(study.ours[0], chooser, loss="absolute"),
        ),
    }
    return selection_figures.bars_figure(
        bars,
        title=f"80 configurations by RMSE, as wide as they are probable; heights from "
        f"{study.column} (2021 paper, figure 10). Below: the same, closer",
    )


def figure_11(study: Study, *, epsilons: Sequence[float], tick: Callable[[], None]) -> Figure:
    """Draw figure 11: probabilities of the lengthscales by budget.

    Parameters
    ----------
    study : Study
    epsilons : sequence of float
        Of the choice and of the release, each.
    tick : callable
        Called once for every candidate and budget.
    """
    chooser = study.halves[0]
    theirs, ours = [], []
    for epsilon in epsilons:
        noised = table2.with_exact_noise(study.papers[0], epsilon=epsilon)
        choice = table2.papers_choice(noised, chooser, epsilon=epsilon)
        theirs.append(table2.by_lengthscale(choice.probabilities))
        candidates = sound_selection.our_candidates(chooser, epsilon=epsilon, tick=tick)
        ours.append(
            table2.by_lengthscale(
                sound_selection.our_choice(candidates, chooser, epsilon=epsilon, loss="absolute")
            )
        )
    return selection_figures.lengthscales_figure(
        {
            "algorithm 1 (bound fails), log det noise, exact": np.array(theirs).T,
            "ours, absolute errors": np.array(ours).T,
        },
        epsilons=epsilons,
        lengthscales=table2.LENGTHSCALES,
        unit=UNITS[study.column],
        title=f"Which lengthscale is chosen, heights from {study.column} (2021 paper, figure 11)",
    )


def _guarantees() -> str:
    """Say what choice and release cost together."""
    release = worst_release(EPSILON, DELTA, rows=table2.FIRST_HALF)
    return "\n".join(
        str(compose_with_selection(release, EPSILON, mechanism=mechanism))
        for mechanism in MECHANISMS
    )


def _write(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI)
    console.print(f"wrote {path}")
