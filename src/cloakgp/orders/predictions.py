"""Predictions for a table in a file: its columns, and behind them what a release predicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cloakgp.data.raw import RawTable
from cloakgp.data.tables import read_inputs, read_public
from cloakgp.orders.progress import Reporter
from cloakgp.release import MultiOutputRelease, Release, StatisticsRelease
from cloakgp.release.predictions import Points, points_of, sensible_digits
from cloakgp.report.columns import has_classes, input_names, public_columns
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra
from cloakgp.utils.names import Estimate
from cloakgp.utils.passes import Tell

with extra("tables"):
    import pandas as pd

Predicting = Release | MultiOutputRelease | StatisticsRelease

BLOCK_ROWS = 5000
PROBABILITY_DIGITS = 4


def predicted_columns(
    release: Predicting,
    at: Path,
    *,
    new_output: bool,
    estimate: Estimate,
    text: bool,
    reporter: Reporter,
    tell: Tell,
) -> dict[str, Any]:
    """Return all columns of a table but the private one, and what is predicted there.

    Parameters
    ----------
    release : Release, MultiOutputRelease or StatisticsRelease
    at : Path
        The table.
    new_output : bool
        Limits of a new output rather than of the curve; of numbers only.
    estimate : {"median", "mean"}
    text : bool
        Whether cells are to be written as they were.
    reporter : Reporter
        Is told how far it has come.
    tell : callable
        Is told of a column that is left out.

    Raises
    ------
    ValueError
        If the table lacks a column, or cells are at fault.
    """
    classified = isinstance(release, Release) and has_classes(release)
    if classified and new_output:
        raise ValueError("--new-output goes with releases of numbers: classes have probabilities")
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
    for output in output_names(release):
        if output in set(kept) - set(public_columns(release)):
            del kept[output]
            tell(f"column {output} of {at} has the private column's name: left out")
    prefix = "predicted_" if set(kept) & set(predicted) else ""
    rounded = {
        f"{prefix}{name}": column.to_numpy() for name, column in predicted.round(digits).items()
    }
    return kept | rounded


def output_names(release: Predicting) -> tuple[str, ...]:
    """Return the names of the private columns."""
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
