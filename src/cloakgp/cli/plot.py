"""`cloakgp plot`: a release as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
        typer.Option(help="One or two inputs to draw over; the others stay at their medians."),
    ] = "",
    only: Annotated[
        str,
        typer.Option(
            "--class",
            help="Of classes: the one to draw. If not given: of two the second, of more each.",
        ),
    ] = "",
    overwrite: options.Overwrite = False,
) -> None:
    """Draw predictions, or probabilities of classes. Costs no privacy.

    A curve over one input, or a map over two.
    """
    from cloakgp.plots.classification import plot_classes
    from cloakgp.plots.figures import figure_bytes, picture_suffix
    from cloakgp.plots.regression import plot_release
    from cloakgp.report.columns import has_classes
    from cloakgp.utils.files import reserve_file

    suffix = picture_suffix(to)
    with reserve_file(to, overwrite=overwrite, inputs=[release_file]) as target:
        release = options.open_release(release_file)
        chosen = texts.names(vary) if vary else ()
        if has_classes(release):
            figure = plot_classes(release, vary=chosen, only=only or None)
        elif only:
            raise ValueError("--class goes with releases of classes, and this one is of numbers")
        else:
            figure = plot_release(release, vary=chosen)
        target.write(figure_bytes(figure, suffix=suffix))
    say(f"Drew {to}.", style="green")
