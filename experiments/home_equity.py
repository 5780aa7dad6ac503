"""Delinquent credit lines and default (2021 paper, section 6.4 and figure 6).

HMEQ's DELINQ is missing in 580 of 5960 rows, and what is missing carries the label: 12 % default
there, 21 % where it is known. Those 580 rows are left out, as nothing can be predicted from an
input that is not there; no other column is used, so no other row is lost.

As in the paper, two hundred rows are drawn so that counts and defaults are about balanced. Counts
are drawn evenly, as far as there are loans, and labels are left alone: evenly drawn counts make
more than half of the labels defaults by themselves. To draw labels evenly too, within every count
or overall with counts even within them, erases what the example is about: the share of defaults by
count would be nearly the same from 0 to 4 lines, where the table's rises. The paper says that "at
low counts the risk of default is low but increases", and so it does here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
import typer
from matplotlib.figure import Figure
from rich.table import Table
from scipy.special import expit
from sklearn.gaussian_process.kernels import RBF

from cloakgp.utils.arrays import Array
from experiments.classification import (
    ACCURACIES,
    BUDGET,
    Forecast,
    Mean,
    Method,
    Outcome,
    Task,
    accuracy_report,
    compare,
    ours,
    papers_method,
    papers_release,
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
SHOWN_COUNTS = tuple(range(8))
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
    """Return 200 loans, of counts as even as there are loans for, labels as they are.

    Drawn one after another without replacement, every count with equal weight as long as there are
    loans of it. No label is looked at, so that the share of defaults at every count is that of the
    table, but for chance.

    Parameters
    ----------
    loans : DataFrame
        Without missing counts.
    """
    sizes = loans.groupby("DELINQ")["DELINQ"].transform("size").to_numpy(dtype=float)
    weights = 1.0 / sizes
    drawn = rng.choice(len(loans), size=ROWS, replace=False, p=weights / weights.sum())
    return loans.iloc[drawn].reset_index(drop=True)


def default_shares(loans: pd.DataFrame, *, counts: Iterable[int]) -> list[float]:
    """Return the share of defaults at some counts.

    Parameters
    ----------
    loans : DataFrame
    counts : iterable of int
        NaN where there are no loans of one.

    Examples
    --------
    >>> default_shares(pd.DataFrame({"DELINQ": [0.0, 0.0, 2.0], "BAD": [0, 1, 1]}), counts=(0, 2))
    [0.5, 1.0]
    """
    shares = loans.groupby("DELINQ")["BAD"].mean()
    return [float(shares.get(count, np.nan)) for count in counts]


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
class LatentMeans:
    """Posterior means of the latent function by count: the lower part of figure 6.

    Attributes
    ----------
    reference : array of shape (counts,)
        Without privacy.
    private : array of shape (releases, counts)
        With the papers' noise.
    """

    reference: Array
    private: Array


def latent_means(learned: Task, *, releases: int) -> LatentMeans:
    """Return latent means at the test points, without privacy and with the papers' noise.

    Parameters
    ----------
    learned : Task
    releases : int
    """
    private = [
        papers_release(learned.X, learned.y, kernel=KERNEL, budgets=(BUDGET,), insecure_seed=number)
        .predict_latent(learned.X_test)
        .mean
        for number in range(releases)
    ]
    return LatentMeans(reference=latent_mode(learned), private=np.array(private))


def latent_mode(learned: Task, *, steps: int = 30) -> Array:
    """Return the latent mean at the test points by Laplace's approximation, without privacy.

    Rasmussen and Williams (2006), algorithm 3.1 and equation 3.21, logistic link. What
    scikit-learn's classifier has, and its oldest version that is supported does not give.

    Parameters
    ----------
    learned : Task
    steps : int
        Of Newton's method.

    Returns
    -------
    array of shape (P,)
    """
    covariance = KERNEL(learned.X)
    latent = np.zeros(len(covariance))
    for _ in range(steps):
        probability = expit(latent)
        root = np.sqrt(probability * (1 - probability))
        target = root**2 * latent + learned.y - probability
        inner = np.eye(len(latent)) + root[:, None] * covariance * root
        solved = np.linalg.solve(inner, root * (covariance @ target))
        latent = covariance @ (target - root * solved)
    mode: Array = KERNEL(learned.X_test, learned.X) @ (learned.y - expit(latent))
    return mode


@dataclass(frozen=True, eq=False)
class Curves:
    """Probability of default by count, in many releases about one draw of loans.

    Attributes
    ----------
    learned : Task
        Its test points are the counts, whose labels stand for nothing.
    releases : mapping of method to Forecast
        Arrays of shape (releases, counts, 2).
    latent : LatentMeans
    """

    learned: Task
    releases: Mapping[str, Forecast]
    latent: LatentMeans

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
    latent = latent_means(at_counts, releases=releases)
    tick()
    return Curves(learned=at_counts, releases=found, latent=latent)


def shares_report(shares: tuple[Sequence[float], Sequence[float]]) -> Table:
    """Lay out the shares of defaults by count, in the table and in what is drawn of it."""
    table = table_titled(
        "Share of defaults by delinquent lines, % (2021 paper: “at low counts the risk of default "
        "is low but increases”)",
        "loans",
        right=map(str, SHOWN_COUNTS),
    )
    for name, found in zip(("all", "drawn for figure 6"), shares, strict=True):
        table.add_row(name, *("" if np.isnan(one) else f"{100 * one:.0f}" for one in found))
    return table


def curves_report(found: Curves, *, title: str) -> Table:
    """Lay out how far private probabilities of default lie from those without privacy."""
    shown = (0, 1, 2, 4, 6, 10, 14)
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
    figure = Figure(figsize=(8.0, 2.4 * (len(private) + 2)), layout="constrained")
    upper, *lower, latent = figure.subplots(2 + len(private), 1, sharex=True)
    counts = COUNTS
    bottom = np.zeros(len(counts))
    lines, bad = found.learned.X[:, 0], found.learned.y
    for label, colour, word in ((True, RED, "default"), (False, BLUE, "no default")):
        heights = np.array([((lines == count) & (bad == label)).sum() for count in counts])
        upper.bar(counts, heights, bottom=bottom, color=colour, label=word, width=0.7)
        bottom = bottom + heights
    upper.set_ylabel("loans")
    upper.legend(loc="best", fontsize=9, frameon=False)
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
    parts = latent.violinplot(list(found.latent.private.T), counts, widths=0.8)
    for body in parts["bodies"]:
        body.set_facecolor(BLUE)
    latent.plot(counts, found.latent.reference, "x", color=BLACK)
    latent.set_title(f"{PAPERS}: latent means", fontsize=10)
    latent.set_ylabel("latent function")
    latent.grid(alpha=0.25)
    latent.set_xlabel("delinquent credit lines")
    latent.set_xticks(counts)
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
    shares : pair of sequences
        Of defaults at `SHOWN_COUNTS`, in the table and in the draw of figure 6.
    outcomes : mapping of method to Outcome
    curves : Curves
    """

    missing: int
    loans: int
    missing_defaults: float
    known_defaults: float
    shares: tuple[Sequence[float], Sequence[float]]
    outcomes: Mapping[str, Outcome]
    curves: Curves


