r"""How the privacy noise depends on the number of query points: the !Kung women, both papers.

The 2018 paper (section 3) has 200 query points for one input and says that "a large number of
nearby test points does not degrade the quality of the predictions". That holds once they are dense:
predictions of neighbours are then nearly one question. Before that, every further point is another
question, and the noise grows.

The 2021 paper names the noise at one point of its figure 5A, 40 cm at 50 kg and 60 years, and not
how many points it queried. The noise there depends on that: some grid of few points has 40 cm, and
the noise of dense ones is half as much again. A figure of one number of points is no reproduction
of it, nor is one of another model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from rich.table import Table

from cloakgp.utils.arrays import Array
from experiments import kung, kung2018, nonstationary
from experiments.cloaking import PAPERS_NOISE, SHOWN_NOISES, Cloaked, Noise, Prior
from experiments.datasets import load_kung
from experiments.figures import BLACK, BLUE, RED, Grid
from experiments.framework import Experiment, Progress, Tick, no_tick, table_titled

# Points along each of two inputs; every one of these grids has the point that the paper names.
STEPS = (4, 7, 10, 16, 31)
# Points along age alone; the 2018 paper has 200.
COUNTS = (5, 10, 20, 50, 100, 200, 400)
AGES = (-20.0, 150.0)
PUBLISHED_AT_NAMED = 40.0
# Of the design. Noise sds are then right to half as much.
GAP = 1e-2


@dataclass(frozen=True)
class NoiseOver:
    """Privacy noise over some query points, in cm.

    Attributes
    ----------
    points : int
    rms : float
        Root mean square of the sds over the points.
    at_named : float or None
        The sd at 50 kg and 60 years, where that is one of them.
    """

    points: int
    rms: float
    at_named: float | None


def noise_over(X: Array, X_query: Array, *, prior: Prior, noise: Noise) -> NoiseOver:
    """Return the noise of raw predictions, which no output matters to.

    Parameters
    ----------
    X : array of shape (N, D)
    X_query : array of shape (P, D)
    """
    cloaked = Cloaked.designed(X, X_query, prior=prior, noise=noise, gap=GAP)
    sds = cloaked.noise_sd(kung.BUDGET)
    at = None
    if X.shape[1] == len(kung.NAMED_POINT):
        apart = np.linalg.norm(X_query - np.array(kung.NAMED_POINT), axis=1)
        at = float(sds[apart.argmin()]) if apart.min() < 1e-9 else None
    return NoiseOver(points=len(X_query), rms=float(np.sqrt(np.mean(sds**2))), at_named=at)


def by_grid(
    women: pd.DataFrame,
    *,
    model: kung.Model,
    noise: Noise,
    steps: Sequence[int] = STEPS,
    tick: Tick = no_tick,
) -> list[NoiseOver]:
    """Return the noise over grids of weight and age, from 0 to 75 kg and 0 to 90 years.

    Parameters
    ----------
    model : Model
        One of those from weight and age.
    steps : sequence of int
        Points along each input.
    """
    X, found = model.rows(women), []
    for count in steps:
        points = Grid(kung.WEIGHT, kung.AGE, steps=count).points
        found.append(noise_over(X, points, prior=model.prior_for(X), noise=noise))
        tick()
    return found


def by_count(
    women: pd.DataFrame, *, noise: Noise, counts: Sequence[int] = COUNTS, tick: Tick = no_tick
) -> list[NoiseOver]:
    """Return the noise over points evenly along age, the 2018 paper's prior and −20 to 150 years.

    Parameters
    ----------
    counts : sequence of int
        Numbers of points.
    """
    X, found = women[["age"]].to_numpy(dtype=float), []
    for count in counts:
        points = np.linspace(*AGES, count)[:, None]
        found.append(noise_over(X, points, prior=kung2018.prior_for(X), noise=noise))
        tick()
    return found


MODELS: dict[str, kung.Model] = {
    "A, standard": kung.TABLE_1[2],
    "B, sparse": kung.TABLE_1[3],
    "C, non-stationary": nonstationary.NONSTATIONARY[1],
}


@dataclass(frozen=True, eq=False)
class Found:
    """Noise by noise's name and number of points along age, and by model, noise and grid."""

    ages: Mapping[str, Sequence[NoiseOver]]
    grids: Mapping[str, Mapping[str, Sequence[NoiseOver]]]


