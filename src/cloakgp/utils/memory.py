"""Memory for a fit: what is free in this machine and its container, and what goes back to it."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import psutil

# Of the memory that is free, what a fit may take if nothing else is said.
SHARE_OF_FREE = 0.5
GIGABYTE = 1e9
MEMBERSHIP, CGROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def memory_budget(memory: float | None = None) -> float:
    """Return the memory budget of a fit, in bytes.

    Parameters
    ----------
    memory : float, optional
        In gigabytes; half of what is free if not given.

    Raises
    ------
    ValueError
        Unless it is positive.

    Examples
    --------
    >>> memory_budget(2.0)
    2000000000.0
    """
    if memory is None:
        return SHARE_OF_FREE * free_memory()
    number = isinstance(memory, int | float | np.integer | np.floating)
    if isinstance(memory, bool) or not number or not memory > 0:
        raise ValueError(f"memory must be a positive number of gigabytes, got {memory!r}")
    return float(memory) * GIGABYTE


def free_memory() -> float:
    """Return the free memory for this process, in bytes, in this machine and its container.

    Examples
    --------
    >>> free_memory() > 0
    True
    """
    return float(min([psutil.virtual_memory().available, *_left_in_cgroups()]))


def _left_in_cgroups() -> Iterator[float]:
    """Yield the free memory of each control group of this process (Linux)."""
    try:
        lines = MEMBERSHIP.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, place = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        top = CGROUPS / controllers
        names = (
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            if controllers
            else ("memory.max", "memory.current", "inactive_file")
        )
        group = top / place.lstrip("/")
        for folder in (group, *group.parents):
            if not folder.is_relative_to(top):
                break
            left = _left_in(folder, *names)
            if left is not None:
                yield left


def _left_in(folder: Path, limit: str, used: str, reclaimable: str) -> float | None:
    """Return the free memory of a control group, or None if it has no limit."""
    try:
        most = float((folder / limit).read_text())
        taken = float((folder / used).read_text())
        counts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return max(most - taken + float(counts.get(reclaimable, 0)), 0.0)
    except (OSError, ValueError):
        return None


def return_freed_memory() -> bool:
    """Return memory that was freed to the system, where its allocator would keep it.

    The GNU C library keeps for each thread what it freed, in pieces that the next pass over a table
    hardly fits into: after many passes that is more than all that a fit uses (malloc_trim(3)).

    Returns
    -------
    bool
        Whether any went back.

    Examples
    --------
    >>> return_freed_memory() in (True, False)
    True
    """
    trim = _trim()
    return trim is not None and bool(trim(0))


@cache
def _trim() -> Any:
    """Return the function of the C library, or None where it has none."""
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
