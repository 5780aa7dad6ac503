"""Pictures of predicted numbers: a curve over one input, a map over two.

Drawn from the public object alone: no output is drawn, and none is there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cloakgp.models.kernels.integral import IntegralRBF
from cloakgp.models.latent import components
from cloakgp.plots.figures import (
    BAND,
    CURVE,
    CURVE_POINTS,
    DASHES,
    INK,
    PALE_INK,
    TEXT,
    chosen_inputs,
    draw_row_marks,
    draw_rug,
    finish,
    legend_below,
    new_figure,
    row_mark,
    slice_points,
    widened,
    write_title,
)
from cloakgp.release import Published, Release
from cloakgp.report.columns import has_classes, input_names, known_inputs, what_inputs_are
from cloakgp.report.outputs import bounds
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra
from cloakgp.utils.formatting import NORMAL_95

with extra("plots"):
    from matplotlib import colormaps
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

MAP_COLOURS = "viridis"
MAP_POINTS = 22
# Raw predictions are drawn up to this many; beyond, their bars hide the curve.
MOST_RAW_PREDICTIONS = 40
# The papers' figures: a prediction fades out as its sd nears this share of the bounds' width.
FADED_SHARE = 0.4
SMALLEST_DISC, LARGEST_DISC = 18.0, 165.0


def plot_release(release: Release, *, vary: Sequence[str] = ()) -> Figure:
    """Draw the predictions of a release: a curve over one input, or a map over two.

    Parameters
    ----------
    release : Release
    vary : sequence of str
        One or two inputs to draw over; the others are held at their medians. All of them if not
        given.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    TypeError
        If it is a release of another kind.
    ValueError
        If an input is unknown, or there are more than two and none were chosen; or its inputs are
        boxes.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-3)
    >>> figure = plot_release(model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_)
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
    ('x1', 'y')
    """
    if not isinstance(release, Release):
        raise TypeError(f"there is no picture of a {type(release).__name__}")
    if has_classes(release):
        raise TypeError("probabilities of classes are drawn by plot_classes")
    if any(isinstance(kernel, IntegralRBF) for kernel in components(release.prior.kernel)):
        raise ValueError("there is no picture of a release whose inputs are boxes")
    chosen = chosen_inputs(release, vary=vary)
    figure = new_figure(width=8.0, height=5.2 if len(chosen) == 1 else 5.8)
    axes = figure.add_subplot()
    draw = draw_curve if len(chosen) == 1 else draw_map
    draw(axes, release, vary=chosen)
    write_title(figure, release, vary=chosen)
    return figure


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
    mean = release.predict(points)
    inner, outer = (_limits(release, points, new_output=new) for new in (False, True))
    lo, hi = bounds(release)
    axes.plot(grid, mean, color=CURVE, linewidth=2.2, zorder=2.5, label="prediction")
    for limits, alpha, label in (
        (outer, 0.16, "95 % of new outputs"),
        (inner, 0.42, "95 % for the curve"),
    ):
        axes.fill_between(
            grid,
            *limits,
            color=BAND,
            alpha=alpha,
            linewidth=0,
            label=label,
        )
    for end in (lo, hi):
        axes.axhline(end, color=PALE_INK, linewidth=0.9, linestyle=DASHES, zorder=1)
    lowest, highest = min(lo, float(outer[0].min())), max(hi, float(outer[1].max()))
    if release.transform is not None:
        # Long tails would press the curve to the floor.
        lowest, highest = float(outer[0].min()), float(outer[1].max())
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


def _limits(release: Release, points: Array, *, new_output: bool) -> tuple[Array, Array]:
    """Return where 95 % lie: also beyond the bounds, unless outputs were transformed."""
    if release.transform is not None:
        return release.predict_limits(points, new_output=new_output)
    mean, sd = release.predict(points, return_std=True, new_output=new_output)
    return mean - NORMAL_95 * sd, mean + NORMAL_95 * sd


def _raw_predictions(release: Release) -> list[Published]:
    return [
        release.published(number)
        for number, measurement in enumerate(release.measurements)
        if release.likelihood.linear
        and release.transform is None
        and measurement.strategy.reconstruction is not None
    ]


def _draw_raw_predictions(axes: Axes, release: Release) -> None:
    """Draw the unshrunk predictions with an sd of their noise, if they are few."""
    drawn = _raw_predictions(release)
    if not drawn:
        return
    X = np.concatenate([raw.X[:, 0] for raw in drawn])
    if len(X) > MOST_RAW_PREDICTIONS:
        return
    values = np.concatenate([raw.values for raw in drawn])
    sd = np.sqrt(np.concatenate([np.diag(raw.noise_cov) for raw in drawn]))
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
