"""Remarks, the talk, and what the papers leave to future work."""

from __future__ import annotations

from experiments import approximations, counts, function_row_noise, repeated_queries, talk
from experiments.cloaking import PAPERS_NOISE, TRACE_NOISE
from experiments.cross_validation import Protocol
from experiments.datasets import load_kung
from experiments.framework import quietly
from experiments.reproduction.jobs.base import Found, Job, exactly, of_errors
from experiments.reproduction.results import Quantity

NOISES = {"papers": PAPERS_NOISE.name, "trace": TRACE_NOISE.name}
SETTINGS = dict(zip((one.name for one in talk.SETTINGS), ("2018", "2021"), strict=True))
WAYS = dict(zip(repeated_queries.WAYS, ("free", "again", "alone", "whole"), strict=True))


def counts_by_age(_: int) -> Found:
    """Return the noise of whole functions of counts, and draw releases."""
    experiment = counts.Counts()
    computed = experiment.compute(quietly)
    found: dict[str, Quantity] = exactly(mean=float(computed.counted.counts.mean()))
    for epsilon, sds in computed.sds.items():
        for short, sd in zip(("papers", "exact"), sds.values(), strict=True):
            found |= exactly(**{f"{short}, {epsilon:g}": sd})
    return Found(found, {"counts": experiment.figures(computed)["counts.png"]})


def inducing_inputs(_: int) -> Found:
    """Return expected errors and noises of whole functions, without and with inducing inputs."""
    women = load_kung(male=False)
    compared = talk.kung_errors(women, protocol=Protocol())
    found: dict[str, Quantity] = {}
    for one in compared:
        name = f"{SETTINGS[one.settings]}, {one.inputs}"
        for short, noise in NOISES.items():
            found[f"{name}, {short}, none"] = of_errors(one.without[noise])
            found[f"{name}, {short}, inducing"] = of_errors(one.inducing[noise])
    for noise_of in talk.function_noises(women):
        found |= exactly(**{f"function, {noise_of.inducing or 'none'}": noise_of.sd})
    return Found(found, {"errors": talk.errors_figure(compared)})


def later_queries(_: int) -> Found:
    """Return posterior sds of later predictions, given earlier answers."""
    experiment = repeated_queries.RepeatedQueries()
    computed = experiment.compute(quietly)
    found: dict[str, Quantity] = {}
    for distance, sds in computed.by_distance.items():
        for way, short in WAYS.items():
            found |= exactly(**{f"{short}, {distance:g} years": sds[way]})
    rows = computed.rows
    found |= exactly(**{"rows, before": rows.before, "rows, alone": rows.alone})
    found |= exactly(**{"rows, both": rows.both})
    return Found(found, {"sds": experiment.figures(computed)["repeated-queries.png"]})


def rows_believed_less(_: int) -> Found:
    """Return errors of whole functions with row noises that lower their sensitivity."""
    experiment = function_row_noise.FunctionRowNoise()
    computed = experiment.compute(quietly)
    found: dict[str, Quantity] = {}
    for way, short in (
        (function_row_noise.BY_ROW, "by row"),
        (function_row_noise.SHARED, "shared"),
    ):
        by_share = computed[way]
        best = min(by_share.values(), key=lambda one: one.error)
        for name, one in (("declared", by_share[1.0]), ("best", best)):
            found |= exactly(
                **{
                    f"{short}, {name}, error": one.error,
                    f"{short}, {name}, noise": one.noise_sd,
                    f"{short}, {name}, infinity norm": one.infinity_norm,
                }
            )
    return Found(found, {"errors": experiment.figures(computed)["function-row-noise.png"]})


def sparse_approximations(_: int) -> Found:
    """Return expected errors by sparse approximation and number of inducing inputs."""
    experiment = approximations.Approximations()
    computed = experiment.compute(quietly)
    found: dict[str, Quantity] = {}
    for (inputs, approximation, count), errors in computed.items():
        for short, noise in NOISES.items():
            found[f"{inputs}, {approximation}, {count}, {short}"] = of_errors(errors[noise])
    return Found(found, {"errors": experiment.figures(computed)["approximations.png"]})


JOBS = (
    Job(
        "counts",
        "women above 145 cm by age in bins of five years, Δ = 1, δ = 0.01; prior mean and sd 10, "
        "noise sd 3, ℓ = 25 years; 8 releases drawn",
        0,
        counts_by_age,
    ),
    Job(
        "talk",
        "(1, 0.01), 5 inducing inputs by k-means, 14 folds in file order, expected over the noise; "
        "spread: sd over folds. Whole functions: exact calibration",
        0,
        inducing_inputs,
    ),
    Job(
        "function-row-noise",
        "heights by age, ℓ = 25 years, (1, 0.01), exactly calibrated, 14 folds in file order, "
        "expected over the noise",
        0,
        rows_believed_less,
        minutes=0.2,
    ),
    Job(
        "repeated-queries",
        "heights at 5, 10 and 15 years at (1, 0.01), then later ages at (0.2, 0.01); posterior sds",
        0,
        later_queries,
        minutes=0.2,
    ),
    Job(
        "approximations",
        "(1, 0.01), the 2021 paper's settings, 14 folds in file order, expected over the noise",
        0,
        sparse_approximations,
        minutes=0.2,
    ),
)
