"""`cloakgp predict`: a release and new inputs in, a table of predictions out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cloakgp.cli.console import fails_plainly, say, warn
from cloakgp.cli.options import Overwrite, ReleaseFile, open_predicting
from cloakgp.data.schema import TEXT, table_suffix
from cloakgp.orders.texts import one_of
from cloakgp.utils.files import reserve_file
from cloakgp.utils.names import ESTIMATES, Estimate

if TYPE_CHECKING:
    from cloakgp.data.raw import RawTable
    from cloakgp.orders.progress import Reporter
    from cloakgp.release import MultiOutputRelease, Release, StatisticsRelease
    from cloakgp.utils.arrays import Array

    Predicting = Release | MultiOutputRelease | StatisticsRelease

BLOCK_ROWS = 5000
PROBABILITY_DIGITS = 4


@fails_plainly
def predict(
    release_file: ReleaseFile,
    at: Annotated[Path, typer.Option("--at", help="Table with the inputs to predict at.")],
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
    and the probability of each (p_no, p_yes).
    """
    suffix = table_suffix(to)
    from cloakgp.data.tables import table_bytes

    with reserve_file(to, overwrite=overwrite, inputs=[release_file, at]) as target:
        release = open_predicting(release_file)
        text = suffix.startswith(TEXT)
        columns = _columns(
            release,
            at,
            new_output=new_output,
            estimate=one_of(ESTIMATES, estimate, option="--estimate"),
            text=text,
        )
        target.write(table_bytes(columns, suffix=suffix))
    rows = len(next(iter(columns.values())))
    say(f"Wrote {rows:,} predictions of {', '.join(_outputs(release))} to {to}.", style="green")


def _columns(
    release: Predicting, at: Path, *, new_output: bool, estimate: Estimate, text: bool
) -> dict[str, Any]:
    """Return all columns of a table, and what is predicted there."""
    import numpy as np
    import pandas as pd

    from cloakgp.cli.console import showing_warnings
    from cloakgp.cli.progress import reporting
    from cloakgp.data.tables import read_inputs, read_public
    from cloakgp.release import Release
    from cloakgp.release.predictions import Points, points_of, sensible_digits
    from cloakgp.report.columns import has_classes, input_names, public_columns

    classified = isinstance(release, Release) and has_classes(release)
    if classified and new_output:
        raise ValueError("--new-output goes with releases of numbers: classes have probabilities")
    with reporting("predicting") as reporter, showing_warnings():
        table = read_public(at)
        if release.schema is None:
            X = read_inputs(at, names=input_names(release))
            points = Points(X=X, known=np.ones(len(X), dtype=bool))
        else:
            release.schema.encode(_only(table, release.schema.sources, at), one_by_one=True)
            points = points_of(release, table)
        blocks = _reported(np.array_split(points.X, -(-len(points.X) // BLOCK_ROWS)), reporter)
        parts = [
            release.predict_frame(block, new_output=new_output, estimate=estimate)
            if isinstance(release, Release)
            else release.predict_frame(block, new_output=new_output)
            for block in blocks
        ]
    predicted = pd.concat(parts, ignore_index=True)
    predicted.index = pd.Index(np.flatnonzero(points.known))
    predicted = predicted.reindex(range(len(points.known)))
    spreads = [name for name in map(str, predicted) if name == "sd" or name.endswith("_sd")]
    digits = (
        PROBABILITY_DIGITS
        if classified
        else sensible_digits(predicted[spreads].to_numpy(dtype=float).ravel())
    )
    kept = table.frame(numeric=not text)
    for output in _outputs(release):
        if output in set(kept) - set(public_columns(release)):
            del kept[output]
            warn(f"column {output} of {at} has the private column's name: left out")
    prefix = "predicted_" if set(kept) & set(predicted) else ""
    rounded = {
        f"{prefix}{name}": column.to_numpy() for name, column in predicted.round(digits).items()
    }
    return kept | rounded


def _outputs(release: Predicting) -> tuple[str, ...]:
    """Return the names of the private columns."""
    from cloakgp.release import MultiOutputRelease

    return release.names if isinstance(release, MultiOutputRelease) else (release.output_name,)


def _only(table: RawTable, names: Sequence[str], at: Path) -> RawTable:
    missing = [name for name in names if name not in table]
    if missing:
        raise ValueError(
            f"{at} has no column {', '.join(missing)}; its columns are: {', '.join(table)}"
        )
    return table


def _reported(blocks: Sequence[Array], reporter: Reporter) -> Iterator[Array]:
    """Yield blocks of rows, saying how many were worked on."""
    total, done = sum(len(block) for block in blocks), 0
    for block in blocks:
        reporter.rows("predicting", done, total)
        yield block
        done += len(block)
