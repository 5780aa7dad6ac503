"""Tables on which whole jobs are compared, with their public settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.utils.arrays import Array
from experiments import citibike_folds, kung, london
from experiments.datasets import load_citibike, load_kung, load_london

EPSILON = 1.0
SMALL_DELTA, LARGE_DELTA = 0.01, 1e-5
HELD_OUT, LARGE_FOLDS = 1000, 2
# With what is held out, as many as the papers' folds have; the trips are in random order.
CITIBIKE_ROWS = 6000
INDUCING = 200
SEED = 20210402


@dataclass(frozen=True)
class Job:
    """A table, how it is dealt into folds, and what everybody is told of it.

    Attributes
    ----------
    name : str
    X : array of shape (N, D)
    y : array of shape (N,)
    fold : array of shape (N,)
        In which fold a row is held out; -1 if in none.
    bounds : (float, float)
    delta : float
    unit : str
        Of the outputs.
    inducing : int or None
        For cloakgp; None for its exact process.
    bins : int
        Of histograms, along every input.
    papers_kernel : mapping
        For dp4gp: lengthscale, and variances in units of the sd of the outputs.
    """

    name: str
    X: Array
    y: Array
    fold: NDArray[np.intp]
    bounds: tuple[float, float]
    delta: float
    unit: str
    inducing: int | None
    bins: int
    papers_kernel: Mapping[str, Any] = field(default_factory=dict)

    @property
    def training_rows(self) -> int:
        """Of the first fold."""
        return int(np.count_nonzero(self.fold != 0))

    @property
    def truth(self) -> Array:
        """Held-out outputs, clipped to the bounds, in the order of the table."""
        clipped: Array = np.clip(self.y[self.fold >= 0], *self.bounds)
        return clipped


def in_file_order(rows: int, *, folds: int) -> NDArray[np.intp]:
    """Return consecutive folds of near equal size, as the papers' 14 are.

    Examples
    --------
    >>> in_file_order(5, folds=2)
    array([0, 0, 0, 1, 1])
    """
    sizes = [len(part) for part in np.array_split(np.arange(rows), folds)]
    return np.repeat(np.arange(folds), sizes)


def dealt(rows: int, *, folds: int, held_out: int) -> NDArray[np.intp]:
    """Return disjoint random folds of so many rows each; the others only train.

    Examples
    --------
    >>> np.unique(dealt(50, folds=2, held_out=10), return_counts=True)[1]
    array([30, 10, 10])
    """
    fold = np.full(rows, -1)
    order = np.random.default_rng(SEED).permutation(rows)
    for number in range(folds):
        fold[order[number * held_out : (number + 1) * held_out]] = number
    return fold


def kung_job() -> Job:
    """Return heights of the !Kung women from their age, in the papers' folds."""
    women = load_kung(male=False)
    X = kung.TABLE_1[0].rows(women)
    bounds = kung.BUDGET.bounds
    return Job(
        name="!Kung: height from age",
        X=X,
        y=kung.heights(women),
        fold=in_file_order(len(X), folds=14),
        bounds=(bounds.lo, bounds.hi),
        delta=SMALL_DELTA,
        unit="cm",
        inducing=None,
        bins=10,
        papers_kernel={"lengthscale": 15.0, "variance": 10.0, "noise_variance": 25.0},
    )


def london_job() -> Job:
    """Return prices of homes around London from their place."""
    prices = load_london()
    bounds = london.BUDGET.bounds
    return Job(
        name="London: price from place",
        X=prices[["easting", "northing"]].to_numpy(dtype=float),
        y=prices["price"].to_numpy(dtype=float),
        fold=dealt(len(prices), folds=LARGE_FOLDS, held_out=HELD_OUT),
        bounds=(bounds.lo, bounds.hi),
        delta=LARGE_DELTA,
        unit="GBP",
        inducing=INDUCING,
        bins=10,
        papers_kernel={"lengthscale": 15e3, "variance": 1.0, "noise_variance": 10.0},
    )


def citibike_job() -> Job:
    """Return durations of trips from the places of both stations."""
    trips = citibike_folds.Trips.of(load_citibike().head(CITIBIKE_ROWS))
    bounds = citibike_folds.BOUNDS
    ratio = citibike_folds.NOISE_VARIANCE / citibike_folds.SIGNAL_VARIANCE
    return Job(
        name="Citi Bike: duration from stations",
        X=trips.X,
        y=trips.durations,
        fold=dealt(len(trips.X), folds=LARGE_FOLDS, held_out=HELD_OUT),
        bounds=(bounds.lo, bounds.hi),
        delta=LARGE_DELTA,
        unit="s",
        inducing=INDUCING,
        bins=3,
        papers_kernel={"lengthscale": 0.05, "variance": 1.0, "noise_variance": ratio},
    )


def tiny_job() -> Job:
    """Return an artificial table that needs no file.

    Examples
    --------
    >>> tiny_job().truth.shape
    (60,)
    """
    rng = np.random.default_rng(SEED)
    X = rng.uniform(0, 10, size=(60, 1))
    return Job(
        name="artificial",
        X=X,
        y=np.sin(X[:, 0]) + rng.normal(scale=0.1, size=60),
        fold=in_file_order(60, folds=2),
        bounds=(-1.5, 1.5),
        delta=SMALL_DELTA,
        unit="",
        inducing=None,
        bins=5,
        papers_kernel={"lengthscale": 1.5, "variance": 1.0, "noise_variance": 0.1},
    )


def all_jobs(*, small: bool = False) -> Iterator[Job]:
    """Yield the jobs.

    Parameters
    ----------
    small : bool
        Only one, tiny, that needs no file.
    """
    if small:
        yield tiny_job()
        return
    yield kung_job()
    yield london_job()
    yield citibike_job()
