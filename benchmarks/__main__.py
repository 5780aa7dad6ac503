"""Command line: ``python -m benchmarks``."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks import (
    chaos,
    growth,
    jobs,
    passes,
    peers,
    posteriors,
    problems,
    scaling,
    solver_report,
    solvers,
    workloads,
)
from benchmarks.processes import Limits
from benchmarks.store import Store
from benchmarks.tables import Cell, Table, shown
from cloakgp.ledger.engines import HOME
from experiments.datasets import DatasetUnavailableError
from experiments.framework import Keep
from experiments.pages import keep_tables

SMALL_DRAWS, SMALL_REPEATS = 2, 2

app = typer.Typer(help="cloakgp beside other packages: time, memory, noise and errors.")
console = Console(highlight=False)

Out = Annotated[Path, typer.Option(help="Where tables and pictures are written.")]
Cache = Annotated[Path, typer.Option(help="Where the other packages' environments are.")]
Small = Annotated[bool, typer.Option("--small", help="Tiny problems, our own code alone.")]
Threads = Annotated[int, typer.Option(min=1, help="BLAS threads of every package.")]
Limit = Annotated[float, typer.Option(min=1, help="Seconds for one solver, or one job.")]
ReferenceLimit = Annotated[
    float, typer.Option(min=1, help="The same for dp4gp's solver on the papers' problems.")
]
Memory = Annotated[float, typer.Option(min=1, help="Gigabytes of data for one process.")]
Resume = Annotated[bool, typer.Option("--resume", help="Keep what was measured into --out.")]
Draws = Annotated[int, typer.Option(min=1, help="Draws of the noise for every fold.")]
Repeats = Annotated[int, typer.Option(min=1, help="Runs of a call that takes under 2 s.")]
Only = Annotated[list[str] | None, typer.Option(help="Only those whose name has this in it.")]
Where = Annotated[list[str] | None, typer.Option("--on", help="The same of problems or jobs.")]

OUT = Path("output/benchmarks")


@app.callback(invoke_without_command=True)
def run_everything(
    context: typer.Context,
    out: Out = OUT,
    small: Small = False,
    cache: Cache = peers.DEFAULT_CACHE,
    resume: Resume = False,
) -> None:
    """Measure everything, unless a command says what."""
    if context.invoked_subcommand is None:
        run_solvers(out=out, small=small, cache=cache, resume=resume)
        run_jobs(out=out, small=small, cache=cache, resume=resume)
        run_growth(out=out, small=small, resume=resume)
        run_scaling(out=out, small=small, resume=resume)


@app.command("environments")
def run_environments(cache: Cache = peers.DEFAULT_CACHE, only: Only = None) -> None:
    """Create the other packages' virtual environments."""
    failed = []
    for peer in _chosen(peers.names(), only):
        console.print(f"{peer} …")
        try:
            peers.create(peer, cache=cache)
        except subprocess.CalledProcessError:
            failed.append(peer)
    if failed:
        raise SystemExit(f"could not be installed: {', '.join(failed)}")


@app.command("solvers")
def run_solvers(
    out: Out = OUT,
    small: Small = False,
    cache: Cache = peers.DEFAULT_CACHE,
    threads: Threads = 1,
    limit: Limit = 300,
    reference_limit: ReferenceLimit = 2400,
    memory: Memory = 12,
    repeats: Repeats = 5,
    resume: Resume = False,
    only: Only = None,
    on: Where = None,
    keep: Keep = None,
) -> None:
    """Time and noise of solvers on the same cloaking matrices."""
    limits = Limits(seconds=limit, threads=threads, memory_gb=memory, cache=cache)
    everybody = solvers.OURS if small else solvers.OURS + solvers.SHARPER + solvers.PEERS
    names = _chosen([solver.name for solver in everybody], only)
    found = _collect(
        solvers.measure_all(
            (one for one in problems.all_problems(small=small) if _chosen([one.name], on)),
            solvers=[one for one in everybody if one.name in names or one in solvers.OURS],
            limits=limits,
            reference_limits=replace(limits, seconds=reference_limit),
            store=Store(out / "measurements" / "solvers", resume=resume),
            repeats=SMALL_REPEATS if small else repeats,
        ),
        said=("problem", "solver", "seconds", "log det", "mean square", "status"),
    )
    solver_report.report(found, folder=out, setting=_setting(limits))
    _keep(*solver_report.tables_for_pages(found, setting=_setting(limits)), name=keep)


