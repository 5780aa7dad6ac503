"""Hyperparameters learned from answers, and chosen privately, at the same total.

Learning from published answers costs nothing. A private choice takes a share of ε, and its release
gets the most that composes with it to the same (ε, δ) (`cloakgp.privacy.composition`). The choice
is made as suits it best: by the exponential mechanism, which composes best, on absolute errors,
which tell candidates apart best, and at several shares. All ways predict the same rows of the same
splits, and those without a choice read the same answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np
from rich.table import Table as Printed
from scipy.optimize import brentq

from cloakgp.estimators.grid_search import DPGridSearchCV
from cloakgp.estimators.regression import DPGPRegressor
from cloakgp.privacy.composition import MixedGuarantee, worst_release
from cloakgp.privacy.selection import Loss, SelectionMechanism
from cloakgp.privacy.workers import in_order
from cloakgp.release import Release
from cloakgp.utils.arrays import Array
from experiments.cloaking import LEARNINGS, Asked, Budget, learned
from experiments.cross_validation import mean_of_draws, root_mean_square
from experiments.framework import (
    Experiment,
    Progress,
    Rows,
    Splits,
    Tick,
    no_tick,
    table_titled,
    ticked,
)
from experiments.priors import (
    DEFAULT_SHAPE,
    PriorShape,
    Scale,
    Shape,
    Split,
    Table,
    tables,
)
from experiments.spread import mean_and_error, with_error

MECHANISM: SelectionMechanism = "exponential"
LOSS: Loss = "absolute"
SHARES = (0.1, 0.3)
EPSILONS = (0.1, 1.0, 10.0)
# The ε of a release is found to within this share of the total.
PRECISION = 1e-3

FAMILIES: tuple[Literal["rbf", "matern32"], ...] = ("rbf", "matern32")
# Simple ones, of one part.
CANDIDATES = tuple(
    PriorShape(family, lengthscale, noise=noise, rooted=False)
    for family, lengthscale, noise in product(FAMILIES, (0.25, 0.5, 1.0), (0.05, 0.1, 0.2))
)
# Of `experiments.priors.tables`, with the units of their outputs.
COMPARED = {
    "!Kung, age": "cm",
    "!Kung, age and weight": "cm",
    "London, place": "log10 £",
    "wine, alcohol": "% alcohol",
    "iris, petal width": "cm",
}

UNCHOSEN = ("declared defaults", "learn=map", "learn=average")
MAP = 1


def ways(shares: Sequence[float] = SHARES) -> tuple[str, ...]:
    """Name what is compared: without a choice, then each share without and with learning after it.

    Examples
    --------
    >>> ways((0.3,))[MAP:]
    ('learn=map', 'learn=average', 'choice, 0.3 of ε', 'the same, then map')
    """
    chosen = ((f"choice, {share:g} of ε", "the same, then map") for share in shares)
    return (*UNCHOSEN, *(name for pair in chosen for name in pair))


@dataclass(frozen=True)
class Divided:
    """A total budget, divided between a choice and the release that is made with it.

    Attributes
    ----------
    choice, release : float
        Their ε; that of the choice has δ = 0.
    """

    choice: float
    release: float

    @classmethod
    def of(cls, epsilon: float, *, delta: float, choice: float, rows: int) -> Divided:
        """Give a release the most that a total leaves it.

        Parameters
        ----------
        epsilon, delta : float
            The total.
        choice : float
            ε of the choice, below the total.
        rows : int
            The most that will be released.

        Examples
        --------
        >>> divided = Divided.of(1.0, delta=0.01, choice=0.5, rows=100)
        >>> round(divided.release, 2)
        0.84
        """

        def beyond(release: float) -> float:
            both = MixedGuarantee(
                epsilon=epsilon,
                delta=delta,
                selection_epsilon=choice,
                mechanism=MECHANISM,
                release=worst_release(release, delta, rows=rows, answers=2 * rows),
            )
            return both.delta_at(epsilon) - delta

        # Basic composition is never exceeded, so the largest lies between these.
        tolerance = PRECISION * epsilon
        largest = float(brentq(beyond, epsilon - choice, epsilon, xtol=tolerance))
        return cls(choice=choice, release=largest - tolerance)


def chosen_release(
    split: Split,
    *,
    divided: Divided,
    delta: float,
    candidates: Sequence[Shape] = CANDIDATES,
    insecure_seed: int | None = None,
) -> Release:
    """Choose among candidates privately, and release with what was chosen; nothing is learned.

    Parameters
    ----------
    delta : float
        Of both together.
    insecure_seed : int, optional
        Makes choice and noise reproducible and not private.
    """
    priors = [split.prior(shape) for shape in candidates]
    search = DPGridSearchCV(
        DPGPRegressor(
            bounds=(split.bounds.lo, split.bounds.hi),
            epsilon=divided.release,
            delta=delta,
            learn=None,
            stages=None,
            insecure_seed=insecure_seed,
        ),
        [{"kernel": [prior.kernel], "noise_variance": [prior.noise_variance]} for prior in priors],
        selection_epsilon=divided.choice,
        mechanism=MECHANISM,
        loss=LOSS,
    )
    return search.fit(split.X, split.outputs).release_


def errors_of(
    split: Split, *, budget: Budget, divisions: Sequence[Divided], insecure_seed: int | None = None
) -> list[float]:
    """Return the RMSEs of all ways on one split, in the units of its outputs.

    Parameters
    ----------
    budget : Budget
        The total.
    divisions : sequence of Divided
        Of that total, one per share.
    """
    asked = Asked.designed(split.X, prior=split.prior(DEFAULT_SHAPE), budget=budget)
    answered = asked.released(split.outputs, insecure_seed=insecure_seed)
    releases = [learned(answered, learning) for learning in LEARNINGS]
    for divided in divisions:
        release = chosen_release(
            split, divided=divided, delta=budget.delta, insecure_seed=insecure_seed
        )
        releases += [release, learned(release, "map")]
    return [
        root_mean_square(release.predict(split.X_test) - split.outputs_test) for release in releases
    ]


def compare(
    compared: Iterable[Table],
    *,
    epsilons: Sequence[float] = EPSILONS,
    shares: Sequence[float] = SHARES,
    scale: Scale,
    tick: Tick = no_tick,
    n_jobs: int | None = None,
) -> dict[float, dict[str, Array]]:
    """Return RMSEs of shape (ways, draws), by total ε and name of table.

    Parameters
    ----------
    epsilons : sequence of float
        Totals.
    shares : sequence of float
        Of the total, for the choice.
    scale : Scale
        Its ε is not used.
    n_jobs : int, optional
        How many splits at a time; see `cloakgp.privacy.workers.in_order`.
    """
    tables = list(compared)
    found: dict[float, dict[str, Array]] = {}
    for epsilon in epsilons:
        divisions = [
            Divided.of(epsilon, delta=scale.delta, choice=share * epsilon, rows=scale.rows)
            for share in shares
        ]
        tasks = (
            partial(
                errors_of,
                table.split(draw, rows=scale.rows),
                budget=Budget(bounds=table.bounds, epsilon=epsilon, delta=scale.delta),
                divisions=divisions,
                insecure_seed=scale.seed(draw),
            )
            for table in tables
            for draw in range(scale.draws)
        )
        errors = list(ticked(in_order(tasks, n_jobs=n_jobs), tick=tick, every=scale.draws))
        by_table = np.array(errors).reshape(len(tables), scale.draws, len(ways(shares)))
        found[epsilon] = {table.name: one.T for table, one in zip(tables, by_table, strict=True)}
    return found


def best_choice(errors: Array, *, then_map: bool = False) -> Array:
    """Return the errors at the share that did best, which only hindsight tells, shape (draws,).

    Parameters
    ----------
    errors : array of shape (ways, draws)
    then_map : bool
        Of the choices after which hyperparameters were learned, instead of those without.

    Examples
    --------
    >>> best_choice(np.array([[9.0], [9.0], [9.0], [3.0], [2.0], [1.0], [4.0]]))
    array([1.])
    """
    chosen = errors[len(UNCHOSEN) + then_map :: 2]
    best: Array = chosen[chosen.mean(axis=1).argmin()]
    return best


def against_map(by_table: Mapping[str, Array]) -> dict[str, tuple[float, float | None]]:
    """Return how much larger errors are than learn=map's, and its standard error, by way.

    Differences are paired, in shares of each table's mean error under learn=map, over all tables.

    Parameters
    ----------
    by_table : mapping of str to array of shape (ways, draws)
    """
    rows = {
        UNCHOSEN[0]: [errors[0] for errors in by_table.values()],
        UNCHOSEN[2]: [errors[2] for errors in by_table.values()],
        "choice, best share in hindsight": [best_choice(one) for one in by_table.values()],
        "the same, then map": [best_choice(one, then_map=True) for one in by_table.values()],
    }
    return {
        name: mean_and_error(
            np.array(
                [
                    (one - errors[MAP]) / errors[MAP].mean()
                    for one, errors in zip(found, by_table.values(), strict=True)
                ]
            )
        )
        for name, found in rows.items()
    }


def learning_or_selection_report(
    found: Mapping[float, Mapping[str, Array]], *, name: str, shares: Sequence[float], title: str
) -> Printed:
    """Lay out one table's errors by way and ε; the differences to learn=map are paired.

    Parameters
    ----------
    found : mapping of ε to mapping of table to array of shape (ways, draws)
    name : str
        Of the table.
    shares : sequence of float
        Of ε that went to the choice.
    """
    by_epsilon = [by_table[name] for by_table in found.values()]
    table = _by_epsilon(found, title=title)
    for way, label in enumerate(ways(shares)):
        table.add_row(label, *(mean_of_draws(errors[way]) for errors in by_epsilon))
    table.add_section()
    for label, then_map in (("best share less map", False), ("the same, then map", True)):
        differences = (best_choice(one, then_map=then_map) - one[MAP] for one in by_epsilon)
        table.add_row(label, *(mean_of_draws(difference, sign="+") for difference in differences))
    return table


def against_map_report(found: Mapping[float, Mapping[str, Array]], *, title: str) -> Printed:
    """Lay out how much larger errors are than those of learn=map, over all tables, by ε.

    Parameters
    ----------
    found : mapping of ε to mapping of table to array of shape (ways, draws)
    """
    table = _by_epsilon(found, title=title)
    every = [against_map(by_table) for by_table in found.values()]
    for label in every[0]:
        larger = (one[label] for one in every)
        table.add_row(label, *(with_error(mean, error, "+.1%") for mean, error in larger))
    return table


def _by_epsilon(found: Mapping[float, object], *, title: str) -> Printed:
    return table_titled(title, "way", right=(f"ε = {epsilon:g}" for epsilon in found))


@dataclass(frozen=True)
class LearningOrSelection(Experiment[dict[float, dict[str, Array]]]):
    """Compare hyperparameters learned from answers with private choices of the same total."""

    name: ClassVar[str] = "learning-or-selection"
    small: ClassVar[Mapping[str, Any]] = {
        "draws": 2,
        "rows": 100,
        "count": 2,
        "epsilons": (1.0,),
        "shares": (0.3,),
    }

    draws: Splits = 5
    rows: Rows = 250
    # Of tables; None: all.
    count: int | None = None
    epsilons: Sequence[float] = EPSILONS
    shares: Sequence[float] = SHARES

    @property
    def scale(self) -> Scale:
        """How large the comparison is."""
        return Scale(rows=self.rows, draws=self.draws)

    def compute(self, progress: Progress) -> dict[float, dict[str, Array]]:
        """Compare all ways on the tables of `COMPARED`."""
        compared = [table for table in tables() if table.name in COMPARED][: self.count]
        steps = len(compared) * len(self.epsilons)
        with progress("learning or selection", steps=steps) as tick:
            return compare(
                compared, epsilons=self.epsilons, shares=self.shares, scale=self.scale, tick=tick
            )

    def tables(self, found: dict[float, dict[str, Array]]) -> Iterable[Printed | str]:
        """Lay out every table's errors, and how much larger they are than learn=map's."""
        names, scale = list(next(iter(found.values()))), self.scale
        for name in names:
            title = f"{name}: RMSE ({COMPARED[name]}) at the same total (ε, {scale.delta:g})"
            yield learning_or_selection_report(found, name=name, shares=self.shares, title=title)
        title = (
            f"How much larger errors are than learn=map's: mean over {len(names)} tables (se over "
            f"draws). {scale.draws} splits with noise of their own, at most {scale.rows} rows, "
            f"{len(CANDIDATES)} candidates"
        )
        yield against_map_report(found, title=title)
