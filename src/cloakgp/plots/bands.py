"""Pictures of stages: to which bands outputs were clipped before every measurement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cloakgp.plots.display import ReleaseDisplay, Style, styled
from cloakgp.plots.figures import draw_rug, rug_mark, share_limits, tidy, title_of
from cloakgp.plots.slices import axis_of, shortened
from cloakgp.plots.themes import theme_of
from cloakgp.privacy.questions.bands import Bands
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.release import DenseStrategy, Measurement, Release
from cloakgp.report.columns import asked_output, what_inputs_are
from cloakgp.report.controls import Control, controls_of
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra
from cloakgp.utils.formatting import amount, percent

with extra("plots"):
    from matplotlib.axes import Axes

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class StageBands:
    """The bands of one stage.

    Attributes
    ----------
    share : float
        Of the budget, that it spent: of μ² where noise is Gaussian, of ε where it is Laplace.
    lower, upper : arrays of shape (n,)
        In units of what was asked.
    clipped_to : str
        What they are, in words.
    """

    share: float
    lower: Array
    upper: Array
    clipped_to: str

    @property
    def mean_width(self) -> float:
        """The mean width of the bands."""
        return float(np.mean(self.upper - self.lower))


@dataclass(eq=False, repr=False)
class BandsDisplay(ReleaseDisplay):
    """The bands to which outputs were clipped, a panel for each stage.

    In the first, these are the bounds; later ones lie around what the answers so far predict.

    Parameters
    ----------
    release : Release
        About numbers.
    control : Control
        The input on the horizontal axis.
    stages : tuple of StageBands
    unit : str
        Of what was asked.

    Examples
    --------
    >>> import numpy as np
    >>> from cloakgp import DPGPRegressor
    >>> X = np.linspace(0, 10, 200)[:, None]
    >>> model = DPGPRegressor(bounds=(-5, 5), epsilon=1.0, delta=1e-3)
    >>> display = BandsDisplay.of(model.fit(X, np.sin(X).ravel()).release_)
    >>> display.n_panels, list(display.to_frame().columns)
    (3, ['stage', 'share', 'x1', 'lower', 'upper'])
    """

    release: Release
    control: Control
    stages: tuple[StageBands, ...]
    unit: str = ""

    @classmethod
    def of(cls, release: Release, *, vary: str | None = None, unit: str = "") -> Self:
        """Compute the numbers of a picture, without drawing it.

        Parameters
        ----------
        release : Release
            If it is of several tables, the stages of the first are drawn.
        vary : str, optional
            The input on the horizontal axis, a number; the first if not given.
        unit : str
            Of the output, for labels.

        Raises
        ------
        TypeError
            If it is a release of another kind, or of classes.
        ValueError
            If there is no such input.
        """
        if not isinstance(release, Release) or release.class_labels:
            raise TypeError("there is a picture of bands of releases about numbers alone")
        numbers = {each.name: each for each in controls_of(release) if each.kind == "number"}
        chosen = vary if vary is not None else next(iter(numbers), "")
        if chosen not in numbers:
            raise ValueError(
                f"the release has no number {chosen}; it has: {', '.join(numbers) or 'none'}"
            )
        first = release.measurements[0].strategy.table
        asked = [
            each
            for each in release.measurements
            if each.strategy.table == first and each.question.locates
        ]
        stages = tuple(_stage(release, each) for each in asked)
        return cls(release, numbers[chosen], stages, unit)

    @classmethod
    def from_release(
        cls,
        release: Release,
        *,
        vary: str | None = None,
        unit: str = "",
        ax: Axes | Sequence[Axes] | None = None,
        **styles: Style,
    ) -> Self:
        """Compute and draw a picture of the stages of a release. Costs no privacy.

        Parameters
        ----------
        release, vary, unit
            As for `of`.
        ax
            As for `plot`.
        **styles
            ``band_kw`` and ``rows_kw``: keywords of ``fill_between`` or ``vlines``, and ``plot``.
        """
        return cls.of(release, vary=vary, unit=unit).plot(ax, **styles)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        vary: str | None = None,
        unit: str = "",
        ax: Axes | Sequence[Axes] | None = None,
        **styles: Style,
    ) -> Self:
        """Compute and draw a picture of a fitted estimator's stages: see `from_release`."""
        return cls.from_release(estimator.release_, vary=vary, unit=unit, ax=ax, **styles)

    @property
    def n_panels(self) -> int:
        """The number of stages."""
        return len(self.stages)

    @property
    def title(self) -> str:
        """Its title."""
        return title_of(self.release, f"Bands of {shortened(asked_output(self.release))}")

    def to_frame(self) -> pd.DataFrame:
        """Return the band of every row, or query point, in every stage."""
        with extra("tables"):
            import pandas as pd

        return pd.concat(
            [
                pd.DataFrame(
                    {
                        "stage": number,
                        "share": stage.share,
                        self.control.name: self._inputs(stage),
                        "lower": stage.lower,
                        "upper": stage.upper,
                    }
                )
                for number, stage in enumerate(self.stages, start=1)
            ],
            ignore_index=True,
        )

    def _inputs(self, stage: StageBands) -> Array:
        return self.control.known[: len(stage.lower)]

    def _draw(self, panels: Sequence[Axes], styles: Mapping[str, Style]) -> Sequence[Any]:
        theme = theme_of(panels[0])
        alone = self.release.n_inputs == 1
        label = shortened(asked_output(self.release)) + (f" ({self.unit})" if self.unit else "")
        for number, (axes, stage) in enumerate(zip(panels, self.stages, strict=True), start=1):
            inputs = self._inputs(stage)
            order = np.argsort(inputs, kind="stable")
            drawn = (inputs[order], stage.lower[order], stage.upper[order])
            if alone:
                band = styled(styles.get("band_kw"), color=theme.band, alpha=0.4, linewidth=0.8)
                axes.fill_between(*drawn, **band)
            else:
                faint = max(0.08, min(0.5, 40 / len(inputs)))
                band = styled(styles.get("band_kw"), color=theme.curve, alpha=faint, linewidth=1.2)
                axes.vlines(*drawn, **band)
            draw_rug(axes, inputs, theme=theme, **dict(styles.get("rows_kw") or {}))
            axes.set_title(
                f"Stage {number}, {percent(stage.share)} of the budget: {stage.clipped_to}\n"
                f"mean width {amount(stage.mean_width, 3)}{f' {self.unit}' if self.unit else ''}",
                fontsize=9.5,
                **theme.words,
            )
            axes.set_xlabel(axis_of(self.control), **theme.words)
            axes.set_ylabel(label, **theme.words)
            tidy(axes, theme=theme)
        share_limits(panels)
        return [rug_mark(what_inputs_are(self.release), theme=theme)]


def _stage(release: Release, measurement: Measurement) -> StageBands:
    strategy = measurement.strategy
    X = strategy.X if isinstance(strategy, DenseStrategy) else strategy.X_query
    question = measurement.question.of_rows(X)
    spent = measurement.noise.spent
    share = spent(measurement.guarantee) / sum(
        spent(each.guarantee) for each in release.measurements
    )
    if isinstance(question, Bands):
        return StageBands(share, question.lower, question.upper, "around predictions")
    assert isinstance(question, OutputBounds)
    lo, hi = question.lo, question.hi
    whole = release.transform is not None or (lo, hi) == release.output_bounds
    named = "the bounds" if whole else "the interval found"
    return StageBands(share, np.full(len(X), lo), np.full(len(X), hi), named)
