"""House prices around London: figure 3 of the 2018 paper, and the talk's with inducing inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from experiments import london, talk
from experiments.cloaking import PAPERS_NOISE, TRACE_NOISE
from experiments.datasets import load_london
from experiments.figures import Surface, surfaces_figure
from experiments.framework import quietly
from experiments.reproduction.jobs.base import Found, Job, exactly
from experiments.reproduction.results import Quantity

SETS = ("since 2013", "latest")
NOISES = {"papers": PAPERS_NOISE.name, "trace": TRACE_NOISE.name}


def described(
    names: Iterable[str], surfaces: Iterable[Mapping[str, Surface]]
) -> dict[str, Quantity]:
    """Return how much noise prices get, and their range without privacy."""
    found: dict[str, Quantity] = {}
    for name, by_noise in zip(names, surfaces, strict=True):
        for short, noise in NOISES.items():
            surface = by_noise[noise]
            one = london.summarise_noise(surface)
            found |= exactly(
                **{
                    f"{name}, {short}, rms": one.rms,
                    f"{name}, {short}, gone": 1.0 - one.visible,
                    f"{name}, lowest": float(surface.mean.min()),
                    f"{name}, highest": float(surface.mean.max()),
                }
            )
    return found


def figure_3(ratio: float, _: int) -> Found:
    """Return how much noise prices get, and draw figure 3, for one ratio of variances."""
    experiment = london.London(ratios=(ratio,))
    computed = experiment.compute(quietly)
    found = described(SETS, computed.surfaces[ratio].values())
    [drawn] = experiment.figures(computed).values()
    return Found(found | exactly(rows=computed.rows_since), {"figure-3": drawn})


def inducing(_: int) -> Found:
    """Return how much noise prices get without and with inducing inputs, and draw both."""
    sales = london.sales_between(load_london(), years=london.PAPERS_YEARS)
    surfaces = talk.london_surfaces(sales)
    drawn = surfaces_figure(
        surfaces,
        style=london.style(london.QUERY_STEPS),
        title="Sale prices around London, (1, 0.01)-DP (talk)\nDisc area: released price. Fainter: "
        "more privacy noise, gone at 40 % of Δ = £400k.",
    )
    return Found(described(("none", "20"), surfaces.values()), {"prices": drawn})


HOW = "(1, 0.01), d = £400k, ℓ = 15 km, 20 × 20 query points, designs certified to 1 %"
JOBS = (
    *(
        Job(
            f"london-{ratio:g}-to-1",
            f"noise variance {ratio:g} times the kernel variance; {HOW}",
            0,
            partial(figure_3, ratio),
            minutes=0.5,
        )
        for ratio in london.RATIOS
    ),
    Job(
        "london-inducing",
        f"sales of 2013 to 2016, none or 20 inducing inputs; {HOW}",
        0,
        inducing,
        minutes=0.1,
    ),
)
