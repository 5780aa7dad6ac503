"""Pictures of what measurements cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter, LogLocator, NullFormatter, StrMethodFormatter

from benchmarks.tables import Cell

PANEL_WIDTH, PANEL_HEIGHT, LEGEND_HEIGHT = 3.4, 2.9, 0.9
LEGEND_COLUMNS = 3
MARKERS = "osD^vP*X<>"


@dataclass(frozen=True)
class Point:
    """One measurement.

    Attributes
    ----------
    x, y : float
    whole : bool
        False for a call that was given less to do than the others; drawn open.
    """

    x: float
    y: float
    whole: bool = True


Panel = Mapping[str, Sequence[Point]]


def medians(rows: Sequence[Mapping[str, Cell]], *, x: str, y: str) -> list[Point]:
    """Return the median of a column over the rows of a table that are alike in another.

    Parameters
    ----------
    rows : sequence of mapping of column to cell
        Those that lack either column are left out.
    x, y : str
        Columns.

    Examples
    --------
    >>> medians([{"n": 1, "s": 2.0}, {"n": 1, "s": 4.0}, {"n": 2}], x="n", y="s")
    [Point(x=1, y=3.0, whole=True)]
    """
    groups: dict[float, list[float]] = {}
    for row in rows:
        place, value = row.get(x), row.get(y)
        if isinstance(place, int | float) and isinstance(value, int | float):
            groups.setdefault(place, []).append(value)
    return [Point(place, float(median(values))) for place, values in groups.items()]


def draw_panels(
    grid: Sequence[Mapping[str, Panel]],
    *,
    x_label: str,
    y_labels: Sequence[str],
    path: Path,
) -> None:
    """Draw panels of lines on logarithmic axes, one row of panels for each kind of figure.

    Parameters
    ----------
    grid : sequence of mapping of title to panel
        A panel maps the name of a line to its points.
    x_label : str
    y_labels : sequence of str
        One for each row.
    path : Path
        Of the PNG file.
    """
    names = sorted({name for row in grid for panel in row.values() for name in panel})
    columns = max(len(row) for row in grid)
    legend_lines = -(-len(names) // LEGEND_COLUMNS)
    height = PANEL_HEIGHT * len(grid) + LEGEND_HEIGHT * legend_lines / 3
    figure = Figure(figsize=(max(PANEL_WIDTH * columns, 7.5), height), layout="constrained")
    axes = figure.subplots(len(grid), columns, squeeze=False, sharey="row")
    for row, y_label, line_of_axes in zip(grid, y_labels, axes, strict=True):
        line_of_axes[0].set_ylabel(y_label)
        for axis in line_of_axes[len(row) :]:
            axis.set_visible(False)
        for (title, panel), axis in zip(row.items(), line_of_axes, strict=False):
            axis.set_title(title, fontsize=10)
            axis.set_xlabel(x_label)
            _draw(axis, panel, names=names)
    handles = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        [handles[name] for name in names if name in handles],
        [name for name in names if name in handles],
        loc="outside lower center",
        ncols=LEGEND_COLUMNS,
        fontsize=8,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def _draw(axis: Axes, panel: Panel, *, names: Sequence[str]) -> None:
    colours = mpl.colormaps["tab10"].colors
    places = sorted({point.x for points in panel.values() for point in points})
    for name, points in sorted(panel.items()):
        number = names.index(name)
        ordered = sorted(points, key=lambda point: point.x)
        colour, marker = colours[number % len(colours)], MARKERS[number % len(MARKERS)]
        x, y = [point.x for point in ordered], [point.y for point in ordered]
        ours = name.startswith("cloakgp")
        axis.plot(x, y, color=colour, lw=2.2 if ours else 1.0, zorder=3 if ours else 2)
        axis.plot([], [], color=colour, marker=marker, ms=5, lw=1.5, label=name)
        for point in ordered:
            axis.plot(
                point.x,
                point.y,
                marker=marker,
                ms=5,
                color=colour,
                mfc=colour if point.whole else "white",
                zorder=4,
            )
    # Of workers there may be none.
    axis.set_xscale("log" if min(places, default=1.0) > 0 else "linear")
    axis.set_yscale("log")
    axis.set_xticks(places)
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.yaxis.set_major_locator(LogLocator(numticks=8))
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
    axis.grid(alpha=0.3)
