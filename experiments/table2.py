"""Table 2, figures 10 and 11 of the 2021 paper, beside sound choices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np
import pandas as pd
import typer
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from cloakgp.privacy.composition import compose_with_selection, worst_release
from cloakgp.privacy.cross_validation import HeldOutErrors
from cloakgp.privacy.selection import SelectionMechanism
from cloakgp.privacy.workers import in_order
from cloakgp.utils.arrays import Array
from experiments import table2_choices
from experiments.algorithm_1 import DELTA, EPSILON, LOSS_NAMES, Fold
from experiments.datasets import load_kung
from experiments.figures import BLUE, RED
from experiments.framework import Experiment, Progress, Tick, no_tick, table_titled
from experiments.table2_rows import Rows, rows_report, summary_lines

Cloaked = TypeVar("Cloaked")

MECHANISMS: tuple[SelectionMechanism, ...] = ("permute-and-flip", "exponential")


@dataclass(frozen=True, eq=False)
class Study:
    """All candidates' errors on one input, for the half that chooses and for the other.

    Attributes
    ----------
    column : {"weight", "age"}
    halves : pair of Half
    papers : pair of lists
        Folds of every candidate with the papers' noise.
    ours : pair of lists
        What `cloakgp.privacy.selection` knows of every candidate.
    """

    column: str
    halves: tuple[table2_choices.Half, table2_choices.Half]
    papers: tuple[list[list[Fold]], list[list[Fold]]]
    ours: tuple[list[HeldOutErrors], list[HeldOutErrors]]

    @classmethod
    def of(
        cls,
        women: pd.DataFrame,
        *,
        column: str,
        tick: Callable[[], None],
        n_jobs: int | None = None,
    ) -> Study:
        """Cloak everything.

        Parameters
        ----------
        n_jobs : int, optional
            How many of four parts at a time; see `cloakgp.privacy.workers.in_order`.
        """
        halves = table2_choices.halves(women, column=column)

        def of_both(cloaked: Callable[[table2_choices.Half], Cloaked]) -> tuple[Cloaked, Cloaked]:
            found = []
            for one in in_order((partial(cloaked, half) for half in halves), n_jobs=n_jobs):
                found.append(one)
                for _ in table2_choices.GRID:
                    tick()
            first, second = found
            return first, second

        return cls(
            column=column,
            halves=halves,
            papers=of_both(table2_choices.papers_folds),
            ours=of_both(table2_choices.our_candidates),
        )

    def papers_rows(self) -> dict[str, tuple[float, float]]:
        """Return the papers' expected RMSEs on both halves, in cm, by way of choosing."""
        chooser, candidates = self.halves[0], self.papers[0]
        rmse = [
            table2_choices.papers_rmse(one, half)
            for one, half in zip(self.papers, self.halves, strict=True)
        ]
        kept = table2_choices.kept_by_threshold(candidates, width=chooser.width)
        found = {}
        for label, thresholded, sensitivity in (
            ("notebook", True, table2_choices.NOTEBOOK_SENSITIVITY),
            ("equation 14", True, None),
            ("nothing dropped", False, None),
        ):
            choice = table2_choices.papers_choice(
                candidates, chooser, thresholded=thresholded, sensitivity=sensitivity
            )
            name = f"algorithm 1, {label}, Δ_u = {choice.claimed_sensitivity:.1f}"
            found[name] = _expected(rmse, choice.probabilities)
        found[f"any of the {kept.sum()} not dropped"] = _expected(rmse, kept / kept.sum())
        found["any of the 80"] = _expected(rmse, np.full(len(kept), 1 / len(kept)))
        found["best of the 80 (not private)"] = _expected(rmse, rmse[0] == rmse[0].min())
        return found

    def our_rows(self) -> dict[str, tuple[float, float]]:
        """Return our expected RMSEs on both halves, in cm, by way of choosing."""
        rmse = [
            table2_choices.our_rmse(one, half)
            for one, half in zip(self.ours, self.halves, strict=True)
        ]
        found = {
            f"{name}, {mechanism}": _expected(
                rmse,
                table2_choices.our_choice(
                    self.ours[0], self.halves[0], mechanism=mechanism, loss=loss
                ),
            )
            for loss, name in LOSS_NAMES.items()
            for mechanism in MECHANISMS
        }
        for mechanism in MECHANISMS:
            epsilon = table2_choices.epsilon_within_total(mechanism)
            name = f"absolute errors, {mechanism}, ε = {epsilon:.2f}: total (2, 0.01)"
            found[name] = _expected(
                rmse,
                table2_choices.our_choice(
                    self.ours[0],
                    self.halves[0],
                    epsilon=epsilon,
                    mechanism=mechanism,
                    loss="absolute",
                ),
            )
        count = len(table2_choices.GRID)
        found["any of the 80"] = _expected(rmse, np.full(count, 1 / count))
        found["best of the 80 (not private)"] = _expected(rmse, rmse[0] == rmse[0].min())
        return found

    def default_rows(self, *, draws: int) -> dict[str, tuple[float, float]]:
        """Return the defaults' RMSEs on both halves at the total budget, in cm."""
        first, second = self.halves
        return {
            "default prior as declared": (
                table2_choices.declared_default_rmse(first),
                table2_choices.declared_default_rmse(second),
            ),
            f"untouched defaults ({draws} draws a fold)": (
                table2_choices.default_rmse(first, draws=draws),
                table2_choices.default_rmse(second, draws=draws),
            ),
        }


