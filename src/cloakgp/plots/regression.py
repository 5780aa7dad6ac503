"""The panels of a picture: a curve over one input, a map over two.

Drawn from the public object alone: no output is drawn, and none is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cloakgp.release import Published, Release
from cloakgp.report.columns import input_names, keeps_rows, known_inputs, what_inputs_are
from cloakgp.report.outputs import bounds
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra
from cloakgp.utils.formatting import NORMAL_95

with extra("plots"):
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

INK, PALE_INK, WARNING = "#22303c", "#7b8794", "#b3261e"
# Column names may hold dollar signs, which matplotlib would take for mathematics.
TEXT: dict[str, Any] = {"color": INK, "parse_math": False}
CURVE, BAND = "#1f6f8b", "#5aa9c4"
DASHES = (0, (5, 4))
CURVE_POINTS = 400
# From here on, rows are marked smaller.
MANY_ROWS = 400


def slice_points(release: Release, *, vary: Sequence[str], grids: Sequence[Array]) -> Array:
    """Return inputs that vary over grids, the others at their medians over the rows.

    Parameters
    ----------
    release : Release
    vary : sequence of str
        Names of the inputs that vary.
    grids : sequence of arrays of shape (n,)
        Their values, one array each.

    Returns
    -------
    array of shape (n, D)
    """
    names = input_names(release)
    points = np.tile(np.median(known_inputs(release), axis=0), (len(grids[0]), 1))
    for name, grid in zip(vary, grids, strict=True):
        points[:, names.index(name)] = grid
    return points


def draw_row_marks(axes: Axes, X: Array) -> None:
    """Mark the rows' inputs on a map: outputs are private, and not in a release.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    X : array of shape (N, 2)
    """
    crowding = min(1.0, (MANY_ROWS / len(X)) ** 0.5)
    axes.scatter(
        X[:, 0],
        X[:, 1],
        s=9 * crowding,
        facecolor="white",
        edgecolor=INK,
        linewidth=0.7 * crowding,
        alpha=0.8,
    )


def row_mark(label: str = "rows (inputs only)") -> Line2D:
    """Return the legend's entry for the marks on a map."""
    return Line2D(
        [],
        [],
        marker="o",
        linestyle="none",
        markersize=3.5,
        markerfacecolor="white",
        color=INK,
        label=label,
    )


def draw_rug(axes: Axes, column: Array) -> None:
    """Mark the rows' inputs along the lower edge: outputs are private, and not in a release."""
    axes.plot(
        column,
        np.full(len(column), 0.022),
        transform=axes.get_xaxis_transform(),
        marker="|",
        markersize=9,
        markeredgewidth=0.8,
        linestyle="none",
        color=INK,
        alpha=max(0.12, min(0.7, 60 / len(column))),
        zorder=3,
    )


def finish(axes: Axes, release: Release, *, vary: Sequence[str]) -> None:
    """Label, tell what is held fixed, and take away what distracts."""
    names = input_names(release)
    medians = np.median(known_inputs(release), axis=0)
    held = [
        f"{name} = {value:.4g}"
        for name, value in zip(names, medians, strict=True)
        if name not in vary
    ]
    if held:
        of_what = "rows" if keeps_rows(release) else "queried points"
        axes.set_title(f"at the median of the {of_what}: {', '.join(held)}", fontsize=10, **TEXT)
    axes.set_xlabel(vary[0], **TEXT)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(PALE_INK)
    axes.tick_params(colors=INK, length=3)


def legend_below(axes: Axes, handles: Sequence[Any], *, columns: int) -> None:
    """Put a legend under the axis label, where it covers nothing."""
    axes.legend(
        handles=list(handles),
        loc="upper center",
        bbox_to_anchor=(0.5, -0.12),
        ncols=columns,
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        handletextpad=0.5,
        columnspacing=1.4,
    )


def widened(column: Array, *, share: float) -> tuple[float, float]:
    """Return the range of some inputs and a little more on both sides."""
    low, high = float(column.min()), float(column.max())
    room = share * (high - low) or 0.5
    return low - room, high + room


with extra("plots"):
    from matplotlib import colormaps
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.lines import Line2D

__all__ = ["INK", "draw_curve", "draw_map", "slice_points"]

MAP_COLOURS = "viridis"
MAP_POINTS = 22
# Raw predictions are drawn up to this many; beyond, their bars hide the curve.
MOST_RAW_PREDICTIONS = 40
# The papers' figures: a prediction fades out as its sd nears this share of the bounds' width.
FADED_SHARE = 0.4
SMALLEST_DISC, LARGEST_DISC = 18.0, 165.0


