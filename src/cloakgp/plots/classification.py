"""Pictures of probabilities of classes: curves over one input, or maps over two.

Drawn from the public object alone: no label is drawn, and none is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.models.likelihoods.classes import class_likelihood
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
    new_figure,
    row_mark,
    slice_points,
    widened,
    write_title,
)
from cloakgp.release import Release
from cloakgp.release.posterior.intervals import probability_limits
from cloakgp.report.columns import class_names, input_names, known_inputs
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

with extra("plots"):
    from matplotlib.axes import Axes
    from matplotlib.contour import QuadContourSet
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

PRIVACY_BAND = "#e3a04f"
# Pale where both are as probable: strong colours are sure predictions.
SURFACE_COLOURS = "RdBu_r"
SURFACE_POINTS = 48
LEVELS = np.linspace(0.0, 1.0, 21)
MARKED_LEVELS = (0.25, 0.5, 0.75)
OPEN_ANYWAY, OPEN_BY_NOISE = "....", "////"
HATCH_COLOUR = "#5b6670"
# Panels beside each other, one per class.
MOST_ACROSS = 3
LEGEND_ENTRIES_PER_INCH = 0.42


def plot_classes(release: Release, *, vary: Sequence[str] = (), only: str | None = None) -> Figure:
    """Draw the probabilities of classes: curves over one input, or maps over two.

    Parameters
    ----------
    release : Release
    vary : sequence of str
        One or two inputs to draw over; the others are held at their medians. All of them if not
        given.
    only : str, optional
        The class to draw. If not given: of two the second, for which the latent function is high;
        of more every one, in a panel of its own.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If an input or the class is unknown, or there are more than two inputs and none were chosen.

    Examples
    --------
    >>> from cloakgp import DPGPClassifier
    >>> model = DPGPClassifier(classes=["ill", "well"], epsilon=1.0, delta=1e-3)
    >>> figure = plot_classes(model.fit([[0.0], [1.0], [2.0]], ["ill", "well", "well"]).release_)
    >>> figure.axes[0].get_ylabel()
    'probability of y = well'
    """
    chosen = chosen_inputs(release, vary=vary)
    shown = _shown(release, only=only)
    across = min(len(shown), MOST_ACROSS)
    down = -(-len(shown) // across)
    wide = 8.0 if len(shown) == 1 else 4.2 * across
    tall = (5.2 if len(chosen) == 1 else 5.8) if len(shown) == 1 else 3.7 * down + 0.9
    figure = new_figure(width=wide, height=tall)
    panels = [
        figure.add_subplot(down, across, position + 1, label=str(position))
        for position in range(len(shown))
    ]
    if len(chosen) == 1:
        for axes, number in zip(panels, shown, strict=True):
            draw_probability(axes, release, vary=chosen, shown=number)
        handles = curve_legend(panels[0])
    else:
        _draw_surfaces(figure, panels, release, vary=chosen, shown=shown)
        handles = surface_legend()
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=min(len(handles), int(LEGEND_ENTRIES_PER_INCH * wide)),
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        columnspacing=1.4,
    )
    write_title(figure, release, vary=chosen)
    return figure


def _draw_surfaces(
    figure: Figure,
    panels: Sequence[Axes],
    release: Release,
    *,
    vary: Sequence[str],
    shown: Sequence[int],
) -> None:
    """Draw a map per class, with one colour bar for all."""
    for axes, number in zip(panels, shown, strict=True):
        surface = draw_surface(axes, release, vary=vary, shown=number)
        if len(panels) > 1:
            named = f"{release.output_name} = {class_names(release)[number]}"
            # Below it, what is held fixed.
            axes.set_title("\n".join(filter(None, (named, axes.get_title()))), fontsize=10, **TEXT)
    bar = figure.colorbar(surface, ax=list(panels), pad=0.02, aspect=28)
    label = probability_of(release, shown=shown[0]) if len(shown) == 1 else "probability"
    bar.set_label(label, **TEXT)
    bar.set_ticks([0.0, 0.25, 0.5, 0.75, 1.0])
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=INK, length=3)


def _shown(release: Release, *, only: str | None) -> tuple[int, ...]:
    names = class_names(release)
    if only is not None:
        if only not in names:
            raise ValueError(
                f"the release has no class {only}; its classes are: {', '.join(names)}"
            )
        return (names.index(only),)
    return (1,) if len(names) == 2 else tuple(range(len(names)))


def draw_probability(axes: Axes, release: Release, *, vary: Sequence[str], shown: int) -> None:
    """Draw the probability of one class over one input, its 95 % band, and privacy's part of it.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    release : Release
    vary : sequence of one str
        The input on the horizontal axis.
    shown : int
        Which class, in the order of ``release.classes``.
    """
    (name,) = vary
    column = known_inputs(release)[:, input_names(release).index(name)]
    grid = np.linspace(*widened(column, share=0.02), CURVE_POINTS)
    points = slice_points(release, vary=vary, grids=(grid,))
    probabilities = release.predict_proba(points)
    lower, upper = _limits(release, points, shown=shown, privacy_noise=True)
    inner = _limits(release, points, shown=shown, privacy_noise=False)
    inner_lower, inner_upper = (np.clip(edge, lower, upper) for edge in inner)
    axes.plot(
        grid,
        probabilities[:, shown],
        color=CURVE,
        linewidth=2.4,
        zorder=2.5,
        label="predicted probability",
    )
    for below, above, colour, label in (
        (inner_lower, inner_upper, BAND, "95 % without the privacy noise"),
        (lower, inner_lower, PRIVACY_BAND, "what the privacy noise adds"),
        (inner_upper, upper, PRIVACY_BAND, ""),
    ):
        axes.fill_between(grid, below, above, color=colour, alpha=0.42, linewidth=0, label=label)
    rate = class_likelihood(release.likelihood).prior_rates(release.prior, known_inputs(release))[
        shown
    ]
    axes.axhline(rate, color=PALE_INK, linewidth=0.9, linestyle=DASHES, zorder=1)
    draw_rug(axes, column)
    axes.set_xlim(grid[0], grid[-1])
    # Below 0, room for the marks of the rows.
    axes.set_ylim(-0.07, 1.02)
    finish(axes, release, vary=vary)
    axes.set_ylabel(probability_of(release, shown=shown), **TEXT)


def draw_surface(
    axes: Axes, release: Release, *, vary: Sequence[str], shown: int
) -> QuadContourSet:
    """Draw the probability of one class over two inputs, and where 95 % limits leave it open.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    release : Release
    vary : sequence of two str
        The inputs on the horizontal and vertical axes.
    shown : int
        Which class, in the order of ``release.classes``.

    Returns
    -------
    matplotlib.contour.QuadContourSet
        What a colour bar belongs to.
    """
    X = known_inputs(release)[:, [input_names(release).index(name) for name in vary]]
    sides = [np.linspace(*widened(column, share=0.04), SURFACE_POINTS) for column in X.T]
    across, up = np.meshgrid(*sides)
    points = slice_points(release, vary=vary, grids=(across.ravel(), up.ravel()))
    probability = release.predict_proba(points)[:, shown].reshape(across.shape)
    surface = axes.contourf(across, up, probability, levels=LEVELS, cmap=SURFACE_COLOURS)
    axes.contour(
        across, up, probability, levels=MARKED_LEVELS, colors=INK, linewidths=(0.8, 1.6, 0.8)
    )
    open_anyway = _includes_half(release, points, shown=shown, privacy_noise=False)
    open_with_noise = _includes_half(release, points, shown=shown, privacy_noise=True)
    for region, hatch in (
        (open_anyway, OPEN_ANYWAY),
        (open_with_noise & ~open_anyway, OPEN_BY_NOISE),
    ):
        if region.any():
            hatched = axes.contourf(
                across,
                up,
                region.reshape(across.shape).astype(np.float64),
                levels=(0.5, 1.5),
                colors="none",
                hatches=[hatch],
            )
            hatched.set_edgecolor(HATCH_COLOUR)
            hatched.set_linewidth(0.0)
    draw_row_marks(axes, X)
    finish(axes, release, vary=vary)
    axes.set_ylabel(vary[1], **TEXT)
    return surface


def probability_of(release: Release, *, shown: int) -> str:
    """Return what to call the probability of a class on an axis."""
    return f"probability of {release.output_name} = {class_names(release)[shown]}"


def curve_legend(axes: Axes) -> list[Any]:
    """Return the legend's entries for a panel of `draw_probability`."""
    handles, _ = axes.get_legend_handles_labels()
    rate = Line2D(
        [], [], color=PALE_INK, linewidth=0.9, linestyle=DASHES, label="before any answer"
    )
    marks = Line2D([], [], color=INK, marker="|", linestyle="none", label="rows (inputs only)")
    return [*handles, rate, marks]


def surface_legend() -> list[Any]:
    """Return the legend's entries for panels of `draw_surface`."""
    regions = [
        Patch(facecolor="none", edgecolor=HATCH_COLOUR, hatch=hatch, linewidth=0.0, label=label)
        for hatch, label in (
            (OPEN_ANYWAY, "open in any case: 95 % limits include 0.5"),
            (OPEN_BY_NOISE, "open because of the privacy noise"),
        )
    ]
    return [row_mark(), *regions]


def _limits(
    release: Release, points: Array, *, shown: int, privacy_noise: bool
) -> tuple[Array, Array]:
    lower, upper = probability_limits(release, points, privacy_noise=privacy_noise)
    return lower[:, shown], upper[:, shown]


def _includes_half(
    release: Release, points: Array, *, shown: int, privacy_noise: bool
) -> NDArray[np.bool_]:
    lower, upper = _limits(release, points, shown=shown, privacy_noise=privacy_noise)
    return np.asarray((lower < 0.5) & (upper > 0.5))
