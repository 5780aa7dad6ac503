"""Memory that is free, in a machine and in control groups."""

from __future__ import annotations

import ctypes
import sys
import threading
from pathlib import Path

import numpy as np
import psutil
import pytest

from cloakgp.utils import memory
from cloakgp.utils.memory import free_memory, memory_budget, return_freed_memory


@pytest.fixture
def cgroups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with plenty of memory whose control groups a test writes."""
    plenty = psutil.virtual_memory()._replace(available=10**12)
    monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: plenty)
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    monkeypatch.setattr(memory, "MEMBERSHIP", tmp_path / "membership")
    return tmp_path


def write(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(f"{content}\n")


def test_without_control_groups_it_is_the_machine_s(cgroups):
    assert free_memory() == 1e12
    assert memory_budget() == 5e11
    (cgroups / "membership").write_text("0::/job\n3:cpu:/job\n")
    assert free_memory() == 1e12


def test_the_tightest_group_counts_whatever_is_inside_it(cgroups):
    (cgroups / "membership").write_text("0::/slice/job\n")
    write(cgroups / "slice", memory__max=900, memory__current=500, memory__stat="inactive_file 50")
    write(cgroups / "slice/job", memory__max="max", memory__current=400, memory__stat="anon 1")
    assert free_memory() == 450


def test_groups_of_the_older_kind(cgroups):
    (cgroups / "membership").write_text("8:memory:/job\n0::/\n")
    write(
        cgroups / "memory/job",
        memory__limit_in_bytes=700,
        memory__usage_in_bytes=900,
        memory__stat="total_inactive_file 100",
    )
    assert free_memory() == 0


@pytest.mark.parametrize("given", [0, -1, float("nan"), "4", True])
def test_what_is_no_memory_is_refused(given):
    with pytest.raises(ValueError, match="positive number of gigabytes"):
        memory_budget(given)


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"),
    reason="another C library keeps nothing, or cannot be asked",
)
def test_freed_memory_goes_back_to_the_system():
    """What a thread freed, in pieces between those that it kept; these stay as they were."""
    process, kept = psutil.Process(), []

    def work():
        # Pieces that are too small to be mapped for themselves.
        pieces = [np.ones(12_000) for _ in range(2_000)]
        kept.extend(pieces[::100])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    before = process.memory_info().rss
    assert return_freed_memory()
    assert before - process.memory_info().rss > 100e6
    assert all((piece == 1.0).all() for piece in kept)


def test_other_systems_keep_what_they_keep(monkeypatch):
    monkeypatch.setattr(memory.sys, "platform", "win32")
    memory._trim.cache_clear()
    assert not return_freed_memory()
    memory._trim.cache_clear()
