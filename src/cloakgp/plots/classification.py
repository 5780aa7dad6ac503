"""Pictures of probabilities of classes: curves over one input, maps over two, or curves for each.

Drawn from the public object alone: no label is drawn, and none is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from cloakgp.plots.curves import (
    Band,
    OverSlice,
    draw_curve,
    draw_line,
    finish_curve,
    has_levels,
)
from cloakgp.plots.display import ReleaseDisplay, Style, styled
from cloakgp.plots.figures import (
    DASHES,
    add_colour_bar,
    row_mark,
    rug_mark,
    title_of,
)
from cloakgp.plots.slices import (
    Slice,
    fill_map,
    finish_map,
    join_frames,
    mark_typical,
    predicting,
    shortened,
    slices_of,
    subject_of,
    write_held,
)
from cloakgp.plots.themes import Theme, theme_of
from cloakgp.release import OneOutputRelease
from cloakgp.report.columns import class_names, what_inputs_are
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

with extra("plots"):
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

if TYPE_CHECKING:
    import pandas as pd

# Pale where both are as probable: strong colours are sure predictions.
SURFACE_COLOURS = "RdBu_r"
LEVELS = np.linspace(0.0, 1.0, 21)
MARKED_LEVELS = (0.25, 0.5, 0.75)
OPEN_ANYWAY, OPEN_BY_NOISE = "....", "////"
# On the map's colours, whatever the theme is.
ON_MAP, HATCHES = "#22303c", "#5b6670"
LINE_STYLES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (9, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P")
CLASS_WIDTH = 2.0


@dataclass(frozen=True)
class Look:
    """How one of several classes is drawn.

    Attributes
    ----------
    colour : str
    dashes : str or tuple
        Line style, over numbers.
    marker : str
        Over levels.
    """

    colour: str
    dashes: Any
    marker: str


def look_of(theme: Theme, place: int) -> Look:
    """Return how the class of a place among those drawn is told from the others.

    As many as there are pairs of a colour and a style differ, the first ones in both.

    Examples
    --------
    >>> from cloakgp.plots.themes import LIGHT
    >>> [look_of(LIGHT, place).marker for place in (0, 1, 6, 7)]
    ['o', 's', 's', '^']
    """
    colours = theme.shades
    # One further each time that the colours begin again.
    style = place + place // len(colours)
    return Look(
        colours[place % len(colours)],
        LINE_STYLES[style % len(LINE_STYLES)],
        MARKERS[style % len(MARKERS)],
    )


@dataclass(frozen=True, eq=False)
class Probabilities(OverSlice):
    """Probabilities of all classes over a slice.

    Attributes
    ----------
    piece : Slice
    predicted : array of shape (n, C)
    lower, upper : arrays of shape (n, C)
        95 % limits.
    inner_lower, inner_upper : arrays of shape (n, C)
        What they were without the privacy noise, within these.
    """

    predicted: Array
    lower: Array
    upper: Array
    inner_lower: Array
    inner_upper: Array

    @classmethod
    def over(cls, release: OneOutputRelease, piece: Slice) -> Probabilities:
        """Predict over a slice."""
        rows = piece.rows
        predicted = predicting(lambda: release.predict_proba(rows))
        limits = predicting(lambda: release.probability_limits(rows))
        inner = predicting(lambda: release.probability_limits(rows, privacy_noise=False))
        if limits is None or inner is None:
            unknown = np.full_like(predicted, np.nan)
            return cls(piece, predicted, unknown, unknown, unknown, unknown)
        inner_lower, inner_upper = (np.clip(edge, *limits) for edge in inner)
        return cls(piece, predicted, *limits, inner_lower, inner_upper)

    def includes_half(self, number: int, *, privacy_noise: bool) -> NDArray[np.bool_]:
        """Return where the limits of a class leave it open."""
        lower = self.lower if privacy_noise else self.inner_lower
        upper = self.upper if privacy_noise else self.inner_upper
        return np.asarray((lower[:, number] < 0.5) & (upper[:, number] > 0.5))


@dataclass(eq=False, repr=False)
class ClassificationDisplay(ReleaseDisplay):
    """Probabilities of classes: curves over one input, maps over two, or curves for each of more.

    Curves show 95 % limits, and what of them is due to the privacy noise. Maps are hatched where
    the limits leave the class open.

    Parameters
    ----------
    release : Release
        About classes.
    parts : tuple of Probabilities
        One for each slice.
    shown : tuple of int
        The classes that are drawn.
    together : bool
        Whether a panel is of a slice, with a curve for each class, or of a class.

    See Also
    --------
    PredictionDisplay : The same for numbers.

    Examples
    --------
    >>> from cloakgp import DPGPClassifier
    >>> model = DPGPClassifier(classes=["ill", "well"], epsilon=1.0, delta=1e-3)
    >>> _ = model.fit([[0.0], [1.0], [2.0]], ["ill", "well", "well"])
    >>> display = ClassificationDisplay.of(model.release_)
    >>> figure = display.draw()
    >>> display.ax_.get_ylabel()
    'probability of y = well'
    """

    release: OneOutputRelease
    parts: tuple[Probabilities, ...]
    shown: tuple[int, ...]
    together: bool = False

    @classmethod
    def of(
        cls,
        release: OneOutputRelease,
        *,
        vary: Sequence[str] = (),
        apart: bool = False,
        only: str | None = None,
    ) -> Self:
        """Compute the numbers of a picture, without drawing it.

        Parameters
        ----------
        release : Release
        vary, apart
            As for `PredictionDisplay.of`.
        only : str, optional
            The class to draw. If not given: of two the second, for which the latent function is
            high; of more every one.

        Raises
        ------
        TypeError
            If it is a release of another kind.
        ValueError
            If an input or the class is unknown.
        """
        # Of private inputs there are no limits, which maps and curves of a class are hatched by.
        apart = apart or release.private_inputs
        pieces = slices_of(release, vary=vary, apart=apart)
        if not release.class_labels:
            raise TypeError("a picture of numbers is drawn by PredictionDisplay")
        parts = tuple(Probabilities.over(release, each) for each in pieces)
        together = apart or len(parts) > 1
        return cls(release, parts, _shown(release, only=only), together)

    @classmethod
    def from_release(
        cls,
        release: OneOutputRelease,
        *,
        vary: Sequence[str] = (),
        apart: bool = False,
        only: str | None = None,
        ax: Axes | Sequence[Axes] | None = None,
        **styles: Style,
    ) -> Self:
        """Compute and draw a picture of a release. Costs no privacy.

        Parameters
        ----------
        release, vary, apart, only
            As for `of`.
        ax
            As for `plot`.
        **styles
            ``line_kw``, ``band_kw`` and ``rows_kw`` of curves, ``map_kw`` and ``rows_kw`` of maps.
        """
        return cls.of(release, vary=vary, apart=apart, only=only).plot(ax, **styles)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        vary: Sequence[str] = (),
        apart: bool = False,
        only: str | None = None,
        ax: Axes | Sequence[Axes] | None = None,
        **styles: Style,
    ) -> Self:
        """Compute and draw a picture of a fitted estimator's release: see `from_release`."""
        return cls.from_release(
            estimator.release_, vary=vary, apart=apart, only=only, ax=ax, **styles
        )

    @property
    def n_panels(self) -> int:
        """The number of panels: one for each slice, or for each class of one slice."""
        return len(self.parts) if self.together else len(self.shown)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches, of a figure of its own."""
        width, height = super().size
        return (width, height + 0.5) if self.parts[0].piece.is_map else (width, height)

    @property
    def title(self) -> str:
        """Its title."""
        pieces = [part.piece for part in self.parts]
        return title_of(self.release, subject_of(self.release, pieces))

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers behind the picture.

        Returns
        -------
        pandas.DataFrame
            The inputs that vary, the class, its probability, 95 % limits, and what these were
            without the privacy noise.
        """
        names = class_names(self.release)
        return join_frames(
            [
                part.piece.frame(
                    probability=part.predicted[:, number],
                    lower=part.lower[:, number],
                    upper=part.upper[:, number],
                    inner_lower=part.inner_lower[:, number],
                    inner_upper=part.inner_upper[:, number],
                ).assign(**{"class": names[number]})
                for part in self.parts
                for number in self.shown
            ]
        )

    def label(self, number: int) -> str:
        """Return the axis label of the probability of a class."""
        return f"probability of {self._named(number)}"

    def _named(self, number: int) -> str:
        name = shortened(class_names(self.release)[number])
        return f"{shortened(self.release.output_name)} = {name}"

    def _draw(self, panels: Sequence[Axes], styles: Mapping[str, Style]) -> Sequence[Any]:
        theme = theme_of(panels[0])
        rows = what_inputs_are(self.release)
        if self.parts[0].piece.is_map:
            self._draw_maps(panels, theme, styles)
            return [row_mark(rows), *_open_marks()]
        if self.together:
            for axes, part in zip(panels, self.parts, strict=True):
                self._draw_shares(axes, part, theme, styles)
            handles = self._class_marks(panels)
            marks = [] if self.release.private_inputs else [rug_mark(rows, theme=theme)]
            return [*handles, *marks]
        (part,) = self.parts
        for axes, number in zip(panels, self.shown, strict=True):
            self._draw_curve(axes, part, number, theme, styles)
        handles = list(panels[0].get_legend_handles_labels()[0])
        rate = Line2D(
            [], [], color=theme.pale, linewidth=0.9, linestyle=DASHES, label="before any answer"
        )
        return [*handles, rate, rug_mark(rows, theme=theme)]

    def _label_panel(self, axes: Axes) -> None:
        if len(self.shown) > 1:
            legend = axes.legend(
                loc="best", frameon=False, fontsize=8, labelcolor=theme_of(axes).ink
            )
            for text in legend.get_texts():
                text.set_parse_math(False)

    def _finish_curve(
        self, axes: Axes, part: Probabilities, theme: Theme, styles: Mapping[str, Style]
    ) -> None:
        # Below 0, room for the marks of the rows.
        axes.set_ylim(-0.07, 1.03)
        finish_curve(axes, part.piece, theme=theme, styles=styles)

    def _class_marks(self, panels: Sequence[Axes]) -> list[Any]:
        """Return the legend's entries of classes: the curve of each, and its mark of levels."""
        lines: dict[bool, list[Any]] = {}
        for axes, part in zip(panels, self.parts, strict=True):
            lines.setdefault(has_levels(part.piece), axes.get_legend_handles_labels()[0])
        if len(lines) == 1:
            return next(iter(lines.values()))
        both = []
        for curve, mark in zip(lines[False], lines[True], strict=True):
            entry = Line2D([], [])
            entry.update_from(curve)
            entry.set(label=curve.get_label(), marker=mark.get_marker())
            both.append(entry)
        return both

    def _draw_shares(
        self, axes: Axes, part: Probabilities, theme: Theme, styles: Mapping[str, Style]
    ) -> None:
        """Draw the probabilities of classes beside each other."""
        names = class_names(self.release)
        for place, number in enumerate(self.shown):
            look = look_of(theme, place)
            draw_line(
                axes,
                part.piece,
                part.predicted[:, number],
                styles.get("line_kw"),
                width=CLASS_WIDTH,
                dashes=look.dashes,
                marker=look.marker,
                color=look.colour,
                label=shortened(names[number]),
            )
        mark_typical(axes, part.piece, theme=theme)
        self._finish_curve(axes, part, theme, styles)
        single = self.label(self.shown[0]) if len(self.shown) == 1 else "probability"
        axes.set_ylabel(single, **theme.words)

    def _draw_curve(
        self,
        axes: Axes,
        part: Probabilities,
        number: int,
        theme: Theme,
        styles: Mapping[str, Style],
    ) -> None:
        """Draw the probability of one class, its 95 % band, and privacy's part of it."""
        bands = [
            Band(below[:, number], above[:, number], colour, 0.45, label)
            for below, above, colour, label in (
                (part.inner_lower, part.inner_upper, theme.band, "95 % without the privacy noise"),
                (part.lower, part.inner_lower, theme.privacy, "what the privacy noise adds"),
                (part.inner_upper, part.upper, theme.privacy, ""),
            )
        ]
        draw_curve(
            axes,
            part.piece,
            part.predicted[:, number],
            bands,
            label="predicted probability",
            theme=theme,
            styles=styles,
        )
        rates = self.release.prior_rates
        if rates is not None:
            axes.axhline(rates[number], color=theme.pale, linewidth=0.9, linestyle=DASHES, zorder=1)
        self._finish_curve(axes, part, theme, styles)
        write_held(axes, part.piece, theme=theme)
        axes.set_ylabel(self.label(number), **theme.words)

    def _draw_maps(self, panels: Sequence[Axes], theme: Theme, styles: Mapping[str, Style]) -> None:
        """Draw a map for each class, with one colour bar for all."""
        (part,) = self.parts
        piece = part.piece
        across, up = map(piece.squared, piece.grids)
        hidden = ~piece.squared(piece.near).astype(bool)
        for axes, number in zip(panels, self.shown, strict=True):
            probability = np.ma.masked_array(piece.squared(part.predicted[:, number]), hidden)
            surface = fill_map(
                axes,
                piece,
                part.predicted[:, number],
                styled(styles.get("map_kw"), levels=LEVELS, cmap=SURFACE_COLOURS),
            )
            axes.contour(
                across,
                up,
                probability,
                levels=MARKED_LEVELS,
                colors=ON_MAP,
                linewidths=(0.8, 1.6, 0.8),
            )
            _hatch(axes, part, number, hidden=hidden)
            if len(panels) > 1:
                axes.set_title(self._named(number), fontsize=10, **theme.words)
            finish_map(axes, piece, theme=theme, styles=styles)
        label = self.label(self.shown[0]) if len(self.shown) == 1 else "probability"
        bar = add_colour_bar(panels, surface, label=label, theme=theme)
        bar.set_ticks([0.0, 0.25, 0.5, 0.75, 1.0])


