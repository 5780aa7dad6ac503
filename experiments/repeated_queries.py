r"""Repeated queries and new rows: what the 2021 paper expects of conditioning on earlier answers.

Its discussion says that the noise of earlier answers could be kept, so that later queries are asked
given these: "if the future query test point lies very close to a previously released test point,
the DP noise variance for the new test point will be (relatively) very small. Thus, a very small
value of ε could be used". It does not try, nor adding rows.

Here a first release of heights by age spends (1, 0.01) on predictions at some ages. Then
predictions at other ages are wanted, that lie at some distance from the first ones:

* for free: the posterior given the first answers, evaluated there;
* again: the same rows are asked at (0.2, 0.01), given the first answers (`refine`);
* alone: the same rows are asked at (0.2, 0.01), as if there had been nothing before.

Near the first ages the free prediction is as good as the second spending makes it: what the paper
expects is right, and goes further, in that no ε is needed. Far from them spending helps. New rows
(`extend`) are asked given what is known, and alone.

What is compared is the posterior sd of the latent function at the wanted ages, with a prior that
fits the women (sds 25.5 and 6.7 cm, lengthscale 15 years, `kung`). It depends on no output where
outputs are clipped to the bounds alone, as here: no draw of the noise matters to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from rich.table import Table
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp.fitting.strategies import Budget, Query
from cloakgp.fitting.visits import extend, refine
from cloakgp.models import ExactPrior
from cloakgp.release import Release
from cloakgp.utils.arrays import Array
from experiments import kung
from experiments.datasets import load_kung
from experiments.figures import BLACK, BLUE, GREY, RED
from experiments.fits import release_under
from experiments.framework import Experiment, Progress, Tick, no_tick, table_titled

FIRST_AGES = np.array([5.0, 10.0, 15.0])
DISTANCES = (0.5, 2.0, 5.0, 15.0, 40.0)
EPSILON_FIRST, EPSILON_LATER, DELTA = 1.0, 0.2, 0.01
FREE, AGAIN, ALONE, WHOLE = (
    "first answers, for free",
    "first answers, and asked again",
    "asked alone",
    "asked alone, with the first budget",
)
WAYS = (FREE, AGAIN, ALONE, WHOLE)
# New rows: the last so many women are new.
NEW_ROWS = 87


def prior() -> ExactPrior:
    """Return a prior that fits the women, of heights by age."""
    return ExactPrior(
        kernel=ConstantKernel(kung.TUNED_SIGNAL) * RBF(kung.TUNED_LENGTHSCALES["1d"]),
        noise_variance=kung.TUNED_NOISE,
        mean=kung.PRIOR_MEAN,
    )


def released(X: Array, y: Array, *, ages: Array, epsilon: float) -> Release:
    """Release heights about some rows, for predictions at some ages.

    Parameters
    ----------
    X : array of shape (N, 1)
    y : array of shape (N,)
    ages : array of shape (P,)
    """
    return release_under(
        prior(),
        X,
        y,
        query=Query(X=ages[:, None]),
        bounds=kung.BUDGET.bounds,
        budget=Budget(epsilon, DELTA),
    )


def sd_at(release: Release, ages: Array) -> float:
    """Return the root mean square of the posterior sds of the latent function, in cm."""
    _, sds = release.predict(ages[:, None], return_std=True)
    return float(np.sqrt(np.mean(sds**2)))


def repeated_query(
    women: pd.DataFrame, *, distances: Sequence[float] = DISTANCES, tick: Tick = no_tick
) -> dict[float, dict[str, float]]:
    """Return sds at new ages, by their distance from the first ones and by way, in cm.

    Parameters
    ----------
    distances : sequence of float
        In years, upwards from the first ages.
    """
    X, y = women[["age"]].to_numpy(dtype=float), kung.heights(women)
    first = released(X, y, ages=FIRST_AGES, epsilon=EPSILON_FIRST)
    found = {}
    for distance in distances:
        ages = FIRST_AGES + distance
        again = refine(first, y, ages[:, None], epsilon=EPSILON_LATER, delta=DELTA, band=None)
        found[distance] = {
            FREE: sd_at(first, ages),
            AGAIN: sd_at(again, ages),
            ALONE: sd_at(released(X, y, ages=ages, epsilon=EPSILON_LATER), ages),
            WHOLE: sd_at(released(X, y, ages=ages, epsilon=EPSILON_FIRST), ages),
        }
        tick()
    return found


@dataclass(frozen=True)
class NewRows:
    """Sds over ages after new rows came, in cm.

    Attributes
    ----------
    before : float
        Of the first rows at (1, 0.01).
    alone : float
        Of the new rows at (0.2, 0.01) alone.
    both : float
        Of the new rows, asked given the first answers.
    """

    before: float
    alone: float
    both: float


def new_rows(women: pd.DataFrame, *, ages: Array | None = None) -> NewRows:
    """Return what new rows add, asked at a fifth of the first ε given the first answers.

    Parameters
    ----------
    ages : array of shape (P,), optional
        Where predictions matter; every five years from 0 to 80 if not given.
    """
    where = np.arange(0.0, 81.0, 5.0) if ages is None else ages
    X, y = women[["age"]].to_numpy(dtype=float), kung.heights(women)
    old, new = slice(None, -NEW_ROWS), slice(-NEW_ROWS, None)
    first = released(X[old], y[old], ages=where, epsilon=EPSILON_FIRST)
    both = extend(
        first, X[new], y[new], where[:, None], epsilon=EPSILON_LATER, delta=DELTA, band=None
    )
    alone = released(X[new], y[new], ages=where, epsilon=EPSILON_LATER)
    return NewRows(before=sd_at(first, where), alone=sd_at(alone, where), both=sd_at(both, where))


@dataclass(frozen=True, eq=False)
class Found:
    """Sds by distance and way, and with new rows."""

    by_distance: Mapping[float, Mapping[str, float]]
    rows: NewRows


@dataclass(frozen=True)
class RepeatedQueries(Experiment[Found]):
    """The 2021 paper's outlook: repeated queries and new rows, given earlier answers."""

    name: ClassVar[str] = "repeated-queries"
    small: ClassVar[Mapping[str, Any]] = {"distances": DISTANCES[::4]}

    distances: Sequence[float] = DISTANCES

    def compute(self, progress: Progress) -> Found:
        """Release, ask again, and ask new rows."""
        women = load_kung(male=False)
        with progress("distances", steps=len(self.distances)) as tick:
            by_distance = repeated_query(women, distances=self.distances, tick=tick)
        return Found(by_distance=by_distance, rows=new_rows(women))

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out sds by distance, and say whether the paper's expectation holds."""
        first = ", ".join(f"{age:g}" for age in FIRST_AGES)
        table = table_titled(
            f"Posterior sd (cm) of height at ages so many years above {first}, for which a first "
            f"release spent ({EPSILON_FIRST:g}, {DELTA:g}); then ({EPSILON_LATER:g}, {DELTA:g}). "
            "(2021 paper, discussion: a statement)",
            "way",
            right=[f"{distance:g} years" for distance in found.by_distance],
        )
        for way in WAYS:
            table.add_row(way, *(f"{sds[way]:.2f}" for sds in found.by_distance.values()))
        yield table
        near, far = (
            found.by_distance[distance]
            for distance in (min(found.by_distance), max(found.by_distance))
        )
        yield (
            f"Near the first ages the answers that are there give {near[FREE]:.2f} cm for nothing; "
            f"(0.2, 0.01) alone gives {near[ALONE]:.2f} cm, and on top of them "
            f"{near[AGAIN]:.2f} cm: the saving that the paper expects is there, and no ε is needed "
            f"at all. Far from them the first answers give {far[FREE]:.2f} cm, and asking again "
            f"brings {far[AGAIN]:.2f} cm."
        )
        rows = found.rows
        yield (
            f"{NEW_ROWS} new rows at (0.2, 0.01): alone {rows.alone:.2f} cm; the first rows alone "
            f"{rows.before:.2f} cm; both, the new ones asked given the first answers, "
            f"{rows.both:.2f} cm (root mean square over 0 to 80 years)."
        )

    def figures(self, found: Found) -> Mapping[str, Figure]:
        """Draw sds by distance."""
        figure = Figure(figsize=(7.0, 4.4), layout="constrained")
        axes = figure.subplots()
        for way, colour in zip(WAYS, (BLUE, RED, GREY, BLACK), strict=True):
            sds = [by_way[way] for by_way in found.by_distance.values()]
            axes.plot(list(found.by_distance), sds, "-o", color=colour, label=way)
        axes.set(xlabel="years from the ages of the first release", ylabel="posterior sd (cm)")
        axes.set_ylim(bottom=0.0)
        axes.grid(alpha=0.25)
        axes.legend(loc="best", fontsize=9, frameon=False)
        axes.set_title(
            "Later predictions of height, given a first release (2021 paper, discussion)",
            fontsize=11,
        )
        return {"repeated-queries.png": figure}
