"""`cloakgp predict`: a release and new inputs in, a table of predictions out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.progress import track

from cloakgp.arrays import Array
from cloakgp.cli.console import fails_plainly, say, stderr
from cloakgp.cli.opening import open_release
from cloakgp.cli.options import Overwrite
from cloakgp.columns import NumberRelease, class_names, input_names
from cloakgp.panel_parts import NORMAL_95
from cloakgp.release import LabelRelease
from cloakgp.table_files import check_target, table_suffix, write_table
from cloakgp.tables import read_inputs

BLOCK_ROWS = 5000
COLUMNS = ("mean", "sd", "lower", "upper")
MOST_PROBABLE = "predicted"


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

    Writes the inputs, and of numbers the mean, its sd, and 95 % limits (lower, upper); of classes
    the most probable one (predicted), and the probability of each (p_no, p_yes). Tables are .csv,
    .csv.gz or .parquet.
    """
    table_suffix(to)
    check_target(to, overwrite=overwrite)
    release = open_release(release_file)
    if isinstance(release, LabelRelease) and new_output:
        raise ValueError("--new-output goes with releases of numbers: classes have probabilities")
    names = input_names(release)
    X = read_inputs(at, names=names)
    shown = track(
        np.array_split(X, -(-len(X) // BLOCK_ROWS)),
        description="predicting",
        console=stderr,
        transient=True,
        disable=not stderr.is_terminal,
    )
    predicted = (
        _classes(release, shown)
        if isinstance(release, LabelRelease)
        else _numbers(release, shown, new_output=new_output)
    )
    prefix = "predicted_" if set(names) & set(predicted) else ""
    columns: dict[str, NDArray[Any]] = dict(zip(names, X.T, strict=True))
    columns |= {prefix + name: column for name, column in predicted.items()}
    write_table(to, columns, overwrite=overwrite)
    say(f"Wrote {len(X):,} predictions of {release.output_name} to {to}.", style="green")


def _numbers(
    release: NumberRelease, blocks: Iterable[Array], *, new_output: bool
) -> dict[str, Array]:
    """Return mean, sd and limits of all blocks of points."""
    parts = [release.predict(one, return_std=True, new_output=new_output) for one in blocks]
    mean, sd = (np.concatenate(part) for part in zip(*parts, strict=True))
    figures = (mean, sd, mean - NORMAL_95 * sd, mean + NORMAL_95 * sd)
    return dict(zip(COLUMNS, figures, strict=True))


def _classes(release: LabelRelease, blocks: Iterable[Array]) -> dict[str, NDArray[Any]]:
    """Return the most probable class, as text, and the probability of each, of all blocks."""
    names = class_names(release)
    probabilities = np.vstack([release.predict_proba(one) for one in blocks])
    columns: dict[str, NDArray[Any]] = {
        MOST_PROBABLE: np.array(names, dtype=object)[probabilities.argmax(axis=1)]
    }
    shares = zip(names, probabilities.T, strict=True)
    return columns | {f"p_{name}": column for name, column in shares}
