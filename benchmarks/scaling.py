"""Time and memory of one fit in passes, along each size of the problem, over the plain pass.

Beside every fit stands the plain pass over its rows (`benchmarks.runners.plain`), in the same
process, which is what no fit can do without. Seconds of a machine that others share say little;
ratios of CPU seconds in one run say more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks import peers, plots
from benchmarks.processes import OK, Limits, Outcome, failure, run
from benchmarks.store import Store
from benchmarks.tables import Cell, Table, by_value, for_page

RUNNER = peers.RUNNERS / "cloakgp_scaling.py"
FIT, LIMIT = "cloakgp: fit", "the plain pass"
COLUMNS = (
    "along",
    "rows",
    "inputs",
    "inducing",
    "points",
    "workers",
    "run",
    "seconds",
    "CPU seconds",
    "plain CPU seconds",
    "over the plain pass",
    "rows a second",
    "peak MB",
    "file MB",
    "gap",
    "waiting",
    "waiting in passes",
    "µs a prediction",
    "status",
)
NOTES = (
    "One fit by `fit_rows` of uniform rows in a Parquet file, all defaults but for what stands in "
    "the row; "
    "ε = 1, δ = 1/(10 N). The plain pass is kernel, triangular solve and one product over the same "
    "rows, in the same process, in memory.",
    "Workers are those of a Dask cluster on the same machine, 0 for none. Waiting is the share of "
    "their time that is not in tasks, by the scheduler's task stream: of the whole fit, most of "
    "which may be the client's own work; and of passes, from each one's first task to its last. "
    "Tasks that wait for a core count as at work.",
)


@dataclass(frozen=True)
class Size:
    """How large a problem is.

    Attributes
    ----------
    rows, inputs, inducing, points : int
        N, D, M and P.
    workers : int
        Of a cluster; 0 for none.
    """

    rows: int = 100_000
    inputs: int = 4
    inducing: int = 200
    points: int = 200
    workers: int = 0


BASE = Size()
SIZES = {
    "rows": "rows",
    "inputs": "inputs",
    "inducing": "inducing inputs",
    "points": "query points",
    "workers": "workers",
}
SMALL = Size(rows=6_000, inputs=2, inducing=10, points=10)
ALONG: dict[str, tuple[int, ...]] = {
    "rows": (10_000, 100_000, 1_000_000),
    "inputs": (1, 2, 4, 8),
    "inducing": (50, 100, 200, 400),
    "points": (50, 100, 200, 400),
    "workers": (0, 1, 2, 4),
}
SMALL_ALONG: dict[str, tuple[int, ...]] = {"rows": (6_000,)}


def measure_all(
    *,
    along: Sequence[str] | None,
    repeats: int,
    limits: Limits,
    store: Store,
    small: bool,
    noise: str = "auto",
) -> Iterator[dict[str, Cell]]:
    """Yield a row of the table for every size and run.

    Parameters
    ----------
    along : sequence of str, optional
        Which sizes are varied; all if not given.
    repeats : int
    limits : Limits
    store : Store
    small : bool
    noise : {"auto", "gaussian", "laplace"}
    """
    base, sizes = (SMALL, SMALL_ALONG) if small else (BASE, ALONG)
    for axis, values in sizes.items():
        if along is not None and axis not in along:
            continue
        for value in values:
            size = replace(base, **{axis: value})
            options = {**asdict(size), "noise": noise}
            once = partial(
                run, RUNNER, peer=peers.OURSELVES, arrays={}, options=options, limits=limits
            )
            for number in range(repeats):
                name = f"{' '.join(map(str, options.values()))} {number}"
                outcome = store.get(name, once)
                yield {"along": axis, **asdict(size), "run": number + 1} | _row(outcome, size)


def _row(outcome: Outcome, size: Size) -> dict[str, Cell]:
    if outcome.status != OK:
        return {"status": outcome.said}
    found = outcome.report
    return {
        "seconds": found["seconds"],
        "CPU seconds": found["cpu_seconds"],
        "plain CPU seconds": found["plain_cpu_seconds"],
        "over the plain pass": found["cpu_seconds"] / found["plain_cpu_seconds"],
        "rows a second": size.rows / found["seconds"],
        "peak MB": found["peak_mb"],
        "file MB": found["file_mb"],
        "gap": found["gap"],
        "waiting": _waiting(found, "seconds", size),
        "waiting in passes": _waiting(found, "pass_seconds", size),
        "µs a prediction": 1e6 * found["predict_cpu_seconds"] / found["predictions"],
        "status": outcome.said,
    }


def _waiting(found: Mapping[str, float], within: str, size: Size) -> float | None:
    """Return the share of workers' time that is not in tasks."""
    if not size.workers:
        return None
    return 1.0 - found["task_seconds"] / (found[within] * size.workers)


def tables_for_pages(rows: Sequence[Mapping[str, Cell]], *, setting: str) -> list[Table]:
    """Return a table for every size that was varied, with what is the same in all its rows said.

    Parameters
    ----------
    rows : sequence of mapping
        Of `measure_all`.
    setting : str
        Where it was measured, for the titles.
    """
    tables = []
    for along, of_axis in by_value(rows, "along"):
        axis = str(along)
        same = [
            f"{of_axis[0][name]:,} {words}"
            for name, words in SIZES.items()
            if name != axis and of_axis[0][name]
        ]
        heads = {
            SIZES[axis]: "size",
            "CPU seconds": "CPU seconds",
            "over the plain pass": "over the plain pass",
            "peak MB": "peak MB",
            "file MB": "file MB",
            "certified gap": "gap",
            "waiting": "waiting",
            "waiting in passes": "waiting in passes",
            "failed": "failed",
        }
        sized = [{**row, "size": f"{row[axis]:,}", "failed": failure(row)} for row in of_axis]
        title = f"One fit by the number of {SIZES[axis]}: {', '.join(same)}; {setting}"
        tables.append(for_page(title, sized, heads))
    return tables


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
    title = f"Growth along each size ({setting})"
    table = Table(title=title, columns=COLUMNS, rows=rows, notes=NOTES)
    table.write(folder, stem="scaling")
    axes = list(dict.fromkeys(str(row["along"]) for row in rows if "seconds" in row))
    time: dict[str, plots.Panel] = {}
    memory: dict[str, plots.Panel] = {}
    for axis in axes:
        of_axis = [row for row in rows if row["along"] == axis]
        time[axis] = {
            FIT: plots.medians(of_axis, x=axis, y="CPU seconds"),
            LIMIT: plots.medians(of_axis, x=axis, y="plain CPU seconds"),
        }
        memory[axis] = {FIT: plots.medians(of_axis, x=axis, y="peak MB")}
    if axes:
        plots.draw_panels(
            [time, memory],
            x_label="",
            y_labels=("CPU seconds", "MB at the peak"),
            path=folder / "scaling.png",
        )
    return table
