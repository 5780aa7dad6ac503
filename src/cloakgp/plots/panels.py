"""Partial dependence on each public column: predictions over one, the others at what is typical.

Columns are those of the table: categories are categories here, and dates are dates.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from cloakgp.plots.figures import BAND, CURVE, INK, PALE_INK, TEXT, new_figure
from cloakgp.release import Release
from cloakgp.release.predictions import UnseenLevelWarning
from cloakgp.report.columns import class_names, has_classes
from cloakgp.report.controls import Control, controls_of, raw_rows
from cloakgp.report.facts import printable
from cloakgp.report.outputs import bounds
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

with extra("plots"):
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 80
# Of columns, the first; of their levels, the first; of a name, the first letters.
MOST_PANELS, MOST_LEVELS, MOST_LETTERS = 6, 10, 24
DAYS_OF_A_WEEK = 7
DATE_TICKS = 4
MINUTES_OF_A_DAY = 1440
# Days from which on the day of the month does not matter.
LONG = 200
# Of classes in one panel.
SHADES = ("#1f6f8b", "#d1772e", "#7a5195", "#58913f", "#b3261e", "#7b8794")


def plot_panels(release: Release) -> tuple[Figure, ...]:
    """Draw predictions over each public column of a table, the others held at what is typical.

    Parameters
    ----------
    release : Release

    Returns
    -------
    tuple of matplotlib.figure.Figure
        One for each of the first six columns.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> len(plot_panels(model.release_))
    1
    """
    controls = controls_of(release)
    named = "probability" if has_classes(release) else shortened(release.output_name)
    figures = []
    for control in controls[:MOST_PANELS]:
        figure = new_figure(width=3.6, height=2.7)
        axes = figure.add_subplot()
        _draw_panel(axes, release, controls, control)
        axes.set_ylabel(named, **TEXT)
        if has_classes(release):
            legend = axes.legend(frameon=False, fontsize=8, labelcolor=INK)
            for text in legend.get_texts():
                text.set_parse_math(False)
        figures.append(figure)
    # On one scale, so that panels can be compared.
    ends = np.array([figure.axes[0].get_ylim() for figure in figures])
    for figure in figures:
        figure.axes[0].set_ylim(ends[:, 0].min(), ends[:, 1].max())
    return tuple(figures)


def shortened(name: str) -> str:
    """Return the first letters of a name, as text that can be drawn.

    Examples
    --------
    >>> shortened("a name that goes on and on and on")
    'a name that goes on and…'
    """
    shown = printable(name)
    return shown if len(shown) <= MOST_LETTERS else shown[: MOST_LETTERS - 1].rstrip() + "…"


def _draw_panel(
    axes: Axes, release: Release, controls: tuple[Control, ...], control: Control
) -> None:
    if control.kind == "level":
        grid = np.arange(min(len(control.levels), MOST_LEVELS), dtype=np.float64)
        axes.set_xticks(grid, [shortened(level) for level in control.levels[: len(grid)]])
        for label in axes.get_xticklabels():
            label.set_parse_math(False)
        if max(map(len, control.levels[: len(grid)])) * len(grid) > 24:
            axes.tick_params(axis="x", rotation=35)
    else:
        grid = _grid(control)
    if control.kind == "date":
        days = np.linspace(control.lo, control.hi, DATE_TICKS)
        axes.set_xticks(days, [_date_words(control, day) for day in days])
    rows = raw_rows(release, controls, {control.name: grid}, count=len(grid))
    with warnings.catch_warnings():
        # "Any other" is such a level.
        warnings.simplefilter("ignore", UnseenLevelWarning)
        (_draw_shares if has_classes(release) else _draw_numbers)(
            axes, release, rows, grid, control
        )
    axes.axvline(control.typical, color=PALE_INK, linewidth=0.8, linestyle=":", zorder=0)
    unit = f" ({control.unit})" if control.unit else ""
    axes.set_xlabel(f"{shortened(control.label)}{unit}", **TEXT)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(PALE_INK)
    axes.tick_params(colors=INK, length=3, labelsize=8)


def _date_words(control: Control, day: float) -> str:
    """Return a date as far as it matters: year and month, month and day, or day and hour."""
    text = str(np.datetime64(round(day * MINUTES_OF_A_DAY), "m"))
    span = control.hi - control.lo
    return text[:7] if span >= LONG else (text[5:10] if span >= DATE_TICKS else text[8:16])


def _grid(control: Control) -> Array:
    """Return values along an input; of dates over many weeks always the same day of the week."""
    step = (control.hi - control.lo) / (POINTS - 1)
    if control.kind != "date" or step < 1:
        return np.linspace(control.lo, control.hi, POINTS)
    step = DAYS_OF_A_WEEK * np.ceil(step / DAYS_OF_A_WEEK)
    start = control.lo + (control.typical - control.lo) % step
    return np.arange(start, control.hi + 1e-9, step)


def _draw_numbers(
    axes: Axes, release: Release, rows: Sequence[object], grid: Array, control: Control
) -> None:
    for new_output, alpha in ((True, 0.16), (False, 0.42)):
        low, high = release.predict_limits(rows, new_output=new_output)
        if control.kind == "level":
            axes.bar(grid, high - low, bottom=low, width=0.5, color=BAND, alpha=alpha, linewidth=0)
        else:
            axes.fill_between(grid, low, high, color=BAND, alpha=alpha, linewidth=0)
    mean = np.clip(release.predict(rows), *bounds(release))
    mark = {"marker": "o", "linestyle": "none"} if control.kind == "level" else {"linewidth": 2.0}
    axes.plot(grid, mean, color=CURVE, **mark)


def _draw_shares(
    axes: Axes, release: Release, rows: Sequence[object], grid: Array, control: Control
) -> None:
    shares = release.predict_proba(rows)
    mark = {"marker": "o", "linestyle": "none"} if control.kind == "level" else {"linewidth": 2.0}
    names = class_names(release)
    for number, (name, share) in enumerate(zip(names, shares.T, strict=True)):
        if len(names) == 2 and number == 0:
            continue
        colour = SHADES[number % len(SHADES)]
        axes.plot(grid, share, color=colour, label=shortened(name), **mark)
    axes.set_ylim(-0.03, 1.03)