def draw_curve(axes: Axes, release: Release, *, vary: Sequence[str]) -> None:
    """Draw predictions over one input: mean, 95 % of the latent function and of new outputs.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    release : Release
    vary : sequence of one str
        The input on the horizontal axis.
    """
    (name,) = vary
    column = known_inputs(release)[:, input_names(release).index(name)]
    grid = np.linspace(*widened(column, share=0.02), CURVE_POINTS)
    points = slice_points(release, vary=vary, grids=(grid,))
    mean, sd = release.predict(points, return_std=True)
    _, new_sd = release.predict(points, return_std=True, new_output=True)
    lo, hi = bounds(release)
    axes.plot(grid, mean, color=CURVE, linewidth=2.2, zorder=2.5, label="prediction")
    for deviation, alpha, label in (
        (new_sd, 0.16, "95 % of new outputs"),
        (sd, 0.42, "95 % for the curve"),
    ):
        axes.fill_between(
            grid,
            mean - NORMAL_95 * deviation,
            mean + NORMAL_95 * deviation,
            color=BAND,
            alpha=alpha,
            linewidth=0,
            label=label,
        )
    for end in (lo, hi):
        axes.axhline(end, color=PALE_INK, linewidth=0.9, linestyle=DASHES, zorder=1)
    lowest = min(lo, float((mean - NORMAL_95 * new_sd).min()))
    highest = max(hi, float((mean + NORMAL_95 * new_sd).max()))
    room = 0.06 * (highest - lowest)
    axes.set_ylim(lowest - 1.6 * room, highest + room)
    if release.n_inputs == 1:
        _draw_raw_predictions(axes, release)
    draw_rug(axes, column)
    axes.set_xlim(grid[0], grid[-1])
    finish(axes, release, vary=vary)
    axes.set_ylabel(release.output_name, **TEXT)
    handles, _ = axes.get_legend_handles_labels()
    edges = Line2D([], [], color=PALE_INK, linewidth=0.9, linestyle=DASHES, label="bounds")
    marks = Line2D([], [], color=INK, marker="|", linestyle="none", label=what_inputs_are(release))
    legend_below(axes, [*handles, edges, marks], columns=3)


def draw_map(
    axes: Axes, release: Release, *, vary: Sequence[str], grid_points: int = MAP_POINTS
) -> None:
    """Draw predictions over two inputs, as discs that grow with the mean and fade with the sd.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Of a figure, beside which the colour bar goes.
    release : Release
    vary : sequence of two str
        The inputs on the horizontal and vertical axes.
    grid_points : int
        Discs along each side.
    """
    X = known_inputs(release)[:, [input_names(release).index(name) for name in vary]]
    sides = [np.linspace(*widened(column, share=0.04), grid_points) for column in X.T]
    across, up = (grid.ravel() for grid in np.meshgrid(*sides))
    mean, sd = release.predict(
        slice_points(release, vary=vary, grids=(across, up)), return_std=True
    )
    lo, hi = bounds(release)
    opacity = np.clip(1 - sd / (FADED_SHARE * (hi - lo)), 0.0, 1.0)
    shown = mean[opacity > 0] if (opacity > 0).any() else mean
    scale = Normalize(float(shown.min()), float(max(shown.max(), shown.min() + 1e-9 * (hi - lo))))
    share = np.clip(scale(mean), 0.0, 1.0)
    colours = colormaps[MAP_COLOURS](share)
    colours[:, 3] = opacity
    sizes = SMALLEST_DISC + (LARGEST_DISC - SMALLEST_DISC) * share
    axes.scatter(across, up, s=sizes * (MAP_POINTS / grid_points) ** 2, c=colours, linewidths=0)
    draw_row_marks(axes, X)
    bar = axes.figure.colorbar(
        ScalarMappable(norm=scale, cmap=MAP_COLOURS), ax=axes, pad=0.02, aspect=28
    )
    bar.set_label(f"predicted {release.output_name} (also the discs' size)", **TEXT)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=INK, length=3)
    finish(axes, release, vary=vary)
    axes.set_ylabel(vary[1], **TEXT)
    fading = [
        Line2D(
            [],
            [],
            marker="o",
            linestyle="none",
            markersize=9,
            markeredgewidth=0,
            color=colormaps[MAP_COLOURS](0.45),
            alpha=1 - fraction,
            label=f"sd {FADED_SHARE * fraction * (hi - lo):.3g}",
        )
        for fraction in (0.0, 0.25, 0.5, 0.75)
    ]
    legend_below(axes, [row_mark(what_inputs_are(release)), *fading], columns=5)


def _raw_predictions(release: Release) -> list[Published]:
    return [
        release.published(number)
        for number, one in enumerate(release.measurements)
        if one.strategy.reconstruction is not None
    ]


def _draw_raw_predictions(axes: Axes, release: Release) -> None:
    """Draw the unshrunk predictions with an sd of their noise, if they are few."""
    drawn = _raw_predictions(release)
    if not drawn:
        return
    X = np.concatenate([one.X[:, 0] for one in drawn])
    if len(X) > MOST_RAW_PREDICTIONS:
        return
    values = np.concatenate([one.values for one in drawn])
    sd = np.sqrt(np.concatenate([np.diag(one.noise_cov) for one in drawn]))
    low, high = axes.get_ylim()
    outside = int(((values < low) | (values > high)).sum())
    axes.errorbar(
        X,
        values,
        yerr=sd,
        fmt="o",
        markersize=4.5,
        markerfacecolor="white",
        color=INK,
        linewidth=0.9,
        capsize=2,
        zorder=3,
        label="raw predictions ± noise sd" + f" ({outside} beyond the frame)" * (outside > 0),
    )
    axes.set_ylim(low, high)
