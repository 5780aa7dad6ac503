"""Diagonal stripes in two dimensions (2021 paper, section 6.5 and figure 7).

The paper gives 200 noisy points, more of them near the bottom, a test grid of 10 × 10 with 50 of
each class, and a lengthscale of 3.5. The rest is ours, and public: the stripes' width, place and
noise, chosen so that accuracy without privacy comes near the published 81 %.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.table import Table
from sklearn.gaussian_process.kernels import RBF

from cloakgp.utils.arrays import Array
from experiments.classification import (
    ACCURACIES,
    Method,
    Outcome,
    Task,
    accuracy_report,
    compare,
    ours,
    papers_method,
    reliability_figure,
    without_privacy,
)
from experiments.figures import BLUE, RED
from experiments.framework import Experiment, Progress, RowDraws

ROWS, SIDE = 200, 10
KERNEL = RBF(3.5)
# Along the horizontal axis. Two stripes of 5 repeat after the grid's 10: 50 of each class, always.
STRIPE_WIDTH = 5.0
FLIPPED = 0.1
# Density falls with height t as (1 − t/10)^0.75, from dense at the bottom to nothing at the top.
GRADIENT = 1.75
SEED = 20210605

NO_PRIVACY = "no privacy, this kernel"
PAPERS_ONE, PAPERS_TWO = "papers' mechanism, one step", "papers' mechanism, two steps"
SAME_KERNEL, DEFAULTS = "bayes, this kernel", "bayes, untouched defaults"
# Accuracy in the paper.
PUBLISHED = {NO_PRIVACY: 0.81, PAPERS_ONE: 0.69, PAPERS_TWO: 0.51}
LAPLACE: dict[str, Any] = {
    "criterion": "newton",
    "step_criterion": "logdet",
    "link": "logit",
    "learn": None,
}

METHODS: dict[str, Method] = {
    NO_PRIVACY: without_privacy(KERNEL),
    PAPERS_ONE: papers_method(KERNEL),
    PAPERS_TWO: papers_method(KERNEL, steps=2),
    "the same, exact noise, one step": ours(KERNEL, steps=1, **LAPLACE),
    "the same, exact noise, two steps": ours(KERNEL, steps=2, **LAPLACE),
    "bayes, this kernel, nothing learned": ours(KERNEL, learn=None),
    SAME_KERNEL: ours(KERNEL),
    DEFAULTS: ours(),
    "bayes, defaults, for the grid": ours(places="test"),
    "bayes, defaults, averaged": ours(learn="average"),
}


def grid() -> Array:
    """Return the test grid, integers 0 to 9 in both inputs, shape (100, 2)."""
    across, up = np.meshgrid(np.arange(SIDE), np.arange(SIDE))
    return np.column_stack([across.ravel(), up.ravel()]).astype(float)


def striped(X: Array, *, phase: float) -> NDArray[np.bool_]:
    """Return which points lie in a positive stripe.

    Parameters
    ----------
    X : array of shape (N, 2)
    phase : float
        How far the stripes are moved to the left.

    Examples
    --------
    >>> int(striped(grid(), phase=1.3).sum())
    50
    """
    along = (X[:, 0] - X[:, 1] + phase) / STRIPE_WIDTH
    return np.asarray(np.floor(along) % 2 == 0)


def task(seed: int) -> Task:
    """Return one draw of rows, judged on the grid without noise.

    Parameters
    ----------
    seed : int
        Of the simulated, public data; not of privacy noise.
    """
    rng = np.random.default_rng([SEED, seed])
    across = rng.uniform(0.0, SIDE, size=ROWS)
    up = SIDE * (1.0 - rng.uniform(size=ROWS) ** (1.0 / GRADIENT))
    X, phase = np.column_stack([across, up]) - 0.5, rng.uniform(0.0, 2 * STRIPE_WIDTH)
    y = striped(X, phase=phase) ^ (rng.uniform(size=ROWS) < FLIPPED)
    points = grid()
    return Task(X=X, y=y, X_test=points, y_test=striped(points, phase=phase))


def tasks(draws: int) -> Iterator[Task]:
    """Yield so many draws of rows."""
    return (task(number) for number in range(draws))


def with_noisy_labels(outcome: Outcome) -> Outcome:
    """Return an outcome judged by labels as noisy as the rows': those that probabilities are of."""
    flipped = np.random.default_rng(SEED).uniform(size=outcome.truths.shape) < FLIPPED
    return replace(outcome, truths=np.where(flipped, 1 - outcome.truths, outcome.truths))


def repeated(method: Method, one: Task, *, releases: int, privacy_noise: bool = True) -> Array:
    """Return the probability of a positive label at every grid point, in many releases of one draw.

    Parameters
    ----------
    privacy_noise : bool
        Whether probabilities integrate over it; the papers' figure leaves it out.

    Returns
    -------
    array of shape (releases, P)
    """
    said = (method(one, number) for number in range(releases))
    chosen = (each.integrated if privacy_noise else each.plugged for each in said)
    return np.array([probabilities[:, 1] for probabilities in chosen])