@dataclass(frozen=True)
class HomeEquity(Experiment[Found]):
    """Section 6.4 and figure 6 of the 2021 paper: delinquent credit lines and default."""

    name: ClassVar[str] = "home-equity"
    small: ClassVar[Mapping[str, Any]] = {"draws": 2, "releases": 4}

    draws: RowDraws = 25
    releases: Annotated[int, typer.Option(min=2, help="Releases about one draw of rows.")] = 100

    def compute(self, progress: Progress) -> Found:
        """Compare all methods, and release about one draw many times."""
        loans = load_hmeq()
        missing = loans[loans["DELINQ"].isna()]
        with progress("home equity", steps=self.draws) as tick:
            outcomes = compare(tasks(loans, self.draws), METHODS, tick=tick)
        with progress("figure 6", steps=1 + len(METHODS)) as tick:
            repeated = curves(loans, releases=self.releases, tick=tick)
        learned = repeated.learned
        return Found(
            missing=len(missing),
            loans=len(loans),
            missing_defaults=float(missing["BAD"].mean()),
            known_defaults=float(known(loans)["BAD"].mean()),
            shares=(
                default_shares(known(loans), counts=SHOWN_COUNTS),
                default_shares(
                    pd.DataFrame({"DELINQ": learned.X[:, 0], "BAD": learned.y}),
                    counts=SHOWN_COUNTS,
                ),
            ),
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
        yield shares_report(found.shares)
        yield accuracy_report(
            found.outcomes,
            title=f"Default by DELINQ, {ROWS} rows of even counts, judged by as many others, (1, "
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
