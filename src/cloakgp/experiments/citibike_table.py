"""Citi Bike: table 1 of the 2018 paper over all folds, and what it printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from cloakgp.baselines.bins import Bins
from cloakgp.experiments import citibike
from cloakgp.experiments.citibike import Fold, Trips
from cloakgp.experiments.citibike_bins import binning_errors
from cloakgp.experiments.citibike_gp import (
    INDUCING,
    ByBudget,
    bayes_errors,
    cloaking_errors,
    default_errors,
)
from cloakgp.experiments.cloaked import PAPERS_NOISE
from cloakgp.experiments.crossvalidation import Errors, Protocol, Tick
from cloakgp.models import kmeans_centres

# At 0.02° the bayes design of 4900 rows takes minutes, and predictions profit from ε > 1 only.
BAYES_LENGTHSCALES = citibike.LENGTHSCALES[:-1]
COLUMNS: tuple[float | None, ...] = (None, *citibike.EPSILONS)
SIMPLE, INTEGRAL = "simple binning", "integral binning"
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


@dataclass(frozen=True)
class Scale:
    """How much is computed.

    Attributes
    ----------
    protocol : Protocol
        Folds, and draws of the noise in each.
    bayes_folds : int
        The first so many folds, for `bayes` and the defaults, whose designs take longest.
    training : int
        Trips to learn from.
    lengthscales, bayes_lengthscales : sequence of float
        In degrees.
    bins : sequence of int
        Along each input.
    """

    protocol: Protocol
    bayes_folds: int
    training: int = citibike.TRAINING
    lengthscales: Sequence[float] = citibike.LENGTHSCALES
    bayes_lengthscales: Sequence[float] = BAYES_LENGTHSCALES
    bins: Sequence[int] = citibike.BINS


def table_1(trips: Trips, *, scale: Scale, tick: Tick | None = None) -> Found:
    """Compute the table.

    Parameters
    ----------
    trips : Trips
    scale : Scale
    tick : callable, optional
        Called after every fold.

    Returns
    -------
    dict of Key to dict of budget to Errors
        The budget is ε, or None without privacy.
    """
    folds = []
    for number, fold in enumerate(trips.folds(scale.protocol.folds, training=scale.training)):
        folds.append(errors_of_fold(fold, number=number, box=trips.box, scale=scale))
        if tick is not None:
            tick()
    return gathered(folds)


def errors_of_fold(
    fold: Fold, *, number: int, box: Sequence[tuple[float, float]], scale: Scale
) -> dict[Key, ByBudget]:
    """Compute every row of the table for one fold.

    Parameters
    ----------
    fold : Fold
    number : int
        Which one; `bayes` and the defaults are left out from ``scale.bayes_folds`` on.
    box : sequence of pairs
        Range of each input, for the bins.
    scale : Scale
    """
    draws = scale.protocol.draws

    def seed(epsilon: float, draw: int) -> int | None:
        return scale.protocol.seed(number, citibike.EPSILONS.index(epsilon), draw)

    found: dict[Key, ByBudget] = {}
    for lengthscale in scale.lengthscales:
        by_noise = cloaking_errors(fold, lengthscale=lengthscale, draws=draws, seed=seed)
        for name, errors in by_noise.items():
            found[Key(f"cloaking, {name}", degrees(lengthscale))] = errors
    for count in scale.bins:
        bins = Bins.over(fold.X, bins=count, ranges=box)
        binned = binning_errors(fold, bins=bins, draws=draws, seed=seed)
        for kind, method in (("integral", INTEGRAL), ("simple", SIMPLE)):
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

    Parameters
    ----------
    folds : sequence of mapping of Key to mapping of budget to errors by draw

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

    Parameters
    ----------
    found : mapping of Key to mapping of budget to Errors
    epsilon : float
    """
    ours = [key for key in found if key.method not in PUBLISHED_NAMES.values()]
    shared = min(len(found[key][epsilon].by_fold) for key in ours)
    return min(ours, key=lambda key: float(found[key][epsilon].by_fold[:shared].mean()))


def cost_of_privacy(by_budget: Mapping[float | None, Errors], epsilon: float) -> float:
    """Return the error with privacy over the error without, of the same model on the same folds.

    Parameters
    ----------
    by_budget : mapping of budget to Errors
    epsilon : float

    Examples
    --------
    >>> one, two = (Errors(np.full((2, 1), error)) for error in (4.0, 5.0))
    >>> cost_of_privacy({None: one, 0.2: two}, 0.2)
    1.25
    """
    return by_budget[epsilon].mean / by_budget[None].mean
