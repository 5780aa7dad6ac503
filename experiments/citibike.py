"""Table 1 and figure 4 of the 2018 paper: durations of Citi Bike trips.

The settings are those of `experiments.citibike_folds`; trips are subscribers', as in the paper,
unless all are asked for.

The paper's conclusion from its table is that cloaking, "with the right lengthscale, makes more
accurate predictions than either of the binning methods". Integral binning is far more accurate here
than published, and more accurate than cloaking with the papers' noise where ε is small: published
are 581 to 643 s without any noise, which is more than the error of the mean of all trips. What is
different in theirs is not known. The command says which of the two is ahead at every budget
(`experiments.citibike_verdict`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from matplotlib.figure import Figure
from rich.table import Table
from scipy import stats

from cloakgp.models import kmeans_centres
from cloakgp.release.histogram import Bins
from cloakgp.utils.arrays import Array
from experiments import citibike_folds
from experiments.citibike_folds import (
    INDUCING,
    ByBudget,
    Fold,
    Trips,
    bayes_errors,
    binning_errors,
    cloaking_errors,
    default_errors,
)
from experiments.citibike_verdict import OccupiedBins, occupied_bins, verdict_lines
from experiments.cloaking import PAPERS_NOISE
from experiments.cross_validation import Errors, Protocol
from experiments.datasets import load_citibike
from experiments.figures import BLACK, BLUE, RED
from experiments.framework import Experiment, Progress, Tick, no_tick, table_titled

# At 0.02° the bayes design of 4900 rows takes minutes, and predictions profit from ε > 1 only.
BAYES_LENGTHSCALES = citibike_folds.LENGTHSCALES[:-1]
COLUMNS: tuple[float | None, ...] = (None, *citibike_folds.EPSILONS)
SIMPLE, INTEGRAL = "simple binning", "integral binning"
KNOWN = "integral binning, known noise"
PUBLISHED_NAMES = {
    "cloaking": f"cloaking, {PAPERS_NOISE.name}",
    INTEGRAL: f"{INTEGRAL}, Laplace as the paper",
    SIMPLE: f"{SIMPLE}, Laplace as the paper",
}


@dataclass(frozen=True)
class Key:
    """A row of the table.

    Attributes
    ----------
    method : str
    setting : str
        A lengthscale or a number of bins; empty where nothing is set.
    """

    method: str
    setting: str


def degrees(lengthscale: float) -> str:
    """Return a lengthscale as the table writes it.

    Examples
    --------
    >>> degrees(0.05)
    '0.050°'
    """
    return f"{lengthscale:.3f}°"


def grid_name(bins: int) -> str:
    """Return a number of bins as the table writes it.

    Examples
    --------
    >>> grid_name(6)
    '6⁴ bins'
    """
    return f"{bins}⁴ bins"


# RMSE and 95 % interval in seconds, as printed: without privacy, then ε = 1, 0.5 and 0.2.
PUBLISHED: dict[Key, tuple[tuple[float, float], ...]] = {
    Key("cloaking", degrees(0.781)): ((490, 14), (493, 13), (498, 13), (525, 19)),
    Key("cloaking", degrees(0.312)): ((492, 15), (497, 12), (502, 17), (545, 26)),
    Key("cloaking", degrees(0.125)): ((402, 7), (437, 21), (476, 17), (758, 94)),
    Key("cloaking", degrees(0.050)): ((333, 11), (434, 27), (612, 78), (1163, 147)),
    Key("cloaking", degrees(0.020)): ((314, 12), (478, 22), (854, 54), (1868, 106)),
    Key(INTEGRAL, grid_name(10)): ((581, 5), (586, 7), (597, 12), (627, 23)),
    Key(INTEGRAL, grid_name(6)): ((641, 6), (640, 9), (658, 17), (736, 41)),
    Key(INTEGRAL, grid_name(3)): ((643, 6), (649, 13), (677, 22), (770, 51)),
    Key(SIMPLE, grid_name(10)): ((596, 12), (1064, 69), (1927, 191), (4402, 434)),
    Key(SIMPLE, grid_name(6)): ((587, 11), (768, 58), (1202, 206), (2373, 358)),
    Key(SIMPLE, grid_name(3)): ((550, 12), (575, 24), (629, 58), (809, 110)),
}

Found = dict[Key, dict[float | None, Errors]]


def table_1(trips: Trips, *, scale: CitiBike, tick: Tick = no_tick) -> Found:
    """Compute the table.

    Returns
    -------
    dict of Key to dict of budget to Errors
        The budget is ε, or None without privacy.
    """
    folds = []
    for number, fold in enumerate(trips.folds(scale.protocol.folds, training=scale.training)):
        folds.append(errors_of_fold(fold, number=number, box=trips.box, scale=scale))
        tick()
    return gathered(folds)


def errors_of_fold(
    fold: Fold, *, number: int, box: Sequence[tuple[float, float]], scale: CitiBike
) -> dict[Key, ByBudget]:
    """Compute every row of the table for one fold.

    Parameters
    ----------
    number : int
        Which one; `bayes` and the defaults are left out from ``scale.bayes_folds`` on.
    box : sequence of pairs
        Range of each input, for the bins.
    """
    draws = scale.protocol.draws

    def seed(epsilon: float, draw: int) -> int | None:
        return scale.protocol.seed(number, citibike_folds.EPSILONS.index(epsilon), draw)

    found: dict[Key, ByBudget] = {}
    for lengthscale in scale.lengthscales:
        by_noise = cloaking_errors(fold, lengthscale=lengthscale, draws=draws, seed=seed)
        for name, errors in by_noise.items():
            found[Key(f"cloaking, {name}", degrees(lengthscale))] = errors
    for count in scale.bins:
        bins = Bins.over(fold.X, bins=count, ranges=box)
        binned = binning_errors(fold, bins=bins, draws=draws, seed=seed)
        for kind, method in (
            ("integral", INTEGRAL),
            ("integral, known noise", KNOWN),
            ("simple", SIMPLE),
        ):
            for name, errors in binned[kind].items():
                found[Key(f"{method}, {name}", grid_name(count))] = errors
    if number >= scale.bayes_folds:
        return found
    inducing, _ = kmeans_centres(fold.X, count=INDUCING)
    for lengthscale in scale.bayes_lengthscales:
        found[Key("bayes", degrees(lengthscale))] = bayes_errors(
            fold, lengthscale=lengthscale, inducing=inducing, draws=draws, seed=seed
        )
    for name, errors in default_errors(fold, draws=draws, seed=seed).items():
        found[Key(name, "")] = errors
    return found


def gathered(folds: Sequence[Mapping[Key, ByBudget]]) -> Found:
    """Put folds together, row by row; a row may be missing from some folds.

    Examples
    --------
    >>> one = {Key("a", ""): {None: [3.0], 1.0: [4.0], 0.5: [5.0], 0.2: [6.0]}}
    >>> gathered([one, one, {}])[Key("a", "")][0.2].by_fold.shape
    (2, 1)
    """
    return {
        key: {
            column: Errors(np.array([fold[key][column] for fold in folds if key in fold]))
            for column in COLUMNS
        }
        for key in dict.fromkeys(key for fold in folds for key in fold)
    }


def interval(errors: Errors) -> float | None:
    """Return half the width of Student's 95 % interval of the mean over folds; None for one fold.

    Examples
    --------
    >>> round(interval(Errors(np.array([[1.0], [3.0], [2.0]]))), 2)
    2.48
    """
    means = errors.by_fold.mean(axis=1)
    if len(means) < 2:
        return None
    quantile = stats.t.ppf(0.975, len(means) - 1)
    return float(quantile * means.std(ddof=1) / np.sqrt(len(means)))


def best_at(found: Mapping[Key, Mapping[float | None, Errors]], epsilon: float) -> Key:
    """Return the row of the least error at a budget, among those that hold their guarantee.

    Rows with the papers' noise or their histogram, which leaks a mean, are passed over. Rows are
    compared on the folds that all of them have, which are the first ones.
    """
    ours = [key for key in found if key.method not in PUBLISHED_NAMES.values()]
    shared = min(len(found[key][epsilon].by_fold) for key in ours)
    return min(ours, key=lambda key: float(found[key][epsilon].by_fold[:shared].mean()))


def cost_of_privacy(by_budget: Mapping[float | None, Errors], epsilon: float) -> float:
    """Return the error with privacy over the error without, of the same model on the same folds.

    Examples
    --------
    >>> one, two = (Errors(np.full((2, 1), error)) for error in (4.0, 5.0))
    >>> cost_of_privacy({None: one, 0.2: two}, 0.2)
    1.25
    """
    return by_budget[epsilon].mean / by_budget[None].mean


SHOWN_TRIPS, BAR = 5000, 100.0
GOAL_EPSILON, GOAL_LENGTHSCALE = 0.2, 0.125


def table_1_report(found: Found, *, title: str) -> Table:
    """Lay out table 1, each published row above the one that reproduces it."""
    columns = ["no privacy" if column is None else f"ε = {column:g}" for column in COLUMNS]
    table = table_titled(title, "RMSE (s)", "", right=[*columns, "folds"])
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
                str(citibike_folds.FOLDS),
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
    """Say which row is best at each budget, and what privacy costs it."""
    lines = ["(Rows are compared by their errors on held-out trips, which no release shows.)"]
    for epsilon in citibike_folds.EPSILONS:
        key = best_at(found, epsilon)
        lines.append(
            f"Best at ε = {epsilon:g}: {_named(key)}, {found[key][epsilon].mean:.0f} s, "
            f"{cost_of_privacy(found[key], epsilon) - 1:+.1%} on the same model without privacy"
        )
    setting = degrees(GOAL_LENGTHSCALE)
    lines += [
        f"At ε = {GOAL_EPSILON:g}, {_named(key)}: "
        f"{cost_of_privacy(errors, GOAL_EPSILON) - 1:+.1%} on the same model without privacy"
        for key, errors in found.items()
        if key.setting == setting
    ]
    return lines


def verdict(found: Found) -> list[str]:
    """Say at every budget which is the more accurate: integral binning, or the papers' cloaking."""
    cloaking, binned = (
        {key.setting: errors for key, errors in found.items() if key.method == name}
        for name in (PUBLISHED_NAMES["cloaking"], PUBLISHED_NAMES[INTEGRAL])
    )
    return verdict_lines(cloaking, binned)


