"""The papers' figures, drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from cloakgp.arrays import Array
from cloakgp.experiments.cloaked import PAPERS_NOISE, TRACE_NOISE
from cloakgp.experiments.crossvalidation import CrossValidation
from cloakgp.experiments.published import RERUN_FIGURE_4
from cloakgp.experiments.surfaces import Curve, Surface

BLUE, RED, GREY, BLACK = "#1f5fa8", "#c0392b", "0.55", "0.1"
DPI = 130


def curves_figure(
    curves: Mapping[str, Mapping[str, Curve]], *, X: Array, y: Array, title: str
) -> Figure:
    """Draw figure 3 of the 2021 paper: a row per model, a column per noise.

    Parameters
    ----------
    curves : mapping of model to mapping of noise to Curve
    X, y : array of shape (N,)
        Ages and heights of the women.
    title : str
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


def inducing_inputs_figure(found: Mapping[int, CrossValidation]) -> Figure:
    """Draw figure 4 of the 2021 paper: error by number of inducing inputs."""
    counts = list(found)
    figure = Figure(figsize=(7.0, 4.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(
        counts,
        [one.no_privacy.mean for one in found.values()],
        "--o",
        color=BLUE,
        markersize=3,
        label="no privacy",
    )
    for noise, colour in ((PAPERS_NOISE, BLACK), (TRACE_NOISE, RED)):
        axes.plot(
            counts,
            [one.raw[noise.name].mean for one in found.values()],
            "-o",
            color=colour,
            markersize=3,
            label=noise.name,
        )
    for column, colour, what in ((0, BLUE, "no privacy"), (1, BLACK, "their noise")):
        axes.plot(
            list(RERUN_FIGURE_4),
            [errors[column] for errors in RERUN_FIGURE_4.values()],
            "x",
            color=colour,
            alpha=0.6,
            label=f"authors' code run again, {what}",
        )
    axes.set_xlabel("number of inducing inputs")
    axes.set_ylabel("root mean squared error (cm)")
    axes.set_xticks(range(0, max(counts) + 1, 2))
    axes.set_ylim(0, 25)
    axes.grid(alpha=0.25)
    axes.set_title("!Kung women, height from age, 14-fold, (1, 0.01)-DP", fontsize=11)
    axes.legend(fontsize=9)
    return figure


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
    """Draw figure 5 of the 2021 paper or figure 3 of 2018: a row per model, a column per noise.

    Parameters
    ----------
    surfaces : mapping of model to mapping of noise to Surface
    style : SurfaceStyle
    title : str
    """
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
