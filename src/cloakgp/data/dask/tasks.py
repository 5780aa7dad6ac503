"""Dask tasks of a pass over rows: work on each span of them, merge parts, fetch the result.

Spans are cut at multiples that the number of rows alone decides, and never where partitions end:
these may be cut by bytes, private ones among them, and what is asked, or its last bits, would tell
how long these are. A partition is made for each span that has rows of it.

No task fails. Dask logs a failing task and ships its error, with the arguments of the one and the
variables of the other, so whatever goes wrong comes back as a `Failure`, which names the class of
the error and says only what is public; where partitions end is not. What tasks hold and return is
packed in a `Parcel`: bytes that no log, dashboard or `repr` shows. Keys name tasks in logs and on
dashboards: those made here are numbers in turn, and never hashes of what the tasks hold, as Dask's
own are.
"""

from __future__ import annotations

import itertools
import pickle
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cloakgp.data import chunks
from cloakgp.data.chunks import LocalRows
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Chunk
from cloakgp.utils.threads import suitable_threads

# So many tasks at least, if there are as many chunks: else some workers have nothing to do.
FEWEST_TASKS = 32
# The most chunks of a task: one costs a millisecond, and the partitions that it has rows of.
CHUNKS_OF_A_TASK = 64

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
class Stretch:
    """Rows of a partition that lie in a span.

    Attributes
    ----------
    number : int
        Of the partition.
    partition : range
        Where its rows are in the table.
    rows : range
        Where those of the span are in the partition.
    """

    number: int
    partition: range
    rows: range


@dataclass(frozen=True)
class Span:
    """Rows that one task works on: whole chunks.

    Attributes
    ----------
    first_row, rows : int
    first_chunk : int
        The number of its first chunk.
    stretches : tuple of Stretch
        In the order of the table.
    """

    first_row: int
    rows: int
    first_chunk: int
    stretches: tuple[Stretch, ...]


