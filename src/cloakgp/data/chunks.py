"""Tables in chunks on one machine: threads work on chunks, and parts are merged in order.

`LocalRows` is what rows in memory and rows in files have in common: passes over the inputs, passes
over the inputs and outputs, and who watches them. Blocks are read in turn by one thread at a time,
worked on by several, and what comes of them is merged in the order of the table, with BLAS at one
thread: a result has the same bits whatever the number of threads is.
"""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import joblib
import numpy as np
from numpy.typing import NDArray

from cloakgp.columns.schema import Schema
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array, check_writable
from cloakgp.utils.memory import return_freed_memory
from cloakgp.utils.passes import Chunk, PartOf
from cloakgp.utils.threads import suitable_threads

Watch = Callable[[str, int, int | None], None]
"""Called after every chunk with the current step, the finished rows, and all rows, if known."""

CHUNK_ROWS = 2**13
# Blocks that are read ahead for every thread: one waits while another is worked on.
AHEAD = 2


class Block(Protocol):
    """The rows of a chunk as they lie, read but not converted."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    def inputs(self) -> Array:
        """Return public inputs, shape (n, D), or raise ValueError if one is not finite."""

    def groups(self) -> NDArray[np.intp] | None:
        """Return the groups of the rows, shape (n,), or None if there are none."""

    def outputs(self) -> Array:
        """Return private outputs, with NaN for missing ones and those that are no numbers.

        Of shape (n,), or (n, T) where every row has several.
        """

    def check_labels(self, labels: tuple[object, ...]) -> None:
        """Refuse labels that entries cannot be compared with; the message shows no entry."""

    def places(self, labels: tuple[object, ...]) -> Array:
        """Return which of the labels each private entry is, shape (n,), with NaN for none."""


BlockOf = TypeVar("BlockOf", bound=Block)


class LocalRows(ABC):
    """Rows on one machine; the subclasses know their place.

    Attributes
    ----------
    input_names : tuple of str
        May be empty.
    output_name : str
        Of the private column.
    grouped : bool
        Whether the rows say whose they are: all rows of one group are then protected together.
    chunk_rows : int
        The most rows of a chunk.
    jobs : int
        How many threads work on chunks.
    watch : callable or None
        See `Watch`.
    schema : Schema or None
        What the raw columns were, if inputs are encoded from them.
    n_outputs : int
        T, the number of private columns.
    output_names : tuple of str
        Their names, if there are several and all have one.
    """

    n_outputs = 1
    output_names: tuple[str, ...] = ()

    def __init__(
        self,
        *,
        input_names: tuple[str, ...],
        output_name: str,
        grouped: bool,
        chunk_rows: int,
        jobs: int | None,
    ) -> None:
        for name, number in (("chunk_rows", chunk_rows), ("jobs", jobs)):
            if number is not None and number < 1:
                raise ValueError(f"{name} must be at least 1, got {number}")
        check_writable((*input_names, output_name))
        self.input_names = input_names
        self.output_name = output_name
        self.grouped = grouped
        self.chunk_rows = chunk_rows
        # Processors that this process may use, which can be fewer than there are.
        self.jobs = joblib.cpu_count() if jobs is None else jobs
        self.watch: Watch | None = None
        self.schema: Schema | None = None

    @property
    @abstractmethod
    def n_inputs(self) -> int:
        """D, the number of public inputs."""

    @property
    @abstractmethod
    def count(self) -> int | None:
        """N, if known without a pass."""

    @abstractmethod
    def _blocks(self, *, private: bool) -> Generator[Block, None, None]:
        """Read block after block, with the private column only if it is wanted."""

    def __repr__(self) -> str:
        count = "?" if self.count is None else str(self.count)
        return f"{type(self).__name__}({count} rows, {self.n_inputs} inputs)"

    def __getstate__(self) -> dict[str, Any]:
        # Who watches stays where they are.
        return {**self.__dict__, "watch": None}

    def report_to(self, watch: Watch | None) -> Self:
        """Return the same rows with a callback for their progress.

        Parameters
        ----------
        watch : callable or None
            Called after every chunk, in order, from the thread that asked for the pass.
        """
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, watch=watch)
        return copy

    def over_inputs(self, work: Callable[[Chunk], PartOf], *, what: str) -> PartOf:
        """Do some work on the inputs of every chunk; the private column is not read.

        Parameters
        ----------
        work : callable
            Called with a chunk, from several threads at once.
        what : str
            What this pass is for.

        Returns
        -------
        Part
            Merged in the order of the table, the same bits whatever ``jobs`` is.

        Raises
        ------
        ValueError
            If an input is missing, not a number, or infinite; there are no rows; or a file is
            damaged, or has changed since it was first looked at.
        """
        return self._pass(_OnInputs(work), what=what, private=False)

    def over_rows(
        self,
        work: Callable[[Chunk, Array], PartOf],
        *,
        what: str,
        labels: tuple[object, ...] | None = None,
    ) -> PartOf:
        """Do some work on the inputs and private entries of every chunk: for `cloakgp.privacy`.

        Parameters
        ----------
        work : callable
            Called with a chunk and its outputs, shape (n,), or (n, T) of several columns: NaN where
            a cell is missing or no number, and infinite where it is infinite. Of labels, with
            their places among those given, from 0: NaN where a cell is none of them.
        what : str
            What this pass is for.
        labels : tuple of numbers, strings or truth values, optional
            What a cell can be; if not given, cells are numbers.

        Returns
        -------
        Part
            Merged in the order of the table, the same bits whatever ``jobs`` is.

        Raises
        ------
        ValueError
            As `over_inputs`, and if labels cannot be told from each other in a file. Nothing is
            said of private cells. Whatever goes wrong, the frames of the traceback keep no
            variables.
        """
        return self._pass(_OnRows(work, labels), what=what, private=True)

    @forget_on_failure
    def _pass(self, work: Callable[[int, Block], PartOf], *, what: str, private: bool) -> PartOf:
        def report(done: int) -> None:
            if self.watch is not None:
                self.watch(what, done, self.count)

        jobs = self.jobs
        if self.count is not None:
            jobs = min(jobs, -(-self.count // self.chunk_rows))
        merged = merge_in_order(
            self._blocks(private=private), work, jobs=max(jobs, 1), report=report
        )
        if jobs > 1:
            return_freed_memory()
        return merged


@dataclass(frozen=True, eq=False)
class _OnInputs(Generic[PartOf]):
    work: Callable[[Chunk], PartOf]

    def __call__(self, number: int, block: Block) -> PartOf:
        return self.work(Chunk(number=number, X=block.inputs(), groups=block.groups()))


@dataclass(frozen=True, eq=False)
class _OnRows(Generic[PartOf]):
    work: Callable[[Chunk, Array], PartOf]
    labels: tuple[object, ...] | None

    def __call__(self, number: int, block: Block) -> PartOf:
        chunk = Chunk(number=number, X=block.inputs(), groups=block.groups())
        return self.work(
            chunk, block.outputs() if self.labels is None else block.places(self.labels)
        )


def merge_in_order(
    blocks: Generator[BlockOf, None, None],
    work: Callable[[int, BlockOf], PartOf],
    *,
    jobs: int,
    report: Callable[[int], None],
) -> PartOf:
    """Work on blocks and merge the results, in the order of the blocks.

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
                merged = part if merged is None else merged.merge(part)
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
    """A failure in another thread, to be raised when its turn comes."""

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
                _cut_off_joblib(error)
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


def _cut_off_joblib(error: BaseException) -> None:
    """Cut from the context of an error the one that joblib handles while it asks for a block."""
    while error.__context__ is not None:
        if isinstance(error.__context__, queue.Empty):
            error.__context__ = None
            return
        error = error.__context__


class _Pace:
    """Keeps threads from running far ahead of a block that takes long: parts need memory too."""

    def __init__(self, *, ahead: int) -> None:
        self.stopped = False
        self._taken = 0
        self._ahead = ahead
        self._changed = threading.Condition()

    def may_start(self, number: int) -> bool:
        """Wait until a block is among the next; False if its part is not needed any more."""
        with self._changed:
            self._changed.wait_for(lambda: self.stopped or number < self._taken + self._ahead)
            return not self.stopped

    def taken(self) -> None:
        """Signal that the next part was merged."""
        with self._changed:
            self._taken += 1
            self._changed.notify_all()

    def stop(self) -> None:
        """Release all waiting threads."""
        with self._changed:
            self.stopped = True
            self._changed.notify_all()
