"""How a runner talks to the benchmark that started it, and how it measures.

A runner is a script: ``python runner.py job.npz result.npz``. Both files hold arrays, and under
``json`` a text with everything else. This module and the runners are read by other packages'
interpreters, so they need nothing but numpy.
"""

from __future__ import annotations

import contextlib
import json
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
Arrays = Mapping[str, np.ndarray]
TEXT = "json"
# A call shorter than this, in seconds, is repeated; the median is reported.
SHORT, REPEATS = 2.0, 5


@dataclass(frozen=True)
class Cost:
    """What one call took.

    Attributes
    ----------
    seconds, cpu_seconds : float
        Medians over the runs.
    runs : int
    start_mb, peak_mb : float
        Resident memory of the process before the call, and its largest during the call.
    """

    seconds: float
    cpu_seconds: float
    runs: int
    start_mb: float
    peak_mb: float

    def report(self) -> dict[str, float]:
        """Return the figures by name."""
        return asdict(self)


def read(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays of a file and the rest."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files if name != TEXT}
        return arrays, json.loads(str(stored[TEXT]))


def write(path: str | Path, arrays: Arrays, rest: Mapping[str, Any]) -> None:
    """Write arrays and everything else to a file."""
    np.savez(path, **{TEXT: np.array(json.dumps(dict(rest)))}, **arrays)


def resident_mb(field: str) -> float:
    """Return a line of the process's own memory account, ``VmRSS`` or ``VmHWM``.

    Unlike `resource.getrusage`, the account does not remember the process that started this one.
    """
    account = Path("/proc/self/status")
    if account.exists():
        for line in account.read_text(encoding="ascii").splitlines():
            if line.startswith(field):
                return int(line.split()[1]) / 1024
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest / (1024**2 if sys.platform == "darwin" else 1024)


def forget_peak() -> None:
    """Start the account of the largest memory anew, where the system lets us."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def measured(
    call: Callable[[], T], *, repeats: int = REPEATS, short: float = SHORT
) -> tuple[T, Cost]:
    """Make a call, several times if it is short, and return its last result and its cost."""
    start = resident_mb("VmRSS")
    forget_peak()
    seconds: list[float] = []
    cpu: list[float] = []
    while True:
        began, began_cpu = time.perf_counter(), time.process_time()
        result = call()
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - began_cpu)
        if seconds[0] >= short or len(seconds) >= repeats:
            break
    return result, Cost(
        seconds=statistics.median(seconds),
        cpu_seconds=statistics.median(cpu),
        runs=len(seconds),
        start_mb=start,
        peak_mb=resident_mb("VmHWM"),
    )


def main(
    answer: Callable[[dict[str, np.ndarray], dict[str, Any]], tuple[Arrays, Mapping[str, Any]]],
) -> None:
    """Read the job named on the command line, answer it, and write the result."""
    job, result = sys.argv[1:]
    arrays, options = read(job)
    memory = options.get("memory_gb")
    if memory:
        limit = int(memory * 1024**3)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    found, rest = answer(arrays, options)
    write(result, found, rest)
