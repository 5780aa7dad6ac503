import sys

import numpy as np
import pytest

from benchmarks import peers, processes
from benchmarks.processes import Limits

FAKE = """
import sys, os
sys.path.insert(0, {runners!r})
import protocol

def answer(arrays, options):
    {body}

protocol.main(answer)
"""


@pytest.fixture
def fake_peer(tmp_path, patience):
    """Write a runner with the given body, and return what comes of it."""

    def run(body, *, peer=peers.OURSELVES, limits=None, **options):
        runner = tmp_path / "runner.py"
        runner.write_text(FAKE.format(runners=str(peers.RUNNERS), body=body), encoding="utf-8")
        limits = Limits(seconds=patience, cache=tmp_path) if limits is None else limits
        arrays = {"C": np.arange(3.0)}
        return processes.run(runner, peer=peer, arrays=arrays, options=options, limits=limits)

    return run


def test_arrays_and_options_go_there_and_back(fake_peer, patience):
    found = fake_peer("return {'twice': 2 * arrays['C']}, {'told': options['told']}", told=5)
    assert (found.status, found.said) == ("ok", "ok")
    np.testing.assert_array_equal(found.arrays["twice"], [0, 2, 4])
    assert found.report == {"told": 5, "limit": patience, "threads": 1}


def test_a_runner_may_say_why_it_has_no_figures(fake_peer):
    found = fake_peer("return {}, {'status': 'skipped', 'reason': 'too long'}")
    assert found.said == "skipped: too long"


def test_what_is_not_installed_is_said_to_be_so(fake_peer):
    assert fake_peer("return {}, {}", peer="dp4gp").said == "not installed"


def test_an_environment_that_was_not_finished_is_not_installed(fake_peer, tmp_path):
    python = tmp_path / "dp4gp" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert fake_peer("return {}, {}", peer="dp4gp").status == "not installed"
    (tmp_path / "dp4gp" / ".installed").touch()
    assert peers.interpreter("dp4gp", cache=tmp_path) == python


def test_a_failure_is_a_row_and_not_an_end(fake_peer):
    found = fake_peer("raise ValueError('singular')")
    assert found.status == "failed"
    assert "ValueError: singular" in found.reason


def test_a_process_ends_at_the_limit(fake_peer, tmp_path):
    found = fake_peer("import time; time.sleep(1e6)", limits=Limits(seconds=3, cache=tmp_path))
    assert found.said == "stopped at the limit: 3 s"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to it")
def test_a_process_ends_at_the_memory_limit(fake_peer, tmp_path, patience):
    limits = Limits(seconds=patience, memory_gb=0.5, cache=tmp_path)
    found = fake_peer("import numpy as np; np.ones(2**28).sum(); return {}, {}", limits=limits)
    assert found.status == "failed"
    assert "allocate" in found.reason


@pytest.mark.parametrize("threads", [1, 2])
def test_every_library_gets_as_many_threads(fake_peer, tmp_path, patience, threads):
    body = "return {}, {name: os.environ[name] for name in ('OMP_NUM_THREADS', 'XLA_FLAGS')}"
    found = fake_peer(body, limits=Limits(seconds=patience, threads=threads, cache=tmp_path))
    assert found.report["OMP_NUM_THREADS"] == str(threads)
    assert f"parallelism_threads={threads}" in found.report["XLA_FLAGS"]


def test_every_requirements_file_pins_what_it_names():
    assert {"dp4gp", "cvxpy", "gpflow", "jax-privacy", "diffprivlib"} == set(peers.names())
    for name in peers.names():
        lines = (peers.REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        wanted = [line for line in lines if not line.startswith("#")]
        assert all("==" in line for line in wanted)
        assert any(line.startswith(f"{name}==") for line in wanted)
        assert lines[0].startswith("#")
