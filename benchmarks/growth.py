"""Time and memory of the command line against the number of rows."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import peers, plots, trips
from benchmarks.processes import OK, Limits, Outcome, failure, run
from benchmarks.store import Store
from benchmarks.tables import Cell, Table, by_value, for_page

ROWS = (10**3, 10**4, 10**5, 10**6, 10**7)
# So many that they are read in passes.
SMALL_ROWS = (6000,)
INDUCING, SMALL_INDUCING = 200, 10
PREDICTIONS = 10_000
EPSILON = 1.0
RUNNER = peers.RUNNERS / "cloakgp_growth.py"
COLUMNS = (
    "rows",
    "run",
    "criterion",
    "noise",
    "seconds",
    "release seconds",
    "predict seconds",
    "cpu seconds",
    "peak MB",
    "microseconds a row",
    "CPU microseconds a row",
    "file MB",
    "answers",
    "gap",
    "longest column",
    "RMSE",
    "status",
)
NOTES = (
    "`cloakgp release table.parquet --inducing 200` and `cloakgp predict` at 10,000 points, in one "
    "process of their own, from its start to its end; seconds are the whole of it.",
    "ε = 1, δ = 1/(10 N), bounds 0 to 2,700 s. Trips are drawn with replacement from the real "
    "ones, each place moved by some 50 m and each duration by a tenth; RMSE is against other "
    "trips drawn alike, clipped to the bounds. Knowing the mean alone, it is in the last column "
    "of the CSV.",
    "Certified gaps and longest columns are over every row.",
)


def measure_all(
    *,
    rows: Sequence[int],
    criteria: Sequence[str],
    repeats: int,
    limits: Limits,
    store: Store,
    small: bool,
) -> Iterator[dict[str, Cell]]:
    """Yield a row of the table for every number of rows, criterion and run."""
    source = trips.artificial_trips() if small else trips.real_trips()
    places, durations = trips.held_out(source, rows=PREDICTIONS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        places.to_parquet(folder / "at.parquet", index=False)
        for count in rows:
            table = folder / "trips.parquet"
            trips.write_trips(table, source, rows=count)
            for criterion in criteria:
                once = partial(
                    _measure, folder, rows=count, criterion=criterion, limits=limits, small=small
                )
                for number in range(repeats):
                    outcome = store.get(f"{count} rows {criterion} {number}", once)
                    yield _row(
                        outcome,
                        rows=count,
                        run_number=number,
                        criterion=criterion,
                        durations=durations,
                    )


def _measure(folder: Path, *, rows: int, criterion: str, limits: Limits, small: bool) -> Outcome:
    release, out = folder / "trips.cloak", folder / "out.parquet"
    for old in (release, out):
        old.unlink(missing_ok=True)
    arguments = [
        str(folder / "trips.parquet"),
        *("--inputs", ",".join(trips.INPUTS), "--output", trips.OUTPUT),
        *("--bounds", *map(str, trips.BOUNDS), "--epsilon", str(EPSILON)),
        *("--delta", f"{0.1 / rows:.1e}", "--criterion", criterion),
        *("--inducing", str(SMALL_INDUCING if small else INDUCING)),
    ]
    began = time.perf_counter()
    outcome = run(
        RUNNER,
        peer=peers.OURSELVES,
        arrays={},
        options={
            "arguments": arguments,
            "release": str(release),
            "at": str(folder / "at.parquet"),
            "out": str(out),
        },
        limits=limits,
    )
    seconds = time.perf_counter() - began
    # Both files may be there although something failed after they were written.
    if outcome.status != OK or not release.exists() or not out.exists():
        return outcome
    report = dict(outcome.report) | {"whole": seconds, "file_mb": release.stat().st_size / 1e6}
    mean = pd.read_parquet(out)["mean"].to_numpy(dtype=float)
    return Outcome(outcome.status, outcome.reason, arrays={"mean": mean}, report=report)


def _row(
    outcome: Outcome, *, rows: int, run_number: int, criterion: str, durations: np.ndarray
) -> dict[str, Cell]:
    row: dict[str, Cell] = {
        "rows": rows,
        "run": run_number + 1,
        "criterion": criterion,
        "status": outcome.said,
    }
    if "mean" not in outcome.arrays:
        return row
    found = outcome.report
    errors = outcome.arrays["mean"] - durations
    return row | {
        "seconds": found["whole"],
        "release seconds": found["seconds"],
        "predict seconds": found["predict_seconds"],
        "cpu seconds": found["cpu_seconds"],
        "peak MB": found["peak_mb"],
        "microseconds a row": 1e6 * found["whole"] / rows,
        "CPU microseconds a row": 1e6 * found["cpu_seconds"] / rows,
        "file MB": found["file_mb"],
        "noise": found.get("noise"),
        "answers": found.get("answers"),
        "gap": found.get("gap"),
        "longest column": found.get("longest"),
        "RMSE": float(np.sqrt(np.mean(np.square(errors)))),
        "RMSE of the mean": float(np.std(durations)),
    }


def tables_for_pages(rows: Sequence[Mapping[str, Cell]], *, setting: str) -> list[Table]:
    """Return a table for every criterion.

    Parameters
    ----------
    rows : sequence of mapping
        Of `measure_all`.
    setting : str
        Where it was measured, for the titles.
    """
    heads = {
        "rows": "said",
        "noise": "noise",
        "CPU seconds": "cpu seconds",
        "CPU µs a row": "CPU microseconds a row",
        "peak MB": "peak MB",
        "file MB": "file MB",
        "certified gap": "gap",
        "RMSE, s": "RMSE",
        "failed": "failed",
    }
    return [
        for_page(
            f"`cloakgp release` by the number of rows, criterion {criterion}; {setting}",
            [{**row, "said": f"{row['rows']:,}", "failed": failure(row)} for row in own],
            heads,
        )
        for criterion, own in by_value(rows, "criterion")
    ]


def report(rows: Sequence[Mapping[str, Cell]], *, folder: Path, setting: str) -> Table:
    """Write the table and the picture; return the table.

    Parameters
    ----------
    rows : sequence of mapping
        Of `measure_all`.
    folder : Path
    setting : str
        Where it was measured, for the title.
    """
    table = Table(
        title=f"Growth with the number of rows ({setting})",
        columns=(*COLUMNS, "RMSE of the mean"),
        rows=rows,
        shown=COLUMNS,
        notes=NOTES,
    )
    table.write(folder, stem="growth")
    grid = [
        {title: _lines(rows, of=column)}
        for title, column in (("time", "seconds"), ("memory", "peak MB"))
    ]
    if any(panel for line in grid for panel in line.values()):
        plots.draw_panels(
            grid,
            x_label="rows",
            y_labels=("seconds", "MB at the peak"),
            path=folder / "growth.png",
        )
    return table


def _lines(rows: Sequence[Mapping[str, Cell]], *, of: str) -> dict[str, list[plots.Point]]:
    """Return the median over runs for every criterion and number of rows."""
    criteria = dict.fromkeys(row["criterion"] for row in rows)
    lines = {
        f"cloakgp, {criterion}": plots.medians(
            [row for row in rows if row["criterion"] == criterion], x="rows", y=of
        )
        for criterion in criteria
    }
    return {name: points for name, points in lines.items() if points}
