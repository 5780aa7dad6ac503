"""Tables and pictures of how solvers compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import plots
from benchmarks.processes import failure
from benchmarks.solvers import DP4GP_DEFAULT, OURS, figure, is_measured, is_shortened
from benchmarks.tables import Cell, Table, by_value, for_page

COLUMNS = (
    "problem", "family", "N", "P", "rank", "solver", "criterion", "settings", "seconds", "runs",
    "cpu seconds", "start MB", "peak MB", "call MB", "log det", "log det as stated", "mean square",
    "mean square as stated", "sensitivity", "directions unseen", "time / ours",
    "log det - ours", "mean square / ours", "threads", "limit", "status",
)  # fmt: skip
SHOWN = (
    "problem", "rank", "solver", "settings", "seconds", "runs", "cpu seconds", "peak MB",
    "call MB", "log det", "log det as stated", "mean square", "mean square as stated",
    "time / ours", "log det - ours", "mean square / ours", "status",
)  # fmt: skip
NOTES = (
    "seconds: wall time around the solver's call alone, inside its own process; the median where "
    "runs is above 1. peak MB: of the whole process during the call, libraries included; call MB: "
    "what of it was not there before the call.",
    "log det: of the noise covariance M, per dimension of the numerical range of C (singular "
    "values above 1.5e-8 of the largest), in units of dσ, after M was scaled to sensitivity "
    "exactly 1: M·max_j c_jᵀM⁻¹c_j. As stated: with the scale that the package itself computes.",
    "mean square: tr(M)/P, scaled alike; its root times dσ is the rms noise of a prediction.",
    "ours: cloakgp with the same criterion. A positive log det - ours is a larger volume.",
    "shortened: the package's own number of steps would not have ended within the limit. Its time "
    "is then no measure of it, and its ratio is left out.",
    "A solver that stops at a loose tolerance, as SCS does, may leave some direction too little: "
    "scaling to exact sensitivity then pays for it in all of them.",
    "dp4gp multiplies its noise by the square of the sensitivity where the sensitivity is due.",
    "directions unseen (CSV): of the range, those that dp4gp's pseudo-inverse cuts off, so that "
    "its stated sensitivity ignores them; ours counts every one.",
)


def claims(rows: Sequence[Mapping[str, Cell]]) -> Table:
    """Return what is claimed of cloakgp beside dp4gp's own settings, and whether it was found.

    Parameters
    ----------
    rows : sequence of mapping
        Of `benchmarks.solvers.measure_all`.
    """
    found: list[dict[str, Cell]] = []
    for problem in dict.fromkeys(str(row["problem"]) for row in rows):
        of = {str(row["solver"]): row for row in rows if row["problem"] == problem}
        theirs = of.get(DP4GP_DEFAULT.name, {})
        logdet, trace = (of.get(our.name, {}) for our in OURS)
        whole = all(map(is_measured, (theirs, logdet, trace))) and not is_shortened(theirs)
        if not whole:
            found.append({"problem": problem, "faster by": None, "verdict": "not measured"})
            continue
        faster = figure(theirs, "seconds") / figure(logdet, "seconds")
        volume = figure(theirs, "log det") - figure(logdet, "log det")
        noise = figure(theirs, "mean square") / figure(trace, "mean square")
        verdict = faster >= 1000 and volume >= 0 and noise > 1
        found.append(
            {
                "problem": problem,
                "faster by": faster,
                "less CPU by": figure(theirs, "cpu seconds") / figure(logdet, "cpu seconds"),
                "log det less by": volume,
                "mean square less by": noise,
                "verdict": "holds" if verdict else "does not hold",
            }
        )
    return Table(
        title="Claims against dp4gp with its default settings",
        columns=(
            "problem",
            "faster by",
            "less CPU by",
            "log det less by",
            "mean square less by",
            "verdict",
        ),
        rows=found,
        notes=(
            "The claim: `logdet` at least 1000 times faster to a volume no larger, and `trace` "
            "with less mean squared noise. All are factors, but that log det is a difference.",
        ),
    )


def tables_for_pages(rows: Sequence[Mapping[str, Cell]], *, setting: str) -> list[Table]:
    """Return a table for every problem, whose measures are our solvers with the default gap.

    Volumes are compared with `logdet` and mean squares with `trace`, whatever was minimised.

    Parameters
    ----------
    rows : sequence of mapping
        Of `benchmarks.solvers.measure_all`.
    setting : str
        Where it was measured, for the titles.
    """
    heads = {
        "solver": "solver",
        "settings": "settings",
        "runs": "runs",
        "CPU seconds": "cpu seconds",
        "log det above `logdet`": "volume",
        "mean square over `trace`": "noise",
        "failed": "failed",
    }
    tables = []
    for problem, of_problem in by_value(rows, "problem"):
        logdet, trace = (
            next(row for row in of_problem if row["solver"] == our.name) for our in OURS
        )
        compared = [
            {
                **row,
                "failed": failure(row),
                "volume": _difference(row, logdet),
                "noise": _ratio(row, trace),
            }
            for row in of_problem
        ]
        title = f"Solvers on the same cloaking matrix, {problem} ({setting})"
        tables.append(for_page(title, compared, heads))
    return tables


def _difference(row: Mapping[str, Cell], logdet: Mapping[str, Cell]) -> str | None:
    if not is_measured(row) or not is_measured(logdet):
        return None
    return f"{figure(row, 'log det') - figure(logdet, 'log det'):.1g}"


def _ratio(row: Mapping[str, Cell], trace: Mapping[str, Cell]) -> str | None:
    if not is_measured(row) or not is_measured(trace):
        return None
    return f"{figure(row, 'mean square') / figure(trace, 'mean square'):.3f}"


def report(rows: Sequence[Mapping[str, Cell]], *, folder: Path, setting: str) -> Table:
    """Write the tables and the pictures; return the table of all measurements.

    Parameters
    ----------
    rows : sequence of mapping
        Of `benchmarks.solvers.measure_all`.
    folder : Path
    setting : str
        Where it was measured, for the title.
    """
    title = f"Solvers on the same cloaking matrix ({setting})"
    table = Table(title=title, columns=COLUMNS, rows=rows, shown=SHOWN, notes=NOTES)
    table.write(folder, stem="solvers")
    claims(rows).write(folder, stem="claims")
    families = {
        row["family"]: {one["N"] for one in rows if one["family"] == row["family"]} for row in rows
    }
    several = [row for row in rows if len(families[row["family"]]) > 1]
    for stem, x, held, some in (
        ("solvers-rows", "N", "P", several),
        ("solvers-predictions", "P", "N", rows),
    ):
        grid = [_panels(some, x=x, held=held, y=y) for y in ("seconds", "call MB")]
        if grid[0]:
            plots.draw_panels(
                grid,
                x_label=x,
                y_labels=("seconds", "MB above the start"),
                path=folder / f"{stem}.png",
            )
    return table


def _panels(
    rows: Sequence[Mapping[str, Cell]], *, x: str, held: str, y: str
) -> dict[str, dict[str, list[plots.Point]]]:
    """Return a panel for every number of inputs and of what is held, in the order of the rows."""
    panels: dict[str, dict[str, list[plots.Point]]] = {}
    for row in rows:
        if is_measured(row):
            lines = panels.setdefault(f"{row['family']}, {held} = {row[held]}", {})
            point = plots.Point(figure(row, x), figure(row, y), whole=not is_shortened(row))
            lines.setdefault(str(row["solver"]), []).append(point)
    return panels
