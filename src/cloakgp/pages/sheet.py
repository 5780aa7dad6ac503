"""Data-protection sheet: a release on one printable page, with pictures.

It says what `cloakgp show` says, from the same facts (`cloakgp.report.describe`), and needs no
script and nothing from elsewhere.
"""

from __future__ import annotations

import base64
from typing import Any

from cloakgp.pages.rendering import POLICY, render
from cloakgp.plots.figures import figure_bytes
from cloakgp.plots.plotting import display_of
from cloakgp.release import OneOutputRelease, Published
from cloakgp.report.describe import Describable, describe, headline
from cloakgp.report.worth import accuracies, middle_of


def sheet_html(release: Describable) -> str:
    """Return a sheet about a release, as one page of HTML.

    Parameters
    ----------
    release : Release or any other kind of release

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> sheet_html(model.release_).startswith("<!doctype html>")
    True
    """
    return render(
        "sheet.html",
        title=getattr(release, "output_name", "") or "A release",
        headline="" if isinstance(release, Published) else headline(release),
        insecure=release.insecure,
        sections=describe(release),
        pictures=_pictures(release),
        bands=bool(accuracies(release)),
        quantiles=_of_quantiles(release),
        input=_what_inputs_are(release),
        middle=middle_of(release),
        policy=POLICY,
    )


def _pictures(release: Describable) -> tuple[str, ...]:
    """Return pictures as data: images that run nothing, for any names in them."""
    if not isinstance(release, OneOutputRelease) or release.has_box_inputs:
        return ()
    # Quantiles are never maps.
    chosen: dict[str, Any] = {} if _of_quantiles(release) else {"apart": True}
    panels = display_of(release, **chosen).draw_apart()
    drawn = [figure_bytes(figure, suffix=".svg") for figure in panels]
    return tuple(
        f"data:image/svg+xml;base64,{base64.b64encode(each).decode('ascii')}" for each in drawn
    )


def _what_inputs_are(release: Describable) -> str:
    private = isinstance(release, OneOutputRelease) and release.private_inputs
    return "private input" if private else "public column"


def _of_quantiles(release: Describable) -> bool:
    return isinstance(release, OneOutputRelease) and release.of_quantiles
