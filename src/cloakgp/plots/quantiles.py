"""Pictures of predicted quantiles: a curve of each, with its limits, over every input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from cloakgp.models.likelihoods.quantiles import quantile_likelihood
from cloakgp.plots.curves import Band, OverSlice, QuantilesDisplay, draw_curve
from cloakgp.plots.display import Style
from cloakgp.plots.figures import title_of
from cloakgp.plots.slices import Slice, join_frames, predicting, slices_of
from cloakgp.plots.themes import theme_of
from cloakgp.release import Release
from cloakgp.utils.extras import extra

with extra("plots"):
    from matplotlib.axes import Axes

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class QuantileCurves(OverSlice):
    """Quantiles of a new output over a slice, in output units, within the bounds.

    Attributes
    ----------
    piece : Slice
    predicted : pandas.DataFrame
        Of n rows, as `Release.predict_frame` returns them: each quantile and 95 % limits of its
        curve.
    """

    predicted: pd.DataFrame

    @classmethod
    def over(cls, release: Release, piece: Slice) -> QuantileCurves:
        """Predict over a slice."""
        return cls(piece, predicting(lambda: release.predict_frame(piece.rows)))

    def frame(self) -> pd.DataFrame:
        """Return quantiles and limits beside the input that they belong to."""
        named = {str(name): column.to_numpy() for name, column in self.predicted.items()}
        return self.piece.frame(**named)


@dataclass(eq=False, repr=False)
class QuantileDisplay(QuantilesDisplay):
    """Predicted quantiles, each a curve with 95 % limits: over one input, or each of several.

    The axis of the output is logarithmic where quantiles are of its logarithm.

    Parameters
    ----------
    release : Release
        About quantiles.
    parts : tuple of QuantileCurves
        One for each panel.
    unit : str
        Of the output.

    See Also
    --------
    FanDisplay : Quantiles of new outputs of any release about numbers, as nested bands.
    PredictionDisplay : Predictions of one number, with limits.

    Examples
    --------
    >>> from cloakgp import DPGPQuantileRegressor
    >>> model = DPGPQuantileRegressor(quantiles=(0.5, 0.9), bounds=(0, 9), epsilon=1.0, gap=0.1)
    >>> model = model.fit([[0.0], [1.0], [2.0]], [0, 1, 5])
    >>> display = QuantileDisplay.of(model.release_, unit="m")
    >>> figure = display.draw(band_kw={"alpha": 0.1})
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('x1', 'y (m)')
    >>> list(display.to_frame().columns)
    ['x1', 'q_50', 'q_50_lower', 'q_50_upper', 'q_90', 'q_90_lower', 'q_90_upper']
    """

    release: Release
    parts: tuple[QuantileCurves, ...]
    unit: str = ""

    @classmethod
    def of(cls, release: Release, *, vary: Sequence[str] = (), unit: str = "") -> Self:
        """Compute the numbers of a picture, without drawing it.

        Parameters
        ----------
        release : Release
        vary : sequence of str
            Public inputs to go over, by name, a panel for each. The others are held at what is
            typical. All if not given, of more than six the first ones.
        unit : str
            Of the output, for labels.

        Raises
        ------
        TypeError
            If it is a release of another kind, or not about quantiles.
        ValueError
            If an input is unknown.
        """
        pieces = slices_of(release, vary=vary, apart=True)
        quantile_likelihood(release.likelihood)
        return cls(release, tuple(QuantileCurves.over(release, each) for each in pieces), unit)

    @property
    def title(self) -> str:
        """Its title."""
        return title_of(self.release, f"Quantiles of {self.subject}")

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers behind the picture, in output units.

        Returns
        -------
        pandas.DataFrame
            The inputs that vary, each quantile, and 95 % limits of its curve. Of several panels
            one below the other.
        """
        return join_frames([part.frame() for part in self.parts])

    def _draw(self, panels: Sequence[Axes], styles: Mapping[str, Style]) -> Sequence[Any]:
        theme, transform = theme_of(panels[0]), self.release.transform
        levels = quantile_likelihood(self.release.likelihood).quantiles
        for axes, part in zip(panels, self.parts, strict=True):
            columns = part.predicted.to_numpy().T.reshape(len(levels), 3, -1)
            # The highest curve is the first in the legend, too.
            for place in reversed(range(len(levels))):
                curve, lower, upper = columns[place]
                colour = theme.shades[place % len(theme.shades)]
                label = "95 % for each curve" if place == 0 else ""
                draw_curve(
                    axes,
                    part.piece,
                    curve,
                    [Band(lower, upper, colour, 0.25, label)],
                    label=f"quantile {levels[place]:g}",
                    colour=colour,
                    theme=theme,
                    styles=styles,
                )
            if transform is not None and transform.name == "log":
                axes.set_yscale("log")
        return self.finish_curves(panels, styles)
