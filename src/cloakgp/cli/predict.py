"""`cloakgp predict`: a release and new inputs in, a table of predictions out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.progress import track

from cloakgp.arrays import Array
from cloakgp.cli.console import fails_plainly, say, stderr
from cloakgp.cli.options import Overwrite
from cloakgp.panels import NORMAL_95
from cloakgp.release import Release
from cloakgp.tables import check_target, read_inputs, table_suffix, write_table
from cloakgp.words import input_names

BLOCK_ROWS = 5000
COLUMNS = ("mean", "sd", "lower", "upper")


@fails_plainly
def predict(
    release_file: Annotated[Path, typer.Argument(help="A release.", metavar="RELEASE")],
    at: Annotated[Path, typer.Option("--at", help="Table with the inputs to predict at.")],
    to: Annotated[Path, typer.Option("--to", "-o", help="Table to write.")],
    new_output: Annotated[
        bool,
        typer.Option("--new-output", help="Limits for a new output, not for the curve alone."),
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Predict at new inputs. Costs no privacy, however often.

    Writes the inputs, the mean, its sd, and 95 % limits (lower, upper). Tables are .csv, .csv.gz or
    .parquet.
    """
    table_suffix(to)
    check_target(to, overwrite=overwrite)
    release = Release.load(release_file)
    names = input_names(release)
    X = read_inputs(at, names=names)
    blocks: Iterable[Array] = np.array_split(X, -(-len(X) // BLOCK_ROWS))
    shown = track(
        blocks,
        description="predicting",
        console=stderr,
        transient=True,
        disable=not stderr.is_terminal,
    )
    parts = [release.predict(one, return_std=True, new_output=new_output) for one in shown]
    mean, sd = (np.concatenate(part) for part in zip(*parts, strict=True))
    figures = (mean, sd, mean - NORMAL_95 * sd, mean + NORMAL_95 * sd)
    prefix = "predicted_" if set(names) & set(COLUMNS) else ""
    columns = dict(zip(names, X.T, strict=True))
    columns |= {prefix + name: column for name, column in zip(COLUMNS, figures, strict=True)}
    write_table(to, columns, overwrite=overwrite)
    say(f"Wrote {len(X):,} predictions of {release.output_name} to {to}.", style="green")
