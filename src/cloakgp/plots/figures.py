"""Figures, axes, legends and marks that pictures of all objects share.

Pictures are drawn from the public object alone: no output is drawn, and none is there.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cloakgp.plots.themes import Theme, theme_of
from cloakgp.release import OneOutputRelease
from cloakgp.report.describe import headline
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

with extra("plots"):
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.lines import Line2D

SUFFIXES = (".png", ".pdf", ".svg")
PIXELS_PER_INCH = 160
# Characters of a title after which the guarantee goes on a line of its own.
LONG_SUBJECT = 30
DASHES = (0, (5, 4))
# From here on, rows are marked smaller.
MANY_ROWS = 400
# Entries of a legend beside each other.
LEGEND_ENTRIES_PER_INCH, ENTRIES_UNDER_AXES = 0.42, 3
# Of lines in a legend, in letters: where curves are told apart by their dashes, these must show, on
# either side of a mark, too. Lines that are thinner than a curve are told apart without.
LINE_LENGTH, DASHED_LENGTH, CURVE_WIDTH = 2.0, 5.5, 1.5


def new_figure(*, width: float, height: float) -> Figure:
    """Return an empty figure with room around it, of a size in inches, that no window shows."""
    layout = ConstrainedLayoutEngine(h_pad=0.12, w_pad=0.12)
    return Figure(figsize=(width, height), layout=layout)


def title_of(release: OneOutputRelease, subject: str) -> str:
    """Return the title of a picture: its subject, and the guarantee.

    Parameters
    ----------
    release : Release
    subject : str
    """
    guarantee = headline(release)
    return f"{subject}, {guarantee}" if len(subject) < LONG_SUBJECT else f"{subject}\n{guarantee}"


def write_title(figure: Figure | SubFigure, title: str, *, insecure: bool = False) -> None:
    """Write a title above a figure.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    title : str
    insecure : bool
        Whether it is a warning.
    """
    theme = theme_of(figure)
    figure.suptitle(
        title,
        color=theme.warning if insecure else theme.ink,
        parse_math=False,
        fontsize=13,
        fontweight="bold",
    )


def figure_bytes(figure: Figure, *, suffix: str) -> bytes:
    """Return the file of a picture.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    suffix : str
        .png, .pdf or .svg.
    """
    content = io.BytesIO()
    figure.savefig(content, format=suffix.removeprefix("."), dpi=PIXELS_PER_INCH)
    return content.getvalue()


def picture_suffix(path: str | Path) -> str:
    """Return the suffix of a picture's format, or raise an error that lists all.

    Examples
    --------
    >>> picture_suffix("heights.PNG")
    '.png'
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{path}: the name of a picture must end in {', '.join(SUFFIXES)}")
    return suffix


def draw_row_marks(axes: Axes, X: Array, **style: Any) -> None:
    """Mark the rows' inputs on a map: outputs are private, and not in a release.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    X : array of shape (N, 2)
    **style
        For `matplotlib.axes.Axes.scatter`.
    """
    crowding = min(1.0, (MANY_ROWS / len(X)) ** 0.5)
    chosen = {
        "s": 9 * crowding,
        "facecolor": "white",
        "edgecolor": "#22303c",
        "linewidth": 0.6 * crowding,
        "alpha": 0.75,
        "zorder": 2.2,
    }
    axes.scatter(X[:, 0], X[:, 1], **(chosen | style))


def row_mark(label: str) -> Line2D:
    """Return the legend's entry for the marks on a map."""
    return Line2D(
        [],
        [],
        marker="o",
        linestyle="none",
        markersize=3.5,
        markerfacecolor="white",
        color="#22303c",
        label=label,
    )


def draw_rug(axes: Axes, column: Array, *, theme: Theme, **style: Any) -> None:
    """Mark the rows' inputs along the lower edge: outputs are private, and not in a release.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    column : array of shape (N,)
    theme : Theme
    **style
        For `matplotlib.axes.Axes.plot`.
    """
    if not len(column):
        return
    chosen: dict[str, Any] = {
        "marker": "|",
        "markersize": 9,
        "markeredgewidth": 0.8,
        "linestyle": "none",
        "color": theme.ink,
        "alpha": max(0.12, min(0.7, 60 / len(column))),
        "zorder": 3,
    }
    heights = np.full(len(column), 0.022)
    axes.plot(column, heights, transform=axes.get_xaxis_transform(), **(chosen | style))


def rug_mark(label: str, *, theme: Theme) -> Line2D:
    """Return the legend's entry for the marks along the lower edge."""
    return Line2D([], [], color=theme.ink, marker="|", linestyle="none", label=label)


def draw_band(axes: Axes, grid: Array, ends: tuple[Array, Array], **style: Any) -> None:
    """Draw the band between two curves, or between two values at each of some levels.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    grid : array of shape (n,)
        Of numbers a curve is drawn over; or of levels, if ``width``, that of a bar, is given.
    ends : tuple of two arrays of shape (n,)
        Lower and upper.
    **style
        For `matplotlib.axes.Axes.fill_between`, or ``bar``.
    """
    lower, upper = ends
    if "width" in style:
        for bar in axes.bar(grid, upper - lower, bottom=lower, **style):
            # Else the lowest bar would stand on the frame.
            bar.sticky_edges.y.clear()
    else:
        axes.fill_between(grid, lower, upper, **style)


def add_colour_bar(
    panels: Sequence[Axes], drawn: ScalarMappable, *, label: str, theme: Theme
) -> Colorbar:
    """Put the scale of a map's colours beside its panels, and return it.

    Parameters
    ----------
    panels : sequence of matplotlib.axes.Axes
    drawn : matplotlib.cm.ScalarMappable
        What has the colours.
    label : str
    theme : Theme
    """
    bar = panels[0].figure.colorbar(drawn, ax=list(panels), pad=0.02, aspect=28)
    bar.set_label(label, **theme.words)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=theme.ink, length=3)
    return bar


def share_limits(panels: Sequence[Axes]) -> None:
    """Bring panels to one scale, so that they can be compared."""
    lows, highs = zip(*(axes.get_ylim() for axes in panels), strict=True)
    for axes in panels:
        axes.set_ylim(min(lows), max(highs))


def tidy(axes: Axes, *, theme: Theme) -> None:
    """Remove distracting frames and ticks."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(theme.pale)
    axes.tick_params(colors=theme.ink, length=3)


def add_legend(
    figure: Figure | SubFigure, axes: Axes | None, handles: Sequence[Any], *, theme: Theme
) -> None:
    """Put a legend below, where it covers nothing: of a figure, or of axes among others.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    axes : matplotlib.axes.Axes, optional
        Below which it goes; below everything if not given.
    handles : sequence of artists
    theme : Theme
    """
    if not handles:
        return
    wide = figure.bbox.width / figure.get_dpi()
    across = int(LEGEND_ENTRIES_PER_INCH * wide) if axes is None else ENTRIES_UNDER_AXES
    style: dict[str, Any] = {
        "handles": list(handles),
        "ncols": max(1, min(len(handles), across)),
        "frameon": False,
        "fontsize": 9,
        "labelcolor": theme.ink,
        "columnspacing": 1.4,
        "handlelength": DASHED_LENGTH if any(map(_is_dashed_curve, handles)) else LINE_LENGTH,
    }
    if axes is None:
        legend = figure.legend(loc="outside lower center", **style)
    else:
        legend = axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), **style)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _is_dashed_curve(handle: Any) -> bool:
    return (
        isinstance(handle, Line2D) and handle.is_dashed() and handle.get_linewidth() > CURVE_WIDTH
    )
