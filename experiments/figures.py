"""Released predictions along one input or over two: computed, and drawn as in the papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from cloakgp.models import SparsePrior
from cloakgp.utils.arrays import Array
from experiments.cloaking import (
    Budget,
    Cloaked,
    Noise,
    Prior,
    mean_without_privacy,
    noise_sd,
    sd_without_privacy,
)


@dataclass(frozen=True, eq=False)
class Curve:
    """Predictions along one input.

    Attributes
    ----------
    inputs : array of shape (P,)
    mean, sd : array of shape (P,)
        Posterior of the latent function without privacy.
    noise_sd : array of shape (P,)
        Of the privacy noise.
    releases : array of shape (S, P)
        Raw predictions, each with noise of its own.
    inducing : array of shape (M,) or None
    """

    inputs: Array
    mean: Array
    sd: Array
    noise_sd: Array
    releases: Array
    inducing: Array | None


def released_curve(
    X: Array,
    y: Array,
    *,
    inputs: Array,
    prior: Prior,
    noise: Noise,
    budget: Budget,
    releases: int,
    insecure_seed: int | None = None,
) -> Curve:
    """Release predictions along one input several times.

    Parameters
    ----------
    X : array of shape (N, 1)
    y : array of shape (N,)
    inputs : array of shape (P,)
    budget : Budget
        Of each release.
    releases : int
        S, at least one.
    """
    X_query = inputs[:, None]
    cloaked = Cloaked.designed(X, X_query, prior=prior, noise=noise)
    drawn = [
        cloaked.released(
            y, budget=budget, insecure_seed=None if insecure_seed is None else insecure_seed + draw
        )
        for draw in range(releases)
    ]
    return Curve(
        inputs=inputs,
        mean=mean_without_privacy(X, y, X_query=X_query, prior=prior, bounds=budget.bounds),
        sd=sd_without_privacy(X, X_query=X_query, prior=prior),
        noise_sd=noise_sd(drawn[0]),
        releases=np.array([release.published().values for release in drawn]),
        inducing=prior.inducing[:, 0] if isinstance(prior, SparsePrior) else None,
    )


@dataclass(frozen=True)
class Grid:
    """Points on a rectangle.

    Attributes
    ----------
    horizontal, vertical : (float, float)
        Ends of the two inputs.
    steps : int
        Points along each.

    Examples
    --------
    >>> Grid((0.0, 1.0), (0.0, 2.0), steps=2).points.tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [1.0, 2.0]]
    """

    horizontal: tuple[float, float]
    vertical: tuple[float, float]
    steps: int

    @property
    def axes(self) -> tuple[Array, Array]:
        """The places along each input."""
        return (np.linspace(*self.horizontal, self.steps), np.linspace(*self.vertical, self.steps))

    @property
    def points(self) -> Array:
        """All points, shape (steps², 2), the horizontal input varying fastest."""
        across, up = np.meshgrid(*self.axes)
        return np.column_stack([across.ravel(), up.ravel()])


@dataclass(frozen=True, eq=False)
class Surface:
    """Predictions over two inputs.

    Attributes
    ----------
    X : array of shape (N, 2)
    X_query : array of shape (P, 2)
    released : array of shape (P,)
        One draw of the raw predictions.
    noise_sd : array of shape (P,)
        Of the privacy noise in it.
    contour_grid : Grid
    mean : array of shape (steps, steps)
        Posterior mean without privacy on the contour grid; rows go up.
    inducing : array of shape (M, 2) or None
    gap : float
        Certified relative gap of the noise's design.
    """

    X: Array
    X_query: Array
    released: Array
    noise_sd: Array
    contour_grid: Grid
    mean: Array
    inducing: Array | None
    gap: float


def released_surface(
    X: Array,
    y: Array,
    *,
    query_grid: Grid,
    contour_grid: Grid,
    prior: Prior,
    noise: Noise,
    budget: Budget,
    gap: float = 1e-3,
    insecure_seed: int | None = None,
) -> Surface:
    """Release predictions over a rectangle once.

    Parameters
    ----------
    X : array of shape (N, 2)
    y : array of shape (N,)
    query_grid : Grid
        Where predictions are released.
    contour_grid : Grid
        Where the posterior mean without privacy is wanted.
    gap : float
        Of the design, to certify.
    """
    X_query = query_grid.points
    cloaked = Cloaked.designed(X, X_query, prior=prior, noise=noise, gap=gap)
    release = cloaked.released(y, budget=budget, insecure_seed=insecure_seed)
    mean = mean_without_privacy(
        X, y, X_query=contour_grid.points, prior=prior, bounds=budget.bounds
    )
    return Surface(
        X=X,
        X_query=X_query,
        released=release.published().values,
        noise_sd=noise_sd(release),
        contour_grid=contour_grid,
        mean=mean.reshape(contour_grid.steps, contour_grid.steps),
        inducing=prior.inducing if isinstance(prior, SparsePrior) else None,
        gap=cloaked.design.certificate.gap,
    )


BLUE, RED, GREY, BLACK = "#1f5fa8", "#c0392b", "0.55", "0.1"


def curves_figure(
    curves: Mapping[str, Mapping[str, Curve]], *, X: Array, y: Array, title: str
) -> Figure:
    """Draw figure 3 of the 2021 paper: a row per model, a column per noise.

    Parameters
    ----------
    X, y : array of shape (N,)
        Ages and heights of the women.
    """
    columns = len(next(iter(curves.values())))
    figure = Figure(figsize=(5.6 * columns, 3.9 * len(curves) + 0.9), layout="constrained")
    grid = figure.subplots(len(curves), columns, sharex=True, sharey=True, squeeze=False)
    for row, (model, by_noise) in zip(grid, curves.items(), strict=True):
        for axes, (noise, curve) in zip(row, by_noise.items(), strict=True):
            _draw_curve(axes, curve, X=X, y=y)
            axes.set_title(f"{model}: {noise}", fontsize=11)
        row[0].set_ylabel("height (cm)")
    for axes in grid[-1]:
        axes.set_xlabel("age (years)")
    figure.suptitle(title, fontsize=12)
    handles, labels = grid[-1][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    return figure


def _draw_curve(axes: Axes, curve: Curve, *, X: Array, y: Array) -> None:
    axes.fill_between(
        curve.inputs,
        curve.mean - curve.sd,
        curve.mean + curve.sd,
        color=BLUE,
        alpha=0.15,
        linewidth=0,
        label="posterior sd, no privacy",
    )
    for number, release in enumerate(curve.releases):
        axes.plot(
            curve.inputs,
            release,
            color=GREY,
            linewidth=0.7,
            label="private releases" if number == 0 else None,
        )
    for share, colour, label in ((1.0, BLACK, "noise sd"), (0.25, "0.4", "¼ noise sd")):
        for sign in (-1.0, 1.0):
            axes.plot(
                curve.inputs,
                curve.mean + sign * share * curve.noise_sd,
                color=colour,
                linestyle="--",
                linewidth=1.1,
                label=f"mean ± {label}" if sign > 0 else None,
            )
    axes.plot(curve.inputs, curve.mean, color=BLUE, linewidth=2.0, label="mean, no privacy")
    axes.plot(X, y, ".", color=BLACK, markersize=2.5, alpha=0.6, label="the women")
    if curve.inducing is not None:
        axes.plot(
            curve.inducing,
            np.full(len(curve.inducing), 46.0),
            "^",
            color=RED,
            markersize=8,
            label="inducing inputs",
        )
    axes.set_xlim(curve.inputs[0], curve.inputs[-1])
    axes.set_ylim(40, 190)


@dataclass(frozen=True)
class SurfaceStyle:
    """How a surface is drawn.

    Attributes
    ----------
    transparent_at : float
        Noise sd at which a disc has vanished, in output units.
    area : float
        Of a disc, in square points per output unit.
    levels : array
        Of the contours, in output units.
    output : callable
        From an output to its label.
    horizontal, vertical : str
        Names of the inputs.
    input_unit : float
        Inputs are divided by it for the axes.
    equal : bool
        Whether both axes have one scale.
    """

    transparent_at: float
    area: float
    levels: Array
    output: Callable[[float], str]
    horizontal: str
    vertical: str
    input_unit: float = 1.0
    equal: bool = False


def surfaces_figure(
    surfaces: Mapping[str, Mapping[str, Surface]], *, style: SurfaceStyle, title: str
) -> Figure:
    """Draw figure 5 of the 2021 paper or figure 3 of 2018: a row per model, a column per noise."""
    columns = len(next(iter(surfaces.values())))
    width = 5.4 if style.equal else 6.2
    figure = Figure(figsize=(width * columns, 5.4 * len(surfaces) + 1.2), layout="constrained")
    grid = figure.subplots(len(surfaces), columns, sharex=True, sharey=True, squeeze=False)
    for row, (model, by_noise) in zip(grid, surfaces.items(), strict=True):
        for axes, (noise, surface) in zip(row, by_noise.items(), strict=True):
            _draw_surface(axes, surface, style=style)
            axes.set_title(f"{model}: {noise}", fontsize=11)
        row[0].set_ylabel(style.vertical)
    for axes in grid[-1]:
        axes.set_xlabel(style.horizontal)
    figure.suptitle(title, fontsize=12)
    sparse = any(one.inducing is not None for row in surfaces.values() for one in row.values())
    figure.legend(
        handles=_surface_legend(style, sparse=sparse),
        loc="outside lower center",
        ncols=4,
        fontsize=9,
        frameon=False,
    )
    return figure


def opacity(noise_sd: Array, *, transparent_at: float) -> Array:
    """Return how opaque discs are, from 1 without noise to 0.

    Examples
    --------
    >>> opacity(np.array([0.0, 10.0, 60.0]), transparent_at=40.0).tolist()
    [1.0, 0.75, 0.0]
    """
    opaque: Array = np.clip(1.0 - noise_sd / transparent_at, 0.0, 1.0)
    return opaque


def _draw_surface(axes: Axes, surface: Surface, *, style: SurfaceStyle) -> None:
    across, up = (axis / style.input_unit for axis in surface.contour_grid.axes)
    # Many rows are drawn smaller, lest they hide the discs.
    dot = 2.5 * min(1.0, float(np.sqrt(1500 / len(surface.X))))
    axes.plot(*(surface.X / style.input_unit).T, ".", color=BLACK, markersize=dot, alpha=0.6)
    query = surface.X_query / style.input_unit
    axes.scatter(
        query[:, 0],
        query[:, 1],
        s=style.area * np.maximum(surface.released, 0.0),
        c=[
            (0.12, 0.37, 0.66, 0.85 * alpha)
            for alpha in opacity(surface.noise_sd, transparent_at=style.transparent_at)
        ],
        linewidths=0,
    )
    contours = axes.contour(
        across, up, surface.mean, levels=style.levels, colors=RED, linewidths=0.8, alpha=0.9
    )
    for label in axes.clabel(contours, fmt=style.output, fontsize=8):
        label.set_path_effects([withStroke(linewidth=2.0, foreground="white")])
    if surface.inducing is not None:
        axes.plot(
            *(surface.inducing / style.input_unit).T, "x", color=BLACK, markersize=11, mew=2.5
        )
    if style.equal:
        axes.set_aspect("equal")
    # Discs on the edge are shown whole.
    margin = 0.03 * float(np.ptp(across)), 0.03 * float(np.ptp(up))
    axes.set_xlim(across[0] - margin[0], across[-1] + margin[0])
    axes.set_ylim(up[0] - margin[1], up[-1] + margin[1])


def _surface_legend(style: SurfaceStyle, *, sparse: bool) -> list[Line2D]:
    handles = [
        Line2D(
            [],
            [],
            marker="o",
            linestyle="",
            markersize=9,
            markeredgewidth=0,
            color=(0.12, 0.37, 0.66, 0.85 * (1.0 - share)),
            label=f"noise sd {style.output(share * style.transparent_at)}",
        )
        for share in (0.0, 0.25, 0.5, 0.75)
    ]
    handles.append(Line2D([], [], color=RED, linewidth=0.8, label="mean, no privacy"))
    handles.append(
        Line2D([], [], color=BLACK, marker=".", linestyle="", markersize=4, label="training rows")
    )
    if sparse:
        handles.append(
            Line2D([], [], color=BLACK, marker="x", linestyle="", mew=2.5, label="inducing inputs")
        )
    return handles
