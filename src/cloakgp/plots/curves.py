"""Curves over slices, with bands around them, and the common part of pictures of numbers.

These have panels on one scale, with the bounds and the same labels.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from cloakgp.plots.display import ReleaseDisplay, Style, styled
from cloakgp.plots.figures import DASHES, draw_band, draw_rug, rug_mark, share_limits, tidy
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
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

with extra("plots"):
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

LINE_WIDTH, BAR_WIDTH = 2.2, 0.5


@dataclass(frozen=True, eq=False)
class Band:
    """A band around a curve.

    Attributes
    ----------
    lower, upper : arrays of shape (n,)
    colour : str
    alpha : float
    label : str
        In the legend; empty for none.
    """

    lower: Array
    upper: Array
    colour: str
    alpha: float
    label: str


@dataclass(frozen=True, eq=False)
class OverSlice:
    """What a panel shows over a slice.

    Attributes
    ----------
    piece : Slice
    """

    piece: Slice


class CurvesDisplay(ReleaseDisplay):
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

    parts: tuple[OverSlice, ...]
    unit: str

    @property
    def n_panels(self) -> int:
        """The number of panels."""
        return len(self.parts)

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
            finish_curve(axes, part.piece, theme=theme, styles=styles)
            axes.set_ylabel(self.label, **theme.words)
            if len(panels) > 1:
                mark_typical(axes, part.piece, theme=theme)
        share_limits(panels)
        if len(panels) == 1:
            write_held(panels[0], self.parts[0].piece, theme=theme)
        handles = list(panels[0].get_legend_handles_labels()[0])
        if _draw_bounds(panels, self.release.output_bounds, theme):
            handles.append(
                Line2D([], [], color=theme.pale, linewidth=0.9, linestyle=DASHES, label="bounds")
            )
        if any(len(part.piece.varied[0].known) for part in self.parts):
            handles.append(rug_mark(what_inputs_are(self.release), theme=theme))
        return handles


class QuantilesDisplay(CurvesDisplay):
    """Quantiles over each input that varies."""

    @classmethod
    @abstractmethod
    def of(cls, release: Release, *, vary: Sequence[str] = (), unit: str = "") -> Self:
        """Compute the numbers of a picture, without drawing it."""

    @classmethod
    def from_release(
        cls,
        release: Release,
        *,
        vary: Sequence[str] = (),
        unit: str = "",
        ax: Axes | Sequence[Axes] | None = None,
        **styles: Style,
    ) -> Self:
        """Compute and draw a picture of a release. Costs no privacy.

        Parameters
        ----------
        release, vary, unit
            As for `of`.
        ax
            As for `plot`.
        **styles
            ``line_kw``, ``band_kw`` and ``rows_kw``: keywords of matplotlib's ``plot``,
            ``fill_between`` and ``plot``.
        """
        return cls.of(release, vary=vary, unit=unit).plot(ax, **styles)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        vary: Sequence[str] = (),
        unit: str = "",
        ax: Axes | Sequence[Axes] | None = None,
        **styles: Style,
    ) -> Self:
        """Compute and draw a picture of a fitted estimator's release: see `from_release`."""
        return cls.from_release(estimator.release_, vary=vary, unit=unit, ax=ax, **styles)


def draw_line(
    axes: Axes,
    piece: Slice,
    values: Array,
    style: Style,
    *,
    width: float = LINE_WIDTH,
    dashes: Any = "-",
    marker: str = "o",
    **defaults: Any,
) -> None:
    """Draw values over one input: a curve, or of levels a mark each.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    piece : Slice
        Over one input.
    values : array of shape (n,)
    style : mapping or None
        For `matplotlib.axes.Axes.plot`.
    width : float
        Of a curve.
    dashes : str or tuple
        Line style of a curve.
    marker : str
        Of levels.
    **defaults
        As ``style``, which overrides them.
    """
    levels, curve = (
        {"marker": marker, "linestyle": "none"},
        {"linewidth": width, "linestyle": dashes},
    )
    mark = levels if has_levels(piece) else curve
    axes.plot(piece.grids[0], values, **styled(style, **defaults, **mark))


def draw_curve(
    axes: Axes,
    piece: Slice,
    middle: Array,
    bands: Sequence[Band],
    *,
    label: str,
    theme: Theme,
    styles: Mapping[str, Style],
    colour: str = "",
) -> None:
    """Draw predictions over one input with bands around them; of levels, points with bars.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    piece : Slice
        Over one input.
    middle : array of shape (n,)
    bands : sequence of Band
    label : str
        Of the curve, in the legend.
    theme : Theme
    styles : mapping
        ``line_kw`` and ``band_kw``.
    colour : str
        Of the curve; that of predictions if empty.
    """
    style = styles.get("line_kw")
    draw_line(axes, piece, middle, style, color=colour or theme.curve, zorder=2.5, label=label)
    bars = {"width": BAR_WIDTH} if has_levels(piece) else {}
    for band in bands:
        filling = styled(
            styles.get("band_kw"),
            color=band.colour,
            alpha=band.alpha,
            linewidth=0,
            label=band.label,
        )
        draw_band(axes, piece.grids[0], (band.lower, band.upper), **filling, **bars)


def finish_curve(axes: Axes, piece: Slice, *, theme: Theme, styles: Mapping[str, Style]) -> None:
    """Write what varies along the axes of a curve, and mark the rows.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    piece : Slice
        Over one input.
    theme : Theme
    styles : mapping
        ``rows_kw``.
    """
    if not has_levels(piece):
        axes.set_xlim(piece.grids[0][0], piece.grids[0][-1])
    label_inputs(axes, piece, theme=theme)
    draw_rug(axes, piece.varied[0].known, theme=theme, **dict(styles.get("rows_kw") or {}))
    tidy(axes, theme=theme)


def has_levels(piece: Slice) -> bool:
    """Return whether a slice goes over levels, which have marks in the place of a curve."""
    return piece.varied[0].kind == "level"


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
