"""Hyperparameters learned from answers, and chosen privately, at the same total.

Learning from published answers costs nothing. A private choice takes a share of ε, and its release
gets the most that composes with it to the same (ε, δ) (`cloakgp.privacy.mixed`). The choice is made
as suits it best: by the exponential mechanism, which composes best, on absolute errors, which tell
candidates apart best, and at several shares. All ways predict the same rows of the same splits, and
those without a choice read the same answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Literal

import numpy as np
from scipy.optimize import brentq

from cloakgp.arrays import Array
from cloakgp.experiments.asked import LEARNINGS, Asked, learned
from cloakgp.experiments.cloaked import Budget
from cloakgp.experiments.crossvalidation import Tick, root_mean_square, ticked
from cloakgp.experiments.learning import EPSILONS, mean_and_error
from cloakgp.experiments.priors import DEFAULT_SHAPE, PriorShape, Scale, Split, Table
from cloakgp.privacy.mixed import MixedGuarantee, worst_release
from cloakgp.privacy.select import SelectionMechanism
from cloakgp.privacy.utility import Loss
from cloakgp.regression import DPGPRegressor
from cloakgp.release import Release
from cloakgp.selection import DPGridSearchCV
from cloakgp.workers import in_order

MECHANISM: SelectionMechanism = "exponential"
LOSS: Loss = "absolute"
SHARES = (0.1, 0.3, 0.6)
# The ε of a release is found to within this share of the total.
PRECISION = 1e-3

FAMILIES: tuple[Literal["rbf", "matern32"], ...] = ("rbf", "matern32")
# Around the default prior.
CANDIDATES = tuple(
    PriorShape(family, lengthscale, noise=noise, rooted=False)
    for family, lengthscale, noise in product(FAMILIES, (0.25, 0.5, 1.0), (0.05, 0.1, 0.2))
)
# Of `cloakgp.experiments.priors.tables`, with the units of their outputs.
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
                release=worst_release(release, delta, rows=rows),
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
    candidates: Sequence[PriorShape] = CANDIDATES,
    insecure_seed: int | None = None,
) -> Release:
    """Choose among candidates privately, and release with what was chosen; nothing is learned.

    Parameters
    ----------
    split : Split
    divided : Divided
    delta : float
        Of both together.
    candidates : sequence of PriorShape
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
            insecure_seed=insecure_seed,
        ),
        [{"kernel": [prior.kernel], "noise_variance": [prior.noise_variance]} for prior in priors],
        selection_epsilon=divided.choice,
        mechanism=MECHANISM,
        loss=LOSS,
    )
    return search.fit(split.X, split.outputs).release_


def errors_of(
    split: Split,
    *,
    budget: Budget,
    divisions: Sequence[Divided],
    insecure_seed: int | None = None,
) -> list[float]:
    """Return the RMSEs of all ways on one split, in the units of its outputs.

    Parameters
    ----------
    split : Split
    budget : Budget
        The total.
    divisions : sequence of Divided
        Of that total, one per share.
    insecure_seed : int, optional
    """
    asked = Asked.designed(split.X, prior=split.prior(DEFAULT_SHAPE), budget=budget)
    answered = asked.released(split.outputs, insecure_seed=insecure_seed)
    releases = [learned(answered, learning) for learning in LEARNINGS]
    for divided in divisions:
        release = chosen_release(
            split, divided=divided, delta=budget.delta, insecure_seed=insecure_seed
        )
        releases += [release, learned(release, "map")]
    return [root_mean_square(one.predict(split.X_test) - split.outputs_test) for one in releases]


def compare(
    compared: Iterable[Table],
    *,
    epsilons: Sequence[float] = EPSILONS,
    shares: Sequence[float] = SHARES,
    scale: Scale,
    tick: Tick | None = None,
    n_jobs: int | None = None,
) -> dict[float, dict[str, Array]]:
    """Return RMSEs of shape (ways, draws), by total ε and name of table.

    Parameters
    ----------
    compared : iterable of Table
    epsilons : sequence of float
        Totals.
    shares : sequence of float
        Of the total, for the choice.
    scale : Scale
        Its ε is not used.
    tick : callable, optional
        Called after every table of every ε.
    n_jobs : int, optional
        How many splits at a time; see `cloakgp.workers.in_order`.
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


def against_map(by_table: Mapping[str, Array]) -> dict[str, tuple[float, float]]:
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
