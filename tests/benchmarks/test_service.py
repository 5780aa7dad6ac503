"""The load measurement of the service, in short."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks import service


@pytest.mark.parametrize("tool", ["wrk", "httpx"])
def test_a_server_is_measured(tool, monkeypatch):
    if tool == "httpx":
        monkeypatch.setattr(service.shutil, "which", lambda _: None)
    elif service.shutil.which("wrk") is None:
        pytest.skip("wrk is not installed")
    quick = {"stages": "one", "interval": "off", "learn": "none"}
    sizes = {"rows": (2,), "connections": (2,), "seconds": 1}
    # A browser that another test opened in this process has an event loop in this thread.
    with ThreadPoolExecutor(1) as thread:
        (found,) = thread.submit(service.measure_all, **sizes, choices=quick).result()
    assert (found.rows, found.connections, found.failed, found.by) == (2, 2, 0, tool)
    assert found.per_second > 1
    assert 0 < found.median_ms <= found.slowest_ms
    assert found.cpu_ms > 0
