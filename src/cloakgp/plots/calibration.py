"""Calibration curves: how many outputs lie below what the Gaussian model says that they do.

Drawn from the noisy counts that a release holds, so that it costs nothing and shows no output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import special

from cloakgp.plots.display import ReleaseDisplay, Style, styled
from cloakgp.plots.figures import DASHES, tidy, title_of
from cloakgp.plots.slices import shortened
from cloakgp.plots.themes import theme_of
from cloakgp.release import OneOutputRelease, Release
from cloakgp.report.columns import asked_output
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra
from cloakgp.utils.formatting import NORMAL_95, amount

with extra("plots"):
    from matplotlib.axes import Axes
    from matplotlib.ticker import PercentFormatter

if TYPE_CHECKING:
    import pandas as pd

ALL_ROWS = "all rows"
# Of strata: which of a theme's shades, those next to the colour of curves last, and which lines.
LOOKS = ((1, "--"), (2, "-."), (3, ":"), (5, (0, (8, 2))), (4, (0, (3, 1, 1, 1, 1, 1))))


@dataclass(frozen=True, eq=False)
class CalibrationCurve:
    """The distribution function that noisy counts tell, of all rows or of one stratum.

    Attributes
    ----------
    rows : str
        Which ones, in words.
    share : array of shape (G,)
        Of these rows, that lie below.
    sd : array of shape (G,)
        How unsure that is, by the noise of the counts and the number of rows.
    """

    rows: str
    share: Array
    sd: Array

    @property
    def limits(self) -> tuple[Array, Array]:
        """95 % limits of the share."""
        low, high = (np.clip(self.share + sign * NORMAL_95 * self.sd, 0, 1) for sign in (-1, 1))
        return low, high


@dataclass(eq=False, repr=False)
class CalibrationDisplay(ReleaseDisplay):
    """How many outputs lie below what the Gaussian model says that they do, by noisy counts.

    On the diagonal the model is right. A curve that is steep in the middle says that outputs
    scatter less than the model takes them to, and one that is flat there, that they scatter more.
    By these curves `Release.predict_interval` and its like are corrected: they are as steep only as
    the noise allows, so that intervals are rather too wide than too narrow. One is of all rows, and
    one of each stratum of predicted values if these were counted apart.

    Parameters
    ----------
    release : Release
        That is calibrated.
    modelled : array of shape (G,)
        The probability below, by the Gaussian model.
    curves : tuple of CalibrationCurve
        That of all rows first.

    See Also
    --------
    FanDisplay : Quantiles that are so corrected.

    Examples
    --------
    >>> import numpy as np
    >>> from cloakgp import DPGPRegressor
    >>> X = np.linspace(0, 10, 2000)[:, None]
    >>> model = DPGPRegressor(bounds=(-2, 2), epsilon=3.0, gap=0.1, inducing=5)
    >>> display = CalibrationDisplay.of(model.fit(X, np.sin(X).ravel()).release_)
    >>> figure = display.draw()
    >>> list(display.to_frame().columns)
    ['rows', 'modelled', 'share', 'lower', 'upper']
    """

    release: Release
    modelled: Array
    curves: tuple[CalibrationCurve, ...]

    @classmethod
    def of(cls, release: OneOutputRelease) -> Self:
        """Compute the numbers of a picture, without drawing it.

        Parameters
        ----------
        release : Release

        Raises
        ------
        TypeError
            If it is a release of another kind.
        ValueError
            If it is not calibrated.
        """
        if not isinstance(release, OneOutputRelease):
            raise TypeError(f"there is no picture of calibration of a {type(release).__name__}")
        known = release.calibrated_by
        if known is None or not isinstance(release, Release):
            raise ValueError(
                "this release is not calibrated: no noisy counts tell where outputs lie in their "
                "predicted distributions"
            )
        curves = [CalibrationCurve(ALL_ROWS, known.together, known.together_sd)]
        if len(known.curves) > 1:
            names = _names_of(known.question.strata, output=shortened(asked_output(release)))
            told = zip(names, known.curves, known.curves_sd, strict=True)
            curves += [CalibrationCurve(*each) for each in told]
        return cls(release, special.ndtr(known.grid), tuple(curves))

    @classmethod
    def from_release(
        cls, release: Release, *, ax: Axes | Sequence[Axes] | None = None, **styles: Style
    ) -> Self:
        """Compute and draw a picture of a release. Costs no privacy.

        Parameters
        ----------
        release
            As for `of`.
        ax
            As for `plot`.
        **styles
            ``line_kw`` and ``band_kw`` of all rows, ``strata_kw`` and ``diagonal_kw``: keywords of
            matplotlib's ``plot``, ``fill_between``, ``plot`` and ``plot``.
        """
        return cls.of(release).plot(ax, **styles)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Axes | Sequence[Axes] | None = None, **styles: Style
    ) -> Self:
        """Compute and draw a picture of a fitted estimator's release: see `from_release`."""
        return cls.from_release(estimator.release_, ax=ax, **styles)

    @property
    def n_panels(self) -> int:
        """One."""
        return 1

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches, of a figure of its own."""
        return (7.0, 7.2)

    @property
    def title(self) -> str:
        """Its title."""
        return title_of(self.release, f"Calibration of {shortened(self.release.output_name)}")

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers behind the picture.

        Returns
        -------
        pandas.DataFrame
            Of which rows, the probability below by the model, the share of these rows that lie
            below, and its 95 % limits.
        """
        with extra("tables"):
            import pandas as pd

        return pd.concat(
            [
                pd.DataFrame(
                    {
                        "rows": curve.rows,
                        "modelled": self.modelled,
                        "share": curve.share,
                        "lower": curve.limits[0],
                        "upper": curve.limits[1],
                    }
                )
                for curve in self.curves
            ],
            ignore_index=True,
        )

    def _draw(self, panels: Sequence[Axes], styles: Mapping[str, Style]) -> Sequence[Any]:
        (axes,) = panels
        theme = theme_of(axes)
        whole, *strata = self.curves
        diagonal = {"color": theme.ink, "linewidth": 1.0, "linestyle": DASHES}
        axes.plot(
            [0, 1],
            [0, 1],
            **styled(styles.get("diagonal_kw"), label="as the model says", **diagonal),
        )
        band = styled(
            styles.get("band_kw"),
            color=theme.band,
            alpha=0.35,
            linewidth=0,
            label=f"95 % limits for {whole.rows}",
        )
        axes.fill_between(self.modelled, *whole.limits, **band)
        line = styled(styles.get("line_kw"), color=theme.curve, linewidth=2.4, label=whole.rows)
        axes.plot(self.modelled, whole.share, **line)
        for curve, (shade, dashes) in zip(strata, cycle(LOOKS), strict=False):
            stratum = styled(
                styles.get("strata_kw"),
                color=theme.shades[shade],
                linestyle=dashes,
                linewidth=1.3,
                label=curve.rows,
            )
            axes.plot(self.modelled, curve.share, **stratum)
        axes.set_xlim(0.0, 1.0)
        axes.set_ylim(0.0, 1.0)
        axes.set_aspect("equal")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(PercentFormatter(xmax=1.0))
        axes.set_xlabel("probability below, by the Gaussian model", **theme.words)
        axes.set_ylabel("share of rows below, by noisy counts", **theme.words)
        tidy(axes, theme=theme)
        return list(axes.get_legend_handles_labels()[0])


def _names_of(ends: Array, *, output: str) -> list[str]:
    """Return strata of predicted values, in words."""
    told = [f"{amount(end, 3)}" for end in ends.tolist()]
    return [
        f"predicted {output} below {told[0]}",
        *(f"predicted {output} {low} to {high}" for low, high in pairwise(told)),
        f"predicted {output} from {told[-1]} on",
    ]
