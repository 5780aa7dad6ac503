"""Pictures of a release of classification: probabilities over one input or over two."""

from __future__ import annotations

from collections.abc import Sequence

from cloakgp.columns import class_names
from cloakgp.extras import extra
from cloakgp.label_panels import (
    curve_legend,
    draw_probability,
    draw_surface,
    probability_of,
    surface_legend,
)
from cloakgp.panel_parts import INK, TEXT
from cloakgp.plots import chosen_inputs, new_figure, write_title
from cloakgp.release import LabelRelease

with extra("plots"):
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Panels beside each other, one per class.
MOST_ACROSS = 3
LEGEND_ENTRIES_PER_INCH = 0.42


def plot_classes(
    release: LabelRelease, *, vary: Sequence[str] = (), only: str | None = None
) -> Figure:
    """Draw the probabilities of classes: curves over one input, or maps over two.

    Parameters
    ----------
    release : LabelRelease
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
    release: LabelRelease,
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


def _shown(release: LabelRelease, *, only: str | None) -> tuple[int, ...]:
    names = class_names(release)
    if only is not None:
        if only not in names:
            raise ValueError(
                f"the release has no class {only}; its classes are: {', '.join(names)}"
            )
        return (names.index(only),)
    return (1,) if len(names) == 2 else tuple(range(len(names)))