def rows_of_a_task(rows: int, *, chunk_rows: int) -> int:
    """Return the number of rows of one task, which depends on the number of all rows alone.

    Examples
    --------
    >>> [rows_of_a_task(rows, chunk_rows=1000) for rows in (3000, 100_000, 10**6)]
    [1000, 3000, 31000]
    """
    chunks = -(-rows // chunk_rows)
    return chunk_rows * min(max(chunks // FEWEST_TASKS, 1), CHUNKS_OF_A_TASK)


def cut_spans(lengths: Sequence[int], *, chunk_rows: int) -> list[Span]:
    """Cut the rows of a table into spans, whatever partitions they lie in.

    Parameters
    ----------
    lengths : sequence of int
        Rows of every partition.
    chunk_rows : int

    Examples
    --------
    >>> for span in cut_spans([3, 0, 2], chunk_rows=2):
    ...     print(span.first_row, span.rows, [(one.number, one.rows) for one in span.stretches])
    0 2 [(0, range(0, 2))]
    2 2 [(0, range(2, 3)), (2, range(0, 1))]
    4 1 [(2, range(1, 2))]
    """
    ends = list(itertools.accumulate(lengths, initial=0))
    total = ends[-1]
    step = rows_of_a_task(total, chunk_rows=chunk_rows)
    spans, number = [], 0
    for first in range(0, total, step):
        stop, stretches = min(first + step, total), []
        while ends[number + 1] <= first:
            number += 1
        for each in range(number, len(lengths)):
            start, end = ends[each], ends[each + 1]
            if start >= stop:
                break
            if end > max(start, first):
                inside = range(max(first, start) - start, min(stop, end) - start)
                stretches.append(Stretch(each, range(start, end), inside))
        spans.append(Span(first, stop - first, first // chunk_rows, tuple(stretches)))
    return spans


class PartitionRows(Protocol):
    """The rows of a partition on the worker that has made it, or can read it."""

    @property
    def count(self) -> int:
        """The number of rows."""

    def pieces(
        self, rows: range, *, room: int, private: bool
    ) -> Generator[chunks.Block, None, None]:
        """Yield some of the rows: ``room`` at most at first, and then a chunk at most."""


class Block(Protocol):
    """A partition of the table, which a worker can get at."""

    @property
    def private(self) -> bool:
        """Whether outputs are wanted."""

    def open(self, values: tuple[Any, ...], *, first_row: int) -> PartitionRows | None:
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
class JoinedBlock:
    """A chunk whose rows lie in several partitions.

    Attributes
    ----------
    pieces : tuple of Block of `cloakgp.data.chunks`
    """

    pieces: tuple[chunks.Block, ...]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(piece.rows for piece in self.pieces)

    def inputs(self) -> Array:
        """Return public inputs."""
        return np.concatenate([piece.inputs() for piece in self.pieces])

    def groups(self) -> NDArray[np.intp] | None:
        """Return the groups of the rows, or None: all pieces have them, or none."""
        groups = [piece.groups() for piece in self.pieces]
        known = [one for one in groups if one is not None]
        return np.concatenate(known) if len(known) == len(groups) else None

    def outputs(self) -> Array:
        """Return private outputs."""
        return np.concatenate([piece.outputs() for piece in self.pieces])

    def check_labels(self, labels: tuple[object, ...]) -> None:
        """Refuse labels that entries of a piece cannot be compared with."""
        for piece in self.pieces:
            piece.check_labels(labels)

    def places(self, labels: tuple[object, ...]) -> Array:
        """Return which of the labels each private entry is."""
        return np.concatenate([piece.places(labels) for piece in self.pieces])


class SpanRows(LocalRows):
    """The rows of a span, partition after partition.

    Parameters
    ----------
    partitions : callable
        Opens the partitions one after the other, and yields each with its stretch.
    count : int
        Rows of the span.
    chunk_rows, n_inputs : int
    """

    def __init__(
        self,
        partitions: Callable[[], Iterator[tuple[Stretch, PartitionRows]]],
        *,
        count: int,
        chunk_rows: int,
        n_inputs: int,
    ) -> None:
        super().__init__(
            input_names=(), output_name="", grouped=False, chunk_rows=chunk_rows, jobs=1
        )
        self._partitions = partitions
        self._count = count
        self._n_inputs = n_inputs

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs."""
        return self._n_inputs

    @property
    def count(self) -> int:
        """The number of rows."""
        return self._count

    def _blocks(self, *, private: bool) -> Generator[chunks.Block, None, None]:
        held: list[chunks.Block] = []
        room = self.chunk_rows
        for stretch, part in self._partitions():
            for piece in part.pieces(stretch.rows, room=room, private=private):
                held.append(piece)
                room -= piece.rows
                if room == 0:
                    yield held[0] if len(held) == 1 else JoinedBlock(tuple(held))
                    held, room = [], self.chunk_rows
        if held:
            yield held[0] if len(held) == 1 else JoinedBlock(tuple(held))


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
    """A partition on its way to a worker.

    Attributes
    ----------
    parcel : Parcel
    others : tuple
        Keys of the tasks that it needs.
    """

    parcel: Parcel
    others: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class PackedSpan:
    """A span on its way to a worker, with the partitions that have rows of it.

    Attributes
    ----------
    span : Span
    parcels : tuple of Parcel of Block
        One for each stretch.
    needed : tuple of int
        How many results of other tasks each needs.
    """

    span: Span
    parcels: tuple[Parcel, ...]
    needed: tuple[int, ...]

    def open(self, values: tuple[Any, ...]) -> Iterator[tuple[Stretch, PartitionRows]]:
        """Make one partition after the other, check that each is as long as it was, and yield it.

        Parameters
        ----------
        values : tuple
            The results that the partitions need, one after the other.
        """
        given = iter(values)
        for stretch, parcel, count in zip(
            self.span.stretches, self.parcels, self.needed, strict=True
        ):
            block: Block = parcel.unpack()
            own, first_row = tuple(itertools.islice(given, count)), stretch.partition.start
            part = attempt(partial(block.open, own, first_row=first_row), what="making a partition")
            # Said without a place: which span fails first tells about where the partition ends.
            if isinstance(part, Failure):
                raise PublicError(part.message, error=part.error)
            if part is None or part.count != len(stretch.partition):
                raise PublicError(
                    "a partition came out with another number of rows than in an earlier pass: "
                    "rows must be the same in every pass"
                )
            yield stretch, part


@dataclass(frozen=True, eq=False, repr=False)
class SpanWork:
    """What is done with the rows of every span.

    Attributes
    ----------
    work : callable or RowWork
        On inputs, or on rows.
    chunk_rows, n_inputs : int
    """

    work: Callable[[Chunk], Any] | RowWork
    chunk_rows: int
    n_inputs: int


class Source(ABC):
    """A table in partitions.

    Attributes
    ----------
    input_names : tuple of str
        Empty for arrays.
    output_name : str
    n_inputs : int
    chunk_rows : int
    lengths : tuple of int or None
        Rows of every partition, if known.
    holds_text : bool
        Whether cells of the private column, as its type says, are compared with labels as text.
    """

    holds_text = False

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

    def check_labels(self, labels: tuple[object, ...]) -> None:
        """Refuse labels other than text for a column of text, whose cells are none of them."""
        if self.holds_text and not all(isinstance(label, str) for label in labels):
            raise ValueError(
                f"column {self.output_name!r} holds text, and none of the classes {list(labels)}: "
                f"give them as they are written, {[str(label) for label in labels]}"
            )

    @abstractmethod
    def partitions(self, *, private: bool) -> tuple[list[PackedBlock], Graph]:
        """Return every partition, and the tasks that they share."""

    def count_rows(self, client: Any) -> tuple[int, ...]:
        """Return the rows of every partition, after a pass over the inputs if need be."""
        if self.lengths is None:
            packed, shared = self.partitions(private=False)
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
    """Return the tasks of a pass, and the keys of the parts of spans with the merged one last.

    Neighbours are merged with neighbours, in an order that the number of rows alone decides.

    Parameters
    ----------
    packed : sequence of PackedBlock
        Every partition.
    spans : sequence of Span
    work : Parcel of SpanWork
    what, name : str

    Examples
    --------
    >>> block = PackedBlock(parcel=Parcel.pack(None))
    >>> graph, keys = build_pass(
    ...     [block, block], cut_spans([2, 1], chunk_rows=1), work=Parcel.pack(None),
    ...     what="counting", name="pass"
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
    for number, span in enumerate(spans):
        key: Any = (name, number)
        blocks = [packed[stretch.number] for stretch in span.stretches]
        others = [TaskRef(other) for block in blocks for other in block.others]
        parcels = PackedSpan(
            span=span,
            parcels=tuple(block.parcel for block in blocks),
            needed=tuple(len(block.others) for block in blocks),
        )
        graph[key] = Task(key, work_on_span, parcels, TaskRef(given), what, *others)
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


def work_on_span(packed: PackedSpan, work: Parcel, what: str, *values: Any) -> Parcel | Failure:
    """Work on the chunks of a span, and merge the results in their order.

    Parameters
    ----------
    packed : PackedSpan
    work : Parcel of SpanWork
    what : str
        What the pass is for.
    *values
        What other tasks made for the partitions.

    Returns
    -------
    Parcel of a Part, or Failure
    """
    span = packed.span

    def do() -> Parcel:
        unpacked: SpanWork = work.unpack()
        rows = SpanRows(
            partial(packed.open, values),
            count=span.rows,
            chunk_rows=unpacked.chunk_rows,
            n_inputs=unpacked.n_inputs,
        )
        with _one_thread():
            if isinstance(unpacked.work, RowWork):
                numbered = _NumberedWork(unpacked.work.work, span.first_chunk)
                part: Any = rows.over_rows(numbered, what=what, labels=unpacked.work.labels)
            else:
                part = rows.over_inputs(_NumberedWork(unpacked.work, span.first_chunk), what=what)
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
