"""The load measurement of the service, in short."""

from __future__ import annotations

import pytest

from benchmarks import service


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["wrk", "httpx"])
def test_a_server_is_measured(tool, monkeypatch):
    if tool == "httpx":
        monkeypatch.setattr(service.shutil, "which", lambda _: None)
    elif service.shutil.which("wrk") is None:
        pytest.skip("wrk is not installed")
    quick = {"stages": "one", "interval": "off", "learn": "none"}
    (found,) = service.measure_all(rows=(2,), connections=(2,), seconds=1, choices=quick)
    assert (found.rows, found.connections, found.failed, found.by) == (2, 2, 0, tool)
    assert found.per_second > 1
    assert 0 < found.median_ms <= found.slowest_ms
    assert found.cpu_ms > 0
    table = service.report([found], seconds=1)
    assert tool in table.title
    [row] = table.rows
    assert row["server's CPU time, ms a request"] == found.cpu_ms
    assert len(table.columns) <= 8
