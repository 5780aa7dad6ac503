"""Run one measurement in a process of its own."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import peers
from benchmarks.runners import protocol
from cloakgp.utils.arrays import Array

OK, NOT_INSTALLED, LIMIT, FAILED = "ok", "not installed", "stopped at the limit", "failed"
# Of a message of another package, so that a table's cell stays readable.
LONGEST_REASON = 90


@dataclass(frozen=True)
class Limits:
    """What every process is held to.

    Attributes
    ----------
    seconds : float
        After which it is ended.
    threads : int
        Of BLAS and its kin.
    memory_gb : float
    cache : Path
        Where the environments are.
    """

    seconds: float = 600.0
    threads: int = 1
    memory_gb: float = 12.0
    cache: Path = peers.DEFAULT_CACHE


@dataclass(frozen=True)
class Outcome:
    """What came of a measurement.

    Attributes
    ----------
    status : str
        "ok", or why there are no figures.
    reason : str
        More about it.
    arrays : mapping of str to array
    report : mapping of str to anything
    """

    status: str
    reason: str = ""
    arrays: Mapping[str, Array] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)

    @property
    def said(self) -> str:
        """Status and reason in one line."""
        return f"{self.status}: {self.reason}" if self.reason else self.status


def failure(row: Mapping[str, str | float | None]) -> str | float | None:
    """Return what the row of an outcome says of why it has no figures; None if it has.

    Examples
    --------
    >>> failure({"status": "ok"}), failure({"status": "failed: exit code 1"})
    (None, 'failed: exit code 1')
    """
    return None if row["status"] == OK else row["status"]


def environment(threads: int) -> dict[str, str]:
    """Return the variables that hold numerical libraries to so many threads."""
    count = str(threads)
    flags = f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}"
    names = ("OPENBLAS", "OMP", "MKL", "NUMEXPR", "RAYON", "VECLIB")
    return {
        **{f"{name}_NUM_THREADS": count for name in names},
        "XLA_FLAGS": f"{flags} intra_op_parallelism_threads={count}",
        "JAX_PLATFORMS": "cpu",
        "MPLBACKEND": "Agg",
    }


def run(
    runner: Path,
    *,
    peer: str,
    arrays: Mapping[str, Array],
    options: Mapping[str, Any],
    limits: Limits,
) -> Outcome:
    """Run a runner in its package's Python, and return what it found.

    Parameters
    ----------
    runner : Path
    peer : str
        Whose Python.
    arrays : mapping of str to array
    options : mapping
        Everything else that the runner needs to know.
    limits : Limits
    """
    python = peers.interpreter(peer, cache=limits.cache)
    if python is None:
        return Outcome(NOT_INSTALLED)
    with tempfile.TemporaryDirectory() as folder:
        job, result = Path(folder, "job.npz"), Path(folder, "result.npz")
        told = {"limit": limits.seconds, "memory_gb": limits.memory_gb, **options}
        protocol.write(job, arrays, told)
        try:
            finished = subprocess.run(
                [python, runner, job, result],
                env=os.environ | environment(limits.threads),
                timeout=limits.seconds,
                capture_output=True,
                text=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome(LIMIT, f"{limits.seconds:g} s")
        if finished.returncode or not result.exists():
            lines = finished.stderr.strip().splitlines() or ["no message"]
            return Outcome(FAILED, f"exit code {finished.returncode}: {lines[-1][:LONGEST_REASON]}")
        found, report = protocol.read(result)
    report |= {"limit": limits.seconds, "threads": limits.threads}
    return Outcome(
        report.pop("status", OK), reason=report.pop("reason", ""), arrays=found, report=report
    )
