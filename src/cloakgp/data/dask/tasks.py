"""Dask tasks of a pass over blocks of rows: work on each block, merge parts, fetch the result.

No task fails. Dask logs a failing task and ships its error, with the arguments of the one and the
variables of the other, so whatever goes wrong comes back as a `Failure`, which names the class of
the error and says only what is public. What tasks hold and return is packed in a `Parcel`: bytes
that no log, dashboard or `repr` shows. Keys name tasks in logs and on dashboards: those made here
are numbers in turn, and never hashes of what the tasks hold, as Dask's own are.
"""

from __future__ import annotations

import itertools
import pickle
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cloakgp.data import chunks
from cloakgp.data.chunks import LocalRows
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Chunk
from cloakgp.utils.threads import suitable_threads

Graph = dict[Any, Any]
HIDDEN = "its message could hold private values, and is not shown"
_turn = itertools.count()
# For `dask.config`, while workers are started; in bytes. By default workers give memory back at
# once, and a fit, which takes and leaves the same matrices all the time, needs a third more time of
# the processors.
ALLOCATION = {
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**27,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**26,
}


class PublicError(Exception):
    """An error about something public, in words that may be shown.

    Attributes
    ----------
    error : type
        Of the exception to be raised where the pass was asked for.
    """

    def __init__(self, message: str, *, error: type[Exception] = ValueError) -> None:
        super().__init__(message)
        self.error = error


@contextmanager
def public_errors() -> Iterator[None]:
    """Show the words of a ``ValueError``, or of a file that is missing: only where they are ours.

    Raises
    ------
    PublicError

    Examples
    --------
    >>> try:
    ...     with public_errors():
    ...         raise ValueError("column 'age' is empty in row 3")
    ... except PublicError as error:
    ...     print(error)
    column 'age' is empty in row 3
    """
    try:
        yield
    except FileNotFoundError as error:
        raise PublicError(str(error), error=FileNotFoundError) from None
    except ValueError as error:
        raise PublicError(str(error)) from None


@dataclass(frozen=True, eq=False, repr=False)
class Parcel:
    """An object, pickled and out of sight.

    Attributes
    ----------
    payload : bytes

    Examples
    --------
    >>> parcel = Parcel.pack([12.5])
    >>> parcel
    <Parcel>
    >>> parcel.unpack()
    [12.5]
    """

    payload: bytes

    @classmethod
    def pack(cls, content: object) -> Parcel:
        """Return an object packed."""
        payload: bytes = import_module("cloudpickle").dumps(content)
        return cls(payload=payload)

    def unpack(self) -> Any:
        """Return the object, made anew."""
        return pickle.loads(self.payload)

    def __repr__(self) -> str:
        return "<Parcel>"

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + len(self.payload)

    def __dask_tokenize__(self) -> str:
        # Dask would hash the content: a fingerprint of private numbers.
        return "parcel"


@dataclass(frozen=True)
class Failure:
    """The public part of a failure.

    Attributes
    ----------
    error : type
        Of the exception to be raised where the pass was asked for.
    message : str
    """

    error: type[Exception]
    message: str


@dataclass(frozen=True)
class Span:
    """Where a block lies in the table.

    Attributes
    ----------
    first_row, rows : int
    first_chunk : int
        The number of its first chunk.
    """

    first_row: int
    rows: int
    first_chunk: int


class Block(Protocol):
    """Some rows of the table, which a worker can get at."""

    @property
    def private(self) -> bool:
        """Whether outputs are wanted."""

    def open(self, values: tuple[Any, ...], *, first_row: int) -> LocalRows | None:
        """Return the rows, or None if there are none, given the results of other tasks."""


@dataclass(frozen=True, eq=False, repr=False)
class PublicErrorBlock:
    """A chunk whose inputs are refused in words that may be shown, unlike all other errors.

    Attributes
    ----------
    chunk : Block of `cloakgp.data.chunks`
    """

    chunk: chunks.Block

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.chunk.rows

    def inputs(self) -> Array:
        """Return public inputs, or raise `PublicError` if one is not finite."""
        with public_errors():
            return self.chunk.inputs()

    def groups(self) -> NDArray[np.intp] | None:
        """Return the groups of the rows, or raise `PublicError` if one has none."""
        with public_errors():
            return self.chunk.groups()

    def outputs(self) -> Array:
        """Return private outputs, with NaN for missing ones and those that are no numbers."""
        return self.chunk.outputs()

    def check_labels(self, labels: tuple[object, ...]) -> None:
        """Raise `PublicError` if labels cannot be distinguished in such rows, a public fact."""
        with public_errors():
            self.chunk.check_labels(labels)

    def places(self, labels: tuple[object, ...]) -> Array:
        """Return which of the labels each private entry is, or raise `PublicError`."""
        self.check_labels(labels)
        return self.chunk.places(labels)


