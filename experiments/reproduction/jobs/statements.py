"""Statements and motivating pictures: background, query points, binning of women, three points."""

from __future__ import annotations

import numpy as np

from experiments import background, kung_binning, query_points, three_points
from experiments.cloaking import PAPERS_NOISE, TRACE_NOISE
from experiments.framework import quietly
from experiments.reproduction.jobs.base import Found, Job, exactly, of_errors
from experiments.reproduction.results import Quantity

NOISES = {"papers": PAPERS_NOISE.name, "trace": TRACE_NOISE.name}
WAYS = {
    "simple": kung_binning.SIMPLE,
    "integral": kung_binning.INTEGRAL,
    "known": kung_binning.KNOWN,
}
HISTOGRAMS = {"Laplace": kung_binning.LAPLACE, "Gaussian": kung_binning.GAUSSIAN}
COUNTS = ("published", "cited", "papers", "exact")
STATISTICS = ("one", "copies", "groups", "contrasts")


def background_2021(_: int) -> Found:
    """Return the noise of a count, of copies, and the outlier's leverage; draw figures 1 and 2."""
    experiment = background.Background()
    computed = experiment.compute(quietly)
    found: dict[str, Quantity] = {}
    for name, noise in zip(COUNTS, computed.counts, strict=True):
        found |= exactly(**{f"count, {name}, sd": noise.sd, f"count, {name}, delta": noise.delta})
    alone = float(computed.copies["one mean"][0])
    for name, sds in zip(STATISTICS, computed.copies.values(), strict=True):
        found |= exactly(**{f"statistics, {name}": float(sds.max()) / alone})
    nearest = experiment.nearest(computed)
    found |= exactly(**{"leverage": nearest.factor, "leverage at": nearest.distance})
    for moved, factors in zip(computed.pivots, computed.scattered, strict=True):
        found |= exactly(
            **{
                f"leverage, evenly, {moved.distance:g}": moved.factor,
                f"leverage, scattered median, {moved.distance:g}": float(np.median(factors)),
                f"leverage, scattered largest, {moved.distance:g}": float(factors.max()),
            }
        )
    drawn = experiment.figures(computed)
    return Found(
        found,
        {
            "figure-1": drawn["background-figure-1.png"],
            "figure-2": drawn["background-figure-2.png"],
        },
    )


def by_query_points(_: int) -> Found:
    """Return the noise by number of query points, along age and over weight and age."""
    experiment = query_points.QueryPoints()
    computed = experiment.compute(quietly)
    found: dict[str, Quantity] = {}
    for short, noise in NOISES.items():
        for one in computed.ages[noise]:
            found |= exactly(**{f"age, {short}, {one.points}": one.rms})
        for model, by_noise in computed.grids.items():
            for steps, one in zip(experiment.steps, by_noise[noise], strict=True):
                name = f"{model[0]}, {short}, {steps}"
                found |= exactly(**{f"{name}, rms": one.rms})
                if one.at_named is not None:
                    found |= exactly(**{f"{name}, at the named": one.at_named})
    return Found(found, {"noise": experiment.figures(computed)["query-points.png"]})


def binned_women(draws: int) -> Found:
    """Return errors of binning by age, and of cloaking on the same folds."""
    experiment = kung_binning.KungBinning(draws=draws)
    computed = experiment.compute(quietly)
    found: dict[str, Quantity] = {}
    for way, name in WAYS.items():
        for count, one in computed.binning.items():
            found[f"{way}, no privacy, {count}"] = of_errors(one.no_privacy[name])
            for short, noise in HISTOGRAMS.items():
                found[f"{way}, {short}, {count}"] = of_errors(one.private[name][noise])
        for short, noise in HISTOGRAMS.items():
            by_count = {count: one.private[name][noise] for count, one in computed.binning.items()}
            best = min(by_count.values(), key=lambda errors: errors.mean)
            worst = max(by_count.values(), key=lambda errors: errors.mean)
            found[f"{way}, {short}, best"] = of_errors(best)
            found[f"{way}, {short}, worst"] = of_errors(worst)
    for short, noise in NOISES.items():
        found[f"cloaking, {short}"] = of_errors(computed.cloaking[noise])
    return Found(found, {"errors": experiment.figures(computed)["kung-binning.png"]})


def across_regimes(_: int) -> Found:
    """Return correlations of the three points of section 6.3, and errors of both kernels."""
    experiment = three_points.ThreePoints()
    computed = experiment.compute(quietly)
    found: dict[str, Quantity] = {}
    for row in computed.rows:
        for pair, correlation in row.by_pair.items():
            found |= exactly(**{f"{row.kernel}, {row.ratio:g}, {pair}": correlation})
        found |= exactly(**{f"{row.kernel}, {row.ratio:g}, at most": row.allowed})
    for kernel, errors in computed.errors.items():
        found[f"error, {kernel}, no privacy"] = of_errors(errors["no privacy"])
        for short, noise in NOISES.items():
            found[f"error, {kernel}, {short}"] = of_errors(errors[noise])
    return Found(found, {"correlations": experiment.figures(computed)["three-points.png"]})


JOBS = (
    Job(
        "background",
        "(1, 0.01); 64 people; nine rows evenly over 0 to 2 and one apart, or scattered 200 times",
        0,
        background_2021,
    ),
    Job(
        "query-points",
        "(1, 0.01), designs certified to 1 %; ages −20 to 150 at ℓ = 25, or weight and age with "
        "the 2021 paper's settings",
        0,
        by_query_points,
        minutes=0.1,
    ),
    Job(
        "kung-binning",
        "heights by age at ε = 1, δ = 0 or 0.01, ℓ = 25 years, 10 folds in file order, {draws} "
        "draws of the noise; spread: sd over folds; cloaking: expected",
        20,
        binned_women,
        minutes=0.1,
    ),
    Job(
        "three-points",
        "lengthscale 1 and a longer one; heights by age with 15 and 50 years, (1, 0.01), 14 folds, "
        "expected over the noise",
        0,
        across_regimes,
        minutes=0.1,
    ),
)
