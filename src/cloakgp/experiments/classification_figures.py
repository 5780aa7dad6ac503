"""Figures 6 to 9 of the 2021 paper, and calibration curves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cloakgp.arrays import Array
from cloakgp.experiments import home_equity
from cloakgp.experiments.classes import Mean, Outcome, Task
from cloakgp.experiments.digits import Convergence
from cloakgp.experiments.figures import BLACK, BLUE, GREY, RED

# Share of a grid cell that a block of discs fills.
BLOCK = 0.8
LARGEST_DISC = 38.0


def hinton_figure(found: Mapping[str, Array], *, drawn: Task, title: str) -> Figure:
    """Draw figure 7: at every grid point, a block with one disc per release.

    Parameters
    ----------
    found : mapping of method to array of shape (releases, P)
        Probability of a positive label.
    drawn : Task
        Rows that were learned from, and the grid.
    title : str
    """
    figure = Figure(figsize=(6.4 * len(found), 7.4), layout="constrained")
    for axes, (name, probabilities) in zip(
        figure.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True
    ):
        _draw_blocks(axes, probabilities, points=drawn.X_test)
        for label, colour, word in ((True, BLUE, "positive"), (False, RED, "negative")):
            rows = drawn.X[drawn.y == label]
            axes.plot(
                *rows.T, "x", color=colour, markersize=4, label=f"{word} rows", markeredgewidth=1.1
            )
        axes.set_title(name, fontsize=11)
        axes.set_xlim(-0.6, 9.6)
        axes.set_ylim(-0.6, 9.6)
        axes.set_aspect("equal")
        axes.set_facecolor("0.72")
    figure.suptitle(title, fontsize=12)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


def _draw_blocks(axes: Axes, probabilities: Array, *, points: Array) -> None:
    releases = len(probabilities)
    side = int(np.ceil(np.sqrt(releases)))
    places = (np.stack(np.divmod(np.arange(releases), side), axis=1) + 0.5) / side - 0.5
    spots = points[None] + BLOCK * places[:, None]
    axes.scatter(
        spots[..., 0],
        spots[..., 1],
        s=LARGEST_DISC * np.abs(2.0 * probabilities - 1.0),
        c=np.where(probabilities > 0.5, 1.0, 0.0),
        cmap="gray",
        vmin=0.0,
        vmax=1.0,
        linewidths=0,
    )


def default_figure(found: home_equity.Curves, *, title: str) -> Figure:
    """Draw figure 6: rows per count, and the spread of private probabilities of default.

    Parameters
    ----------
    found : Curves
    title : str
    """
    private = {
        name: found.probabilities(name) for name in found.releases if name != home_equity.NO_PRIVACY
    }
    figure = Figure(figsize=(8.0, 2.4 * (len(private) + 1)), layout="constrained")
    upper, *lower = figure.subplots(1 + len(private), 1, sharex=True)
    counts = home_equity.COUNTS
    bottom = np.zeros(len(counts))
    lines, bad = found.learned.X[:, 0], found.learned.y
    for label, colour, word in ((True, RED, "default"), (False, BLUE, "no default")):
        heights = np.array([((lines == count) & (bad == label)).sum() for count in counts])
        upper.bar(counts, heights, bottom=bottom, color=colour, label=word, width=0.7)
        bottom = bottom + heights
    upper.set_ylabel("loans")
    upper.legend(fontsize=9, frameon=False)
    for axes, (name, releases) in zip(lower, private.items(), strict=True):
        parts = axes.violinplot(list(releases.T), counts, widths=0.8)
        for body in parts["bodies"]:
            body.set_facecolor(BLUE)
        axes.plot(counts, found.reference, "x", color=BLACK, label="no privacy")
        axes.set_title(f"{name}: {len(releases)} releases", fontsize=10)
        axes.set_ylim(0.0, 1.0)
        axes.set_ylabel("P(default)")
        axes.grid(alpha=0.25)
    lower[0].legend(fontsize=9, frameon=False, loc="upper left")
    lower[-1].set_xlabel("delinquent credit lines")
    lower[-1].set_xticks(counts)
    figure.suptitle(title, fontsize=12)
    return figure


def inducing_figure(
    found: Mapping[str, Mapping[float, Mapping[int, Outcome]]], *, title: str
) -> Figure:
    """Draw figure 8: accuracy by number of inducing inputs, shades by lengthscale.

    Parameters
    ----------
    found : mapping of method to mapping of lengthscale to mapping of count to Outcome
    title : str
    """
    figure = Figure(figsize=(4.4 * len(found), 4.8), layout="constrained")
    grid = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    for axes, (name, by_length) in zip(grid, found.items(), strict=True):
        shades = np.linspace(0.0, 0.75, len(by_length))
        for shade, (length, by_count) in zip(shades, by_length.items(), strict=True):
            means = [Mean.of(outcome.hits) for outcome in by_count.values()]
            axes.errorbar(
                list(by_count),
                [100 * mean.value for mean in means],
                yerr=[100 * mean.error for mean in means],
                color=str(shade),
                marker="o",
                markersize=4,
                capsize=2,
                label=f"l = {length:g}",
            )
        axes.axhline(50.0, color=RED, linewidth=1.0, linestyle=":")
        axes.set_xscale("log")
        counts = list(next(iter(by_length.values())))
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.minorticks_off()
        axes.set_xlabel("inducing inputs")
        axes.set_title(name, fontsize=11)
        axes.grid(alpha=0.25)
    grid[0].set_ylabel("accuracy, %")
    figure.suptitle(title, fontsize=12)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    return figure


def convergence_figure(found: Convergence, *, title: str) -> Figure:
    """Draw figure 9: distance of every entry of f̂ to its optimum, by step.

    Parameters
    ----------
    found : Convergence
    title : str
    """
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    parts = {"no privacy": found.exact, "(1, 0.01)-DP noise in every step": found.private}
    grid = figure.subplots(1, 2, sharey=True)
    for axes, (name, distances) in zip(grid, parts.items(), strict=True):
        axes.plot(distances, color=BLUE, linewidth=0.5, alpha=0.4)
        axes.plot(distances.mean(axis=1), color=BLACK, linewidth=2.0, label="mean of all entries")
        axes.set_title(name, fontsize=11)
        axes.set_xlabel("Newton step")
        axes.grid(alpha=0.25)
    grid[0].set_ylabel("|f̂ − optimum|")
    grid[0].legend(frameon=False)
    figure.suptitle(title, fontsize=12)
    return figure


def reliability_figure(found: Mapping[str, Outcome], *, title: str) -> Figure:
    """Draw how often each method was right by how sure it said it was.

    Parameters
    ----------
    found : mapping of method to Outcome
    title : str
    """
    figure = Figure(figsize=(4.4 * len(found), 4.9), layout="constrained")
    grid = figure.subplots(1, len(found), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (name, outcome) in zip(grid, found.items(), strict=True):
        ways = ((True, BLUE, "o-", "privacy noise integrated"), (False, RED, "s--", "left out"))
        for integrated, colour, style, word in ways:
            curve = outcome.reliability(privacy_noise=integrated)
            axes.plot(
                curve.stated,
                curve.observed,
                style,
                color=colour,
                markersize=5,
                label=f"{word}: error {100 * curve.error:.1f} %",
            )
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=1.0)
        axes.set_xlim(0.49, 1.01)
        axes.set_ylim(0.4, 1.02)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("probability given to the predicted class")
        axes.legend(fontsize=9, frameon=False, loc="lower right")
        axes.grid(alpha=0.25)
    grid[0].set_ylabel("share that was right")
    figure.suptitle(title, fontsize=12)
    return figure
