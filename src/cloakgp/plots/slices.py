"""Slices: rows along one or two public inputs, with typical values of the others.

Inputs are those of the table: categories are categories here, and dates are dates.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from cloakgp.plots.display import Style
from cloakgp.plots.figures import draw_row_marks, tidy
from cloakgp.plots.themes import Theme
from cloakgp.release import OneOutputRelease
from cloakgp.release.points import UnseenLevelWarning
from cloakgp.report.controls import Control, controls_of, raw_rows
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra
from cloakgp.utils.formatting import printable

with extra("plots"):
    from matplotlib.axes import Axes
    from matplotlib.contour import ContourSet
    from matplotlib.ticker import MaxNLocator

if TYPE_CHECKING:
    import pandas as pd

Found = TypeVar("Found")

CURVE_POINTS, MAP_SIDE = 200, 72
# Of columns, the first; of their levels, the first; of a name, the first letters.
MOST_PANELS, MOST_LEVELS, MOST_LETTERS = 6, 10, 28
# Letters of all levels from which on they are written aslant, and of what is held fixed.
MANY_LETTERS, MOST_HELD_LETTERS, LETTERS_OF_A_LINE = 24, 90, 64
DAYS_OF_A_WEEK = 7
DATE_TICKS = 4
MINUTES_OF_A_DAY = 1440
# Days from which on the day of the month does not matter.
LONG = 200
# On a map, a place is near a row within this share of the map's sides, or within so many times the
# distance that rows typically have from the next one.
NEAR, NEAR_SPACINGS, JUST_BEYOND = 0.06, 1.5, 1.4


@dataclass(frozen=True, eq=False)
class Slice:
    """Rows along one public input, or over two.

    Attributes
    ----------
    varied : tuple of Control
    held : str
        At what the others are held, in words; empty if there are none.
    grids : tuple of arrays of shape (n,)
        Values of the varied ones.
    rows : table or array of shape (n, D)
        As `Release.predict` takes them.
    away : array of shape (n,)
        How far the next row is, or the next query point; 1 where a place
        stops being near it.
    """

    varied: tuple[Control, ...]
    held: str
    grids: tuple[Array, ...]
    rows: Any
    away: Array

    @property
    def is_map(self) -> bool:
        """Whether it goes over two inputs."""
        return len(self.varied) == 2

    @property
    def near(self) -> NDArray[np.bool_]:
        """Whether a row, or a query point, is near, shape (n,)."""
        return np.asarray(self.away <= 1.0)

    def squared(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of a map as a matrix."""
        side = round(len(values) ** 0.5)
        return values.reshape(side, side)

    def frame(self, **numbers: Array) -> pd.DataFrame:
        """Return numbers beside the inputs that they belong to.

        Parameters
        ----------
        **numbers : arrays of shape (n,)
        """
        with extra("tables"):
            import pandas as pd

        inputs = {
            control.name: [control.in_words(one) for one in grid]
            if control.kind == "level"
            else grid
            for control, grid in zip(self.varied, self.grids, strict=True)
        }
        return pd.DataFrame({**inputs, **numbers, **({"near": self.near} if self.is_map else {})})


