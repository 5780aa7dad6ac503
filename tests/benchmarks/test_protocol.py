import os
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.runners import protocol


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "job.npz"
    protocol.write(path, {"C": np.eye(2)}, {"steps": 3, "name": "σ"})
    arrays, rest = protocol.read(path)
    assert list(arrays) == ["C"]
    np.testing.assert_array_equal(arrays["C"], np.eye(2))
    assert rest == {"steps": 3, "name": "σ"}


@pytest.mark.parametrize(("short", "runs"), [(10.0, 4), (0.0, 1)])
def test_only_short_calls_are_repeated(short, runs):
    calls = []
    result, cost = protocol.measured(lambda: calls.append(0) or 7, repeats=4, short=short)
    assert (result, len(calls), cost.runs) == (7, runs, runs)


def test_seconds_are_the_median_of_the_runs(monkeypatch):
    # Pairs of readings: calls of 1, 5 and 2 seconds; the processor's are half.
    wall = iter([0, 1, 10, 15, 20, 22])
    cpu = iter([0, 0.5, 10, 12.5, 20, 21])
    monkeypatch.setattr(protocol.time, "perf_counter", lambda: next(wall))
    monkeypatch.setattr(protocol.time, "process_time", lambda: next(cpu))
    _, cost = protocol.measured(lambda: None, repeats=3)
    assert (cost.seconds, cost.cpu_seconds) == (2, 1)


def test_the_peak_is_that_of_the_call():
    # In a process of its own: this one's allocator keeps what earlier tests used.
    code = """
import numpy as np, protocol
before = np.ones(60 * 2**17)
del before
_, large = protocol.measured(lambda: np.ones(40 * 2**17).sum(), repeats=1)
_, small = protocol.measured(lambda: None, repeats=1)
print(large.peak_mb - large.start_mb, small.peak_mb - small.start_mb)
"""
    folder = str(protocol.Path(protocol.__file__).parent)
    # A cluster of an earlier test has told this process's children to keep what they free.
    environment = {key: text for key, text in os.environ.items() if not key.startswith("MALLOC_")}
    printed = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
    ).stdout
    large, small = map(float, printed.split())
    assert 35 < large < 55
    if sys.platform == "linux":
        assert small < 10