def _expected(rmse: Sequence[Array], probabilities: Array) -> tuple[float, float]:
    same, other = (table2_choices.expected_rmse(one, probabilities) for one in rmse)
    return same, other


# Where the closer view of figure 10 ends, in cm.
CLOSER = 40.0


def bars_figure(choices: Mapping[str, tuple[Array, Array]], *, title: str) -> Figure:
    """Draw figure 10: configurations by their error, each as wide as it is probable.

    Parameters
    ----------
    choices : mapping of str to (array, array), each of shape (n,)
        RMSE in cm and probability of every configuration, by way of choosing.
    """
    figure = Figure(figsize=(3.4 * len(choices), 6.8), layout="constrained")
    grid = figure.subplots(2, len(choices), squeeze=False, sharex=True, sharey="row")
    for (whole, close), (name, (rmse, probabilities)) in zip(grid.T, choices.items(), strict=True):
        expected = float(np.sqrt(probabilities @ np.square(rmse)))
        for axes in (whole, close):
            _draw_bars(axes, rmse, probabilities, expected=expected)
        whole.set_title(f"{name}\nexpected {expected:.1f} cm", fontsize=10)
        close.set_ylim(0, CLOSER)
        close.set_xlabel("cumulative probability")
    for row in grid:
        row[0].set_ylabel("RMSE (cm)")
    figure.suptitle(title, fontsize=12)
    return figure


def _draw_bars(axes: Axes, rmse: Array, probabilities: Array, *, expected: float) -> None:
    order = np.argsort(rmse)
    widths = probabilities[order]
    axes.bar(
        np.cumsum(widths) - widths,
        rmse[order],
        width=widths,
        align="edge",
        color=BLUE,
        edgecolor="white",
        linewidth=0.15,
    )
    axes.axhline(expected, color=RED, linewidth=1.2)
    axes.set_xlim(0, 1)


