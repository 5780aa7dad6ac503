"""Threads of BLAS and of blocks of rows, and periodic actions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import TypeVar

import joblib
import numpy as np
from threadpoolctl import ThreadpoolController

from cloakgp.utils.arrays import Array

# Multiply-adds of one pass, below which a second thread slows the pass down.
SMALL_PASS = 3e8
# Multiply-adds of one product, from which it is split between threads: two take four fifths of the
# time of one for 1e8, and little more than half for 5e8. Where numpy and scipy take turns, and each
# has threads of BLAS that wait for the next product, two of these took more than one, up to 5e8.
LARGE_PRODUCT, PARTS = 1e8, 4
# Of the largest product in a fit, for each pair of rows.
OPERATIONS_A_PAIR = 100.0
# Blocks of rows, below which one thread works on all.
FEW_BLOCKS = 4

Item = TypeVar("Item")
Result = TypeVar("Result")

# Whether this thread is one of several that share some work.
_sharing = threading.local()


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


def each_of(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Do some work on every item, on several at a time.

    Parameters
    ----------
    work : callable
        Called from several threads at once where there are several items; with BLAS at one thread,
        so that it gives the same bits however many there are. What it calls each of in turn is done
        in its own thread: the others have work already.
    items : sequence

    Examples
    --------
    >>> each_of(abs, [-1, 2])
    [1, 2]
    """
    with suitable_threads(0.0):
        if len(items) < 2 or getattr(_sharing, "work", False):
            return [work(item) for item in items]
        count = min(joblib.cpu_count(), len(items))
        with ThreadPoolExecutor(count, initializer=_share) as pool:
            return list(pool.map(work, items))


def _share() -> None:
    _sharing.work = True


def product(left: Array, right: Array) -> Array:
    """Return a matrix product; several threads make parts of a large one.

    Parameters
    ----------
    left : array of shape (n, m)
    right : array of shape (m, k)

    Examples
    --------
    >>> import numpy as np
    >>> product(np.eye(2), np.ones((2, 1)))
    array([[1.],
           [1.]])
    """
    if float(left.size) * right.shape[1] < LARGE_PRODUCT:
        whole: Array = left @ right
        return whole
    found = np.empty((len(left), right.shape[1]))
    ends = np.linspace(0, len(left), PARTS + 1).astype(int).tolist()

    def fill(part: tuple[int, int]) -> None:
        rows = slice(*part)
        np.matmul(left[rows], right, out=found[rows])

    # As many on any machine, so that the bits are the same.
    each_of(fill, list(pairwise(ends)))
    return found


def over_blocks(work: Callable[[Array], Result], X: Array, *, rows: int) -> list[Result]:
    """Do some work on blocks of rows, several at a time where there are many.

    Parameters
    ----------
    work : callable
        Called with some rows, from several threads at once; with BLAS at one thread, so that it
        gives the same bits however many there are.
    X : array of shape (n, D)
    rows : int
        Of a block, at most. There is always one block.

    Examples
    --------
    >>> import numpy as np
    >>> over_blocks(len, np.zeros((5, 1)), rows=2)
    [2, 2, 1]
    """
    blocks = [X[start : start + rows] for start in range(0, max(len(X), 1), rows)]
    if len(blocks) < FEW_BLOCKS:
        return [work(block) for block in blocks]
    return each_of(work, blocks)


@contextmanager
def repeated(action: Callable[[], object], *, seconds: float, name: str) -> Iterator[None]:
    """Call a function again and again while a block runs.

    Parameters
    ----------
    action : callable
        Raises nothing.
    seconds : float
        Time between two calls, and before the first.
    name : str
        Of the thread.

    Examples
    --------
    >>> called = threading.Event()
    >>> with repeated(called.set, seconds=0.001, name="example"):
    ...     called.wait(10)
    True
    """
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(seconds):
            action()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
