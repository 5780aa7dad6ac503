"""Pictures of a release of classification: probabilities over one input or over two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cloakgp.models.likelihoods.classes import class_likelihood
from cloakgp.plots.regression import (
    BAND,
    CURVE,
    CURVE_POINTS,
    DASHES,
    INK,
    PALE_INK,
    TEXT,
    draw_row_marks,
    draw_rug,
    finish,
    row_mark,
    slice_points,
    widened,
)
from cloakgp.plots.release import chosen_inputs, new_figure, write_title
from cloakgp.release import Release
from cloakgp.report.columns import class_names, input_names, known_inputs
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

TAIL = 0.025
# Points that stand for the normal distribution of several latent functions.
NODES = 512
BLOCK_ROWS = 400


def probability_limits(
    release: Release, X: Array, *, privacy_noise: bool = True
) -> tuple[Array, Array]:
    """Return 95 % limits of the probability of every class, lower and upper, each (P, C).

    The probability is a function of latent values that are not fully known; these are its 2.5 and
    97.5 percentiles. With two classes they are the link's values at mean ± 1.96 sd. With more, the
    percentiles of shares of independent latent functions, over a low-discrepancy set of 512 points.

    Parameters
    ----------
    release : Release
    X : array of shape (P, D)
    privacy_noise : bool
        False leaves out what the privacy noise makes unknown.

    Examples
    --------
    >>> from cloakgp import DPGPClassifier
    >>> model = DPGPClassifier(classes=["ill", "well"], epsilon=1.0, delta=1e-3)
    >>> kept = model.fit([[0.0], [1.0], [2.0]], ["ill", "well", "well"]).release_
    >>> lower, upper = probability_limits(kept, np.array([[0.5]]))
    >>> bool(np.all((0 <= lower) & (lower < upper) & (upper <= 1)))
    True
    """
    latent, link = release.predict_latent(X), class_likelihood(release.fitted.likelihood).link
    variance = np.square(latent.sd)
    if not privacy_noise:
        variance = np.maximum(variance - np.square(latent.privacy_sd), 0.0)
    sd = np.sqrt(variance)
    if latent.mean.ndim == 1:
        reach = ndtri(1.0 - TAIL) * sd
        low, high = link.probability(latent.mean - reach), link.probability(latent.mean + reach)
        return np.column_stack([1.0 - high, low]), np.column_stack([1.0 - low, high])
    nodes = normal_nodes(latent.mean.shape[1])[:, None, :]
    lower, upper = np.empty_like(sd), np.empty_like(sd)
    for start in range(0, len(sd), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        values = link.probability(latent.mean[block] + sd[block] * nodes)
        shares = values / values.sum(axis=2, keepdims=True)
        lower[block], upper[block] = np.quantile(shares, (TAIL, 1.0 - TAIL), axis=0)
    return lower, upper


def normal_nodes(dimensions: int, *, pairs: int = NODES // 2) -> Array:
    """Return points that fill the standard normal distribution evenly, shape (2 pairs, dimensions).

    Kronecker's sequence of the powers of 1/g, with g the positive root of g^(d + 1) = g + 1, made
    normal, its mirror image, and a linear map by which mean and covariance are exact: the same
    points every time, and none at random.

    Examples
    --------
    >>> normal_nodes(2, pairs=3).shape
    (6, 2)
    """
    root = 2.0
    # A contraction for every d: 60 steps are exact in float64.
    for _ in range(60):
        root = (1.0 + root) ** (1.0 / (dimensions + 1))
    steps = root ** -np.arange(1.0, dimensions + 1.0)
    uniform = (0.5 + np.arange(1.0, pairs + 1.0)[:, None] * steps) % 1.0
    half = ndtri(uniform)
    nodes = np.vstack([half, -half])
    factor = np.linalg.cholesky(nodes.T @ nodes / len(nodes))
    return np.linalg.solve(factor, nodes.T).T


with extra("plots"):
    from matplotlib.axes import Axes
    from matplotlib.contour import QuadContourSet
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

PRIVACY_BAND = "#e3a04f"
# Pale where both are as probable: strong colours are sure predictions.
SURFACE_COLOURS = "RdBu_r"
SURFACE_POINTS = 48
LEVELS = np.linspace(0.0, 1.0, 21)
MARKED_LEVELS = (0.25, 0.5, 0.75)
OPEN_ANYWAY, OPEN_BY_NOISE = "....", "////"
HATCH_COLOUR = "#5b6670"


def draw_probability(axes: Axes, release: Release, *, vary: Sequence[str], shown: int) -> None:
    """Draw the probability of one class over one input, its 95 % band, and privacy's part of it.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    release : Release
    vary : sequence of one str
        The input on the horizontal axis.
    shown : int
        Which class, in the order of ``release.classes``.
    """
    (name,) = vary
    column = known_inputs(release)[:, input_names(release).index(name)]
    grid = np.linspace(*widened(column, share=0.02), CURVE_POINTS)
    points = slice_points(release, vary=vary, grids=(grid,))
    probabilities = release.predict_proba(points)
    lower, upper = _limits(release, points, shown=shown, privacy_noise=True)
    inner = _limits(release, points, shown=shown, privacy_noise=False)
    inner_lower, inner_upper = (np.clip(edge, lower, upper) for edge in inner)
    axes.plot(
        grid,
        probabilities[:, shown],
        color=CURVE,
        linewidth=2.4,
        zorder=2.5,
        label="predicted probability",
    )
    for below, above, colour, label in (
        (inner_lower, inner_upper, BAND, "95 % without the privacy noise"),
        (lower, inner_lower, PRIVACY_BAND, "what the privacy noise adds"),
        (inner_upper, upper, PRIVACY_BAND, ""),
    ):
        axes.fill_between(grid, below, above, color=colour, alpha=0.42, linewidth=0, label=label)
    likelihood = class_likelihood(release.likelihood)
    rate = likelihood.prior_rates(release.prior, known_inputs(release))[shown]
    axes.axhline(rate, color=PALE_INK, linewidth=0.9, linestyle=DASHES, zorder=1)
    draw_rug(axes, column)
    axes.set_xlim(grid[0], grid[-1])
    # Below 0, room for the marks of the rows.
    axes.set_ylim(-0.07, 1.02)
    finish(axes, release, vary=vary)
    axes.set_ylabel(probability_of(release, shown=shown), **TEXT)


def draw_surface(
    axes: Axes, release: Release, *, vary: Sequence[str], shown: int
) -> QuadContourSet:
    """Draw the probability of one class over two inputs, and where 95 % limits leave it open.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    release : Release
    vary : sequence of two str
        The inputs on the horizontal and vertical axes.
    shown : int
        Which class, in the order of ``release.classes``.

    Returns
    -------
    matplotlib.contour.QuadContourSet
        What a colour bar belongs to.
    """
    X = known_inputs(release)[:, [input_names(release).index(name) for name in vary]]
    sides = [np.linspace(*widened(column, share=0.04), SURFACE_POINTS) for column in X.T]
    across, up = np.meshgrid(*sides)
    points = slice_points(release, vary=vary, grids=(across.ravel(), up.ravel()))
    probability = release.predict_proba(points)[:, shown].reshape(across.shape)
    surface = axes.contourf(across, up, probability, levels=LEVELS, cmap=SURFACE_COLOURS)
    axes.contour(
        across, up, probability, levels=MARKED_LEVELS, colors=INK, linewidths=(0.8, 1.6, 0.8)
    )
    open_anyway = _includes_half(release, points, shown=shown, privacy_noise=False)
    open_with_noise = _includes_half(release, points, shown=shown, privacy_noise=True)
    for region, hatch in (
        (open_anyway, OPEN_ANYWAY),
        (open_with_noise & ~open_anyway, OPEN_BY_NOISE),
    ):
        if region.any():
            hatched = axes.contourf(
                across,
                up,
                region.reshape(across.shape).astype(np.float64),
                levels=(0.5, 1.5),
                colors="none",
                hatches=[hatch],
            )
            hatched.set_edgecolor(HATCH_COLOUR)
            hatched.set_linewidth(0.0)
    draw_row_marks(axes, X)
    finish(axes, release, vary=vary)
    axes.set_ylabel(vary[1], **TEXT)
    return surface


def probability_of(release: Release, *, shown: int) -> str:
    """Return what to call the probability of a class on an axis."""
    return f"probability of {release.output_name} = {class_names(release)[shown]}"


def curve_legend(axes: Axes) -> list[Any]:
    """Return the legend's entries for a panel of `draw_probability`."""
    handles, _ = axes.get_legend_handles_labels()
    rate = Line2D(
        [], [], color=PALE_INK, linewidth=0.9, linestyle=DASHES, label="before any answer"
    )
    marks = Line2D([], [], color=INK, marker="|", linestyle="none", label="rows (inputs only)")
    return [*handles, rate, marks]