def lengthscales_figure(
    panels: Mapping[str, Array],
    *,
    epsilons: Sequence[float],
    lengthscales: Sequence[float],
    unit: str,
    title: str,
) -> Figure:
    """Draw figure 11: how probable every lengthscale is, by the budget.

    Parameters
    ----------
    panels : mapping of str to array of shape (lengthscales, epsilons)
        Probabilities, by way of choosing.
    unit : str
        Of the lengthscales.
    """
    figure = Figure(figsize=(5.2 * len(panels), 3.9), layout="constrained")
    row = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (name, probabilities) in zip(row, panels.items(), strict=True):
        image = axes.imshow(
            probabilities, cmap="Greys", vmin=0, vmax=1, origin="lower", aspect="auto"
        )
        for (vertical, horizontal), share in np.ndenumerate(probabilities):
            axes.text(
                horizontal,
                vertical,
                f"{share:.0%}",
                ha="center",
                va="center",
                fontsize=8,
                color="white" if share > 0.55 else "black",
            )
        axes.set_xticks(range(len(epsilons)), [f"{epsilon:g}" for epsilon in epsilons])
        axes.set_yticks(
            range(len(lengthscales)), [f"{lengthscale:g}" for lengthscale in lengthscales]
        )
        axes.set_xlabel("ε of the choice, and of the release")
        axes.set_title(name, fontsize=10)
    row[0].set_ylabel(f"lengthscale ({unit})")
    figure.colorbar(image, ax=list(row), label="probability")
    figure.suptitle(title, fontsize=12)
    return figure


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


def table2_report(study: Study, *, defaults: dict[str, tuple[float, float]]) -> Table:
    """Lay out expected RMSEs, the papers' above ours.

    Parameters
    ----------
    defaults : mapping of str to (float, float)
        RMSEs of the defaults on both halves, by way.
    """
    table = table_titled(
        f"Expected RMSE (cm) of heights from {study.column}: 80 configurations, a choice at "
        f"ε = 1 and a release at (1, 0.01)",
        "way of choosing",
        right=("half that chose", "other half"),
    )
    for name, (same, other) in PUBLISHED[study.column].items():
        table.add_row(name, same, other, style="dim")
    sections = (
        ("papers' noise, raw predictions; not private: the bound fails", study.papers_rows()),
        ("exact noise, posterior means; private", study.our_rows()),
        ("no choice, all the budget in one release: (2, 0.01)", defaults),
    )
    for heading, rows in sections:
        table.add_section()
        table.add_row(heading, style="bold")
        for name, rmse in rows.items():
            table.add_row(f"  {name}", *(f"{one:.1f}" for one in rmse))
    return table


def figure_10(study: Study) -> Figure:
    """Draw figure 10: the papers' configurations by error, as wide as probable; and ours."""
    chooser = study.halves[0]
    alike = np.full(len(table2_choices.GRID), 1 / len(table2_choices.GRID))
    theirs = table2_choices.papers_rmse(study.papers[0], chooser)
    ours = table2_choices.our_rmse(study.ours[0], chooser)
    chosen = table2_choices.papers_choice(
        study.papers[0], chooser, sensitivity=table2_choices.NOTEBOOK_SENSITIVITY
    )
    bars = {
        "algorithm 1 (bound fails)": (theirs, chosen.probabilities),
        "papers' noise, all alike": (theirs, alike),
        "ours, root of squares": (ours, table2_choices.our_choice(study.ours[0], chooser)),
        "ours, absolute errors": (
            ours,
            table2_choices.our_choice(study.ours[0], chooser, loss="absolute"),
        ),
    }
    return bars_figure(
        bars,
        title=f"80 configurations by RMSE, as wide as they are probable; heights from "
        f"{study.column} (2021 paper, figure 10). Below: the same, closer",
    )


@dataclass(frozen=True, eq=False)
class Lengthscales:
    """Probability of every lengthscale by budget, for figure 11.

    Attributes
    ----------
    epsilons : tuple of float
    panels : mapping of way of choosing to array of shape (lengthscales, epsilons)
    """

    epsilons: tuple[float, ...]
    panels: Mapping[str, Array]