@dataclass(frozen=True, eq=False, repr=False)
class RowWork:
    """Work on chunks and their private entries, and the kind of these.

    Attributes
    ----------
    work : callable
        Called with a chunk and its entries.
    labels : tuple or None
        What an entry can be; None where entries are numbers.
    """

    work: Callable[[Chunk, Array], Any]
    labels: tuple[object, ...] | None


@dataclass(frozen=True, eq=False, repr=False)
class PackedBlock:
    """A block on its way to a worker.

    Attributes
    ----------
    parcel : Parcel
    others : tuple
        Keys of the tasks that it needs.
    """

    parcel: Parcel
    others: tuple[Any, ...] = ()


class Source(ABC):
    """A table in blocks.

    Attributes
    ----------
    input_names : tuple of str
        Empty for arrays.
    output_name : str
    n_inputs : int
    chunk_rows : int
    lengths : tuple of int or None
        Rows of every block, if known.
    """

    def __init__(
        self,
        *,
        input_names: tuple[str, ...],
        output_name: str,
        n_inputs: int,
        chunk_rows: int,
        lengths: tuple[int, ...] | None,
    ) -> None:
        if chunk_rows < 1:
            raise ValueError(f"chunk_rows must be at least 1, got {chunk_rows}")
        self.input_names = input_names
        self.output_name = output_name
        self.n_inputs = n_inputs
        self.chunk_rows = chunk_rows
        self.lengths = lengths

    @abstractmethod
    def blocks(self, *, private: bool) -> tuple[list[PackedBlock], Graph]:
        """Return every block, and the tasks that they share."""

    def count_rows(self, client: Any) -> tuple[int, ...]:
        """Return the rows of every block, after a pass over the inputs if need be."""
        if self.lengths is None:
            packed, shared = self.blocks(private=False)
            graph, keys = build_count(packed, name=new_name(client, "count"))
            what = "counting rows"
            self.lengths = tuple(gather(client, {**shared, **graph}, keys, what=what))
        return self.lengths


def build_pass(
    packed: Sequence[PackedBlock],
    spans: Sequence[Span],
    *,
    work: Parcel,
    what: str,
    name: str,
) -> tuple[Graph, list[Any]]:
    """Return the tasks of a pass, and the keys of the parts of blocks with the merged one last.

    Neighbours are merged with neighbours, in an order that the table alone decides.

    Examples
    --------
    >>> block = PackedBlock(parcel=Parcel.pack(None))
    >>> spans = [Span(first_row=0, rows=1, first_chunk=0), Span(1, 1, 1), Span(2, 1, 2)]
    >>> graph, keys = build_pass(
    ...     [block] * 3, spans, work=Parcel.pack(len), what="counting", name="pass"
    ... )
    >>> keys
    [('pass', 0), ('pass', 1), ('pass', 2), ('pass-merge', 2, 0)]
    >>> sorted(graph["pass-merge", 2, 0].dependencies)
    [('pass', 2), ('pass-merge', 1, 0)]
    """
    from dask.task_spec import DataNode, Task, TaskRef

    given = (f"{name}-work",)
    # A task of its own: it is sent once, not with every block, and made anew if it is lost.
    graph: Graph = {given: DataNode(given, work)}
    level: list[Any] = []
    for number, (block, span) in enumerate(zip(packed, spans, strict=True)):
        key: Any = (name, number)
        others = (TaskRef(other) for other in block.others)
        graph[key] = Task(key, work_on_block, block.parcel, TaskRef(given), span, what, *others)
        level.append(key)
    keys = list(level)
    # Under another name: tasks of one name that need next to nothing are spread over all workers.
    depth = 0
    while len(level) > 1:
        depth += 1
        above: list[Any] = []
        for number, (left, right) in enumerate(zip(level[::2], level[1::2], strict=False)):
            key = (f"{name}-merge", depth, number)
            graph[key] = Task(key, merge_parts, TaskRef(left), TaskRef(right), what)
            above.append(key)
        if len(level) % 2:
            above.append(level[-1])
        level = above
    return graph, [*keys, level[0]]


def build_count(packed: Sequence[PackedBlock], *, name: str) -> tuple[Graph, list[Any]]:
    """Return the tasks that count the rows of blocks, and their keys."""
    from dask.task_spec import Task, TaskRef

    graph: Graph = {}
    for number, block in enumerate(packed):
        key = (name, number)
        others = (TaskRef(other) for other in block.others)
        graph[key] = Task(key, count_block, block.parcel, *others)
    return graph, list(graph)


def new_name(client: Any, stem: str) -> str:
    """Return a name for tasks that no others have: the client's own, and a number in turn."""
    return f"cloakgp-{stem}-{client.id}-{next(_turn)}"


def gather(client: Any, graph: Graph, keys: Sequence[Any], *, what: str) -> list[Any]:
    """Do tasks and fetch their results, or raise the first failure among them.

    Raises
    ------
    ValueError, FileNotFoundError, RuntimeError
        Without anything behind it.
    """
    futures = client.get(graph, list(keys), sync=False)
    return [unwrap(result) for result in unwrap(fetch(lambda: client.gather(futures), what=what))]