@app.command("jobs")
def run_jobs(
    out: Out = OUT,
    small: Small = False,
    cache: Cache = peers.DEFAULT_CACHE,
    threads: Threads = 1,
    limit: Limit = 600,
    memory: Memory = 12,
    draws: Draws = 5,
    resume: Resume = False,
    only: Only = None,
    on: Where = None,
    keep: Keep = None,
) -> None:
    """Errors and times of whole jobs on the papers' tables."""
    limits = Limits(seconds=limit, threads=threads, memory_gb=memory, cache=cache)
    found = _collect(
        jobs.measure_all(
            (one for one in workloads.all_jobs(small=small) if _chosen([one.name], on)),
            draws=SMALL_DRAWS if small else draws,
            limits=limits,
            store=Store(out / "measurements" / "jobs", resume=resume),
            own_only=small,
            only=only or ("",),
        ),
        said=("job", "method", "RMSE", "sd over draws", "seconds per fit", "status"),
    )
    jobs.report(found, folder=out, setting=_setting(limits))
    _keep(*jobs.tables_for_pages(found, setting=_setting(limits)), name=keep)


@app.command("posteriors")
def run_posteriors(
    out: Out = OUT,
    cache: Cache = peers.DEFAULT_CACHE,
    limit: Limit = 600,
    only: Only = None,
    keep: Keep = None,
) -> None:
    """Posteriors of GPy and GPflow beside ours, without privacy."""
    limits = Limits(seconds=limit, cache=cache)
    libraries = _chosen(tuple(posteriors.LIBRARIES), only)
    found = _collect(
        posteriors.compare_all(limits=limits, only=libraries),
        said=("problem", "library", "mean differs", "sd differs", "status"),
    )
    posteriors.report(found, folder=out)
    _keep(posteriors.table_for_pages(found), name=keep)


@app.command("chaos")
def run_chaos(
    url: Annotated[
        list[str] | None,
        typer.Option(help="Where a ledger is made, each in turn; sqlite (default): a file."),
    ] = None,
    charges: Annotated[int, typer.Option(min=1, help="To be tried.")] = 10_000,
    processes: Annotated[int, typer.Option(min=1, help="That charge at once.")] = 4,
    keep: Keep = None,
) -> None:
    """Charge one ledger from several processes that are killed, and compare with what they drew."""
    counts = []
    for place in url or ("sqlite",):
        with tempfile.TemporaryDirectory() as folder:
            home = os.environ.setdefault(HOME, folder)
            found = chaos.wreak(
                f"{folder}/people.db" if place == "sqlite" else place,
                charges=charges,
                processes=processes,
                folder=Path(folder),
            )
            if home == folder:
                del os.environ[HOME]
        for name, value in asdict(found).items():
            console.print(f"{name:>10}  {value}")
        if found.lost or found.spent > found.limit or not found.sound:
            raise SystemExit("the ledger does not say what was drawn")
        counts.append(found)
    _keep(chaos.report(counts, processes=processes), name=keep)


@app.command("service")
def run_service(
    rows: Annotated[list[int] | None, typer.Option(min=1, help="Of a request.")] = None,
    connections: Annotated[list[int] | None, typer.Option(min=1, help="That ask at once.")] = None,
    seconds: Annotated[float, typer.Option(min=1, help="For each.")] = 10.0,
    keep: Keep = None,
) -> None:
    """Ask a server for predictions as fast as it answers."""
    from benchmarks import service

    loads = []
    for found in service.measure_all(
        rows=tuple(rows or (1, 100)), connections=tuple(connections or (1, 8)), seconds=seconds
    ):
        loads.append(found)
        console.print("  ".join(f"{name} {value}" for name, value in asdict(found).items()))
    _keep(service.report(loads, seconds=seconds), name=keep)


