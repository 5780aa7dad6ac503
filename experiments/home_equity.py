"""Delinquent credit lines and default (2021 paper, section 6.4 and figure 6).

HMEQ's DELINQ is missing in 580 of 5960 rows, and what is missing carries the label: 12 % default
there, 21 % where it is known. Those 580 rows are left out, as nothing can be predicted from an
input that is not there; no other column is used, so no other row is lost.

As in the paper, two hundred rows are drawn so that counts and defaults are about balanced. The draw
looks at the labels: it makes the example, and the guarantee is about the two hundred rows drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from rich.table import Table
from sklearn.gaussian_process.kernels import RBF

from cloakgp.utils.arrays import Array
from experiments.classification import (
    ACCURACIES,
    Forecast,
    Mean,
    Method,
    Outcome,
    Task,
    accuracy_report,
    compare,
    ours,
    papers_method,
    percent,
    without_privacy,
)
from experiments.datasets import load_hmeq
from experiments.figures import BLACK, BLUE, RED
from experiments.framework import Experiment, Progress, RowDraws, Tick, no_tick, table_titled

ROWS = 200
KERNEL = RBF(4.0)
# The paper's figure shows 0 to 14.
COUNTS = np.arange(15.0)
SEED = 20210604

NO_PRIVACY, PAPERS = "no privacy", "papers' mechanism"
SAME_KERNEL, DEFAULTS = "bayes, this kernel", "bayes, untouched defaults"
EXACT = "the same, exact noise"

METHODS: dict[str, Method] = {
    NO_PRIVACY: without_privacy(KERNEL),
    PAPERS: papers_method(KERNEL),
    EXACT: papers_method(KERNEL, calibration="exact"),
    SAME_KERNEL: ours(KERNEL),
    DEFAULTS: ours(),
}


def known(loans: pd.DataFrame) -> pd.DataFrame:
    """Return the loans whose count of delinquent credit lines is known.

    Parameters
    ----------
    loans : DataFrame
        With columns DELINQ and BAD.
    """
    return loans.dropna(subset=["DELINQ"]).reset_index(drop=True)


def balanced(loans: pd.DataFrame, *, rng: np.random.Generator) -> pd.DataFrame:
    """Return 200 loans, of counts and defaults as even as there are loans for.

    Drawn one after another without replacement: either label with equal weight, and within it
    every count with equal weight, as long as there are loans of it.

    Parameters
    ----------
    loans : DataFrame
        Without missing counts.
    """
    sizes = loans.groupby(["DELINQ", "BAD"])["BAD"].transform("size").to_numpy(dtype=float)
    cells = loans.groupby("BAD")["DELINQ"].transform("nunique").to_numpy(dtype=float)
    weights = 1.0 / (sizes * cells)
    drawn = rng.choice(len(loans), size=ROWS, replace=False, p=weights / weights.sum())
    return loans.iloc[drawn].reset_index(drop=True)


def task(loans: pd.DataFrame, *, seed: int) -> Task:
    """Return one draw of 200 loans, judged by 200 others that are drawn in the same way.

    Parameters
    ----------
    seed : int
        Of which loans are drawn; not of privacy noise.
    """
    rng, rows = np.random.default_rng([SEED, seed]), known(loans)
    # Halves, so that nobody is both learned from and judged on.
    side = rng.permutation(len(rows)) % 2 == 0
    learned, judged = balanced(rows[side], rng=rng), balanced(rows[~side], rng=rng)
    return Task(
        X=learned[["DELINQ"]].to_numpy(dtype=float),
        y=learned["BAD"].to_numpy() == 1,
        X_test=judged[["DELINQ"]].to_numpy(dtype=float),
        y_test=judged["BAD"].to_numpy() == 1,
    )


def tasks(loans: pd.DataFrame, draws: int) -> Iterator[Task]:
    """Yield so many draws of loans."""
    return (task(loans, seed=number) for number in range(draws))


@dataclass(frozen=True, eq=False)
class Curves:
    """Probability of default by count, in many releases about one draw of loans.

    Attributes
    ----------
    learned : Task
        Its test points are the counts, whose labels stand for nothing.
    releases : mapping of method to Forecast
        Arrays of shape (releases, counts, 2).
    """

    learned: Task
    releases: Mapping[str, Forecast]

    def probabilities(self, name: str) -> Array:
        """Return P(default) as a method states it, shape (releases, counts).

        The papers' leaves the privacy noise out; the others integrate over it.

        Parameters
        ----------
        name : str
            Of a method.
        """
        said = self.releases[name]
        stated = said.plugged if name in (PAPERS, EXACT) else said.integrated
        return np.asarray(stated[:, :, 1], dtype=np.float64)

    @property
    def reference(self) -> Array:
        """Without privacy, shape (counts,)."""
        return np.asarray(self.probabilities(NO_PRIVACY)[0], dtype=np.float64)

    def distance(self, name: str) -> Mean:
        """Return how far releases lie from the curve without privacy, root mean square over counts.

        Parameters
        ----------
        name : str
            Of a method.
        """
        apart = self.probabilities(name) - self.reference
        return Mean.of(np.sqrt(np.square(apart).mean(axis=1)))


def curves(loans: pd.DataFrame, *, releases: int, tick: Tick = no_tick) -> Curves:
    """Release about one draw of loans again and again: the upper and middle parts of figure 6."""
    drawn = balanced(known(loans), rng=np.random.default_rng(SEED))
    at_counts = Task(
        X=drawn[["DELINQ"]].to_numpy(dtype=float),
        y=drawn["BAD"].to_numpy() == 1,
        X_test=COUNTS[:, None],
        y_test=np.zeros(len(COUNTS), dtype=bool),
    )
    found = {}
    for name, method in METHODS.items():
        repeats = 1 if name == NO_PRIVACY else releases
        said = [method(at_counts, number) for number in range(repeats)]
        found[name] = Forecast(
            integrated=np.array([one.integrated for one in said]),
            plugged=np.array([one.plugged for one in said]),
        )
        tick()
    return Curves(learned=at_counts, releases=found)


def curves_report(found: Curves, *, title: str) -> Table:
    """Lay out how far private probabilities of default lie from those without privacy."""
    shown = (0, 2, 4, 6, 10, 14)
    columns = (f"{count} lines" for count in shown)
    table = table_titled(title, "method", right=["distance, %", *columns])
    reference = found.reference
    for name in found.releases:
        probabilities = found.probabilities(name)
        distance = "" if name == NO_PRIVACY else percent(found.distance(name))
        cells = [
            f"{100 * reference[count]:.0f}"
            if len(probabilities) == 1
            else f"{100 * probabilities[:, count].mean():.0f} ± "
            f"{100 * probabilities[:, count].std(ddof=1):.0f}"
            for count in shown
        ]
        table.add_row(name, distance, *cells)
    return table


def default_figure(found: Curves, *, title: str) -> Figure:
    """Draw figure 6: rows per count, and the spread of private probabilities of default."""
    private = {name: found.probabilities(name) for name in found.releases if name != NO_PRIVACY}
    figure = Figure(figsize=(8.0, 2.4 * (len(private) + 1)), layout="constrained")
    upper, *lower = figure.subplots(1 + len(private), 1, sharex=True)
    counts = COUNTS
    bottom = np.zeros(len(counts))
    lines, bad = found.learned.X[:, 0], found.learned.y
    for label, colour, word in ((True, RED, "default"), (False, BLUE, "no default")):
        heights = np.array([((lines == count) & (bad == label)).sum() for count in counts])
        upper.bar(counts, heights, bottom=bottom, color=colour, label=word, width=0.7)
        bottom = bottom + heights
    upper.set_ylabel("loans")
    upper.legend(fontsize=9, frameon=False)
    for axes, (name, releases) in zip(lower, private.items(), strict=True):
        parts = axes.violinplot(list(releases.T), counts, widths=0.8)
        for body in parts["bodies"]:
            body.set_facecolor(BLUE)
        axes.plot(counts, found.reference, "x", color=BLACK, label="no privacy")
        axes.set_title(f"{name}: {len(releases)} releases", fontsize=10)
        axes.set_ylim(0.0, 1.0)
        axes.set_ylabel("P(default)")
        axes.grid(alpha=0.25)
    lower[0].legend(fontsize=9, frameon=False, loc="upper left")
    lower[-1].set_xlabel("delinquent credit lines")
    lower[-1].set_xticks(counts)
    figure.suptitle(title, fontsize=12)
    return figure


@dataclass(frozen=True, eq=False)
class Found:
    """Outcomes by method, releases about one draw, and whom the table tells nothing of.

    Attributes
    ----------
    missing, loans : int
        Loans whose count is missing, of how many.
    missing_defaults, known_defaults : float
        Shares that defaulted.
    """

    missing: int
    loans: int
    missing_defaults: float
    known_defaults: float
    outcomes: Mapping[str, Outcome]
    curves: Curves


@dataclass(frozen=True)
class HomeEquity(Experiment[Found]):
    """Section 6.4 and figure 6 of the 2021 paper: delinquent credit lines and default."""

    name: ClassVar[str] = "home-equity"
    small: ClassVar[Mapping[str, Any]] = {"draws": 2, "releases": 4}

    draws: RowDraws = 25
    releases: int = 100

    def compute(self, progress: Progress) -> Found:
        """Compare all methods, and release about one draw many times."""
        loans = load_hmeq()
        missing = loans[loans["DELINQ"].isna()]
        with progress("home equity", steps=self.draws) as tick:
            outcomes = compare(tasks(loans, self.draws), METHODS, tick=tick)
        with progress("figure 6", steps=len(METHODS)) as tick:
            repeated = curves(loans, releases=self.releases, tick=tick)
        return Found(
            missing=len(missing),
            loans=len(loans),
            missing_defaults=float(missing["BAD"].mean()),
            known_defaults=float(known(loans)["BAD"].mean()),
            outcomes=outcomes,
            curves=repeated,
        )

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out accuracies, and probabilities of default by count."""
        yield (
            f"DELINQ is missing in {found.missing} of {found.loans} loans, which are left out: "
            f"{found.missing_defaults:.1%} of them defaulted, and {found.known_defaults:.1%} of "
            "the rest."
        )
        yield accuracy_report(
            found.outcomes,
            title=f"Default by DELINQ, {ROWS} rows about balanced, judged by as many others, (1, "
            f"0.01)-DP, {self.draws} draws of rows and noise. {ACCURACIES} The paper gives a "
            "figure only",
            against=PAPERS,
        )
        yield curves_report(
            found.curves,
            title=f"P(default) in {self.releases} releases about one draw of rows, %: root mean "
            "square distance to the curve without privacy over 0 to 14 lines, ± standard error; "
            "and mean ± sd over releases",
        )

    def figures(self, found: Found) -> Mapping[str, Figure]:
        """Draw figure 6."""
        title = "Default by delinquent lines, (1, 0.01)-DP (2021 paper, figure 6)"
        return {"home-equity-figure-6.png": default_figure(found.curves, title=title)}
