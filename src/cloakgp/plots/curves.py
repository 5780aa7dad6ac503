"""What pictures of numbers over slices share: panels of curves on one scale, bounds and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.plots.display import Display, Style
from cloakgp.plots.figures import DASHES, draw_band, draw_rug, rug_mark, tidy
from cloakgp.plots.slices import (
    Slice,
    label_inputs,
    mark_typical,
    shortened,
    subject_of,
    write_held,
)
from cloakgp.plots.themes import Theme, theme_of
from cloakgp.release import Release
from cloakgp.report.columns import what_inputs_are
from cloakgp.report.outputs import bounds
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

with extra("plots"):
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

if TYPE_CHECKING:
    import pandas as pd

LINE_WIDTH, BAR_WIDTH = 2.2, 0.5


@dataclass(frozen=True, eq=False)
class OverSlice:
    """What a panel shows over a slice.

    Attributes
    ----------
    piece : Slice
    """

    piece: Slice


class CurvesDisplay(Display):
    """Numbers over slices, a panel for each.

    Attributes
    ----------
    release : Release
        About numbers.
    parts : tuple of OverSlice
        One for each panel.
    unit : str
        Of the output.
    """

    release: Release
    parts: tuple[OverSlice, ...]
    unit: str

    @property
    def n_panels(self) -> int:
        """The number of panels."""
        return len(self.parts)

    @property
    def insecure(self) -> bool:
        """Whether the noise was seeded."""
        return self.release.insecure

    @property
    def subject(self) -> str:
        """What is drawn from which inputs, in words."""
        return subject_of(self.release, [part.piece for part in self.parts])

    @property
    def label(self) -> str:
        """The axis label of the output."""
        return shortened(self.release.output_name) + (f" ({self.unit})" if self.unit else "")

    def finish_curves(self, panels: Sequence[Axes], styles: Mapping[str, Style]) -> Sequence[Any]:
        """Label panels of curves, bring them to one scale, and return the legend's entries.

        Parameters
        ----------
        panels : sequence of matplotlib.axes.Axes
            With their curves.
        styles : mapping
            ``rows_kw``.
        """
        theme = theme_of(panels[0])
        for axes, part in zip(panels, self.parts, strict=True):
            (control,), (grid,) = part.piece.varied, part.piece.grids
            if control.kind != "level":
                axes.set_xlim(grid[0], grid[-1])
            label_inputs(axes, part.piece, theme=theme)
            axes.set_ylabel(self.label, **theme.words)
            draw_rug(axes, control.known, theme=theme, **dict(styles.get("rows_kw") or {}))
            tidy(axes, theme=theme)
            if len(panels) > 1:
                mark_typical(axes, part.piece, theme=theme)
        _share_limits(panels)
        if len(panels) == 1:
            write_held(panels[0], self.parts[0].piece, theme=theme)
        handles = list(panels[0].get_legend_handles_labels()[0])
        if _draw_bounds(panels, bounds(self.release), theme):
            handles.append(
                Line2D([], [], color=theme.pale, linewidth=0.9, linestyle=DASHES, label="bounds")
            )
        if any(len(part.piece.varied[0].known) for part in self.parts):
            handles.append(rug_mark(what_inputs_are(self.release), theme=theme))
        return handles


def together(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the numbers of several panels, one below the other.

    Parameters
    ----------
    frames : sequence of pandas.DataFrame
    """
    with extra("tables"):
        import pandas as pd

    return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)


def draw_curve(axes: Axes, piece: Slice, values: Array, **style: Any) -> None:
    """Draw values over one input: a curve, or of levels a mark each.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    piece : Slice
    values : array of shape (n,)
    **style
        For `matplotlib.axes.Axes.plot`.
    """
    levels = {"marker": "o", "linestyle": "none"}
    plain = levels if _has_levels(piece) else {"linewidth": LINE_WIDTH}
    axes.plot(piece.grids[0], values, **(plain | style))


def draw_between(axes: Axes, piece: Slice, ends: tuple[Array, Array], **style: Any) -> None:
    """Draw a band over one input: between two curves, or of levels a bar each.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    piece : Slice
    ends : tuple of two arrays of shape (n,)
        Lower and upper.
    **style
        For `matplotlib.axes.Axes.fill_between`, or ``bar``.
    """
    bars = {"width": BAR_WIDTH} if _has_levels(piece) else {}
    draw_band(axes, piece.grids[0], ends, **style, **bars)


def _has_levels(piece: Slice) -> bool:
    return piece.varied[0].kind == "level"


def _share_limits(panels: Sequence[Axes]) -> None:
    """Bring panels to one scale, so that they can be compared."""
    ends = np.array([axes.get_ylim() for axes in panels])
    for axes in panels:
        axes.set_ylim(ends[:, 0].min(), ends[:, 1].max())


def _draw_bounds(panels: Sequence[Axes], ends: tuple[float, float], theme: Theme) -> bool:
    """Draw the declared bounds where predictions come near them; return whether any is drawn."""
    drawn = False
    for axes in panels:
        low, high = axes.get_ylim()
        for end in ends:
            if low <= end <= high:
                axes.axhline(end, color=theme.pale, linewidth=0.9, linestyle=DASHES, zorder=1)
                drawn = True
    return drawn
