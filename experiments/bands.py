"""A picture of bands: to what the heights of the !Kung women are clipped, stage by stage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from cloakgp import DPGPRegressor, Release
from cloakgp.fitting.bands import DEFAULT_STAGES
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.questions.bands import Bands
from cloakgp.utils.arrays import Array
from experiments.datasets import load_kung
from experiments.figures import BLACK, BLUE, RED
from experiments.framework import Experiment, Progress, table_titled

EPSILON, DELTA = 1.0, 0.01
# Round numbers from general knowledge.
BOUNDS = OutputBounds(40.0, 190.0)
# Where the curve is drawn, in years, and how far up heights, in cm.
AGES, TOP = np.linspace(0.0, 90.0, 181), 205.0


@dataclass(frozen=True, eq=False)
class Stages:
    """One release in stages, and what it is about.

    Attributes
    ----------
    age, height : arrays of shape (N,)
        In years and cm.
    bands : tuple of Bands
        To what heights were clipped in every stage; in the first, to the bounds.
    shares : tuple of float
        Of μ², of every stage; what is left went to the question how noisy heights are.
    release, one_stage : Release
        In stages, and with the same budget all at once.
    """

    age: Array
    height: Array
    bands: tuple[Bands, ...]
    shares: tuple[float, ...]
    release: Release
    one_stage: Release


def released_in_stages(age: Array, height: Array, *, insecure_seed: int | None = None) -> Stages:
    """Fit with Gaussian noise and without looking for an interval, and in one stage.

    Parameters
    ----------
    age, height : arrays of shape (N,)
        In years and cm.
    """
    regressor = partial(
        DPGPRegressor,
        bounds=(BOUNDS.lo, BOUNDS.hi),
        epsilon=EPSILON,
        delta=DELTA,
        noise="gaussian",
        interval=False,
        insecure_seed=insecure_seed,
    )
    model = regressor().fit(age[:, None], height)
    alone = regressor(stages=None).fit(age[:, None], height)
    measurements = model.release_.measurements[: len(DEFAULT_STAGES)]
    encodings = (each.question for each in measurements)
    total = model.guarantee_.mu
    whole = Bands(lower=np.full(len(age), BOUNDS.lo), upper=np.full(len(age), BOUNDS.hi))
    return Stages(
        age=age,
        height=height,
        bands=(whole, *(each for each in encodings if isinstance(each, Bands))),
        shares=tuple((each.answers.guarantee.mu / total) ** 2 for each in measurements),
        release=model.release_,
        one_stage=alone.release_,
    )


def bands_figure(found: Stages) -> Figure:
    """Draw the band of every stage, and what is published with stages and without."""
    columns = (len(found.bands) + 3) // 2
    figure = Figure(figsize=(4.4 * columns, 7.0), layout="constrained")
    panels = figure.subplots(2, columns, sharex=True, sharey=True)
    drawn = zip(DEFAULT_STAGES, found.shares, found.bands, strict=True)
    axes = iter(panels.ravel())
    for number, (stage, share, bands) in enumerate(drawn, start=1):
        one = next(axes)
        _draw_stage(one, found, bands=bands)
        band = "the declared bounds" if stage.width is None else f"mean ± {stage.width:g} sd"
        one.set_title(f"Stage {number}, {_percent(share)} of μ²: {band}", fontsize=11)
    for title, release, colour in (
        ("Published: mean, 95 % interval", found.release, BLUE),
        ("The same budget in one stage", found.one_stage, RED),
    ):
        one = next(axes)
        _draw_release(one, found, release=release, colour=colour)
        one.set_title(title, fontsize=11)
    for left_over in axes:
        left_over.set_axis_off()
    panels[0, 0].set_xlim(AGES[0], AGES[-1])
    panels[0, 0].set_ylim(BOUNDS.lo - 10, TOP)
    for one in panels[:, 0]:
        one.set_ylabel("height (cm)")
    for one in panels[-1]:
        one.set_xlabel("age (years)")
    figure.suptitle(
        f"Heights of {len(found.age)} !Kung women, ({EPSILON:g}, {DELTA:g})-DP, bounds "
        f"{BOUNDS.lo:g} to {BOUNDS.hi:g} cm",
        fontsize=12,
    )
    return figure


def _draw_stage(axes: Axes, found: Stages, *, bands: Bands) -> None:
    order = np.argsort(found.age, kind="stable")
    age, lower, upper = found.age[order], bands.lower[order], bands.upper[order]
    axes.fill_between(age, lower, upper, color=BLUE, alpha=0.16, linewidth=0)
    for edge in (lower, upper):
        axes.plot(age, edge, color=BLUE, linewidth=1.0)
    clipped = np.clip(found.height, bands.lower, bands.upper)
    outside = clipped != found.height
    axes.vlines(
        found.age[outside], found.height[outside], clipped[outside], color=RED, linewidth=0.5
    )
    axes.plot(found.age[~outside], found.height[~outside], ".", color=BLACK, markersize=3.5)
    axes.plot(found.age[outside], found.height[outside], ".", color=RED, markersize=3.5)
    width = float(bands.width.mean())
    share = _percent(width / BOUNDS.width)
    write = partial(axes.text, AGES[-1] - 3, ha="right", va="bottom", fontsize=10)
    write(56, f"mean width {width:.0f} cm, {share} of the bounds")
    if outside.any():
        clipped_share = f"{_percent(float(outside.mean()))} of heights are clipped"
        write(46, clipped_share, color=RED)


def _draw_release(axes: Axes, found: Stages, *, release: Release, colour: str) -> None:
    mean, sd = release.predict(AGES[:, None], return_std=True, new_output=True)
    lower, upper = mean - 1.96 * sd, mean + 1.96 * sd
    axes.fill_between(AGES, lower, upper, color=colour, alpha=0.16, linewidth=0)
    axes.plot(found.age, found.height, ".", color=BLACK, markersize=3.5)
    axes.plot(AGES, mean, color=colour, linewidth=2.2)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


@dataclass(frozen=True)
class BandsOfStages(Experiment[Stages]):
    """Draw the bands to which outputs are clipped in every stage: heights of 287 !Kung women."""

    name: ClassVar[str] = "bands"

    insecure_seed: int | None = None

    def compute(self, progress: Progress) -> Stages:
        """Fit once in stages, and once without."""
        women = load_kung(male=False)
        columns = (women[name].to_numpy(dtype=float) for name in ("age", "height"))
        with progress("release", steps=1) as tick:
            found = released_in_stages(*columns, insecure_seed=self.insecure_seed)
            tick()
        return found

    def tables(self, found: Stages) -> Iterable[Table | str]:
        """Lay out how wide bands are, and how far outputs lie outside."""
        table = table_titled(
            f"Bands of one release of !Kung heights, ({EPSILON:g}, {DELTA:g})-DP",
            "stage",
            right=("share of μ²", "mean width (cm)", "least", "greatest", "clipped"),
        )
        rows = zip(found.shares, found.bands, strict=True)
        for number, (share, bands) in enumerate(rows, start=1):
            widths = bands.width
            clipped = np.mean((found.height < bands.lower) | (found.height > bands.upper))
            cells = (f"{one:.0f}" for one in (widths.mean(), widths.min(), widths.max()))
            table.add_row(str(number), _percent(share), *cells, _percent(float(clipped)))
        yield table

    def figures(self, found: Stages) -> Mapping[str, Figure]:
        """Draw the bands."""
        return {"bands.png": bands_figure(found)}