def durations_figure(durations: Array) -> Figure:
    """Draw figure 4 of the 2018 paper: how long trips take, and what the threshold does.

    Parameters
    ----------
    durations : array of shape (N,)
        In seconds.
    """
    figure = Figure(figsize=(7.4, 3.8), layout="constrained")
    axes = figure.subplots()
    limit = citibike_folds.BOUNDS.hi
    edges = np.arange(0.0, 2 * limit + 1, BAR).tolist()
    beyond = float(np.mean(durations > limit))
    axes.hist(
        citibike_folds.BOUNDS.clip(durations),
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
    axes.legend(loc="best", fontsize=9, frameon=False)
    return figure


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


@dataclass(frozen=True, eq=False)
class Result:
    """The table, durations to draw, in seconds, and which of the most bins hold trips."""

    table: Found
    durations: Array
    occupied: OccupiedBins


@dataclass(frozen=True)
class CitiBike(Experiment[Result]):
    """Table 1 and figure 4 of the 2018 paper: durations of Citi Bike trips."""

    name: ClassVar[str] = "citibike"
    small: ClassVar[Mapping[str, Any]] = {
        "folds": 2,
        "draws": 1,
        "bayes_folds": 1,
        "training": 1000,
        "lengthscales": (0.125,),
        "bayes_lengthscales": (0.125,),
        "bins": (3,),
    }

    folds: Annotated[int, typer.Option(min=2, help="Samples of 5000 trips.")] = citibike_folds.FOLDS
    bayes_folds: Annotated[
        int, typer.Option(min=1, help="The first of them also by bayes and by the defaults.")
    ] = 6
    draws: Annotated[int, typer.Option(min=1, help="Releases per fold and method.")] = 3
    subscribers: Annotated[
        bool, typer.Option("--subscribers/--all-trips", help="Whose trips: the paper's, or all.")
    ] = True
    training: int = citibike_folds.TRAINING
    lengthscales: Sequence[float] = citibike_folds.LENGTHSCALES
    bayes_lengthscales: Sequence[float] = BAYES_LENGTHSCALES
    bins: Sequence[int] = citibike_folds.BINS
    # Makes the noise reproducible. For tests.
    insecure_seed: int | None = None

    @property
    def protocol(self) -> Protocol:
        """Folds, and draws of the noise in each."""
        return Protocol(folds=self.folds, draws=self.draws, insecure_seed=self.insecure_seed)

    def compute(self, progress: Progress) -> Result:
        """Compute every fold."""
        trips = Trips.of(load_citibike(), subscribers=self.subscribers)
        with progress("folds", steps=self.folds) as tick:
            found = table_1(trips, scale=self, tick=tick)
        return Result(
            table=found,
            durations=trips.durations[:SHOWN_TRIPS],
            occupied=occupied_bins(trips, training=self.training),
        )

    def tables(self, found: Result) -> Iterable[Table | str]:
        """Lay out table 1, and say what is best and what privacy costs."""
        title = (
            f"Table 1 of the 2018 paper, δ = {citibike_folds.DELTA:g}. Published: trips of June "
            f"2016, 30 folds. Ours: {'subscribers’' if self.subscribers else 'all'} trips of four "
            f"days of June 2017; {self.training} trips to train and {citibike_folds.HELD_OUT} to "
            f"test in each of {self.folds} folds, {self.draws} draws of the noise (1 where "
            "defaults learn), ± 95 % over folds. Durations, and those compared with, are clipped "
            "to 0 to 2000 s. bayes: posterior mean, questions for the test inputs, "
            f"{INDUCING} k-means inducing inputs; it and the defaults in the first "
            f"{min(self.bayes_folds, self.folds)} folds"
        )
        yield table_1_report(found.table, title=title)
        yield from goal_lines(found.table)
        yield from verdict(found.table)
        yield str(found.occupied)

    def figures(self, found: Result) -> Mapping[str, Figure]:
        """Draw figure 4."""
        return {"citibike-figure-4.png": durations_figure(found.durations)}