@dataclass(frozen=True)
class QueryPoints(Experiment[Found]):
    """Noise by number of query points: 2018 paper, section 3, and figure 5 of the 2021 paper."""

    name: ClassVar[str] = "query-points"
    small: ClassVar[Mapping[str, Any]] = {"steps": STEPS[:3], "counts": COUNTS[:4]}

    steps: Sequence[int] = STEPS
    counts: Sequence[int] = COUNTS

    def compute(self, progress: Progress) -> Found:
        """Design for every number of points."""
        women = load_kung(male=False)
        total = len(SHOWN_NOISES) * (len(self.counts) + len(MODELS) * len(self.steps))
        with progress("designs", steps=total) as tick:
            ages = {
                noise.name: by_count(women, noise=noise, counts=self.counts, tick=tick)
                for noise in SHOWN_NOISES
            }
            grids = {
                name: {
                    noise.name: by_grid(
                        women, model=model, noise=noise, steps=self.steps, tick=tick
                    )
                    for noise in SHOWN_NOISES
                }
                for name, model in MODELS.items()
            }
        return Found(ages=ages, grids=grids)

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out noise by number of points, and at the point that the paper names."""
        table = table_titled(
            "Noise sd (cm), root mean square over points evenly along age, −20 to 150 years, by "
            "number of points; lengthscale 25 years, (1, 0.01)-DP (2018 paper, section 3: 200 "
            "points, “a large number of nearby test points does not degrade”)",
            "noise",
            right=map(str, self.counts),
        )
        for name, by_points in found.ages.items():
            table.add_row(name, *(f"{one.rms:.1f}" for one in by_points))
        yield table
        heads = [f"{count} × {count}" for count in self.steps]
        weight, age = kung.NAMED_POINT
        shown: tuple[tuple[str, Callable[[NoiseOver], float | None]], ...] = (
            (
                "Noise sd (cm), root mean square over grids of weight and age, 2021 paper's "
                "settings, (1, 0.01)-DP, by number of points",
                lambda one: one.rms,
            ),
            (
                f"The same at {weight:g} kg and {age:g} years, a point of every grid (2021 paper, "
                f"figure 5A: {PUBLISHED_AT_NAMED:g} cm; its number of points is not printed)",
                lambda one: one.at_named,
            ),
        )
        for title, figure in shown:
            table = table_titled(title, "model", "noise", right=heads)
            for model, by_noise in found.grids.items():
                for name, by_points in by_noise.items():
                    cells = (figure(one) for one in by_points)
                    table.add_row(
                        model, name, *("" if cell is None else f"{cell:.1f}" for cell in cells)
                    )
            yield table
        yield self.verdict(found)

    def verdict(self, found: Found) -> str:
        """Say what the numbers mean for both statements."""
        standard = found.grids["A, standard"][PAPERS_NOISE.name]
        first, last = standard[0], standard[-1]
        nearest = min(standard, key=lambda one: abs((one.at_named or 0.0) - PUBLISHED_AT_NAMED))
        return (
            f"More points do not degrade once they are dense, and do before: {first.rms:.1f} cm "
            f"over {first.points} points, {last.rms:.1f} cm over {last.points}. At the named point "
            f"{PUBLISHED_AT_NAMED:g} cm fits a grid of {nearest.points} points best "
            f"({nearest.at_named:.1f} cm), not a dense one ({last.at_named:.1f} cm)."
        )

    def figures(self, found: Found) -> Mapping[str, Figure]:
        """Draw both by number of points."""
        figure = Figure(figsize=(10.5, 4.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        colours = dict(zip((noise.name for noise in SHOWN_NOISES), (BLACK, RED), strict=True))
        for name, by_points in found.ages.items():
            left.plot(
                [one.points for one in by_points],
                [one.rms for one in by_points],
                "-o",
                color=colours[name],
                label=name,
            )
        left.set(xlabel="query points along age", ylabel="rms noise sd (cm)", xscale="log")
        standard = found.grids["A, standard"]
        for name, by_points in standard.items():
            right.plot(
                [one.points for one in by_points],
                [one.at_named for one in by_points],
                "-o",
                color=colours[name],
                label=name,
            )
        right.axhline(PUBLISHED_AT_NAMED, linestyle=":", color=BLUE, label="published")
        right.set(xlabel="query points over weight and age", xscale="log")
        right.set_ylabel("noise sd at 50 kg and 60 years (cm)")
        for axes in (left, right):
            axes.set_ylim(bottom=0.0)
            axes.grid(alpha=0.25)
            axes.legend(loc="best", fontsize=9, frameon=False)
        figure.suptitle("Privacy noise by number of query points, !Kung women", fontsize=12)
        return {"query-points.png": figure}
