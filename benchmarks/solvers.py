"""Solvers on the very same cloaking matrix: their time, and the noise that they achieve."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks import peers, processes
from benchmarks.noise import noise_figures, noise_root
from benchmarks.problems import Problem
from benchmarks.processes import Limits, Outcome
from benchmarks.store import Store
from benchmarks.tables import Cell
from cloakgp.utils.names import DEFAULT_GAP

SEED = 0
LEAST_MB = 0.1


@dataclass(frozen=True)
class Solver:
    """A package's way to choose the noise.

    Attributes
    ----------
    name : str
    criterion : {"logdet", "trace"}
        What it minimises.
    peer : str
    runner : str
        A script in ``runners``.
    options : mapping
    reference : bool
        Whether the claims are about it, so that it may take the longer limit.
    """

    name: str
    criterion: str
    peer: str
    runner: str
    options: Mapping[str, Any] = field(default_factory=dict)
    reference: bool = False


def cloakgp(criterion: str, *, gap: float = DEFAULT_GAP) -> Solver:
    """Return cloakgp's solver for a criterion, named after its gap unless that is the default."""
    return Solver(
        name=f"cloakgp {criterion}" + f" to {gap:.0e}" * (gap != DEFAULT_GAP),
        criterion=criterion,
        peer=peers.OURSELVES,
        runner="cloakgp_solver.py",
        options={"criterion": criterion, "gap": gap},
    )


def dp4gp(name: str, *, attempts: int, steps: int) -> Solver:
    """Return dp4gp's solver with so many attempts of so many steps."""
    return Solver(
        name=f"dp4gp, {name}",
        criterion="logdet",
        peer="dp4gp",
        runner="dp4gp_solver.py",
        options={"attempts": attempts, "steps": steps, "seed": SEED},
        reference=True,
    )


def cvxpy(solver: str, criterion: str) -> Solver:
    """Return one of cvxpy's solvers for a criterion."""
    return Solver(
        name=f"cvxpy {solver.title() if solver != 'SCS' else solver} {criterion}",
        criterion=criterion,
        peer="cvxpy",
        runner="cvxpy_solver.py",
        options={"solver": solver, "criterion": criterion},
    )


OURS = (cloakgp("logdet"), cloakgp("trace"))
SHARPER = tuple(cloakgp(one.criterion, gap=gap) for gap in (1e-6, 1e-9) for one in OURS)
DP4GP_DEFAULT = dp4gp("default", attempts=7, steps=1000)
PEERS = (
    dp4gp("2 x 100", attempts=2, steps=100),
    DP4GP_DEFAULT,
    cvxpy("CLARABEL", "logdet"),
    cvxpy("CLARABEL", "trace"),
    cvxpy("SCS", "logdet"),
    cvxpy("SCS", "trace"),
    Solver(
        name="jax-privacy dense",
        criterion="trace",
        peer="jax-privacy",
        runner="jax_privacy_solver.py",
        options={"steps": 10_000},
    ),
)


def measure_all(
    problems: Iterable[Problem],
    *,
    solvers: Sequence[Solver],
    limits: Limits,
    reference_limits: Limits,
    store: Store,
    repeats: int,
) -> Iterator[dict[str, Cell]]:
    """Yield a row for every problem and solver.

    What gave no result on one problem is not tried on a larger one of the same family.

    Parameters
    ----------
    problems : iterable of Problem
        Smaller ones first.
    solvers : sequence of Solver
        Ours first: the others' ratios are to those.
    limits, reference_limits : Limits
        The second for the reference package on the papers' own problems.
    store : Store
    repeats : int
        Of short calls.
    """
    hopeless: list[tuple[Solver, Problem]] = []
    for problem in problems:
        ours: dict[str, dict[str, Cell]] = {}
        for solver in solvers:
            before = [
                one.name for tried, one in hopeless if tried == solver and _no_larger(one, problem)
            ]
            if before:
                outcome = Outcome("not tried", f"no result on {before[0]}")
            else:
                outcome = _outcome(
                    problem,
                    solver,
                    limits=reference_limits if solver.reference and problem.papers else limits,
                    store=store,
                    repeats=repeats,
                )
            if outcome.status in (processes.LIMIT, processes.FAILED):
                hopeless.append((solver, problem))
            row = solver_row(problem, solver, outcome)
            if solver.peer == peers.OURSELVES:
                # The first of a criterion, which has the default gap.
                ours.setdefault(solver.criterion, row)
            yield row | _ratios(row, ours.get(solver.criterion))