def chosen_lengthscales(
    study: Study, *, epsilons: Sequence[float], tick: Tick = no_tick
) -> Lengthscales:
    """Compute how probable every lengthscale is at several budgets.

    Parameters
    ----------
    study : Study
    epsilons : sequence of float
        Of the choice and of the release, each.
    tick : callable, optional
        Called once for every candidate and budget.
    """
    chooser = study.halves[0]
    theirs, ours = [], []
    for epsilon in epsilons:
        noised = table2_choices.with_exact_noise(study.papers[0], epsilon=epsilon)
        choice = table2_choices.papers_choice(noised, chooser, epsilon=epsilon)
        theirs.append(table2_choices.by_lengthscale(choice.probabilities))
        candidates = table2_choices.our_candidates(chooser, epsilon=epsilon, tick=tick)
        ours.append(
            table2_choices.by_lengthscale(
                table2_choices.our_choice(candidates, chooser, epsilon=epsilon, loss="absolute")
            )
        )
    return Lengthscales(
        epsilons=tuple(epsilons),
        panels={
            "algorithm 1 (bound fails), log det noise, exact": np.array(theirs).T,
            "ours, absolute errors": np.array(ours).T,
        },
    )


def figure_11(lengthscales: Lengthscales, *, column: str) -> Figure:
    """Draw figure 11: probabilities of the lengthscales by budget.

    Parameters
    ----------
    lengthscales : Lengthscales
    column : {"weight", "age"}
    """
    return lengthscales_figure(
        lengthscales.panels,
        epsilons=lengthscales.epsilons,
        lengthscales=table2_choices.LENGTHSCALES,
        unit=UNITS[column],
        title=f"Which lengthscale is chosen, heights from {column} (2021 paper, figure 11; "
        "2018 supplement, figure 5)",
    )


@dataclass(frozen=True, eq=False)
class Found:
    """All candidates on one input, the defaults' RMSEs by way, and the lengthscales chosen."""

    study: Study
    defaults: dict[str, tuple[float, float]]
    lengthscales: Lengthscales


@dataclass(frozen=True)
class Table2(Experiment[list[Found]]):
    """Section 6.7 of the 2021 paper: one of 80 configurations for 144 !Kung women, and the rest."""

    name: ClassVar[str] = "table2"
    small: ClassVar[Mapping[str, Any]] = {
        "columns": ("weight",),
        "draws": 1,
        "epsilons": (100.0, 1.0, 0.1),
    }

    columns: Sequence[str] = ("weight", "age")
    draws: Annotated[int, typer.Option(min=1, help="Releases of untouched defaults a fold.")] = 20
    epsilons: Sequence[float] = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)

    def compute(self, progress: Progress) -> list[Found]:
        """Cloak every candidate on both halves, and choose at every budget."""
        women, found = load_kung(male=False), []
        count = len(table2_choices.GRID)
        for column in self.columns:
            with progress(f"cloaking by {column}", steps=4 * count) as tick:
                study = Study.of(women, column=column, tick=tick)
            with progress("figure 11", steps=count * len(self.epsilons)) as tick:
                lengthscales = chosen_lengthscales(study, epsilons=self.epsilons, tick=tick)
            defaults = study.default_rows(draws=self.draws)
            found.append(Found(study=study, defaults=defaults, lengthscales=lengthscales))
        return found

    def tables(self, found: list[Found]) -> Iterable[Table | str]:
        """Lay out expected RMSEs, and say what choice and release cost together."""
        for one in found:
            yield table2_report(one.study, defaults=one.defaults)
            rows = Rows.of(one.study.papers, one.study.halves)
            yield rows_report(rows, column=one.study.column)
            yield from summary_lines(rows)
        release = worst_release(
            EPSILON, DELTA, rows=table2_choices.FIRST_HALF, answers=2 * table2_choices.FIRST_HALF
        )
        for mechanism in MECHANISMS:
            yield str(compose_with_selection(release, EPSILON, mechanism=mechanism))

    def figures(self, found: list[Found]) -> Mapping[str, Figure]:
        """Draw figure 10 for weight, and figure 11."""
        drawn = {}
        for one in found:
            column = one.study.column
            if column == "weight":
                drawn["selection-figure-10.png"] = figure_10(one.study)
            drawn[f"selection-figure-11-{column}.png"] = figure_11(one.lengthscales, column=column)
        return drawn
