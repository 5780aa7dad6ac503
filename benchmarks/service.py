"""Load of the service: predictions that one server answers in a second, and how long they take.

A server in a process of its own, with one release of the demonstration's table (442 rows, four
columns), is asked by so many connections at once, each of which asks again when it is answered:
by wrk where that is installed, and by httpx, which takes more of the processor itself, where not.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import httpx
import psutil

from benchmarks.tables import Table, for_page
from cloakgp.client import Client
from cloakgp.ledger.engines import HOME
from cloakgp.service.access import Role
from cloakgp.service.server import prepare, serve
from cloakgp.service.settings import RATES, Settings

OFTEN = "100000000/minute"
ROW = {"age": 50, "sex": "a", "bmi": 27.5, "blood pressure": 95}
UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
# Requests before anything is measured.
WARMING = 20


@dataclass(frozen=True)
class Load:
    """What was measured.

    Attributes
    ----------
    rows, connections : int
        Of a request, and that ask at once.
    per_second : float
        Requests that were answered.
    median_ms, slowest_ms : float
        How long one took: in the middle, and at the 99th percentile.
    cpu_ms : float
        Of the server, a request: what does not depend on what else the machine does.
    failed : int
        Answers that were none.
    by : str
    """

    rows: int
    connections: int
    per_second: float
    median_ms: float
    slowest_ms: float
    failed: int
    by: str
    cpu_ms: float = 0.0


def measure_all(
    *,
    rows: tuple[int, ...],
    connections: tuple[int, ...],
    seconds: float,
    choices: Mapping[str, str] | None = None,
) -> Iterator[Load]:
    """Yield what was measured for each number of rows and connections.

    Parameters
    ----------
    rows, connections : tuple of int
    seconds : float
        For each.
    choices : mapping, optional
        Of the release; the defaults if not given.
    """
    with serving() as (address, tokens, server):
        path, token = _released(address, tokens, choices or {}), tokens[Role.READER]
        for count in rows:
            body = json.dumps({"rows": [ROW] * count})
            with httpx.Client(headers=_headers(token)) as client:
                for _ in range(WARMING):
                    client.post(path, content=body).raise_for_status()
            for many in connections:
                ask = _by_wrk if shutil.which("wrk") else _by_httpx
                before = _cpu(server)
                found = ask(path, token, body, connections=many, seconds=seconds)
                each = (_cpu(server) - before) / (found.per_second * seconds)
                yield replace(found, rows=count, cpu_ms=round(1e3 * each, 2))


def report(loads: Sequence[Load], *, seconds: float) -> Table:
    """Lay out what was measured, for a page.

    Parameters
    ----------
    loads : sequence of Load
        Of `measure_all`.
    seconds : float
        For each.
    """
    tools = " and ".join(sorted({load.by for load in loads}))
    title = f"Predictions of one server process, asked by {tools} for {seconds:g} s each"
    heads = {
        "rows of a request": "rows",
        "connections": "connections",
        "requests a second": "per_second",
        "median, ms": "median_ms",
        "99th percentile, ms": "slowest_ms",
        "server's CPU time, ms a request": "cpu_ms",
        "failed": "failed",
    }
    return for_page(title, [asdict(load) for load in loads], heads)


@contextmanager
def serving() -> Iterator[tuple[str, dict[Role, str], psutil.Process]]:
    """Serve the demonstration in a process; gives its address, a token for each role, and it."""
    context = get_context("spawn")
    here, there = context.Pipe()
    with tempfile.TemporaryDirectory() as folder:
        process = context.Process(target=_serve, args=(folder, there))
        process.start()
        # Held here as well, it would be open, and waited on, when the process has ended.
        there.close()
        try:
            address, tokens = here.recv()
            yield address, tokens, psutil.Process(process.pid)
        finally:
            process.terminate()
            process.join()


def _cpu(server: psutil.Process) -> float:
    """Return the seconds of processors that a server has taken."""
    taken = server.cpu_times()
    return float(taken.user + taken.system)


def _serve(folder: str, there: Connection) -> None:
    os.environ[HOME] = folder
    settings = Settings(
        ledger=f"{folder}/ledger.db",
        data=Path(folder),
        port=0,
        workers=0,
        rates=dict.fromkeys(RATES, OFTEN),
    )
    prepared = prepare(settings, demonstration=True)
    assert prepared.demonstration is not None
    tokens = {each.role: each.token for each in prepared.demonstration.people}
    serve(prepared, begun=lambda address: there.send((address, tokens)))


def _released(address: str, tokens: dict[Role, str], choices: Mapping[str, str]) -> str:
    with Client(address, tokens[Role.ANALYST]) as client:
        table = client.table("diabetes")
        asked = client.request(table.id, epsilon=1.0, delta=1e-4, purpose="load", **choices)
        return f"{address}/api/releases/{client.wait(asked.id).id}/predict"


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}


def _by_wrk(path: str, token: str, body: str, *, connections: int, seconds: float) -> Load:
    lines = [f'wrk.method, wrk.body = "POST", {json.dumps(body)}']
    lines += [
        f"wrk.headers[{json.dumps(name)}] = {json.dumps(value)}"
        for name, value in _headers(token).items()
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write("\n".join(lines))
        script.flush()
        told = subprocess.run(
            [
                *("wrk", "--latency", "--threads", "1", "--connections", str(connections)),
                *("--duration", f"{seconds:.0f}s", "--timeout", "30s"),
                *("--script", script.name, path),
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    times = {
        share: float(number) * UNITS[unit]
        for share, number, unit in re.findall(r"(50|99)%\s+([\d.]+)(us|ms|s)", told)
    }
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", told)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", told)
    assert rate is not None
    return Load(
        rows=0,
        connections=connections,
        per_second=float(rate[1]),
        median_ms=times["50"],
        slowest_ms=times["99"],
        failed=0 if failed is None else int(failed[1]),
        by="wrk",
    )


def _by_httpx(path: str, token: str, body: str, *, connections: int, seconds: float) -> Load:
    end = time.monotonic() + seconds

    def ask(_: int) -> list[tuple[float, bool]]:
        asked = []
        with httpx.Client(headers=_headers(token), timeout=30) as client:
            while (began := time.monotonic()) < end:
                answer = client.post(path, content=body)
                asked.append((time.monotonic() - began, answer.is_error))
        return asked

    with ThreadPoolExecutor(connections) as threads:
        answers = [one for asked in threads.map(ask, range(connections)) for one in asked]
    times = [seconds_taken for seconds_taken, _ in answers]
    failed = sum(is_error for _, is_error in answers)
    return Load(
        rows=0,
        connections=connections,
        per_second=len(times) / seconds,
        median_ms=1e3 * statistics.median(times),
        slowest_ms=1e3 * statistics.quantiles(times, n=100)[98],
        failed=failed,
        by="httpx",
    )
