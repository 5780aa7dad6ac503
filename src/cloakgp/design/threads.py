"""One BLAS thread for small problems, where waiting for the others costs more than the sum."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

# Multiply-adds of one pass, below which a second thread slows the pass down.
SMALL_PASS = 3e8


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
    with threadpool_limits(limits=1, user_api="blas"):
        yield
