"""Pictures of predicted numbers: a curve over one input, a map over two, or a curve for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cloakgp.plots.curves import Band, CurvesDisplay, OverSlice, draw_curve
from cloakgp.plots.display import Style, styled
from cloakgp.plots.figures import add_colour_bar, row_mark, title_of
from cloakgp.plots.slices import Slice, fill_map, finish_map, join_frames, predicting, slices_of
from cloakgp.plots.themes import LIGHT, Theme, theme_of
from cloakgp.release import OneOutputRelease, Published, Release
from cloakgp.report.columns import what_inputs_are
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

with extra("plots"):
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.patheffects import AbstractPathEffect, withStroke

if TYPE_CHECKING:
    import pandas as pd

MAP_COLOURS, MAP_LEVELS, SD_LINES = "viridis", 24, 5
# Raw predictions are drawn up to this many; beyond, their bars hide the curve.
MOST_RAW_PREDICTIONS = 40


@dataclass(frozen=True, eq=False)
class Predicted(OverSlice):
    """Predictions over a slice, in output units, within the bounds.

    Attributes
    ----------
    piece : Slice
    mean, sd : arrays of shape (n,)
        The sd is that of the latent function.
    lower, upper : arrays of shape (n,)
        95 % limits of the latent function.
    new_lower, new_upper : arrays of shape (n,)
        Of new outputs, as `Release.predict_interval` says them.
    """

    mean: Array
    sd: Array
    lower: Array
    upper: Array
    new_lower: Array
    new_upper: Array

    @classmethod
    def over(cls, release: OneOutputRelease, piece: Slice) -> Predicted:
        """Predict over a slice."""
        rows = piece.rows
        lower, upper = predicting(lambda: release.predict_limits(rows))
        new_lower, new_upper = predicting(lambda: release.predict_limits(rows, new_output=True))
        mean, sd = predicting(lambda: release.predict(rows, return_std=True))
        # Limits stay within the bounds; the mean stays between them.
        mean = np.clip(mean, lower, upper)
        return cls(piece, mean, sd, lower, upper, new_lower, new_upper)


@dataclass(eq=False, repr=False)
class PredictionDisplay(CurvesDisplay):
    """Predictions of numbers: a curve over one input, a map over two, or a curve for each of more.

    Of a map, colours are predictions, and lines join places of one sd; where no row is near, there
    is no colour.

    Parameters
    ----------
    release : Release
        About numbers.
    parts : tuple of Predicted
        One for each panel.
    unit : str
        Of the output.

    See Also
    --------
    ClassificationDisplay : The same for classes.
    QuantileDisplay : The same for quantiles.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-3)
    >>> _ = model.fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> display = PredictionDisplay.of(model.release_, unit="m")
    >>> figure = display.draw(line_kw={"color": "black"})
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('x1', 'y (m)')
    >>> list(display.to_frame().columns)
    ['x1', 'mean', 'sd', 'lower', 'upper', 'new_lower', 'new_upper']
    """

    release: OneOutputRelease
    parts: tuple[Predicted, ...]
    unit: str = ""

    @classmethod
    def of(
        cls,
        release: OneOutputRelease,
        *,
        vary: Sequence[str] = (),
        apart: bool = False,
        unit: str = "",
    ) -> Self:
        """Compute the numbers of a picture, without drawing it.

        Parameters
        ----------
        release : Release
        vary : sequence of str
            Public inputs to go over, by name: one for a curve, two numbers for a map, more for a
            curve each. The others are held at what is typical. All if not given, of more than six
            the first ones.
        apart : bool
            A curve each of two numbers, too.
        unit : str
            Of the output, for labels.

        Raises
        ------
        TypeError
            If it is a release of another kind, of classes, or about quantiles.
        ValueError
            If an input is unknown, or inputs are boxes.
        """
        pieces = slices_of(release, vary=vary, apart=apart)
        if release.class_labels:
            raise TypeError("a picture of classes is drawn by ClassificationDisplay")
        if release.of_quantiles:
            raise TypeError("a picture of quantiles is drawn by QuantileDisplay")
        return cls(release, tuple(Predicted.over(release, each) for each in pieces), unit)

    @classmethod
    def from_release(
        cls,
        release: OneOutputRelease,
        *,
        vary: Sequence[str] = (),
        apart: bool = False,
        unit: str = "",
        ax: Axes | Sequence[Axes] | None = None,
        **styles: Style,
    ) -> Self:
        """Compute and draw a picture of a release. Costs no privacy.

        Parameters
        ----------
        release, vary, apart, unit
            As for `of`.
        ax
            As for `plot`.
        **styles
            ``line_kw``, ``band_kw`` and ``rows_kw`` of curves, ``map_kw``, ``sd_kw`` and
            ``rows_kw`` of maps: keywords of matplotlib's ``plot``, ``fill_between``, ``plot``,
            ``contourf``, ``contour`` and ``scatter``.
        """
        return cls.of(release, vary=vary, apart=apart, unit=unit).plot(ax, **styles)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        vary: Sequence[str] = (),
        apart: bool = False,
        unit: str = "",
        ax: Axes | Sequence[Axes] | None = None,
        **styles: Style,
    ) -> Self:
        """Compute and draw a picture of a fitted estimator's release: see `from_release`."""
        return cls.from_release(
            estimator.release_, vary=vary, apart=apart, unit=unit, ax=ax, **styles
        )

    @property
    def title(self) -> str:
        """Its title."""
        return title_of(self.release, self.subject)

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers behind the picture, in output units.

        Returns
        -------
        pandas.DataFrame
            The inputs that vary, mean, sd, 95 % limits of the latent function and of new outputs;
            of maps also whether a row is near. Of several panels one below the other.
        """
        names = ("mean", "sd", "lower", "upper", "new_lower", "new_upper")
        return join_frames(
            [
                part.piece.frame(**{name: getattr(part, name) for name in names})
                for part in self.parts
            ]
        )

    def _draw(self, panels: Sequence[Axes], styles: Mapping[str, Style]) -> Sequence[Any]:
        theme = theme_of(panels[0])
        if self.parts[0].piece.is_map:
            return self._draw_map(panels[0], theme, styles)
        for axes, part in zip(panels, self.parts, strict=True):
            bands = [
                Band(part.new_lower, part.new_upper, theme.band, 0.2, "95 % of new outputs"),
                Band(part.lower, part.upper, theme.band, 0.45, "95 % for the mean"),
            ]
            draw_curve(
                axes, part.piece, part.mean, bands, label="prediction", theme=theme, styles=styles
            )
        if len(panels) == 1:
            self._draw_raw(panels[0], theme)
        return self.finish_curves(panels, styles)

    def _draw_map(self, axes: Axes, theme: Theme, styles: Mapping[str, Style]) -> Sequence[Any]:
        (part,) = self.parts
        piece = part.piece
        across, up = map(piece.squared, piece.grids)
        drawn = fill_map(
            axes,
            piece,
            part.mean,
            styled(styles.get("map_kw"), levels=MAP_LEVELS, cmap=MAP_COLOURS),
        )
        halo: list[AbstractPathEffect] = [withStroke(linewidth=2.6, foreground=LIGHT.ink)]
        lines = axes.contour(
            across,
            up,
            np.ma.masked_array(piece.squared(part.sd), ~piece.squared(piece.near)),
            **styled(styles.get("sd_kw"), levels=SD_LINES, colors="white", linewidths=1.1),
        )
        lines.set_path_effects(halo)
        for text in axes.clabel(lines, fmt="%.3g", fontsize=9):
            text.set_path_effects(halo)
        add_colour_bar([axes], drawn, label=f"predicted {self.label}", theme=theme)
        finish_map(axes, piece, theme=theme, styles=styles)
        unit = f", {self.unit}" if self.unit else ""
        line = Line2D([], [], color="white", linewidth=1.1, label=f"sd of the prediction{unit}")
        line.set_path_effects(halo)
        if self.release.private_inputs:
            return [line]
        return [row_mark(what_inputs_are(self.release)), line]

    def _draw_raw(self, axes: Axes, theme: Theme) -> None:
        """Draw the unshrunk predictions with an sd of their noise, if they are few."""
        release = self.release
        if not isinstance(release, Release) or release.n_inputs > 1:
            return
        drawn = _raw_predictions(release)
        if not drawn:
            return
        X = np.concatenate([raw.X[:, 0] for raw in drawn])
        if len(X) > MOST_RAW_PREDICTIONS:
            return
        values = np.concatenate([raw.values for raw in drawn])
        sd = np.sqrt(np.concatenate([np.diag(raw.noise_cov) for raw in drawn]))
        low, high = axes.get_ylim()
        outside = int(((values < low) | (values > high)).sum())
        axes.errorbar(
            X,
            values,
            yerr=sd,
            fmt="o",
            markersize=4.5,
            markerfacecolor="white",
            color=theme.ink,
            linewidth=0.9,
            capsize=2,
            zorder=3,
            label="raw predictions ± noise sd" + f" ({outside} beyond the frame)" * (outside > 0),
        )
        axes.set_ylim(low, high)


def _raw_predictions(release: Release) -> list[Published]:
    return [
        release.published(number)
        for number, measurement in enumerate(release.measurements)
        if release.likelihood.linear
        and release.transform is None
        and measurement.strategy.reconstruction is not None
    ]
