"""Arithmetic of 80 decimal digits, the same in every thread.

The precision of `mpmath.mp` is one for all threads of a process: whoever leaves ``mpmath.workdps``
takes the digits of another who still computes, and so may anybody's own code. Here numbers have a
context of their own. Its functions set its precision while they work, and share constants that are
computed once, so one thread at a time has it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpmath import MPContext

DIGITS = 80
_lock = threading.RLock()


@contextmanager
def many_digits() -> Iterator[MPContext]:
    """Lend a context of `DIGITS` decimal digits, whose numbers and functions are used within.

    Examples
    --------
    >>> with many_digits() as exact:
    ...     print(exact.nstr(exact.sqrt(exact.mpf(2)), 25))
    1.414213562373095048801689
    """
    with _lock:
        context = _context()
        # Its functions take more digits while they work: one that was interrupted leaves them.
        context.dps = DIGITS
        yield context


@cache
def _context() -> MPContext:
    from mpmath import MPContext

    context = MPContext()
    context.dps = DIGITS
    return context


def _renew_lock() -> None:
    # Of a thread that held it, a forked process has no copy that could return it.
    global _lock
    _lock = threading.RLock()
    _context.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
