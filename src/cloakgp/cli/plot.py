"""`cloakgp plot`: a release as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cloakgp.cli import options
from cloakgp.cli.console import fails_plainly, say
from cloakgp.orders import texts


@fails_plainly
def plot(
    release_file: options.ReleaseFile,
    to: Annotated[Path, typer.Option("--to", "-o", help="Picture: .png, .pdf or .svg.")],
    vary: Annotated[
        str,
        typer.Option(
            help="Inputs to draw over: one for a curve, two for a map, more for a curve each. The "
            "others stay at typical values. By default all inputs, or the first six."
        ),
    ] = "",
    only: Annotated[
        str,
        typer.Option(
            "--class",
            help="Class to draw. By default the second of two, or each of several.",
        ),
    ] = "",
    overwrite: options.Overwrite = False,
) -> None:
    """Draw predictions, or probabilities of classes. Costs no privacy.

    A curve over one input, a map over two, or a curve for each of more.
    """
    from cloakgp.plots.figures import figure_bytes, picture_suffix
    from cloakgp.plots.plotting import display_of
    from cloakgp.report.columns import has_classes
    from cloakgp.utils.files import reserve_file

    suffix = picture_suffix(to)
    with reserve_file(to, overwrite=overwrite, inputs=[release_file]) as target:
        release = options.open_release(release_file)
        chosen: dict[str, Any] = {"vary": texts.names(vary) if vary else ()}
        if only:
            if not has_classes(release):
                raise ValueError("--class goes with releases of classes, and this is of numbers")
            chosen["only"] = only
        target.write(figure_bytes(display_of(release, **chosen).draw(), suffix=suffix))
    say(f"Drew {to}.", style="green")
