"""Whole jobs: who predicts held-out outputs how well, and in what time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from benchmarks import peers, processes
from benchmarks.processes import Limits, Outcome
from benchmarks.store import Store
from benchmarks.tables import Cell, Table, by_value, for_page
from benchmarks.workloads import EPSILON, Job
from cloakgp.utils.arrays import Array

OUTPUT_BINS = 10
# Of a picture's widest bar, so that the seconds beside it fit.
ROOM = 1.35
NON_PRIVATE_ROWS = 1000
# The library's default, and what its authors ran for their table.
DP4GP_SETTINGS = ((7, 1000), (2, 100))
COLUMNS = (
    "job", "method", "guarantee", "settings", "training rows", "folds", "draws", "RMSE",
    "sd over draws", "mean of folds", "unit", "seconds per fit", "cpu per fit", "time / ours",
    "start MB", "peak MB", "threads", "limit", "status",
)  # fmt: skip
SHOWN = (
    "job", "method", "guarantee", "settings", "training rows", "draws", "RMSE", "sd over draws",
    "mean of folds", "unit", "seconds per fit", "cpu per fit", "time / ours", "peak MB", "status",
)  # fmt: skip
NOTES = (
    "RMSE: root mean square over the held-out rows of all folds, against outputs clipped to the "
    "bounds; mean over draws of the noise, each draw one release per fold. Same folds and bounds. "
    "mean of folds: the mean of every fold's own RMSE, which is what the papers print.",
    "seconds per fit: median over folds and draws of the wall time of one fit, in a process of the "
    "package's own; predictions are not in it, but for dp4gp, which has no other time.",
    "dp4gp: the guarantee is the one that it claims. The papers' kernel; centred and scaled by the "
    "un-noised mean and sd of the outputs, as its notebooks do, a leak that spares it noise. All "
    "draws of a fold share one design.",
    "diffprivlib is purely ε-private, protects the inputs as well, and knows their range. Its "
    f"forest is a classifier of {OUTPUT_BINS} output bins, whose middles it predicts: the library "
    "has no regression forest.",
    "Laplace histograms are purely ε-private.",
    f"scikit-learn: hyperparameters fitted, not private, on at most {NON_PRIVATE_ROWS} random "
    "rows, drawn anew each time.",
)


@dataclass(frozen=True)
class Method:
    """A way to do a job.

    Attributes
    ----------
    name : str
    guarantee : {"epsilon, delta", "epsilon", "none"}
    peer : str
    runner : str
    options : mapping
    """

    name: str
    guarantee: str
    peer: str
    runner: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def guarantee_of(self, job: Job) -> str:
        """Return the guarantee in numbers."""
        if self.guarantee == "none":
            return "none"
        delta = f"{job.delta:g}" if self.guarantee == "epsilon, delta" else "0"
        return f"({EPSILON:g}, {delta})"


def methods_for(job: Job) -> list[Method]:
    """Return what is compared on a job, ours first."""
    histogram = {"estimator": "DPHistogramRegressor"}
    return [
        Method(
            "cloakgp, defaults",
            "epsilon, delta",
            peers.OURSELVES,
            "cloakgp_job.py",
            {
                "estimator": "DPGPRegressor",
                "settings": {} if job.inducing is None else {"inducing": job.inducing},
            },
        ),
        Method(
            "dp4gp, standard",
            "epsilon, delta",
            "dp4gp",
            "dp4gp_job.py",
            {"attempts_and_steps": DP4GP_SETTINGS, **job.papers_kernel},
        ),
        *(
            Method(
                f"histogram, {noise} noise",
                guarantee,
                peers.OURSELVES,
                "cloakgp_job.py",
                {**histogram, "settings": {"bins": job.bins, "noise": noise}},
            )
            for noise, guarantee in (("laplace", "epsilon"), ("gaussian", "epsilon, delta"))
        ),
        *(
            Method(
                f"diffprivlib {kind}",
                "epsilon",
                "diffprivlib",
                "diffprivlib_job.py",
                {"estimator": estimator, "output_bins": OUTPUT_BINS},
            )
            for kind, estimator in (
                ("LinearRegression", "linear"),
                ("RandomForestClassifier", "forest"),
            )
        ),
        Method(
            "scikit-learn GP, not private",
            "none",
            peers.OURSELVES,
            "scikit_learn_job.py",
            {"most_rows": NON_PRIVATE_ROWS},
        ),
    ]


def measure_all(
    jobs: Iterable[Job],
    *,
    draws: int,
    limits: Limits,
    store: Store,
    own_only: bool = False,
    only: Sequence[str] = ("",),
) -> Iterator[dict[str, Cell]]:
    """Yield a row for every job and method.

    Parameters
    ----------
    jobs : iterable of Job
    draws : int
        Releases of every fold.
    limits : Limits
        Of one method on one job.
    store : Store
    own_only : bool
        Leave out what needs another package's environment.
    only : sequence of str
        Leave out what has none of these in its name.
    """
    for job in jobs:
        ours: float | None = None
        for method in methods_for(job):
            if own_only and method.peer != peers.OURSELVES:
                continue
            if not any(part in method.name for part in only):
                continue
            measure = partial(_run, job, method, draws=draws, limits=limits)
            outcome = store.get(f"{job.name} {method.name}", measure)
            row = job_row(job, method, outcome)
            seconds = row.get("seconds per fit")
            if isinstance(seconds, float):
                ours = seconds if ours is None else ours
                row["time / ours"] = seconds / ours
            yield row


def _run(job: Job, method: Method, *, draws: int, limits: Limits) -> Outcome:
    told = {
        "bounds": job.bounds,
        "epsilon": EPSILON,
        "delta": job.delta,
        "draws": draws_of(job, method, draws=draws),
        **method.options,
    }
    return processes.run(
        peers.RUNNERS / method.runner,
        peer=method.peer,
        arrays={"X": job.X, "y": job.y, "fold": job.fold},
        options=told,
        limits=limits,
    )


def draws_of(job: Job, method: Method, *, draws: int) -> int:
    """Return how often a method is drawn: once where nothing is random."""
    most = method.options.get("most_rows")
    return 1 if most is not None and job.training_rows <= most else draws


def job_row(job: Job, method: Method, outcome: Outcome) -> dict[str, Cell]:
    """Return the row of one outcome."""
    row: dict[str, Cell] = {
        "job": job.name,
        "method": method.name,
        "guarantee": method.guarantee_of(job),
        "training rows": job.training_rows,
        "folds": int(job.fold.max()) + 1,
        "unit": job.unit,
        "status": outcome.said,
    }
    if outcome.status != processes.OK:
        return row
    predictions, held_out = outcome.arrays["predictions"], job.fold[job.fold >= 0]
    errors = rmse_by_draw(predictions, job.truth)
    by_fold = [
        rmse_by_draw(predictions[:, held_out == fold], job.truth[held_out == fold]).mean()
        for fold in np.unique(held_out)
    ]
    told = [f"{name} {value}" for name, value in method.options.get("settings", {}).items()]
    return row | {
        "settings": outcome.report.get("settings", ", ".join(told)),
        "draws": len(errors),
        "RMSE": float(errors.mean()),
        "sd over draws": float(errors.std(ddof=1)) if len(errors) > 1 else None,
        "mean of folds": float(np.mean(by_fold)),
        "seconds per fit": float(np.median(outcome.arrays["seconds"])),
        "cpu per fit": float(np.median(outcome.arrays["cpu_seconds"])),
        "start MB": outcome.report["start_mb"],
        "peak MB": outcome.report["peak_mb"],
        "threads": outcome.report.get("threads"),
        "limit": outcome.report.get("limit"),
    }


def rmse_by_draw(predictions: Array, truth: Array) -> Array:
    """Return the root mean squared error of every draw, shape (draws,).

    Examples
    --------
    >>> rmse_by_draw(np.array([[1.0, 3.0], [1.0, 1.0]]), np.ones(2)).round(3)
    array([1.414, 0.   ])
    """
    errors: Array = np.sqrt(np.square(predictions - truth).mean(axis=1))
    return errors


def tables_for_pages(rows: Sequence[Mapping[str, Cell]], *, setting: str) -> list[Table]:
    """Return a table for every job.

    Parameters
    ----------
    rows : sequence of mapping
        Of `measure_all`.
    setting : str
        Where it was measured, for the titles.
    """
    tables = []
    for job, own in by_value(rows, "job"):
        of_job = [{**row, "failed": processes.failure(row)} for row in own]
        heads = {
            "method": "method",
            "guarantee": "guarantee",
            "settings": "settings",
            "draws": "draws",
            f"RMSE, {of_job[0]['unit']}".removesuffix(", "): "RMSE",
            "sd over draws": "sd over draws",
            "CPU seconds a fit": "cpu per fit",
            "failed": "failed",
        }
        title = f"{job}, {of_job[0]['training rows']:,} rows to fit; {setting}"
        tables.append(for_page(title, of_job, heads))
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
    title = f"Whole jobs ({setting})"
    table = Table(title=title, columns=COLUMNS, rows=rows, shown=SHOWN, notes=NOTES)
    table.write(folder, stem="jobs")
    measured = [row for row in rows if row.get("RMSE") is not None]
    if measured:
        draw_errors(measured, path=folder / "jobs.png")
    return table


def draw_errors(rows: Sequence[Mapping[str, Cell]], *, path: Path) -> None:
    """Draw every error with its spread and the seconds of a fit, one panel for each job.

    Parameters
    ----------
    rows : sequence of mapping
        Those that were measured.
    path : Path
        Of the PNG file.
    """
    names = list(dict.fromkeys(str(row["job"]) for row in rows))
    figure = Figure(figsize=(4.6 * len(names), 3.8), layout="constrained")
    axes = figure.subplots(1, len(names), squeeze=False)[0]
    for name, axis in zip(names, axes, strict=True):
        here = [row for row in rows if row["job"] == name]
        methods = [str(row["method"]) for row in here]
        errors = [float(row["RMSE"] or 0) for row in here]
        spread = [float(row["sd over draws"] or 0) for row in here]
        colours = ["tab:blue" if method.startswith("cloakgp") else "0.65" for method in methods]
        axis.barh(methods, errors, xerr=spread, color=colours, ecolor="black")
        axis.invert_yaxis()
        axis.set_title(name, fontsize=10)
        axis.set_xlabel(f"RMSE ({here[0]['unit']})" if here[0]["unit"] else "RMSE")
        axis.set_xlim(0, ROOM * max(map(sum, zip(errors, spread, strict=True))))
        axis.xaxis.set_major_locator(MaxNLocator(3))
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        for place, (error, wide, row) in enumerate(zip(errors, spread, here, strict=True)):
            seconds = float(row["seconds per fit"] or 0)
            axis.text(error + wide, place, f"  {seconds:.2g} s", va="center", fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
