"""`cloakgp predict`: a release and new inputs in, a table of predictions out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cloakgp.cli.console import fails_plainly, say
from cloakgp.cli.options import Overwrite, ReleaseFile, open_release
from cloakgp.data.schema import table_suffix
from cloakgp.utils.files import reserve_file
from cloakgp.utils.formatting import NORMAL_95

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cloakgp.cli.progress import Reporter
    from cloakgp.release import Release
    from cloakgp.utils.arrays import Array

BLOCK_ROWS = 5000
COLUMNS = ("mean", "sd", "lower", "upper")
MOST_PROBABLE = "predicted"


@fails_plainly
def predict(
    release_file: ReleaseFile,
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
    suffix = table_suffix(to)
    from cloakgp.data.tables import table_bytes

    with reserve_file(to, overwrite=overwrite, inputs=[release_file, at]) as target:
        release = open_release(release_file)
        columns = _columns(release, at, new_output=new_output)
        target.write(table_bytes(columns, suffix=suffix))
    rows = len(next(iter(columns.values())))
    say(f"Wrote {rows:,} predictions of {release.output_name} to {to}.", style="green")


def _columns(release: Release, at: Path, *, new_output: bool) -> dict[str, NDArray[Any]]:
    """Return the inputs in a table, and what is predicted there."""
    import numpy as np

    from cloakgp.cli.progress import reporting
    from cloakgp.data.tables import read_inputs
    from cloakgp.report.columns import has_classes, input_names

    if has_classes(release) and new_output:
        raise ValueError("--new-output goes with releases of numbers: classes have probabilities")
    names = input_names(release)
    X = read_inputs(at, names=names)
    with reporting("predicting") as reporter:
        blocks = _reported(np.array_split(X, -(-len(X) // BLOCK_ROWS)), reporter)
        predicted = (
            _classes(release, blocks)
            if has_classes(release)
            else _numbers(release, blocks, new_output=new_output)
        )
    prefix = "predicted_" if set(names) & set(predicted) else ""
    columns: dict[str, NDArray[Any]] = dict(zip(names, X.T, strict=True))
    return columns | {prefix + name: column for name, column in predicted.items()}


def _reported(blocks: Sequence[Array], reporter: Reporter) -> Iterator[Array]:
    """Yield blocks of rows, saying how many were worked on."""
    total, done = sum(len(block) for block in blocks), 0
    for block in blocks:
        reporter.rows("predicting", done, total)
        yield block
        done += len(block)


def _numbers(release: Release, blocks: Iterable[Array], *, new_output: bool) -> dict[str, Array]:
    """Return mean, sd and limits of all blocks of points."""
    import numpy as np

    parts = [release.predict(block, return_std=True, new_output=new_output) for block in blocks]
    mean, sd = (np.concatenate(part) for part in zip(*parts, strict=True))
    figures = (mean, sd, mean - NORMAL_95 * sd, mean + NORMAL_95 * sd)
    return dict(zip(COLUMNS, figures, strict=True))


def _classes(release: Release, blocks: Iterable[Array]) -> dict[str, NDArray[Any]]:
    """Return the most probable class, as text, and the probability of each, of all blocks."""
    import numpy as np

    from cloakgp.report.columns import class_names

    names = class_names(release)
    probabilities = np.vstack([release.predict_proba(block) for block in blocks])
    columns: dict[str, NDArray[Any]] = {
        MOST_PROBABLE: np.array(names, dtype=object)[probabilities.argmax(axis=1)]
    }
    shares = zip(names, probabilities.T, strict=True)
    return columns | {f"p_{name}": column for name, column in shares}
