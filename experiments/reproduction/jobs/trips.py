"""Citi Bike trips: table 1 and figure 4 of the 2018 paper, in parts by lengthscale and by bins."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

import numpy as np

from cloakgp.models import kmeans_centres
from cloakgp.release.histogram import Bins
from experiments import citibike, citibike_folds
from experiments.citibike_folds import ByBudget, Fold, Trips
from experiments.citibike_verdict import occupied_bins
from experiments.cloaking import PAPERS_NOISE, TRACE_NOISE
from experiments.datasets import load_citibike
from experiments.reproduction.jobs.base import Found, Job, exactly, rms
from experiments.reproduction.results import Quantity

NOISES = {PAPERS_NOISE.name: "papers", TRACE_NOISE.name: "trace"}
HISTOGRAMS = {"Laplace as the paper": "papers", "Gaussian, exact": "Gaussian"}
# Releases of every fold and method.
RELEASES = 2
BAYES_LENGTHSCALES = (0.781, 0.312, 0.125, 0.05)
# Without privacy, of trips of day visitors too.
OF_EVERYBODY = (0.125, 0.05)


@cache
def subscribers() -> Trips:
    """Return the trips of subscribers, whom the paper's footnote names."""
    return Trips.of(load_citibike(), subscribers=True)


@cache
def everybody() -> Trips:
    """Return all trips."""
    return Trips.of(load_citibike())


def numbered(trips: Trips, folds: int) -> Iterator[tuple[int, Fold]]:
    """Yield folds with their numbers."""
    yield from enumerate(trips.folds(folds))


def unseeded(_epsilon: float, _draw: int) -> None:
    """Return no seed: the noise is fresh."""


def averaged(folds: list[ByBudget], *, name: str) -> dict[str, Quantity]:
    """Return means over folds by budget, with the error over folds."""
    found = {}
    for budget in citibike.COLUMNS:
        shown = "no privacy" if budget is None else f"{budget:g}"
        means = np.array([np.mean(fold[budget]) for fold in folds])
        found[f"{name}, {shown}"] = Quantity.of(means)
    return found


def cloaking(lengthscale: float, folds: int) -> Found:
    """Return errors of raw predictions for one lengthscale, by noise and budget."""
    computed = [
        citibike_folds.cloaking_errors(fold, lengthscale=lengthscale, draws=RELEASES, seed=unseeded)
        for _, fold in numbered(subscribers(), folds)
    ]
    found: dict[str, Quantity] = {}
    for noise, short in NOISES.items():
        found |= averaged([one[noise] for one in computed], name=short)
    return Found(found)


def binning(bins: int, folds: int) -> Found:
    """Return errors of simple and of integral binning for one number of bins."""
    trips = subscribers()
    computed = [
        citibike_folds.binning_errors(
            fold,
            bins=Bins.over(fold.X, bins=bins, ranges=trips.box),
            draws=RELEASES,
            seed=unseeded,
        )
        for _, fold in numbered(trips, folds)
    ]
    found: dict[str, Quantity] = {}
    for kind in ("simple", *citibike_folds.INTEGRALS):
        for noise, short in HISTOGRAMS.items():
            found |= averaged([one[kind][noise] for one in computed], name=f"{kind}, {short}")
    return Found(found)


def bayes(lengthscale: float, folds: int) -> Found:
    """Return errors of posterior means for one lengthscale."""
    computed = []
    for _, fold in numbered(subscribers(), folds):
        inducing, _ = kmeans_centres(fold.X, count=citibike_folds.INDUCING)
        computed.append(
            citibike_folds.bayes_errors(
                fold, lengthscale=lengthscale, inducing=inducing, draws=RELEASES, seed=unseeded
            )
        )
    return Found(averaged(computed, name="bayes"))


def without_privacy(folds: int) -> Found:
    """Return errors of the mean for subscribers and for all, and of the process for all."""
    errors: dict[str, list[float]] = {}
    for who, trips in (("subscribers", subscribers()), ("all", everybody())):
        for _, fold in numbered(trips, folds):
            clipped = citibike_folds.BOUNDS.clip(fold.y)
            errors.setdefault(f"{who}, mean", []).append(rms(clipped.mean() - fold.truth))
            for lengthscale in OF_EVERYBODY if who == "all" else ():
                prior = citibike_folds.exact_prior(lengthscale)
                C = prior.cloaking_matrix(fold.X_query, fold.X)
                mean = prior.mean + C @ (clipped - prior.mean)
                errors.setdefault(f"all, {lengthscale:g}", []).append(rms(mean - fold.truth))
    return Found({name: Quantity.of(np.array(each)) for name, each in errors.items()})


def occupied(_: int) -> Found:
    """Return which shares of 10⁴ bins hold training trips, and of those a single one."""
    counted = occupied_bins(subscribers())
    return Found(exactly(occupied=counted.occupied, single=counted.single))


def durations(_: int) -> Found:
    """Draw figure 4, and return the share of trips beyond the threshold."""
    shown = subscribers().durations[: citibike.SHOWN_TRIPS]
    beyond = float(np.mean(shown > citibike_folds.BOUNDS.hi))
    return Found(exactly(beyond=beyond), {"figure-4": citibike.durations_figure(shown)})


HOW = (
    "subscribers of four days of June 2017, 4900 trips to train and 100 to test in each of "
    f"{{draws}} folds, {RELEASES} releases a fold, δ = 0.01; errors over folds"
)
JOBS = (
    *(
        Job(f"citibike-cloaking-{length:g}", HOW, 15, partial(cloaking, length), minutes=0.6)
        for length in citibike_folds.LENGTHSCALES
    ),
    *(
        Job(f"citibike-{bins}-bins", HOW, 15, partial(binning, bins), minutes=0.2)
        for bins in citibike_folds.BINS
    ),
    *(
        Job(
            f"citibike-bayes-{length:g}",
            f"{HOW}; 200 k-means inducing inputs, questions for the test inputs",
            5,
            partial(bayes, length),
            minutes=0.3,
        )
        for length in BAYES_LENGTHSCALES
    ),
    Job("citibike-without-privacy", "4900 and 100 trips, {draws} folds", 10, without_privacy),
    Job("citibike-bins-occupied", "subscribers, 4900 trips, mean of six samples", 0, occupied),
    Job("citibike-durations", f"{citibike.SHOWN_TRIPS} trips of subscribers", 0, durations),
)