@app.command("growth")
def run_growth(
    out: Out = OUT,
    small: Small = False,
    threads: Threads = 2,
    limit: Limit = 3600,
    memory: Memory = 12,
    runs: Annotated[int, typer.Option(min=1, help="Runs of every number of rows.")] = 1,
    most: Annotated[int, typer.Option(min=1, help="The most rows.")] = growth.ROWS[-1],
    criterion: Annotated[list[str] | None, typer.Option(help="bayes, trace or logdet.")] = None,
    resume: Resume = False,
    keep: Keep = None,
) -> None:
    """Time and memory of the command line from a thousand to ten million rows."""
    limits = Limits(seconds=limit, threads=threads, memory_gb=memory)
    counts = growth.SMALL_ROWS if small else growth.ROWS
    found = _collect(
        growth.measure_all(
            rows=[count for count in counts if count <= most],
            criteria=criterion or ("bayes", "trace"),
            repeats=runs,
            limits=limits,
            store=Store(out / "measurements" / "growth", resume=resume),
            small=small,
        ),
        said=("rows", "criterion", "seconds", "peak MB", "RMSE", "status"),
    )
    growth.report(found, folder=out, setting=_setting(limits))
    _keep(*growth.tables_for_pages(found, setting=_setting(limits)), name=keep)


@app.command("scaling")
def run_scaling(
    out: Out = OUT,
    small: Small = False,
    threads: Threads = 1,
    limit: Limit = 3600,
    memory: Memory = 12,
    runs: Annotated[int, typer.Option(min=1, help="Runs of every size.")] = 1,
    along: Annotated[
        list[str] | None, typer.Option(help=f"Only these: {', '.join(scaling.ALONG)}.")
    ] = None,
    noise: Annotated[str, typer.Option(help="auto, gaussian or laplace.")] = "auto",
    resume: Resume = False,
    keep: Keep = None,
) -> None:
    """Time and memory of a fit against rows, inputs, inducing inputs, points and workers."""
    limits = Limits(seconds=limit, threads=threads, memory_gb=memory)
    found = _collect(
        scaling.measure_all(
            along=along,
            repeats=runs,
            limits=limits,
            store=Store(out / "measurements" / "scaling", resume=resume),
            small=small,
            noise=noise,
        ),
        said=("along", *asdict(scaling.BASE), "seconds", "CPU seconds", "over the plain pass"),
    )
    scaling.report(found, folder=out, setting=_setting(limits))
    _keep(*scaling.tables_for_pages(found, setting=_setting(limits)), name=keep)


@app.command("passes")
def run_passes(
    runs: Annotated[int, typer.Option(min=1, help="Whose medians are told.")] = 5,
    keep: Keep = None,
) -> None:
    """Cost of what passes do to a chunk of rows, over that of the plain pass."""
    found = []
    for ratios in passes.measure_all(runs=runs):
        found.append(ratios)
        console.print("  ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()))
    _keep(passes.report(found), name=keep)


def _keep(*tables: Table, name: str | None) -> None:
    """Keep tables under the name by which pages show them, if there is one."""
    if name is not None:
        settings = shlex.join(["benchmarks", *sys.argv[1:]])
        laid_out = [each.laid_out() for each in tables]
        console.print(f"wrote {keep_tables(laid_out, name=name, settings=settings)}")


def _collect(rows: Iterable[dict[str, Cell]], *, said: Sequence[str]) -> list[dict[str, Cell]]:
    found = []
    for row in rows:
        console.print("  ".join(shown(row.get(column)) for column in said), soft_wrap=True)
        found.append(row)
    return found


def _chosen(names: Sequence[str], only: Sequence[str] | None) -> list[str]:
    return [name for name in names if only is None or any(part in name for part in only)]


def _setting(limits: Limits) -> str:
    threads = f"{limits.threads} thread" + ("s" if limits.threads > 1 else "")
    return f"{threads}, on a machine of {os.cpu_count()} cores"


if __name__ == "__main__":
    try:
        app()
    except DatasetUnavailableError as error:
        raise SystemExit(str(error)) from None
