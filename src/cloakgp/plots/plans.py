"""Pictures of plans: the error that is expected over the inputs, before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cloakgp.fitting.release_plan import ReleasePlan
from cloakgp.plots.figures import (
    CURVE_POINTS,
    INK,
    PALE_INK,
    TEXT,
    chosen_inputs,
    draw_rug,
    finish,
    new_figure,
    slice_points,
    widened,
)
from cloakgp.report.columns import input_names, known_inputs
from cloakgp.utils.extras import extra

with extra("plots"):
    from matplotlib import colormaps
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = "viridis"
MAP_SIDE = 60


def plot_plan(plan: ReleasePlan, *, vary: Sequence[str] = (), output: str = "y") -> Figure:
    """Draw the expected error over one input, for every budget of a plan, or over two.

    Parameters
    ----------
    plan : ReleasePlan
    vary : sequence of str
        One or two inputs; the first if not given. The others are held at their medians.
    output : str
        Name of the private column.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If the plan has no forecast, or an input is unknown.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> plan = DPGPRegressor(bounds=(0, 1), epsilon=1.0).plan([[0.0], [1.0], [2.0]])
    >>> plot_plan(plan).axes[0].get_ylabel()
    'expected error of y'
    """
    if plan.forecast is None:
        raise ValueError(f"there is nothing to draw: expected error {plan.unknown}")
    release = replace(plan.forecast.release, input_names=plan.table.names)
    chosen = chosen_inputs(release, vary=vary or input_names(release)[:1])
    figure = new_figure(width=8.0, height=5.2)
    axes = figure.add_subplot()
    (_draw_curves if len(chosen) == 1 else _draw_map)(axes, plan, vary=chosen, output=output)
    finish(axes, release, vary=chosen)
    figure.suptitle(
        f"Expected error of {output}, before anything is asked",
        color=INK,
        parse_math=False,
        fontsize=13,
        fontweight="bold",
    )
    return figure


def _draw_curves(axes: Axes, plan: ReleasePlan, *, vary: Sequence[str], output: str) -> None:
    shades = colormaps[COLOURS](np.linspace(0.15, 0.85, len(plan.forecasts)))
    for shade, forecast in zip(shades, plan.forecasts, strict=True):
        release = replace(forecast.release, input_names=plan.table.names)
        column = known_inputs(release)[:, input_names(release).index(vary[0])]
        grid = np.linspace(*widened(column, share=0.02), CURVE_POINTS)
        _, sd = release.predict(slice_points(release, vary=vary, grids=(grid,)), return_std=True)
        own = forecast is plan.forecast
        axes.plot(
            grid,
            sd,
            color=shade,
            linewidth=2.6 if own else 1.4,
            label=f"ε = {forecast.epsilon:.4g}",
        )
    axes.axhline(
        plan.forecasts[0].prior_error, color=PALE_INK, linestyle="--", label="nothing asked"
    )
    draw_rug(axes, column)
    axes.set_xlim(grid[0], grid[-1])
    axes.set_ylim(bottom=0.0)
    axes.set_ylabel(f"expected error of {output}", **TEXT)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK)


def _draw_map(axes: Axes, plan: ReleasePlan, *, vary: Sequence[str], output: str) -> None:
    assert plan.forecast is not None
    release = replace(plan.forecast.release, input_names=plan.table.names)
    X = known_inputs(release)[:, [input_names(release).index(name) for name in vary]]
    sides = [np.linspace(*widened(column, share=0.04), MAP_SIDE) for column in X.T]
    across, up = np.meshgrid(*sides)
    points = slice_points(release, vary=vary, grids=(across.ravel(), up.ravel()))
    _, sd = release.predict(points, return_std=True)
    drawn = axes.pcolormesh(across, up, sd.reshape(across.shape), cmap=COLOURS, shading="gouraud")
    axes.plot(X[:, 0], X[:, 1], ".", color="white", markersize=2, alpha=0.6)
    bar = axes.figure.colorbar(drawn, ax=axes, pad=0.02, aspect=28)
    bar.set_label(f"expected error of {output}", **TEXT)
    axes.set_ylabel(vary[1], **TEXT)
