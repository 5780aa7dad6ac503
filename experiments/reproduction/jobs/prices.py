"""House prices around London: figure 3 of the 2018 paper."""

from __future__ import annotations

from experiments import london
from experiments.cloaking import PAPERS_NOISE, TRACE_NOISE
from experiments.framework import quietly
from experiments.reproduction.jobs.base import Found, Job, exactly
from experiments.reproduction.results import Quantity

SETS = ("since 2013", "latest")


def figure_3(_: int) -> Found:
    """Return how much noise prices get, and draw figure 3."""
    experiment = london.London()
    computed = experiment.compute(quietly)
    found: dict[str, Quantity] = exactly(rows=computed.rows_since)
    for name, by_noise in zip(SETS, computed.surfaces.values(), strict=True):
        for noise, short in ((PAPERS_NOISE, "papers"), (TRACE_NOISE, "trace")):
            surface = by_noise[noise.name]
            one = london.summarise_noise(surface)
            found |= exactly(
                **{
                    f"{name}, {short}, rms": one.rms,
                    f"{name}, {short}, gone": 1.0 - one.visible,
                    f"{name}, lowest": float(surface.mean.min()),
                    f"{name}, highest": float(surface.mean.max()),
                }
            )
    return Found(found, {"figure-3": experiment.figures(computed)["london-figure-3.png"]})


JOBS = (
    Job(
        "london",
        "(1, 0.01), d = £400k, ℓ = 15 km, 20 × 20 query points; designs certified to 1 %",
        0,
        figure_3,
        minutes=2.0,
    ),
)