def join_frames(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the numbers of several slices, one below the other.

    Parameters
    ----------
    frames : sequence of pandas.DataFrame
    """
    with extra("tables"):
        import pandas as pd

    return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)


def slices_of(
    release: OneOutputRelease, *, vary: Sequence[str] = (), apart: bool = False
) -> tuple[Slice, ...]:
    """Return the slices that a picture of a release shows.

    One input is a curve. Two numbers are a map. More, or levels among two, are a curve each.

    Parameters
    ----------
    release : Release
    vary : sequence of str
        Inputs to go over; if not given, all of one or two, and of more the first six.
    apart : bool
        A curve each of two numbers, too.

    Raises
    ------
    TypeError
        If it is a release of another kind.
    ValueError
        If an input is unknown or named twice, or inputs are boxes.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> [(each.varied[0].name, len(each.rows)) for each in slices_of(model.release_)]
    [('x1', 200)]
    """
    if not isinstance(release, OneOutputRelease):
        raise TypeError(f"there is no picture of a {type(release).__name__}")
    if release.has_box_inputs:
        raise ValueError("there is no picture of a release whose inputs are boxes")
    controls = controls_of(release)
    named = {each.name: each for each in controls}
    unknown = [name for name in vary if name not in named]
    if unknown:
        raise ValueError(
            f"the release has no input {', '.join(unknown)}; its inputs are: {', '.join(named)}"
        )
    if len(set(vary)) < len(vary):
        raise ValueError(f"an input is named twice: {', '.join(vary)}")
    chosen = tuple(named[name] for name in vary) or controls
    if len(chosen) == 2 and not apart and all(each.kind == "number" for each in chosen):
        return (_map(release, controls, chosen),)
    shown = chosen if vary else chosen[:MOST_PANELS]
    return tuple(_curve(release, controls, each) for each in shown)


def predicting(predict: Callable[[], Found]) -> Found:
    """Return predictions, without a warning that a level is "any other"."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenLevelWarning)
        return predict()


def subject_of(release: OneOutputRelease, slices: Sequence[Slice]) -> str:
    """Return the subject of a picture, in words."""
    varied = [shortened(each.label) for piece in slices for each in piece.varied]
    count, output = len(controls_of(release)), shortened(release.output_name)
    if len(varied) > 2:
        which = f"each of {len(varied)} inputs"
        return f"{output} over {which}" + f" of {count}" * (len(varied) < count)
    return f"{output} from {' and '.join(varied)}"


def _curve(release: OneOutputRelease, controls: tuple[Control, ...], control: Control) -> Slice:
    grid = _grid(control)
    return Slice(
        varied=(control,),
        held=_held(release, controls, (control,)),
        grids=(grid,),
        rows=raw_rows(release, controls, {control.name: grid}, count=len(grid)),
        away=np.zeros(len(grid)),
    )


def _map(
    release: OneOutputRelease, controls: tuple[Control, ...], chosen: tuple[Control, ...]
) -> Slice:
    sides = [np.linspace(*_widened(each), MAP_SIDE) for each in chosen]
    across, up = (side.ravel() for side in np.meshgrid(*sides))
    values = {chosen[0].name: across, chosen[1].name: up}
    return Slice(
        varied=chosen,
        held=_held(release, controls, chosen),
        grids=(across, up),
        rows=raw_rows(release, controls, values, count=len(across)),
        away=_away(chosen, np.column_stack([across, up])),
    )


def _away(chosen: Sequence[Control], points: Array) -> Array:
    """Return the distance of the next row from points of a map, in units of nearness."""
    ends = np.array([_widened(each) for each in chosen])
    width = ends[:, 1] - ends[:, 0]
    known = np.unique(np.column_stack([each.known for each in chosen]) / width, axis=0)
    if not len(known):
        # Where private rows lie is not known: all of the declared range was asked.
        return np.zeros(len(points))
    tree = cKDTree(known)
    spacing = np.median(np.asarray(tree.query(known, k=2)[0])[:, 1]) if len(known) > 1 else 0.0
    reach = max(NEAR, NEAR_SPACINGS * float(spacing))
    return np.asarray(tree.query(points / width)[0]) / reach


def _widened(control: Control) -> tuple[float, float]:
    room = 0.03 * (control.hi - control.lo) or 0.5
    return control.lo - room, control.hi + room


def _held(release: OneOutputRelease, controls: Iterable[Control], varied: Sequence[Control]) -> str:
    others = [each for each in controls if each not in varied]
    told: list[str] = []
    for each in others:
        text = f"{shortened(each.label)} = {shortened(each.in_words(each.typical))}"
        if sum(map(len, told)) + len(text) > MOST_HELD_LETTERS:
            told.append(f"and {len(others) - len(told)} others")
            break
        told.append(text)
    if not told:
        return ""
    where = release.where_typical
    if any(each.kind != "number" for each in others):
        # Levels have no median.
        where = where.replace("median", "middle", 1)
    return f"at the {where}: {', '.join(told)}"


def _grid(control: Control) -> Array:
    """Return values along an input; of dates over many weeks always the same day of the week."""
    if control.kind == "level":
        return np.arange(min(len(control.levels), MOST_LEVELS), dtype=np.float64)
    lo, hi = (control.lo, control.hi) if control.hi > control.lo else _widened(control)
    step = (hi - lo) / (CURVE_POINTS - 1)
    if control.kind != "date" or step < 1:
        return np.linspace(lo, hi, CURVE_POINTS)
    step = DAYS_OF_A_WEEK * np.ceil(step / DAYS_OF_A_WEEK)
    start = lo + (control.typical - lo) % step
    return np.arange(start, hi + 1e-9, step)


def shortened(name: str) -> str:
    """Return the first letters of a name, as text that can be drawn.

    Examples
    --------
    >>> shortened("a name that goes on and on and on")
    'a name that goes on and on…'
    """
    shown = printable(name)
    return shown if len(shown) <= MOST_LETTERS else shown[: MOST_LETTERS - 1].rstrip() + "…"


def axis_of(control: Control) -> str:
    """Return the label of an axis: the title of an input, and its unit."""
    unit = f" ({shortened(control.unit)})" if control.unit else ""
    return f"{shortened(control.label)}{unit}"


def label_inputs(axes: Axes, piece: Slice, *, theme: Theme) -> None:
    """Label the axes with varying inputs, and the title with the values of the others.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    piece : Slice
    theme : Theme
    """
    first = piece.varied[0]
    axes.set_xlabel(axis_of(first), **theme.words)
    if piece.is_map:
        axes.set_ylabel(axis_of(piece.varied[1]), **theme.words)
    if first.kind == "level":
        words = [shortened(level) for level in first.levels[: len(piece.grids[0])]]
        if len(words) < len(first.levels):
            first_ones = f"the first {len(words)} of {len(first.levels)}"
            axes.set_xlabel(f"{axis_of(first)}: {first_ones}", **theme.words)
        axes.set_xticks(piece.grids[0], words)
        for label in axes.get_xticklabels():
            label.set_parse_math(False)
        if max(map(len, words)) * len(words) > MANY_LETTERS:
            axes.tick_params(axis="x", rotation=35)
    elif first.kind == "date":
        days = np.linspace(first.lo, first.hi, DATE_TICKS)
        axes.set_xticks(days, [_date_words(first, day) for day in days])


def write_held(axes: Axes, piece: Slice, *, theme: Theme) -> None:
    """Write the values of the other inputs above axes."""
    if piece.held:
        held = "\n".join(
            filter(None, (axes.get_title(), textwrap.fill(piece.held, LETTERS_OF_A_LINE)))
        )
        axes.set_title(held, fontsize=9.5, **theme.words)


def mark_typical(axes: Axes, piece: Slice, *, theme: Theme) -> None:
    """Mark the typical value of an input, if others vary."""
    if not piece.held:
        return
    axes.axvline(
        piece.varied[0].typical,
        color=theme.pale,
        linewidth=0.9,
        linestyle=":",
        zorder=0,
        label="held there in other panels",
    )


def fill_map(axes: Axes, piece: Slice, values: Array, style: Mapping[str, Any]) -> ContourSet:
    """Colour a map where rows are near, and leave out the rest.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    piece : Slice
        Over two inputs.
    values : array of shape (n,)
    style : mapping
        For ``contourf``; of a number of levels, these are spread over what is shown.
    """
    across, up = map(piece.squared, piece.grids)
    chosen = dict(style)
    if isinstance(chosen.get("levels"), int):
        # A little more than what is seen, for the edge goes between the points of the grid.
        seen = values[piece.away <= JUST_BEYOND]
        chosen["levels"] = MaxNLocator(chosen["levels"]).tick_values(seen.min(), seen.max())
    filled = axes.contourf(across, up, piece.squared(values), **chosen)
    inside = axes.contourf(across, up, piece.squared(piece.away), levels=(-1.0, 1.0), alpha=0.0)
    filled.set_clip_path(inside.get_paths()[0], axes.transData)
    inside.remove()
    return filled


def finish_map(axes: Axes, piece: Slice, *, theme: Theme, styles: Mapping[str, Style]) -> None:
    """Write what varies along the axes of a map, and mark the rows.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    piece : Slice
        Over two inputs.
    theme : Theme
    styles : mapping
        ``rows_kw``.
    """
    known = np.column_stack([each.known for each in piece.varied])
    if len(known):
        draw_row_marks(axes, known, **dict(styles.get("rows_kw") or {}))
    label_inputs(axes, piece, theme=theme)
    write_held(axes, piece, theme=theme)
    tidy(axes, theme=theme)


def _date_words(control: Control, day: float) -> str:
    """Return a date to the needed precision: year and month, month and day, or day and hour."""
    text = str(np.datetime64(round(day * MINUTES_OF_A_DAY), "m"))
    span = control.hi - control.lo
    return text[:7] if span >= LONG else (text[5:10] if span >= DATE_TICKS else text[8:16])
