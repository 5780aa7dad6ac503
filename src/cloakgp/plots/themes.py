"""Colours of pictures on light and on dark backgrounds, told apart by colour-blind people too.

Which of both a picture takes follows from the background of its axes, and with it from matplotlib's
style in force.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cloakgp.utils.extras import extra

with extra("plots"):
    from matplotlib.axes import Axes
    from matplotlib.colors import to_rgb
    from matplotlib.figure import Figure, SubFigure

# Shares of red, green and blue in how bright a colour is (ITU-R BT.709).
BRIGHTNESS = (0.2126, 0.7152, 0.0722)


@dataclass(frozen=True)
class Theme:
    """Colours for one background.

    Attributes
    ----------
    ink, pale : str
        Of words and marks, and of what is less important.
    warning : str
    curve, band : str
        Of predictions and of their limits.
    privacy : str
        Of what the privacy noise adds.
    shades : tuple of str
        Of classes, budgets and stages in one panel.
    """

    ink: str
    pale: str
    warning: str
    curve: str
    band: str
    privacy: str
    shades: tuple[str, ...]

    @property
    def words(self) -> dict[str, Any]:
        """How words are written: names of columns may hold dollar signs, which are no formulae."""
        return {"color": self.ink, "parse_math": False}


# Shades after Okabe and Ito, "Color universal design" (2008), without their yellow, darkened or
# lightened until they stand out from their background.
LIGHT = Theme(
    ink="#22303c",
    pale="#6b7884",
    warning="#b3261e",
    curve="#1f6f8b",
    band="#5aa9c4",
    privacy="#e3a04f",
    shades=("#0072b2", "#d55e00", "#00775a", "#b0568a", "#2a86b8", "#8a6100"),
)
DARK = Theme(
    ink="#e8ecef",
    pale="#96a3af",
    warning="#ff8a80",
    curve="#8fd3ec",
    band="#4d9cbb",
    privacy="#e3a04f",
    shades=("#56b4e9", "#f08a3c", "#2fc49b", "#e29fc6", "#a6d8f5", "#e6b93c"),
)
# The background of pictures on dark pages; `page.css` of the service has the same for cards.
DARK_BACKGROUND = "#1b2329"


def theme_of(drawn: Axes | Figure | SubFigure) -> Theme:
    """Return the colours that can be seen on the background of axes, or of a figure.

    Examples
    --------
    >>> theme_of(Figure(facecolor="black")) is DARK
    True
    """
    background = drawn.get_facecolor()
    bright = sum(share * part for share, part in zip(BRIGHTNESS, to_rgb(background), strict=True))
    return LIGHT if bright > 0.5 else DARK
