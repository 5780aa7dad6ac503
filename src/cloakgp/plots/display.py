"""Displays in the manner of scikit-learn: the common part of all pictures.

The numbers of a picture are computed first and kept, so that it can be drawn again in another
style, and so that they can be had as a table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from cloakgp.plots.figures import add_legend, new_figure, write_title
from cloakgp.plots.themes import DARK_BACKGROUND, theme_of
from cloakgp.utils.extras import extra

with extra("plots"):
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

if TYPE_CHECKING:
    import pandas as pd

    from cloakgp.release import OneOutputRelease

Style = Mapping[str, Any] | None
# Panels beside each other.
MOST_ACROSS = 3


class Display(ABC):
    """A picture, and the numbers behind it.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        Once it is drawn.
    axes_ : array of matplotlib.axes.Axes
        One for each panel.
    """

    figure_: Figure | SubFigure
    axes_: NDArray[Any]

    @property
    def ax_(self) -> Axes:
        """The axes of the first panel."""
        axes: Axes = self.axes_[0]
        return axes

    @property
    @abstractmethod
    def n_panels(self) -> int:
        """The number of panels."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Its title."""

    @property
    def insecure(self) -> bool:
        """Whether the noise came from a fixed seed; the title then states it."""
        return False

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches, of a figure of its own."""
        across = min(self.n_panels, MOST_ACROSS)
        down = -(-self.n_panels // across)
        return (8.0, 5.2) if self.n_panels == 1 else (4.2 * across, 3.4 * down + 0.9)

    @abstractmethod
    def _draw(self, panels: Sequence[Axes], styles: Mapping[str, Style]) -> Sequence[Any]:
        """Draw into axes, one for each panel, and return the legend's entries."""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """Return the numbers behind the picture, a row for each point that is drawn."""

    def plot(self, ax: Axes | Sequence[Axes] | None = None, **styles: Style) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, or a sequence of as many as there are panels, optional
            A new figure of pyplot if not given.
        **styles
            Keywords for what is drawn, by its name: see the display.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there are more or fewer axes than panels.
        """
        if ax is None:
            with extra("plots"):
                from matplotlib import pyplot as plt

            width, height = self.size
            # Layout and size are as in `draw`; pyplot shows it.
            figure = plt.figure(figsize=(width, height), layout="constrained")
            return self._fill(figure, styles)
        panels: list[Axes] = [ax] if isinstance(ax, Axes) else list(np.ravel(np.asarray(ax)))
        if len(panels) != self.n_panels:
            raise ValueError(f"the picture has {self.n_panels} panels, and ax {len(panels)}")
        within = panels[0].get_figure()
        assert within is not None
        handles = self._draw(panels, styles)
        add_legend(within, panels[-1], handles, theme=theme_of(panels[-1]))
        if self.insecure:
            panels[0].set_title(self.title, color=theme_of(panels[0]).warning, parse_math=False)
        self.figure_, self.axes_ = within, np.array(panels, dtype=object)
        return self

    def draw(self, *, dark: bool = False, **styles: Style) -> Figure:
        """Draw it into a figure that no window shows, and return that.

        Parameters
        ----------
        dark : bool
            Whether on a dark background, whatever matplotlib's style in force.
        **styles
            As for `plot`.
        """
        width, height = self.size
        figure = new_figure(width=width, height=height)
        if dark:
            figure.set_facecolor(DARK_BACKGROUND)
        self._fill(figure, styles, background=DARK_BACKGROUND if dark else None)
        return figure

    def draw_apart(self, *, width: float = 3.6, height: float = 2.7) -> tuple[Figure, ...]:
        """Draw every panel into a small figure of its own, without a title.

        Parameters
        ----------
        width, height : float
            In inches.
        """
        figures = tuple(new_figure(width=width, height=height) for _ in range(self.n_panels))
        panels = [figure.add_subplot() for figure in figures]
        self._draw(panels, {})
        for axes in panels:
            self._label_panel(axes)
        return figures

    def _label_panel(self, axes: Axes) -> None:
        """Add a legend to a panel that stands alone; most need none."""
        del axes

    def _fill(
        self, figure: Figure, styles: Mapping[str, Style], *, background: str | None = None
    ) -> Self:
        across = min(self.n_panels, MOST_ACROSS)
        down = -(-self.n_panels // across)
        panels = [
            figure.add_subplot(
                down,
                across,
                place + 1,
                label=f"panel {place + 1}",
                **({} if background is None else {"facecolor": background}),
            )
            for place in range(self.n_panels)
        ]
        handles = self._draw(panels, styles)
        add_legend(figure, None, handles, theme=theme_of(figure))
        write_title(figure, self.title, insecure=self.insecure)
        self.figure_, self.axes_ = figure, np.array(panels, dtype=object)
        return self


class ReleaseDisplay(Display):
    """A picture of a release.

    Attributes
    ----------
    release : OneOutputRelease
    """

    release: OneOutputRelease

    @classmethod
    @abstractmethod
    def from_release(cls, release: Any, *args: Any, **chosen: Any) -> Self:
        """Compute and draw a picture of a release. Costs no privacy."""

    @classmethod
    @abstractmethod
    def from_estimator(cls, estimator: Any, *args: Any, **chosen: Any) -> Self:
        """Compute and draw a picture of a fitted estimator's release: see `from_release`."""

    @property
    def insecure(self) -> bool:
        """Whether the noise was seeded."""
        return self.release.insecure


def styled(style: Style, **defaults: Any) -> dict[str, Any]:
    """Return the style of one drawn element: the chosen keywords, and defaults.

    Examples
    --------
    >>> styled({"color": "red"}, color="blue", linewidth=2)
    {'color': 'red', 'linewidth': 2}
    """
    return defaults | dict(style or {})
