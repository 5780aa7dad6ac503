"""Threads of BLAS and of blocks of rows, and periodic actions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import joblib
from threadpoolctl import ThreadpoolController

from cloakgp.utils.arrays import Array

# Multiply-adds of one pass, below which a second thread slows the pass down.
SMALL_PASS = 3e8
# Of the largest product in a fit, for each pair of rows.
OPERATIONS_A_PAIR = 100.0
# Blocks of rows, below which one thread works on all.
FEW_BLOCKS = 4

Item = TypeVar("Item")
Result = TypeVar("Result")


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
        so that it gives the same bits however many there are.
    items : sequence

    Examples
    --------
    >>> each_of(abs, [-1, 2])
    [1, 2]
    """
    with suitable_threads(0.0):
        if len(items) < 2:
            return [work(item) for item in items]
        with ThreadPoolExecutor(min(joblib.cpu_count(), len(items))) as pool:
            return list(pool.map(work, items))


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
