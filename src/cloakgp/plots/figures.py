"""Figures, axes, legends and marks that pictures of all releases share.

Figures are made without pyplot, so nothing is kept open and no window appears. Pictures are drawn
from the public object alone: no output is drawn, and none is there.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cloakgp.release import Release
from cloakgp.report.columns import input_names, keeps_rows, known_inputs
from cloakgp.report.describe import headline
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

with extra("plots"):
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.lines import Line2D

SUFFIXES = (".png", ".pdf", ".svg")
PIXELS_PER_INCH = 160
# Characters of a title after which the guarantee goes on a line of its own.
LONG_SUBJECT = 30
INK, PALE_INK, WARNING = "#22303c", "#7b8794", "#b3261e"
# Column names may hold dollar signs, which matplotlib would take for mathematics.
TEXT: dict[str, Any] = {"color": INK, "parse_math": False}
CURVE, BAND = "#1f6f8b", "#5aa9c4"
DASHES = (0, (5, 4))
CURVE_POINTS = 400
# From here on, rows are marked smaller.
MANY_ROWS = 400


def new_figure(*, width: float, height: float) -> Figure:
    """Return an empty figure with room around it, of a size in inches."""
    layout = ConstrainedLayoutEngine(h_pad=0.12, w_pad=0.12)
    return Figure(figsize=(width, height), layout=layout)


def write_title(figure: Figure, release: Release, *, vary: Sequence[str]) -> None:
    """Say above a figure what it shows, and what is guaranteed.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    release : Release
    vary : sequence of str
        The inputs drawn over.
    """
    subject = f"{release.output_name} from {' and '.join(vary)}"
    guarantee = headline(release)
    figure.suptitle(
        f"{subject}, {guarantee}" if len(subject) < LONG_SUBJECT else f"{subject}\n{guarantee}",
        color=WARNING if release.insecure else INK,
        parse_math=False,
        fontsize=13,
        fontweight="bold",
    )


def chosen_inputs(release: Release, *, vary: Sequence[str]) -> tuple[str, ...]:
    """Return the one or two inputs to draw over, or say that they must be chosen.

    Parameters
    ----------
    release : Release
    vary : sequence of str
        Empty for all.
    """
    names = input_names(release)
    chosen = tuple(vary) or names
    unknown = [name for name in chosen if name not in names]
    if unknown:
        raise ValueError(
            f"the release has no input {', '.join(unknown)}; its inputs are: {', '.join(names)}"
        )
    if len(chosen) > 2 or len(set(chosen)) < len(chosen):
        raise ValueError(
            f"a picture has room for one or two inputs of {', '.join(names)}: choose with --vary, "
            f"as in --vary {names[0]} or --vary {','.join(names[:2])} "
            "(the others are then held at their medians)"
        )
    return chosen


def figure_bytes(figure: Figure, *, suffix: str) -> bytes:
    """Return the file of a picture.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    suffix : str
        .png, .pdf or .svg.
    """
    content = io.BytesIO()
    figure.savefig(content, format=suffix.removeprefix("."), dpi=PIXELS_PER_INCH, facecolor="white")
    return content.getvalue()


def picture_suffix(path: str | Path) -> str:
    """Return the suffix that tells in which format to draw, or say which ones do.

    Examples
    --------
    >>> picture_suffix("heights.PNG")
    '.png'
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{path}: the name of a picture must end in {', '.join(SUFFIXES)}")
    return suffix


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