def _hatch(axes: Axes, part: Probabilities, number: int, *, hidden: NDArray[np.bool_]) -> None:
    """Hatch where 95 % limits of a class leave it open, and where the noise alone does."""
    across, up = map(part.piece.squared, part.piece.grids)
    anyway = part.includes_half(number, privacy_noise=False)
    with_noise = part.includes_half(number, privacy_noise=True)
    for region, hatch in ((anyway, OPEN_ANYWAY), (with_noise & ~anyway, OPEN_BY_NOISE)):
        inside = part.piece.squared(region.astype(np.float64)) * ~hidden
        if inside.any():
            hatched = axes.contourf(
                across, up, inside, levels=(0.5, 1.5), colors="none", hatches=[hatch]
            )
            hatched.set_edgecolor(HATCHES)
            hatched.set_linewidth(0.0)


def _open_marks() -> list[Patch]:
    """Return the legend's entries for hatched areas."""
    return [
        Patch(facecolor="none", edgecolor=HATCHES, hatch=hatch, linewidth=0.0, label=label)
        for hatch, label in (
            (OPEN_ANYWAY, "open in any case: 95 % limits include 0.5"),
            (OPEN_BY_NOISE, "open because of the privacy noise"),
        )
    ]


def _shown(release: OneOutputRelease, *, only: str | None) -> tuple[int, ...]:
    names = class_names(release)
    if only is not None:
        if only not in names:
            raise ValueError(
                f"the release has no class {only}; its classes are: {', '.join(names)}"
            )
        return (names.index(only),)
    return (1,) if len(names) == 2 else tuple(range(len(names)))