# Share of a grid cell that a block of discs fills.
BLOCK = 0.8
LARGEST_DISC = 38.0


def hinton_figure(found: Mapping[str, Array], *, drawn: Task, title: str) -> Figure:
    """Draw figure 7: at every grid point, a block with one disc per release.

    Parameters
    ----------
    found : mapping of method to array of shape (releases, P)
        Probability of a positive label.
    drawn : Task
        Rows that were learned from, and the grid.
    """
    figure = Figure(figsize=(6.4 * len(found), 7.4), layout="constrained")
    for axes, (name, probabilities) in zip(
        figure.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True
    ):
        _draw_blocks(axes, probabilities, points=drawn.X_test)
        for label, colour, word in ((True, BLUE, "positive"), (False, RED, "negative")):
            rows = drawn.X[drawn.y == label]
            axes.plot(
                *rows.T, "x", color=colour, markersize=4, label=f"{word} rows", markeredgewidth=1.1
            )
        axes.set_title(name, fontsize=11)
        axes.set_xlim(-0.6, 9.6)
        axes.set_ylim(-0.6, 9.6)
        axes.set_aspect("equal")
        axes.set_facecolor("0.72")
    figure.suptitle(title, fontsize=12)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


def _draw_blocks(axes: Axes, probabilities: Array, *, points: Array) -> None:
    releases = len(probabilities)
    side = int(np.ceil(np.sqrt(releases)))
    places = (np.stack(np.divmod(np.arange(releases), side), axis=1) + 0.5) / side - 0.5
    spots = points[None] + BLOCK * places[:, None]
    axes.scatter(
        spots[..., 0],
        spots[..., 1],
        s=LARGEST_DISC * np.abs(2.0 * probabilities - 1.0),
        c=np.where(probabilities > 0.5, 1.0, 0.0),
        cmap="gray",
        vmin=0.0,
        vmax=1.0,
        linewidths=0,
    )


@dataclass(frozen=True, eq=False)
class Found:
    """Outcomes by method, judged by clean labels and by noisy ones, and releases of one draw.

    Attributes
    ----------
    outcomes, judged : mapping of method to Outcome
    rows : Task
        The draw that is released about again and again.
    blocks : mapping of method to array of shape (releases, P)
    """

    outcomes: Mapping[str, Outcome]
    judged: Mapping[str, Outcome]
    rows: Task
    blocks: Mapping[str, Array]


@dataclass(frozen=True)
class Stripes(Experiment[Found]):
    """Section 6.5 and figure 7 of the 2021 paper: diagonal stripes in two dimensions."""

    name: ClassVar[str] = "stripes"
    small: ClassVar[Mapping[str, Any]] = {"draws": 2, "releases": 4}
    shown: ClassVar[tuple[str, ...]] = (PAPERS_ONE, SAME_KERNEL, DEFAULTS)

    draws: RowDraws = 25
    releases: Annotated[int, typer.Option(min=1, help="Releases about one draw of rows.")] = 25

    def compute(self, progress: Progress) -> Found:
        """Compare all methods, and release about one draw many times."""
        with progress("stripes", steps=self.draws) as tick:
            outcomes = compare(tasks(self.draws), METHODS, tick=tick)
        rows = task(0)
        return Found(
            outcomes=outcomes,
            judged={name: with_noisy_labels(one) for name, one in outcomes.items()},
            rows=rows,
            blocks={
                name: repeated(
                    METHODS[name], rows, releases=self.releases, privacy_noise=name != PAPERS_ONE
                )
                for name in self.shown
            },
        )

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out accuracies beside the published ones, and calibration errors."""
        yield accuracy_report(
            found.outcomes,
            title=f"Stripes, {ROWS} rows, (1, 0.01)-DP, {self.draws} draws of rows and noise. "
            f"{ACCURACIES} Accuracy by clean labels, ECE by labels as noisy as the rows'. The "
            "paper: one set of rows, 25 draws of the noise",
            published=PUBLISHED,
            against=PAPERS_ONE,
            calibration=found.judged,
        )

    def figures(self, found: Found) -> Mapping[str, Figure]:
        """Draw figure 7, and how calibrated probabilities are."""
        return {
            "stripes-figure-7.png": hinton_figure(
                found.blocks,
                drawn=found.rows,
                title=f"{self.releases} releases at every grid point, (1, 0.01)-DP (2021 paper, "
                "figure 7). White: positive. Disc area: confidence",
            ),
            "stripes-calibration.png": reliability_figure(
                {name: found.judged[name] for name in self.shown},
                title="Stripes, (1, 0.01)-DP: calibration, by labels as noisy as the rows'",
            ),
        }
