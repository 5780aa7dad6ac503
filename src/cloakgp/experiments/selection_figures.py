"""Figures 10 and 11 of the 2021 paper, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cloakgp.arrays import Array

BLUE, RED = "#1f5fa8", "#c0392b"
# Where the closer view of figure 10 ends, in cm.
CLOSER = 40.0


def bars_figure(choices: Mapping[str, tuple[Array, Array]], *, title: str) -> Figure:
    """Draw figure 10: configurations by their error, each as wide as it is probable.

    Parameters
    ----------
    choices : mapping of str to (array, array), each of shape (n,)
        RMSE in cm and probability of every configuration, by way of choosing.
    title : str
    """
    figure = Figure(figsize=(3.4 * len(choices), 6.8), layout="constrained")
    grid = figure.subplots(2, len(choices), squeeze=False, sharex=True, sharey="row")
    for (whole, close), (name, (rmse, probabilities)) in zip(grid.T, choices.items(), strict=True):
        expected = float(np.sqrt(probabilities @ np.square(rmse)))
        for axes in (whole, close):
            _draw_bars(axes, rmse, probabilities, expected=expected)
        whole.set_title(f"{name}\nexpected {expected:.1f} cm", fontsize=10)
        close.set_ylim(0, CLOSER)
        close.set_xlabel("cumulative probability")
    for row in grid:
        row[0].set_ylabel("RMSE (cm)")
    figure.suptitle(title, fontsize=12)
    return figure


def _draw_bars(axes: Axes, rmse: Array, probabilities: Array, *, expected: float) -> None:
    order = np.argsort(rmse)
    widths = probabilities[order]
    axes.bar(
        np.cumsum(widths) - widths,
        rmse[order],
        width=widths,
        align="edge",
        color=BLUE,
        edgecolor="white",
        linewidth=0.15,
    )
    axes.axhline(expected, color=RED, linewidth=1.2)
    axes.set_xlim(0, 1)


def lengthscales_figure(
    panels: Mapping[str, Array],
    *,
    epsilons: Sequence[float],
    lengthscales: Sequence[float],
    unit: str,
    title: str,
) -> Figure:
    """Draw figure 11: how probable every lengthscale is, by the budget.

    Parameters
    ----------
    panels : mapping of str to array of shape (lengthscales, epsilons)
        Probabilities, by way of choosing.
    epsilons, lengthscales : sequence of float
    unit : str
        Of the lengthscales.
    title : str
    """
    figure = Figure(figsize=(5.2 * len(panels), 3.9), layout="constrained")
    row = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (name, probabilities) in zip(row, panels.items(), strict=True):
        image = axes.imshow(
            probabilities, cmap="Greys", vmin=0, vmax=1, origin="lower", aspect="auto"
        )
        for (vertical, horizontal), share in np.ndenumerate(probabilities):
            axes.text(
                horizontal,
                vertical,
                f"{share:.0%}",
                ha="center",
                va="center",
                fontsize=8,
                color="white" if share > 0.55 else "black",
            )
        axes.set_xticks(range(len(epsilons)), [f"{epsilon:g}" for epsilon in epsilons])
        axes.set_yticks(range(len(lengthscales)), [f"{one:g}" for one in lengthscales])
        axes.set_xlabel("ε of the choice, and of the release")
        axes.set_title(name, fontsize=10)
    row[0].set_ylabel(f"lengthscale ({unit})")
    figure.colorbar(image, ax=list(row), label="probability")
    figure.suptitle(title, fontsize=12)
    return figure
