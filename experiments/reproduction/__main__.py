"""Command line of the report: ``python -m experiments.reproduction``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from experiments.framework import console, table_titled
from experiments.progress import progress
from experiments.reproduction import checking, running
from experiments.reproduction.document import write_pdf
from experiments.reproduction.jobs import all_jobs
from experiments.reproduction.jobs.base import Job
from experiments.reproduction.page import page_html
from experiments.reproduction.results import FOLDER, Results

app = typer.Typer(
    help="The papers' tables, figures and quoted numbers beside what is computed here. Tables are "
    "looked for in the folder CLOAKGP_DATA, and downloaded without it.",
    no_args_is_help=True,
)
Only = Annotated[
    list[str] | None, typer.Option(help="A job, or how its name begins; more than once for more.")
]
Folder = Annotated[Path, typer.Option(help="Where results are kept.")]
AtATime = Annotated[int, typer.Option(min=1, help="Jobs at a time, each on one core.")]


def chosen(only: list[str] | None) -> dict[str, Job]:
    """Return the jobs whose names begin so; all without any."""
    jobs = all_jobs()
    if not only:
        return jobs
    found = {name: job for name, job in jobs.items() if name.startswith(tuple(only))}
    for one in only:
        if not any(name.startswith(one) for name in found):
            raise typer.BadParameter(f"no job is called {one}: see the command list")
    return found


@app.command("run")
def run_jobs(
    *,
    only: Only = None,
    again: Annotated[bool, typer.Option("--again", help="Replace what is kept.")] = False,
    draws: Annotated[int | None, typer.Option(min=2, help="Instead of each job's own.")] = None,
    jobs: AtATime = 1,
    folder: Folder = FOLDER,
) -> None:
    """Compute what is not kept yet; an interrupted run goes on where it was."""
    wanted, results = chosen(only), Results(folder)
    for name in running.changed(wanted, results):
        console.print(f"{name} is kept with other settings; --only {name} --again replaces it")
    left = list(wanted.values()) if again else running.missing(wanted, results)
    minutes = sum(job.minutes for job in left)
    console.print(
        f"{len(wanted) - len(left)} of {len(wanted)} jobs are kept; {len(left)} are computed now, "
        f"in some {minutes / jobs:.0f} min"
    )
    failed = running.run(left, results, progress=progress, draws=draws, n_jobs=jobs)
    for one in failed:
        console.print(f"{one.job.name}: {one.reason}", markup=False)
    if failed:
        raise typer.Exit(1)


@app.command("list")
def list_jobs(*, folder: Folder = FOLDER) -> None:
    """Print every job with what is kept of it."""
    results = Results(folder)
    table = table_titled("Jobs", "job", "settings", "commit", right=["draws", "kept", "seconds"])
    for name, job in all_jobs().items():
        kept = results.find(name)
        if kept is None:
            table.add_row(
                name, job.told(job.draws), "", f"{job.draws}", "", f"≈ {60 * job.minutes:.0f}"
            )
        else:
            cells = (f"{kept.draws}", kept.date, f"{kept.seconds:.0f}")
            table.add_row(name, kept.settings, kept.commit, *cells)
    console.print(table)


@app.command("check")
def check_results(
    *,
    only: Only = None,
    minutes: Annotated[float, typer.Option(help="Of one core, about.")] = 5.0,
    jobs: AtATime = 1,
    seed: Annotated[int | None, typer.Option(help="Of which jobs are taken.")] = None,
    folder: Folder = FOLDER,
) -> None:
    """Compute a random part afresh and compare; exit code 1 where it does not agree."""
    results = Results(folder)
    rng = np.random.default_rng(seed)
    wanted = checking.subset(chosen(only), results, seconds=60 * minutes, rng=rng)
    console.print(f"computing afresh: {', '.join(job.name for job in wanted)}")
    found: list[checking.Comparison] = []
    with progress("check", steps=len(wanted)) as tick:
        for done in running.computed_as_kept(wanted, results, n_jobs=jobs):
            if done.found is None:
                console.print(f"{done.job.name}: {done.reason}", markup=False)
                raise typer.Exit(1)
            kept = results.find(done.job.name)
            quantities = {} if kept is None else kept.quantities
            found += checking.compare(quantities, done.found.quantities, job=done.job.name)
            tick()
    disagreeing = [one for one in checking.judged(found) if not one.agrees]
    for one in disagreeing:
        p = "" if one.p is None else f", p = {one.p:.1g}"
        words = f"{one.key}: kept {one.kept.mean:.6g}, fresh {one.fresh.mean:.6g}{p}"
        console.print(words, markup=False)
    tests = sum(one.p is not None for one in found)
    console.print(
        f"{len(found)} figures of {len(wanted)} jobs compared, {tests} of them by Welch's test at "
        f"{checking.ALARM:g} over all, the others within {checking.SAME:.0%}: "
        f"{len(disagreeing)} disagree"
    )
    if disagreeing:
        raise typer.Exit(1)


@app.command("page")
def write_page(
    *,
    output_dir: Annotated[Path, typer.Option(help="Where both are written.")] = Path("output"),
    folder: Folder = FOLDER,
) -> None:
    """Write the report, as a page of HTML and as a PDF, of what is kept."""
    results = Results(folder)
    output_dir.mkdir(parents=True, exist_ok=True)
    page, document = output_dir / "reproduction.html", output_dir / "reproduction.pdf"
    page.write_text(page_html(results), encoding="utf-8")
    write_pdf(document, results)
    console.print(f"wrote {page} and {document}")


def main() -> None:
    """Run."""
    app()


if __name__ == "__main__":
    main()