def surface_legend() -> list[Any]:
    """Return the legend's entries for panels of `draw_surface`."""
    regions = [
        Patch(facecolor="none", edgecolor=HATCH_COLOUR, hatch=hatch, linewidth=0.0, label=label)
        for hatch, label in (
            (OPEN_ANYWAY, "open in any case: 95 % limits include 0.5"),
            (OPEN_BY_NOISE, "open because of the privacy noise"),
        )
    ]
    return [row_mark(), *regions]


def _limits(
    release: Release, points: Array, *, shown: int, privacy_noise: bool
) -> tuple[Array, Array]:
    lower, upper = probability_limits(release, points, privacy_noise=privacy_noise)
    return lower[:, shown], upper[:, shown]


def _includes_half(
    release: Release, points: Array, *, shown: int, privacy_noise: bool
) -> NDArray[np.bool_]:
    lower, upper = _limits(release, points, shown=shown, privacy_noise=privacy_noise)
    return np.asarray((lower < 0.5) & (upper > 0.5))


with extra("plots"):
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Panels beside each other, one per class.
MOST_ACROSS = 3
LEGEND_ENTRIES_PER_INCH = 0.42


def plot_classes(release: Release, *, vary: Sequence[str] = (), only: str | None = None) -> Figure:
    """Draw the probabilities of classes: curves over one input, or maps over two.

    Parameters
    ----------
    release : Release
    vary : sequence of str
        One or two inputs to draw over; the others are held at their medians. All of them if not
        given.
    only : str, optional
        The class to draw. If not given: of two the second, for which the latent function is high;
        of more every one, in a panel of its own.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If an input or the class is unknown, or there are more than two inputs and none were chosen.

    Examples
    --------
    >>> from cloakgp import DPGPClassifier
    >>> model = DPGPClassifier(classes=["ill", "well"], epsilon=1.0, delta=1e-3)
    >>> figure = plot_classes(model.fit([[0.0], [1.0], [2.0]], ["ill", "well", "well"]).release_)
    >>> figure.axes[0].get_ylabel()
    'probability of y = well'
    """
    chosen = chosen_inputs(release, vary=vary)
    shown = _shown(release, only=only)
    across = min(len(shown), MOST_ACROSS)
    down = -(-len(shown) // across)
    wide = 8.0 if len(shown) == 1 else 4.2 * across
    tall = (5.2 if len(chosen) == 1 else 5.8) if len(shown) == 1 else 3.7 * down + 0.9
    figure = new_figure(width=wide, height=tall)
    panels = [
        figure.add_subplot(down, across, position + 1, label=str(position))
        for position in range(len(shown))
    ]
    if len(chosen) == 1:
        for axes, one in zip(panels, shown, strict=True):
            draw_probability(axes, release, vary=chosen, shown=one)
        handles = curve_legend(panels[0])
    else:
        _draw_surfaces(figure, panels, release, vary=chosen, shown=shown)
        handles = surface_legend()
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=min(len(handles), int(LEGEND_ENTRIES_PER_INCH * wide)),
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        columnspacing=1.4,
    )
    write_title(figure, release, vary=chosen)
    return figure


def _draw_surfaces(
    figure: Figure,
    panels: Sequence[Axes],
    release: Release,
    *,
    vary: Sequence[str],
    shown: Sequence[int],
) -> None:
    """Draw a map per class, with one colour bar for all."""
    for axes, one in zip(panels, shown, strict=True):
        surface = draw_surface(axes, release, vary=vary, shown=one)
        if len(panels) > 1:
            named = f"{release.output_name} = {class_names(release)[one]}"
            # Below it, what is held fixed.
            axes.set_title("\n".join(filter(None, (named, axes.get_title()))), fontsize=10, **TEXT)
    bar = figure.colorbar(surface, ax=list(panels), pad=0.02, aspect=28)
    label = probability_of(release, shown=shown[0]) if len(shown) == 1 else "probability"
    bar.set_label(label, **TEXT)
    bar.set_ticks([0.0, 0.25, 0.5, 0.75, 1.0])
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=INK, length=3)


def _shown(release: Release, *, only: str | None) -> tuple[int, ...]:
    names = class_names(release)
    if only is not None:
        if only not in names:
            raise ValueError(
                f"the release has no class {only}; its classes are: {', '.join(names)}"
            )
        return (names.index(only),)
    return (1,) if len(names) == 2 else tuple(range(len(names)))
