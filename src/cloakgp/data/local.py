"""Rows on one machine: what arrays and files have in common."""

from __future__ import annotations

import queue
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Generic, Self

import joblib

from cloakgp.data.loop import Block, merged_in_order
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Chunk, PartOf

Watch = Callable[[str, int, int | None], None]
"""Told after every chunk: what is being done, how many rows are done, and of how many, if known."""

CHUNK_ROWS = 2**13


class LocalRows(ABC):
    """What rows on one machine have in common; where they lie is for the classes below to say.

    Attributes
    ----------
    input_names : tuple of str
        May be empty.
    output_name : str
        Of the private column.
    chunk_rows : int
        The most rows of a chunk.
    jobs : int
        How many threads work on chunks.
    watch : callable or None
        See `Watch`.
    """

    def __init__(
        self,
        *,
        input_names: tuple[str, ...],
        output_name: str,
        chunk_rows: int,
        jobs: int | None,
    ) -> None:
        for name, number in (("chunk_rows", chunk_rows), ("jobs", jobs)):
            if number is not None and number < 1:
                raise ValueError(f"{name} must be at least 1, got {number}")
        self.input_names = input_names
        self.output_name = output_name
        self.chunk_rows = chunk_rows
        # Processors that this process may use, which can be fewer than there are.
        self.jobs = joblib.cpu_count() if jobs is None else jobs
        self.watch: Watch | None = None

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
        many = "?" if self.count is None else str(self.count)
        return f"{type(self).__name__}({many} rows, {self.n_inputs} inputs)"

    def __getstate__(self) -> dict[str, Any]:
        # Who watches stays where they are.
        return {**self.__dict__, "watch": None}

    def watched(self, watch: Watch | None) -> Self:
        """Return the same rows, which report to somebody.

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
            Called with a chunk and its outputs, shape (n,): NaN where a cell is missing or no
            number, and infinite where it is infinite. Of labels, with their places among those
            given, from 0: NaN where a cell is none of them.
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

    def _pass(self, work: Callable[[int, Block], PartOf], *, what: str, private: bool) -> PartOf:
        def report(done: int) -> None:
            if self.watch is not None:
                self.watch(what, done, self.count)

        jobs = self.jobs
        if self.count is not None:
            jobs = min(jobs, -(-self.count // self.chunk_rows))
        try:
            return merged_in_order(
                self._blocks(private=private), work, jobs=max(jobs, 1), report=report
            )
        except BaseException as error:
            forget_locals(error)
            raise


@dataclass(frozen=True, eq=False)
class _OnInputs(Generic[PartOf]):
    work: Callable[[Chunk], PartOf]

    def __call__(self, number: int, block: Block) -> PartOf:
        return self.work(Chunk(number=number, X=block.inputs()))


@dataclass(frozen=True, eq=False)
class _OnRows(Generic[PartOf]):
    work: Callable[[Chunk, Array], PartOf]
    labels: tuple[object, ...] | None

    def __call__(self, number: int, block: Block) -> PartOf:
        chunk = Chunk(number=number, X=block.inputs())
        return self.work(
            chunk, block.outputs() if self.labels is None else block.places(self.labels)
        )


def forget_locals(error: BaseException) -> None:
    """Empty the frames of an error and of those behind it: whoever shows them may show variables.

    Lines of code stay. Frames that are still running keep theirs.

    Examples
    --------
    >>> def fail():
    ...     secret = 12.5
    ...     raise ValueError("no")
    >>> try:
    ...     fail()
    ... except ValueError as error:
    ...     forget_locals(error)
    ...     error.__traceback__.tb_next.tb_frame.f_locals
    {}
    """
    seen: set[int] = set()
    behind: list[BaseException | None] = [error]
    while behind:
        one = behind.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        traceback.clear_frames(one.__traceback__)
        if isinstance(one.__context__, queue.Empty):
            # joblib asks for the next block while it handles one of its own.
            one.__context__ = None
        behind += [one.__cause__, one.__context__]
