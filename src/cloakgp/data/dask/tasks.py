"""What Dask's workers do in a pass: open a block, work on its chunks, merge parts.

No task fails. Dask logs a failing task and ships its error, with the arguments of the one and the
variables of the other, so whatever goes wrong comes back as a `Failure`, which names the class of
the error and says only what is public. What tasks hold and return is packed in a `Parcel`: bytes
that no log, dashboard or `repr` shows.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from cloakgp.data.local import LocalRows
from cloakgp.design.solver import suitable_threads
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Chunk


@dataclass(frozen=True, eq=False, repr=False)
class Parcel:
    """An object, pickled and out of sight.

    Attributes
    ----------
    payload : bytes

    Examples
    --------
    >>> parcel = Parcel.of([12.5])
    >>> parcel
    <Parcel>
    >>> parcel.opened()
    [12.5]
    """

    payload: bytes

    @classmethod
    def of(cls, content: object) -> Parcel:
        """Return an object packed."""
        payload: bytes = import_module("cloudpickle").dumps(content)
        return cls(payload=payload)

    def opened(self) -> Any:
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
    """What went wrong, as far as it is public.

    Attributes
    ----------
    error : type
        Of the exception to be raised where the pass was asked for.
    told : str
        Its message.
    """

    error: type[Exception]
    told: str


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


class Refused(Exception):
    """Says what is wrong with something public, in words that may be shown.

    Attributes
    ----------
    error : type
        Of the exception to be raised where the pass was asked for.
    """

    def __init__(self, told: str, *, error: type[Exception] = ValueError) -> None:
        super().__init__(told)
        self.error = error


@contextmanager
def refusing() -> Iterator[None]:
    """Show the words of a ``ValueError``, or of a file that is missing: only where they are ours.

    Raises
    ------
    Refused

    Examples
    --------
    >>> try:
    ...     with refusing():
    ...         raise ValueError("column 'age' is empty in row 3")
    ... except Refused as error:
    ...     print(error)
    column 'age' is empty in row 3
    """
    try:
        yield
    except FileNotFoundError as error:
        raise Refused(str(error), error=FileNotFoundError) from None
    except ValueError as error:
        raise Refused(str(error)) from None


class WorkFailed(Exception):
    """The work on a chunk failed; says what may be shown of it."""


class Block(Protocol):
    """Some rows of the table, which a worker can get at."""

    @property
    def private(self) -> bool:
        """Whether outputs are wanted."""

    def opened(self, values: tuple[Any, ...], *, first_row: int) -> LocalRows | None:
        """Return the rows, or None if there are none, given what other tasks made for them."""


@dataclass(frozen=True, eq=False)
class RowWork:
    """Work on chunks and their private entries, and what these are.

    Attributes
    ----------
    work : callable
        Called with a chunk and its entries.
    labels : tuple or None
        What an entry can be; None where entries are numbers.
    """

    work: Callable[[Chunk, Array], Any]
    labels: tuple[object, ...] | None


@dataclass(frozen=True, eq=False)
class _OnInputs:
    """Work on a chunk with its number in the table."""

    work: Callable[[Chunk], Any]
    first: int

    def __call__(self, chunk: Chunk) -> Any:
        try:
            return self.work(Chunk(number=self.first + chunk.number, X=chunk.X))
        except Exception as error:
            # Made of public inputs: the message helps, and may be shown.
            raise WorkFailed(f"{type(error).__name__}: {error}") from None


@dataclass(frozen=True, eq=False)
class _OnRows:
    """Work on a chunk with its number in the table, and on its private entries."""

    work: Callable[[Chunk, Array], Any]
    first: int

    def __call__(self, chunk: Chunk, private: Array) -> Any:
        try:
            return self.work(Chunk(number=self.first + chunk.number, X=chunk.X), private)
        except Exception as error:
            raise WorkFailed(
                f"{type(error).__name__}; its message could hold private values, and is not shown"
            ) from None


def part_of_block(
    block: Parcel, work: Parcel, span: Span, what: str, *values: Any
) -> Parcel | Failure:
    """Work on the chunks of a block, and merge what they say in their order.

    Parameters
    ----------
    block : Parcel of a Block
    work : Parcel of a callable, or of a `RowWork`
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
        opened: Block = block.opened()
        do_work = work.opened()
        rows = opened.opened(values, first_row=span.first_row)
        if rows is None or rows.count != span.rows:
            raise Refused(
                f"rows {span.first_row} to {span.first_row + span.rows - 1}, counted from 0, came "
                "out differently than in an earlier pass: rows must be the same in every pass"
            )
        with _one_thread():
            if opened.private:
                part: Any = rows.over_rows(
                    _OnRows(do_work.work, span.first_chunk), what=what, labels=do_work.labels
                )
            else:
                part = rows.over_inputs(_OnInputs(do_work, span.first_chunk), what=what)
        return Parcel.of(part)

    part: Parcel | Failure = attempted(do, what=f"{what}: rows {span.first_row} and after")
    return part


def merged_parts(first: Parcel | Failure, second: Parcel | Failure, what: str) -> Parcel | Failure:
    """Merge two parts, or pass on the failure that comes first in the table.

    Examples
    --------
    >>> merged_parts(Failure(ValueError, "one"), Failure(ValueError, "two"), "adding").told
    'one'
    """
    if isinstance(first, Failure):
        return first
    if isinstance(second, Failure):
        return second

    def do() -> Parcel:
        with _one_thread():
            return Parcel.of(first.opened().merged(second.opened()))

    part: Parcel | Failure = attempted(do, what=f"{what}: merging")
    return part


def rows_of_block(block: Parcel, *values: Any) -> int | Failure:
    """Return how many rows a block has."""

    def do() -> int:
        rows = block.opened().opened(values, first_row=0)
        return 0 if rows is None else int(rows.count)

    many: int | Failure = attempted(do, what="counting rows")
    return many


def attempted(do: Callable[[], Any], *, what: str) -> Any:
    """Return what something gives, or a Failure that says no more than is public.

    Examples
    --------
    >>> attempted(lambda: 1 / 0, what="dividing").told[:38]
    'dividing failed with ZeroDivisionError'
    """
    try:
        return do()
    except Refused as error:
        return Failure(error=error.error, told=str(error))
    except WorkFailed as error:
        return Failure(error=RuntimeError, told=f"{what} failed with {error}")
    except Exception as error:
        kind = type(error).__name__
    return Failure(
        error=RuntimeError,
        told=f"{what} failed with {kind}; its message could hold private values, and is not shown",
    )


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