def fetch(wait: Callable[[], Any], *, what: str) -> Any:
    """Return the result from the cluster, or a Failure without details of its own.

    Tasks of a collection's own may fail, and their errors quote what they like.
    """
    try:
        return wait()
    except Exception as error:
        kind = type(error).__name__
    return Failure(
        error=RuntimeError,
        message=f"{what}: the cluster gave up with {kind}; {HIDDEN}. KilledWorker means that "
        "several workers died at the same rows",
    )


def unwrap(result: Any) -> Any:
    """Return a result, or raise the failure that it is.

    Examples
    --------
    >>> unwrap(3)
    3
    """
    if isinstance(result, Failure):
        raise result.error(result.message)
    return result


def work_on_block(
    block: Parcel, work: Parcel, span: Span, what: str, *values: Any
) -> Parcel | Failure:
    """Work on the chunks of a block, and merge the results in their order.

    Parameters
    ----------
    block : Parcel of a Block
    work : Parcel of a callable
    span : Span
    what : str
        What the pass is for.
    *values
        What other tasks made for the block.

    Returns
    -------
    Parcel of a Part, or Failure
    """

    def do() -> Parcel:
        unpacked: Block = block.unpack()
        rows = unpacked.open(values, first_row=span.first_row)
        if rows is None or rows.count != span.rows:
            raise PublicError(
                f"rows {span.first_row} to {span.first_row + span.rows - 1}, counted from 0, came "
                "out differently than in an earlier pass: rows must be the same in every pass"
            )
        row_work = work.unpack()
        with _one_thread():
            if unpacked.private:
                numbered = _NumberedWork(row_work.work, span.first_chunk)
                part: Any = rows.over_rows(numbered, what=what, labels=row_work.labels)
            else:
                part = rows.over_inputs(_NumberedWork(row_work, span.first_chunk), what=what)
            return Parcel.pack(part)

    part: Parcel | Failure = attempt(do, what=f"{what}: rows {span.first_row} and after")
    return part


def merge_parts(first: Parcel | Failure, second: Parcel | Failure, what: str) -> Parcel | Failure:
    """Merge two parts, or pass on the failure that comes first in the table.

    Examples
    --------
    >>> merge_parts(Failure(ValueError, "one"), Failure(ValueError, "two"), "adding").message
    'one'
    """
    if isinstance(first, Failure):
        return first
    if isinstance(second, Failure):
        return second

    def do() -> Parcel:
        with _one_thread():
            return Parcel.pack(first.unpack().merge(second.unpack()))

    part: Parcel | Failure = attempt(do, what=f"{what}: merging")
    return part


def count_block(block: Parcel, *values: Any) -> int | Failure:
    """Return the number of rows of a block."""

    def do() -> int:
        rows = block.unpack().open(values, first_row=0)
        return 0 if rows is None else int(rows.count)

    count: int | Failure = attempt(do, what="counting rows")
    return count


def attempt(do: Callable[[], Any], *, what: str) -> Any:
    """Return the result of a call, or a Failure with public details alone.

    Examples
    --------
    >>> attempt(lambda: 1 / 0, what="dividing").message[:38]
    'dividing failed with ZeroDivisionError'
    """
    try:
        return do()
    except PublicError as error:
        return Failure(error=error.error, message=str(error))
    except WorkError as error:
        return Failure(error=RuntimeError, message=f"{what} failed with {error}")
    except Exception as error:
        kind = type(error).__name__
    return Failure(
        error=RuntimeError,
        message=f"{what} failed with {kind}; {HIDDEN}",
    )


class WorkError(Exception):
    """The work on a chunk failed; holds the public part of the failure."""


@dataclass(frozen=True, eq=False)
class _NumberedWork:
    """Work on a chunk with its number in the table, and on its outputs if they are wanted."""

    work: Callable[..., Any]
    first: int

    def __call__(self, chunk: Chunk, *private: Array) -> Any:
        try:
            return self.work(replace(chunk, number=self.first + chunk.number), *private)
        except Exception as error:
            kind = type(error).__name__
            # Of public inputs alone, the message helps and may be shown.
            raise WorkError(f"{kind}; {HIDDEN}" if private else f"{kind}: {error}") from None


_at_work = 0
_lock = threading.Lock()
_cap = ExitStack()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Cap BLAS at one thread while any thread of this process is in here.

    The cap is the whole process's: of several tasks at a time, the first sets it and the last
    lifts it, or one that ends would lift it for the others.
    """
    global _at_work
    with _lock:
        if _at_work == 0:
            _cap.enter_context(suitable_threads(0.0))
        _at_work += 1
    try:
        yield
    finally:
        with _lock:
            _at_work -= 1
            if _at_work == 0:
                _cap.close()
