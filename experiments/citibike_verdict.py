"""Citi Bike: which of the paper's methods is ahead, and how many bins hold trips.

Published (2018 paper, section 4 and table 1): cloaking is ahead of both ways to bin at every
budget, and of 10⁴ bins 11 % hold training trips, 40 % of those a single one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cloakgp.release.histogram import Bins
from experiments import citibike_folds
from experiments.citibike_folds import Trips
from experiments.cross_validation import Errors

ByBudget = Mapping[float | None, Errors]
# Least errors over lengthscales and over numbers of bins in the paper's table 1, s, by budget.
PUBLISHED_LEAST: dict[float | None, tuple[int, int]] = {
    None: (314, 581),
    1.0: (434, 586),
    0.5: (476, 597),
    0.2: (525, 627),
}
PUBLISHED_OCCUPIED, PUBLISHED_SINGLE = 0.11, 0.40
MOST_BINS = 10
# Differences of fewer standard errors are none.
TOLD_APART = 2.0


@dataclass(frozen=True)
class OccupiedBins:
    """How many bins hold training trips.

    Attributes
    ----------
    bins : int
        In all.
    occupied : float
        Share that holds any.
    single : float
        Share of those that holds one.
    folds : int
        Averaged over.
    """

    bins: int
    occupied: float
    single: float
    folds: int

    def __str__(self) -> str:
        return (
            f"Of {self.bins} bins {self.occupied:.1%} hold training trips (published: "
            f"{PUBLISHED_OCCUPIED:.0%}), {self.single:.1%} of those a single one (published: "
            f"{PUBLISHED_SINGLE:.0%}); mean over {self.folds} samples."
        )


def occupied_bins(
    trips: Trips,
    *,
    bins: int = MOST_BINS,
    folds: int = 6,
    training: int = citibike_folds.TRAINING,
) -> OccupiedBins:
    """Count the bins that hold training trips, a public matter.

    Parameters
    ----------
    bins : int
        Along each of the four inputs, over the box of all stations.
    folds : int
        Samples to average over.
    training : int
        Trips in each.
    """
    occupied, single = [], []
    for fold in trips.folds(folds, training=training):
        grid = Bins.over(fold.X, bins=bins, ranges=trips.box)
        _, counts = np.unique(grid.cells(fold.X), return_counts=True)
        occupied.append(len(counts) / bins**4)
        single.append(float(np.mean(counts == 1)))
    return OccupiedBins(
        bins=bins**4,
        occupied=float(np.mean(occupied)),
        single=float(np.mean(single)),
        folds=folds,
    )


def verdict_lines(cloaking: Mapping[str, ByBudget], binned: Mapping[str, ByBudget]) -> list[str]:
    """Say at every budget which is ahead, each with its best setting, and whether that reverses.

    Parameters
    ----------
    cloaking, binned : mapping of setting to mapping of budget to Errors
        Of the papers' cloaking by lengthscale, and of integral binning by number of bins.
    """
    lines = [
        "The paper concludes that cloaking is more accurate than binning. Least errors over "
        "settings, with the noises of the paper:"
    ]
    ahead: dict[str, list[str]] = {"cloaking": [], "integral binning": [], "neither": []}
    for budget, (published_cloaking, published_binned) in PUBLISHED_LEAST.items():
        ours, theirs = (
            min(by_setting, key=lambda setting: by_setting[setting][budget].mean)
            for by_setting in (cloaking, binned)
        )
        apart, error = difference(cloaking[ours][budget], binned[theirs][budget])
        name = "no privacy" if budget is None else f"ε = {budget:g}"
        lines.append(
            f"  {name}: cloaking {cloaking[ours][budget].mean:.0f} s ({ours}), integral binning "
            f"{binned[theirs][budget].mean:.0f} s ({theirs}), difference {apart:+.0f} s (se over "
            f"folds {error:.0f}); published {published_cloaking} and {published_binned} s"
        )
        first = "neither" if abs(apart) <= TOLD_APART * error else "cloaking"
        ahead["integral binning" if first == "cloaking" and apart > 0 else first].append(name)
    lines += [
        f"More accurate by more than {TOLD_APART:g} se, {who}: {', '.join(names)}."
        for who, names in ahead.items()
        if names
    ]
    if ahead["integral binning"]:
        lines.append("So the paper's conclusion is reversed there.")
    lines.append(
        "Integral binning has one noise variance for all bins, as the paper states no other."
    )
    return lines


def difference(one: Errors, other: Errors) -> tuple[float, float]:
    """Return the mean difference of two methods on the same folds, and its standard error.

    Examples
    --------
    >>> one, other = (Errors(np.array([[first], [5.0]])) for first in (3.0, 1.0))
    >>> difference(one, other)
    (1.0, 1.0)
    """
    by_fold = one.by_fold.mean(axis=1) - other.by_fold.mean(axis=1)
    return float(by_fold.mean()), float(by_fold.std(ddof=1) / np.sqrt(len(by_fold)))