def _no_larger(one: Problem, other: Problem) -> bool:
    return one.family == other.family and all(
        a <= b for a, b in zip(one.C.shape, other.C.shape, strict=True)
    )


def _outcome(
    problem: Problem, solver: Solver, *, limits: Limits, store: Store, repeats: int
) -> Outcome:
    span = problem.span
    return store.get(
        f"{problem.name} {solver.name}",
        lambda: processes.run(
            peers.RUNNERS / solver.runner,
            peer=solver.peer,
            arrays={"C": problem.C, "scales": span.scales, "right": span.right},
            options={**solver.options, "repeats": repeats},
            limits=limits,
        ),
    )


def solver_row(problem: Problem, solver: Solver, outcome: Outcome) -> dict[str, Cell]:
    """Return the row of one outcome, without its ratios."""
    predictions, rows = problem.C.shape
    row: dict[str, Cell] = {
        "problem": problem.name,
        "family": problem.family,
        "N": rows,
        "P": predictions,
        "rank": len(problem.span.scales),
        "solver": solver.name,
        "criterion": solver.criterion,
        "status": outcome.said,
    }
    if outcome.status != processes.OK:
        return row
    report = outcome.report
    root = noise_root(outcome.arrays, problem.span)
    exact = noise_figures(root, problem.span, predictions=predictions)
    stated = noise_figures(
        root, problem.span, predictions=predictions, stated_scale=report["stated_scale"]
    )
    seen = report.get("seen_directions")
    return row | {
        "settings": report["settings"],
        "seconds": report["seconds"],
        "runs": report["runs"],
        "cpu seconds": report["cpu_seconds"],
        "start MB": report["start_mb"],
        "peak MB": report["peak_mb"],
        # A log axis has no zero.
        "call MB": max(report["peak_mb"] - report["start_mb"], LEAST_MB),
        "threads": report.get("threads"),
        "limit": report.get("limit"),
        "log det": exact.volume,
        "log det as stated": stated.volume,
        "mean square": exact.mean_square,
        "mean square as stated": stated.mean_square,
        "sensitivity": exact.sensitivity,
        "directions unseen": None if seen is None else max(exact.rank - int(seen), 0),
    }


def is_shortened(row: Mapping[str, Cell]) -> bool:
    """Whether a solver was given less to do than it asks for."""
    return "shortened" in str(row.get("settings"))


def _ratios(row: Mapping[str, Cell], ours: Mapping[str, Cell] | None) -> dict[str, Cell]:
    if ours is None or not is_measured(row) or not is_measured(ours):
        return {}
    return {
        "time / ours": None
        if is_shortened(row)
        else figure(row, "seconds") / figure(ours, "seconds"),
        "log det - ours": figure(row, "log det") - figure(ours, "log det"),
        "mean square / ours": figure(row, "mean square") / figure(ours, "mean square"),
    }


def is_measured(row: Mapping[str, Cell]) -> bool:
    """Whether a row has figures."""
    return row.get("seconds") is not None


def figure(row: Mapping[str, Cell], column: str) -> float:
    """Return a figure of a row that has figures.

    Raises
    ------
    TypeError
        If it has none in that column.
    """
    value = row[column]
    if not isinstance(value, (int, float)):
        raise TypeError(f"{column} of {row['problem']} is no number: {value!r}")
    return float(value)
