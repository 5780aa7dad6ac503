"""`cloakgp predict`: a release and new inputs in, a table of predictions out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloakgp.cli.console import fails_plainly, say, warn
from cloakgp.cli.options import Overwrite, ReleaseFile, open_predicting
from cloakgp.data.schema import table_suffix
from cloakgp.orders.texts import one_of
from cloakgp.utils.files import reserve_file
from cloakgp.utils.names import ESTIMATES


@fails_plainly
def predict(
    release_file: ReleaseFile,
    at: Annotated[
        Path,
        typer.Option("--at", help="Table with the inputs to predict at, or a folder of tables."),
    ],
    to: Annotated[Path, typer.Option("--to", "-o", help="Table to write.")],
    new_output: Annotated[
        bool,
        typer.Option("--new-output", help="Limits for a new output, not for the curve alone."),
    ] = False,
    estimate: Annotated[
        str,
        typer.Option(
            help="Of a release with --log or --transform: median, or mean, which sums over people "
            "need."
        ),
    ] = "median",
    overwrite: Overwrite = False,
) -> None:
    """Predict at new inputs. Costs no privacy, however often.

    Writes all columns of the table but the private one, and of numbers the mean, its sd, and 95 %
    limits (lower, upper), within the declared bounds; of classes the most probable one (predicted),
    and the probability of each (p_no, p_yes); of quantiles each of them, and limits of its curve
    (q0.5, q0.5_lower, q0.5_upper).
    """
    suffix = table_suffix(to)
    from tempfile import TemporaryFile

    from cloakgp.cli.console import showing_warnings
    from cloakgp.cli.progress import reporting
    from cloakgp.orders.predictions import TablePredictions, output_names

    with reserve_file(to, overwrite=overwrite, inputs=[release_file, at]) as target:
        release = open_predicting(release_file)
        with (
            TemporaryFile(dir=to.parent) as spool,
            reporting("predicting") as reporter,
            showing_warnings(),
        ):
            predictions = TablePredictions(
                release,
                at,
                spool=spool,
                suffix=suffix,
                new_output=new_output,
                estimate=one_of(ESTIMATES, estimate, option="--estimate"),
                reporter=reporter,
                tell=warn,
            )
            with target.filling() as file:
                rows = predictions.write(file)
    say(f"Wrote {rows:,} predictions of {', '.join(output_names(release))} to {to}.", style="green")
