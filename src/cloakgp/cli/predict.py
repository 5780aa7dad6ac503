"""`cloakgp predict`: a release and new inputs in, a table of predictions out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloakgp.cli.console import fails_plainly, say, warn
from cloakgp.cli.options import Overwrite, ReleaseFile, open_predicting
from cloakgp.data.schema import table_suffix
from cloakgp.orders.texts import one_of, shares, thresholds
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
            help="For a release with --log or --transform: median, or mean, for sums over people."
        ),
    ] = "median",
    interval: Annotated[
        str,
        typer.Option(
            help="Coverage of intervals for a new output: 0.9 writes lo_90 and hi_90.",
            metavar="SHARE",
        ),
    ] = "",
    quantiles: Annotated[
        str,
        typer.Option(
            help="Quantiles of a new output, with commas: 0.1,0.5,0.9 writes q_10, q_50 and q_90.",
            metavar="SHARES",
        ),
    ] = "",
    above: Annotated[
        str,
        typer.Option(
            help="Probability that a new output is above a number: 180 writes above_180. Of "
            "several outputs, height=180,weight=80.",
            metavar="NUMBERS",
        ),
    ] = "",
    exposure: Annotated[
        str,
        typer.Option(
            help="Column with the exposure of each new count, for intervals, quantiles and "
            "probabilities; 1 without it.",
            metavar="COLUMN",
        ),
    ] = "",
    overwrite: Overwrite = False,
) -> None:
    """Predict at new inputs. Costs no privacy, however often.

    Writes all columns of the table but the private one, and of numbers the mean, its sd, and 95 %
    limits (lower, upper), within the declared bounds, with --new-output those of --interval 0.95;
    of classes the most probable one (predicted), and the probability of each (p_no, p_yes); of
    quantiles each of them, and limits of its curve (q_50, q_50_lower, q_50_upper). Behind these
    come intervals, quantiles and probabilities of a new output, if asked for.
    """
    suffix = table_suffix(to)
    coverages = shares(interval, option="--interval")
    probabilities = shares(quantiles, option="--quantiles")
    limits = thresholds(above, option="--above")
    from tempfile import TemporaryFile

    from cloakgp.cli.progress import reporting
    from cloakgp.orders.predictions import TablePredictions, output_names
    from cloakgp.release.distribution_columns import DistributionColumns

    with reserve_file(to, overwrite=overwrite, inputs=[release_file, at]) as target:
        release = open_predicting(release_file)
        with (
            TemporaryFile(dir=to.parent) as spool,
            reporting("predicting") as reporter,
        ):
            predictions = TablePredictions(
                release,
                at,
                spool=spool,
                suffix=suffix,
                new_output=new_output,
                estimate=one_of(ESTIMATES, estimate, option="--estimate"),
                asked=DistributionColumns(coverages, probabilities, limits),
                exposure=exposure,
                reporter=reporter,
                notify=warn,
            )
            with target.filling() as file:
                rows = predictions.write(file)
    say(f"Wrote {rows:,} predictions of {', '.join(output_names(release))} to {to}.", style="green")
