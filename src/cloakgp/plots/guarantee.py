"""Pictures of guarantees: the ε–δ curve, and what an attacker can guess."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cloakgp.plots.display import Display, Style, styled
from cloakgp.plots.figures import DASHES, tidy
from cloakgp.plots.themes import Theme, theme_of
from cloakgp.privacy import Guarantee
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.privacy.guesses import right_guess
from cloakgp.privacy.noise_choice import however_priced
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra
from cloakgp.utils.formatting import ceiling, percent

with extra("plots"):
    from matplotlib.axes import Axes
    from matplotlib.ticker import PercentFormatter

if TYPE_CHECKING:
    import pandas as pd

# Points of either curve; ε is drawn up to so many times the stated one, and δ down to the least.
POINTS, REACH, LEAST_DELTA = 61, 2.5, 1e-12


@dataclass(eq=False, repr=False)
class GuaranteeDisplay(Display):
    """A guarantee: δ over ε, and the share of right guesses of an attacker over their prior belief.

    The attacker knows everything but which of two cases holds of one person: one of two values, or,
    where a row's presence is protected, that it is there or not.

    Parameters
    ----------
    guarantee : Guarantee or MixedGuarantee
    epsilons, deltas : arrays of shape (n,)
        The ε–δ curve; δ is 0 where a guarantee needs none.
    beliefs, right : arrays of shape (n,)
        Probabilities of one of both cases before, and of a right guess at most.
    seeded : bool
        Whether noise came from a fixed seed: nothing of it then holds.

    Examples
    --------
    >>> from cloakgp import Guarantee
    >>> display = GuaranteeDisplay.of(Guarantee(epsilon=1.0, delta=0.01, mu=0.5))
    >>> figure = display.draw()
    >>> [axes.get_xlabel() for axes in display.axes_]
    ['ε', 'how likely the attacker held one of two cases before']
    """

    guarantee: Guarantee | MixedGuarantee
    epsilons: Array
    deltas: Array
    beliefs: Array
    right: Array
    seeded: bool = False

    @classmethod
    def of(cls, guarantee: Guarantee | MixedGuarantee, *, seeded: bool = False) -> Self:
        """Compute the numbers of a picture, without drawing it.

        Parameters
        ----------
        guarantee : Guarantee or MixedGuarantee
        seeded : bool
            Whether noise came from a fixed seed.
        """
        epsilons = np.linspace(0.0, REACH * guarantee.epsilon, POINTS)
        beliefs = np.linspace(0.0, 1.0, POINTS)
        return cls(
            guarantee,
            epsilons,
            np.array([guarantee.delta_at(float(each)) for each in epsilons]),
            beliefs,
            np.array([right_guess(guarantee, belief=float(each)) for each in beliefs]),
            seeded,
        )

    @classmethod
    def from_guarantee(
        cls,
        guarantee: Guarantee | MixedGuarantee,
        *,
        ax: Sequence[Axes] | None = None,
        **styles: Style,
    ) -> Self:
        """Compute and draw a picture of a guarantee.

        Parameters
        ----------
        guarantee : Guarantee or MixedGuarantee
        ax : two matplotlib.axes.Axes, optional
        **styles
            ``line_kw`` and ``point_kw``: keywords of matplotlib's ``plot``.
        """
        return cls.of(guarantee).plot(ax, **styles)

    @classmethod
    def from_release(
        cls, release: Any, *, ax: Sequence[Axes] | None = None, **styles: Style
    ) -> Self:
        """Compute and draw a picture of the guarantee of any kind of release."""
        visits = getattr(getattr(release, "entries", release), "visits", 1)
        held = however_priced(release.guarantee, visits=visits)
        return cls.of(held, seeded=release.insecure).plot(ax, **styles)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Sequence[Axes] | None = None, **styles: Style
    ) -> Self:
        """Compute and draw a picture of the guarantee of a fitted estimator."""
        return cls.from_release(estimator.release_, ax=ax, **styles)

    @property
    def n_panels(self) -> int:
        """Two: the curve, and guesses."""
        return 2

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches, of a figure of its own."""
        return (10.0, 4.6)

    @property
    def insecure(self) -> bool:
        """Whether the noise was seeded."""
        return self.seeded

    @property
    def title(self) -> str:
        """Its title."""
        if self.seeded:
            return "INSECURE: seeded noise, so none of this holds"
        stated = self.guarantee
        if stated.delta_at(stated.epsilon) == 0:
            return f"{ceiling(stated.epsilon)}-differential privacy"
        return (
            f"({ceiling(stated.epsilon)}, {ceiling(stated.delta, digits=4)})-differential privacy"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers behind the picture.

        Returns
        -------
        pandas.DataFrame
            ``epsilon`` and ``delta`` of the curve; below them ``belief`` and ``right`` of guesses.
        """
        with extra("tables"):
            import pandas as pd

        return pd.concat(
            [
                pd.DataFrame({"epsilon": self.epsilons, "delta": self.deltas}),
                pd.DataFrame({"belief": self.beliefs, "right": self.right}),
            ],
            ignore_index=True,
        )

    def _draw(self, panels: Sequence[Axes], styles: Mapping[str, Style]) -> Sequence[Any]:
        theme = theme_of(panels[0])
        line = styled(styles.get("line_kw"), color=theme.curve, linewidth=2.2)
        point = styled(styles.get("point_kw"), color=theme.ink, marker="o", linestyle="none")
        self._draw_curve(panels[0], theme, line, point)
        self._draw_guesses(panels[1], theme, line, point)
        for axes in panels:
            tidy(axes, theme=theme)
        return ()

    def _draw_curve(
        self, axes: Axes, theme: Theme, line: dict[str, Any], point: dict[str, Any]
    ) -> None:
        needed = self.deltas > LEAST_DELTA
        axes.plot(self.epsilons[needed], self.deltas[needed], **line)
        stated = self.guarantee
        if stated.delta > LEAST_DELTA:
            axes.plot([stated.epsilon], [stated.delta], **point)
            axes.annotate(
                f"stated: ({ceiling(stated.epsilon)}, {ceiling(stated.delta, digits=4)})",
                (stated.epsilon, stated.delta),
                xytext=(8, 6),
                textcoords="offset points",
                **theme.words,
            )
        else:
            axes.axvline(stated.epsilon, color=theme.pale, linewidth=0.9, linestyle=DASHES)
            axes.annotate(
                f"no δ from ε = {ceiling(stated.epsilon)} on",
                (stated.epsilon, 0.96),
                xycoords=("data", "axes fraction"),
                xytext=(6, 0),
                textcoords="offset points",
                va="top",
                **theme.words,
            )
        if needed.any():
            axes.set_yscale("log")
        axes.set_xlim(0.0, self.epsilons[-1])
        axes.set_xlabel("ε", **theme.words)
        axes.set_ylabel("δ", **theme.words)
        axes.set_title("What holds at every ε", fontsize=10.5, **theme.words)

    def _draw_guesses(
        self, axes: Axes, theme: Theme, line: dict[str, Any], point: dict[str, Any]
    ) -> None:
        without = np.maximum(self.beliefs, 1.0 - self.beliefs)
        axes.fill_between(
            self.beliefs, without, self.right, color=theme.privacy, alpha=0.5, linewidth=0
        )
        axes.plot(self.beliefs, self.right, **line)
        axes.plot(self.beliefs, without, color=theme.ink, linewidth=1.2, linestyle=DASHES)
        even = right_guess(self.guarantee)
        axes.plot([0.5], [even], **point)
        axes.annotate(
            f"{percent(even)} right, at most",
            (0.5, even),
            xytext=(0.5, 0.9),
            ha="center",
            arrowprops={"arrowstyle": "-", "color": theme.pale, "shrinkB": 6},
            **theme.words,
        )
        axes.annotate(
            "without the published values",
            (0.5, 0.5),
            xytext=(0, -6),
            textcoords="offset points",
            ha="center",
            va="top",
            **theme.words,
        )
        axes.set_xlim(0.0, 1.0)
        axes.set_ylim(0.44, 1.01)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(PercentFormatter(xmax=1.0))
        axes.set_xlabel("how likely the attacker held one of two cases before", **theme.words)
        axes.set_ylabel("right guesses, at most", **theme.words)
        axes.set_title(
            "What an attacker can guess who knows all the rest", fontsize=10.5, **theme.words
        )
