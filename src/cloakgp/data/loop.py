"""Blocks of rows are read in turn, worked on by threads, and merged in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import joblib

from cloakgp.design.solver import suitable_threads
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import PartOf

# Blocks that are read ahead for every thread: one waits while another is worked on.
AHEAD = 2


class Block(Protocol):
    """The rows of a chunk as they lie, read but not converted."""

    @property
    def rows(self) -> int:
        """How many rows there are."""

    def inputs(self) -> Array:
        """Return public inputs, shape (n, D), or raise ValueError if one is not finite."""

    def outputs(self) -> Array:
        """Return private outputs, shape (n,), with NaN for what is missing or no number."""

    def places(self, labels: tuple[object, ...]) -> Array:
        """Return which of the labels each private entry is, shape (n,), with NaN for none."""


BlockOf = TypeVar("BlockOf", bound=Block)


def merged_in_order(
    blocks: Generator[BlockOf, None, None],
    work: Callable[[int, BlockOf], PartOf],
    *,
    jobs: int,
    report: Callable[[int], None],
) -> PartOf:
    """Work on blocks and merge what comes of it, in the order of the blocks.

    BLAS has one thread meanwhile, so that a result has the same bits whatever ``jobs`` is.

    Parameters
    ----------
    blocks : generator
        Read a few ahead, by one thread at a time, and closed in the end.
    work : callable
        Called with the number of a block, from 0, and the block.
    jobs : int
        How many threads work; one is the caller's.
    report : callable
        Called by the caller's thread after every block, in order, with the rows done.

    Raises
    ------
    ValueError
        If there are no blocks.
    Exception
        What a block raised, or reading it: of several, the first in the order of the table.
    """
    merged: PartOf | None = None
    done = 0
    with closing(blocks), suitable_threads(0.0):
        parts = _parts_here(blocks, work) if jobs == 1 else _parts(blocks, work, jobs=jobs)
        with closing(parts):
            for rows, part in parts:
                merged = part if merged is None else merged.merged(part)
                done += rows
                report(done)
    if merged is None:
        raise ValueError("there are no rows")
    return merged


def _parts_here(
    blocks: Iterator[BlockOf], work: Callable[[int, BlockOf], PartOf]
) -> Generator[tuple[int, PartOf], None, None]:
    for number, block in enumerate(blocks):
        yield block.rows, work(number, block)


@dataclass(frozen=True, eq=False)
class _Failure:
    """What went wrong in another thread, on its way to be raised when its turn comes."""

    error: BaseException


def _parts(
    blocks: Iterator[BlockOf], work: Callable[[int, BlockOf], PartOf], *, jobs: int
) -> Generator[tuple[int, PartOf], None, None]:
    """Yield the parts of blocks that several threads work on.

    Errors travel as results: raised in a worker, or where blocks are read, they would come out in
    the order of time, and without those that came before.
    """
    pace = _Pace(ahead=AHEAD * jobs)

    def attempt(number: int, block: BlockOf) -> tuple[int, PartOf] | _Failure | None:
        if not pace.may_start(number):
            return None
        try:
            return block.rows, work(number, block)
        except BaseException as error:
            return _Failure(error)

    def tasks() -> Iterator[Any]:
        number = 0
        while not pace.stopped:
            try:
                block = next(blocks, None)
            except BaseException as error:
                yield joblib.delayed(_Failure)(error)
                return
            if block is None:
                return
            yield joblib.delayed(attempt)(number, block)
            # Or it would be kept while the next one is read.
            del block
            number += 1

    results = joblib.Parallel(
        n_jobs=jobs,
        backend="threading",
        return_as="generator",
        pre_dispatch=AHEAD * jobs,
        batch_size=1,
    )(tasks())
    try:
        for result in results:
            if isinstance(result, _Failure):
                raise result.error
            yield result
            pace.taken()
    finally:
        # Let what is under way come to its end: joblib would warn if it were cut off.
        pace.stop()
        for _ in results:
            pass


class _Pace:
    """Keeps threads from running far ahead of a block that takes long: parts need memory too."""

    def __init__(self, *, ahead: int) -> None:
        self.stopped = False
        self._taken = 0
        self._ahead = ahead
        self._changed = threading.Condition()

    def may_start(self, number: int) -> bool:
        """Wait until a block is among the next; False if nobody wants its part any more."""
        with self._changed:
            self._changed.wait_for(lambda: self.stopped or number < self._taken + self._ahead)
            return not self.stopped

    def taken(self) -> None:
        """Tell that the next part was merged."""
        with self._changed:
            self._taken += 1
            self._changed.notify_all()

    def stop(self) -> None:
        """Let everybody go."""
        with self._changed:
            self.stopped = True
            self._changed.notify_all()
