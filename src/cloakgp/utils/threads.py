"""BLAS threads: one for small problems, where waiting for the others costs more than the sum."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

# Multiply-adds of one pass, below which a second thread slows the pass down.
SMALL_PASS = 3e8


@cache
def _controller() -> ThreadpoolController:
    """Find the BLAS libraries that are loaded; numpy's and scipy's are by now."""
    return ThreadpoolController()


@contextmanager
def suitable_threads(operations: float) -> Iterator[None]:
    """Cap BLAS at one thread while a problem of this size is solved.

    Parameters
    ----------
    operations : float
        Multiply-adds of one pass over the data.

    Examples
    --------
    >>> with suitable_threads(1e4):
    ...     pass
    """
    if operations > SMALL_PASS:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield
