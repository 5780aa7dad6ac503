"""Pictures of plans: the error that is expected over the inputs, before anything is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cloakgp.fitting.release_plan import ReleasePlan
from cloakgp.plots.curves import finish_curve
from cloakgp.plots.display import Display, Style, styled
from cloakgp.plots.figures import add_colour_bar, row_mark, rug_mark
from cloakgp.plots.slices import (
    Slice,
    fill_map,
    finish_map,
    join_frames,
    predicting,
    shortened,
    slices_of,
    write_held,
)
from cloakgp.plots.themes import Theme, theme_of
from cloakgp.release import Release
from cloakgp.report.controls import controls_of
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

with extra("plots"):
    from matplotlib.axes import Axes

if TYPE_CHECKING:
    import pandas as pd

COLOURS = "viridis"


@dataclass(eq=False, repr=False)
class PlanDisplay(Display):
    """The expected error over one input, for every budget of a plan, or over two for its own.

    Parameters
    ----------
    plan : ReleasePlan
    piece : Slice
    errors : mapping of float to array of shape (n,)
        Of the latent function, in output units, by ε.
    output : str
        Name of the private column.
    unit : str
        Of the output.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> plan = DPGPRegressor(bounds=(0, 1), epsilon=1.0).plan([[0.0], [1.0], [2.0]])
    >>> display = PlanDisplay.of(plan)
    >>> figure = display.draw()
    >>> display.ax_.get_ylabel()
    'expected error of y'
    """

    plan: ReleasePlan
    piece: Slice
    errors: Mapping[float, Array]
    output: str = "y"
    unit: str = ""

    @classmethod
    def of(
        cls, plan: ReleasePlan, *, vary: Sequence[str] = (), output: str = "y", unit: str = ""
    ) -> Self:
        """Compute the numbers of a picture, without drawing it.

        Parameters
        ----------
        plan : ReleasePlan
        vary : sequence of str
            One or two inputs; the first if not given. The others are held at their medians.
        output, unit : str
            Name and unit of the private column.

        Raises
        ------
        ValueError
            If the plan has no forecast, an input is unknown, or there are more than two.
        """
        if plan.forecast is None:
            raise ValueError(f"there is nothing to draw: expected error {plan.unknown}")
        table = plan.table
        named = [
            replace(each.release, input_names=table.names, schema=table.schema)
            for each in plan.forecasts
        ]
        first = controls_of(named[0])[0].name
        [*pieces] = slices_of(named[0], vary=vary or [first])
        if len(pieces) > 1:
            raise ValueError(
                "a picture of a plan has room for one or two numbers: choose with vary"
            )
        (piece,) = pieces
        errors = {
            forecast.epsilon: _sd(release, piece.rows)
            for forecast, release in zip(plan.forecasts, named, strict=True)
        }
        return cls(plan, piece, errors, output, unit)

    @classmethod
    def from_plan(
        cls,
        plan: ReleasePlan,
        *,
        vary: Sequence[str] = (),
        output: str = "y",
        unit: str = "",
        ax: Axes | None = None,
        **styles: Style,
    ) -> Self:
        """Compute and draw a picture of a plan. Nothing is asked, and nothing spent.

        Parameters
        ----------
        plan, vary, output, unit
            As for `of`.
        ax
            As for `plot`.
        **styles
            ``line_kw`` and ``rows_kw`` of curves, ``map_kw`` and ``rows_kw`` of maps.
        """
        return cls.of(plan, vary=vary, output=output, unit=unit).plot(ax, **styles)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        vary: Sequence[str] = (),
        output: str = "y",
        unit: str = "",
        ax: Axes | None = None,
        **styles: Style,
    ) -> Self:
        """Plan for an estimator that is not fitted yet, on public inputs, and draw that.

        Parameters
        ----------
        estimator : DPGPRegressor
        X : array-like or table of shape (N, D)
            Public inputs.
        vary, output, unit, ax, **styles
            As for `from_plan`.
        """
        return cls.from_plan(
            estimator.plan(X), vary=vary, output=output, unit=unit, ax=ax, **styles
        )

    @property
    def n_panels(self) -> int:
        """One."""
        return 1

    @property
    def title(self) -> str:
        """Its title."""
        return f"Expected error of {shortened(self.output)}, before anything is asked"

    @property
    def label(self) -> str:
        """The axis label of the error."""
        return f"expected error of {shortened(self.output)}" + (
            f" ({self.unit})" if self.unit else ""
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers behind the picture: inputs, ε and the expected error."""
        own = {self.plan.epsilon: self.errors[self.plan.epsilon]}
        return join_frames(
            [
                self.piece.frame(epsilon=np.full(len(error), epsilon), error=error)
                for epsilon, error in (own if self.piece.is_map else self.errors).items()
            ]
        )

    def _draw(self, panels: Sequence[Axes], styles: Mapping[str, Style]) -> Sequence[Any]:
        (axes,) = panels
        theme = theme_of(axes)
        draw = self._draw_map if self.piece.is_map else self._draw_curves
        return draw(axes, theme, styles)

    def _draw_curves(self, axes: Axes, theme: Theme, styles: Mapping[str, Style]) -> Sequence[Any]:
        (grid,) = self.piece.grids
        for place, (epsilon, error) in enumerate(self.errors.items()):
            line = styled(
                styles.get("line_kw"),
                color=theme.shades[place % len(theme.shades)],
                linewidth=2.8 if epsilon == self.plan.epsilon else 1.4,
                label=f"ε = {epsilon:.4g}",
            )
            axes.plot(grid, error, **line)
        prior = self.plan.forecasts[0].prior_error
        axes.axhline(prior, color=theme.pale, linestyle="--", label="nothing asked")
        finish_curve(axes, self.piece, theme=theme, styles=styles)
        write_held(axes, self.piece, theme=theme)
        axes.set_ylim(bottom=0.0)
        axes.set_ylabel(self.label, **theme.words)
        return [*axes.get_legend_handles_labels()[0], rug_mark("rows (inputs only)", theme=theme)]

    def _draw_map(self, axes: Axes, theme: Theme, styles: Mapping[str, Style]) -> Sequence[Any]:
        piece = self.piece
        drawn = fill_map(
            axes,
            piece,
            self.errors[self.plan.epsilon],
            styled(styles.get("map_kw"), levels=20, cmap=COLOURS),
        )
        add_colour_bar([axes], drawn, label=self.label, theme=theme)
        finish_map(axes, piece, theme=theme, styles=styles)
        return [row_mark("rows (inputs only)")]


def _sd(release: Release, rows: Any) -> Array:
    return predicting(lambda: np.asarray(release.predict(rows, return_std=True)[1]))
