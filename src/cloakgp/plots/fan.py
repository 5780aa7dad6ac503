"""Fan charts: quantiles of a new output over one input, or over each of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from cloakgp.plots.curves import Band, OverSlice, QuantilesDisplay, draw_curve
from cloakgp.plots.display import Style
from cloakgp.plots.figures import title_of
from cloakgp.plots.slices import Slice, join_frames, predicting, slices_of
from cloakgp.plots.themes import theme_of
from cloakgp.release import OneOutputRelease
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

with extra("plots"):
    from matplotlib.axes import Axes

if TYPE_CHECKING:
    import pandas as pd

# In pairs around the median.
QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
# Of the bands, from the middle outwards. They do not overlap, so that the legend has their colours.
OPACITIES = (0.68, 0.42, 0.2)


@dataclass(frozen=True, eq=False)
class Quantiles(OverSlice):
    """Quantiles of a new output over a slice, in output units.

    Attributes
    ----------
    piece : Slice
    values : array of shape (n, Q)
        Of `QUANTILES`, in this order.
    """

    values: Array

    @classmethod
    def over(cls, release: OneOutputRelease, piece: Slice) -> Quantiles:
        """Predict over a slice."""
        return cls(piece, predicting(lambda: release.predict_quantile(piece.rows, QUANTILES)))

    def frame(self) -> pd.DataFrame:
        """Return quantiles beside the input that they belong to."""
        names = [f"q_{100 * each:g}" for each in QUANTILES]
        return self.piece.frame(**dict(zip(names, self.values.T, strict=True)))


@dataclass(eq=False, repr=False)
class FanDisplay(QuantilesDisplay):
    """Quantiles of a new output as nested bands: over one input, or over each of several.

    They are those of `Release.predict_quantile`: calibrated by noisy counts where there are any,
    of counts of events whole numbers for one unit of exposure.

    Parameters
    ----------
    release : Release
        About numbers.
    parts : tuple of Quantiles
        One for each panel.
    unit : str
        Of the output.

    See Also
    --------
    PredictionDisplay : The curve itself, and how unsure it is.
    CalibrationDisplay : By what the quantiles of a calibrated release are corrected.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> display = FanDisplay.of(model.release_, unit="m")
    >>> figure = display.draw(line_kw={"color": "black"})
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('x1', 'y (m)')
    >>> list(display.to_frame().columns)
    ['x1', 'q_5', 'q_10', 'q_25', 'q_50', 'q_75', 'q_90', 'q_95']
    """

    release: OneOutputRelease
    parts: tuple[Quantiles, ...]
    unit: str = ""

    @classmethod
    def of(cls, release: OneOutputRelease, *, vary: Sequence[str] = (), unit: str = "") -> Self:
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
            If it is a release of another kind.
        ValueError
            If it is one of classes, an input is unknown, or inputs are boxes.
        """
        pieces = slices_of(release, vary=vary, apart=True)
        if release.class_labels:
            raise ValueError("quantiles are of numbers: classes have probabilities")
        return cls(release, tuple(Quantiles.over(release, each) for each in pieces), unit)

    @property
    def title(self) -> str:
        """Its title."""
        how = ", calibrated" if self.release.is_calibrated else ""
        return title_of(self.release, f"Quantiles of {self.subject}{how}")

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers behind the picture, in output units.

        Returns
        -------
        pandas.DataFrame
            The inputs that vary, and quantiles. Of several panels one below the other.
        """
        return join_frames([part.frame() for part in self.parts])

    def _draw(self, panels: Sequence[Axes], styles: Mapping[str, Style]) -> Sequence[Any]:
        theme = theme_of(panels[0])
        middle = len(QUANTILES) // 2
        for axes, part in zip(panels, self.parts, strict=True):
            bands = []
            for step, alpha in enumerate(OPACITIES, start=1):
                low, high = middle - step, middle + step
                share = f"{100 * (QUANTILES[high] - QUANTILES[low]):.0f} % of new outputs"
                # The parts of a band below and above the inner ones have one entry in the legend.
                sides = ((low, high),) if step == 1 else ((low, low + 1), (high - 1, high))
                for first, last in sides:
                    lower, upper = part.values[:, first], part.values[:, last]
                    label = share if first == low else ""
                    bands.append(Band(lower, upper, theme.band, alpha, label))
            draw_curve(
                axes,
                part.piece,
                part.values[:, middle],
                bands,
                label="median",
                theme=theme,
                styles=styles,
            )
        return self.finish_curves(panels, styles)
