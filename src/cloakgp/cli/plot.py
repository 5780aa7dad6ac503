"""`cloakgp plot`: a release as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloakgp.cli import options
from cloakgp.cli.console import fails_plainly, say
from cloakgp.plots import check_picture_suffix, plot_release, save_figure
from cloakgp.release import Release
from cloakgp.tables import check_target


@fails_plainly
def plot(
    release_file: Annotated[Path, typer.Argument(help="A release.", metavar="RELEASE")],
    to: Annotated[Path, typer.Option("--to", "-o", help="Picture: .png, .pdf or .svg.")],
    vary: Annotated[
        str,
        typer.Option(help="One or two inputs to draw over; the others stay at their medians."),
    ] = "",
    overwrite: options.Overwrite = False,
) -> None:
    """Draw the predictions: a curve over one input, or a map over two. Costs no privacy."""
    check_picture_suffix(to)
    check_target(to, overwrite=overwrite)
    release = Release.load(release_file)
    figure = plot_release(release, vary=options.names(vary) if vary else ())
    save_figure(figure, to)
    say(f"Drew {to}.", style="green")
