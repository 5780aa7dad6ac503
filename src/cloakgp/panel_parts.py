"""What the panels of all pictures share: colours, axes, legends, and the marks of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cloakgp.arrays import Array
from cloakgp.columns import AnyRelease, input_names, row_count, rows
from cloakgp.extras import extra

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


def slice_points(release: AnyRelease, *, vary: Sequence[str], grids: Sequence[Array]) -> Array:
    """Return inputs that vary over grids, the others at their medians over the rows.

    Parameters
    ----------
    release : Release or LabelRelease
    vary : sequence of str
        Names of the inputs that vary.
    grids : sequence of arrays of shape (n,)
        Their values, one array each.

    Returns
    -------
    array of shape (n, D)
    """
    names = input_names(release)
    points = np.tile(np.median(rows(release), axis=0), (len(grids[0]), 1))
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


def finish(axes: Axes, release: AnyRelease, *, vary: Sequence[str]) -> None:
    """Label, tell what is held fixed, and take away what distracts."""
    names = input_names(release)
    medians = np.median(rows(release), axis=0)
    held = [
        f"{name} = {value:.4g}"
        for name, value in zip(names, medians, strict=True)
        if name not in vary
    ]
    if held:
        of_what = "rows" if len(rows(release)) == row_count(release) else "queried points"
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
