"""Rows in memory, or in memory-mapped files: arrays and pandas tables, converted chunk by chunk.

`ArrayRows` have public inputs and private outputs; `InputRows` are inputs alone, for designs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import Any, NoReturn

import joblib
import numpy as np
from numpy.typing import NDArray

from cloakgp.data.chunks import CHUNK_ROWS, LocalRows
from cloakgp.design.streaming.grouping import NO_GROUPS
from cloakgp.privacy.entries import check_apart, check_same_order, read_entries, read_labels
from cloakgp.privacy.person_ids import person_ids
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array, output_names
from cloakgp.utils.passes import Chunk, PartOf, group_number
from cloakgp.utils.threads import suitable_threads


class ArrayRows(LocalRows):
    """Public inputs and private outputs that are arrays already.

    Arrays are kept as they are given, and one chunk at a time is copied. They must not be changed
    between passes.

    Parameters
    ----------
    X : array-like of shape (N, D)
        Public inputs: an array, a memory map, a pandas table, or a list of rows.
    outputs : array-like of shape (N,), (N, 1) or (N, T)
        Private; an array or a table where every row has several.
    input_names : sequence of str
        If empty, a pandas table's names are taken.
    output_name : str
    groups : iterable of N texts or whole numbers, optional
        Public: whose row it is, compared as `cloakgp.privacy.person_ids` says. All rows of one
        group are protected together.
    chunk_rows : int
    jobs : int, optional
        How many threads; if not given, as many as there are processors to be used.

    Raises
    ------
    ValueError
        If lengths do not agree, there are no rows, X has a type that holds no numbers, or groups
        are no ids.

    Examples
    --------
    >>> rows = ArrayRows(np.arange(6.0).reshape(3, 2), [1.5, 2.5, 3.5])
    >>> rows
    ArrayRows(3 rows, 2 inputs)
    """

    @forget_on_failure
    def __init__(
        self,
        X: Any,
        outputs: Any,
        *,
        input_names: Sequence[str] = (),
        output_name: str = "y",
        groups: Iterable[Hashable] | None = None,
        chunk_rows: int = CHUNK_ROWS,
        jobs: int | None = None,
    ) -> None:
        shape = _shape(X)
        if outputs is None or not hasattr(outputs, "__len__"):
            raise ValueError("outputs are missing: give one for every row")
        if len(outputs) != shape[0]:
            raise ValueError(f"X has {shape[0]} rows and y has {len(outputs)}: they must agree")
        columns = tuple(getattr(outputs, "shape", (0,))[1:]) or (1,)
        if len(columns) > 1 or columns[0] < 1:
            raise ValueError("y must have one dimension, with one entry per row, or two")
        names = tuple(input_names) or tuple(str(name) for name in getattr(X, "columns", ()))
        if names and len(names) != shape[1]:
            raise ValueError(f"X has {shape[1]} columns and {len(names)} names: they must agree")
        check_apart(names, outputs)
        check_same_order(X, outputs, groups)
        super().__init__(
            input_names=names,
            output_name=output_name,
            grouped=groups is not None,
            chunk_rows=chunk_rows,
            jobs=jobs,
        )
        self._groups = None if groups is None else _numbered(groups, rows=shape[0])
        # What can be gone through once has been.
        self._whose = None if isinstance(groups, Iterator) else groups
        self._X = X
        self._outputs = outputs
        self._shape = shape
        self.n_outputs = int(columns[0])
        self.output_names = () if self.n_outputs == 1 else output_names(outputs)

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs."""
        return self._shape[1]

    @property
    def count(self) -> int:
        """N, the number of rows."""
        return self._shape[0]

    def most_rows_of_person(self) -> int:
        """Return the most rows of one person; or of one number, if ids could be read once only.

        Raises
        ------
        ValueError
            If rows have no groups.
        """
        if self._groups is None:
            raise ValueError(NO_GROUPS)
        if self._whose is None:
            return int(np.bincount(self._groups).max())
        return max(Counter(person_ids(self._whose, rows=self.count)).values())

    def __reduce__(self) -> NoReturn:
        raise TypeError("ArrayRows hold private outputs, and are not pickled: pickle file rows")

    def _blocks(self, *, private: bool) -> Generator[_ArrayBlock, None, None]:
        for first in range(0, self.count, self.chunk_rows):
            yield self._block(
                slice(first, min(first + self.chunk_rows, self.count)), private=private
            )

    def _block(self, span: slice, *, private: bool) -> _ArrayBlock:
        return _ArrayBlock(
            X=_cut(self._X, span),
            private=_cut(self._outputs, span) if private else None,
            whose=None if self._groups is None else self._groups[span],
            first_row=span.start,
            names=self.input_names,
            n_outputs=self.n_outputs,
        )


def _shape(X: Any) -> tuple[int, int]:
    """Return (N, D) of public inputs that could be numbers."""
    shape = X.shape if hasattr(X, "shape") else (len(X), *np.shape(X[:1])[1:])
    if len(shape) != 2:
        raise ValueError(f"X must have two dimensions, got {len(shape)}")
    if 0 in shape:
        raise ValueError(f"X has {shape[0]} rows and {shape[1]} columns: it needs some of both")
    types = X.dtypes if hasattr(X, "dtypes") else [getattr(X, "dtype", None)]
    for kind in types:
        if getattr(kind, "kind", "O") in "mMc":
            raise ValueError(f"X holds values of type {kind}: turn them into numbers first")
    return int(shape[0]), int(shape[1])


def _numbered(groups: Iterable[Hashable], *, rows: int) -> NDArray[np.intp]:
    ids = person_ids(groups, rows=rows)
    return np.fromiter((group_number(one) for one in ids), dtype=np.intp)


def _cut(table: Any, span: slice) -> Any:
    return table.iloc[span] if hasattr(table, "iloc") else table[span]


@dataclass(frozen=True, eq=False, repr=False)
class _ArrayBlock:
    X: Any
    private: Any
    whose: NDArray[np.intp] | None
    first_row: int
    names: tuple[str, ...]
    n_outputs: int

    @property
    def rows(self) -> int:
        return len(self.X)

    def inputs(self) -> Array:
        X = self._numbers()
        bad = ~np.isfinite(X)
        if bad.any():
            row, column = (int(where[0]) for where in np.nonzero(bad))
            name = repr(self.names[column]) if self.names else f"{column} of X"
            fault = "is infinite" if np.isinf(X[row, column]) else "holds no number"
            raise ValueError(
                f"column {name} {fault} in row {self.first_row + row}, counted from 0: correct "
                "that entry, or leave the row out"
            )
        return X

    def _numbers(self) -> Array:
        X = read_entries(self.X).values
        if X.ndim != 2:
            raise ValueError("X must have two dimensions, and as many columns in every row")
        return np.ascontiguousarray(X)

    def groups(self) -> NDArray[np.intp] | None:
        return self.whose

    def outputs(self) -> Array:
        values = read_entries(self._entries()).values
        return values.reshape(self.rows if self.n_outputs == 1 else (self.rows, self.n_outputs))

    def check_labels(self, labels: tuple[object, ...]) -> None:
        """Allow any: entries are compared with labels as Python does."""

    def places(self, labels: tuple[object, ...]) -> Array:
        return read_labels(self._entries(), labels).reshape(self.rows)

    def _entries(self) -> Any:
        # Entries of a list stay whole, however alike those of a chunk are.
        if isinstance(self.private, list | tuple):
            return np.fromiter(self.private, dtype=object, count=self.rows)
        return self.private


@dataclass(frozen=True, eq=False)
class InputRows:
    """Rows of which nothing private is known.

    Attributes
    ----------
    X : array of shape (N, D)
        Public inputs, at least one row.
    chunk_rows : int
        The most rows that are worked on at once.
    groups : array of int, shape (N,), or None
        Whose rows these are, by numbers as of `cloakgp.utils.passes.Chunk`.

    Examples
    --------
    >>> import numpy as np
    >>> from cloakgp.models.summary import summarise
    >>> summarise(InputRows(np.zeros((3, 2)))).count
    3
    """

    X: Array
    chunk_rows: int = CHUNK_ROWS
    groups: NDArray[np.intp] | None = None

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs."""
        return int(self.X.shape[1])

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows in the order of the table."""
        for number, first in enumerate(range(0, len(self.X), self.chunk_rows)):
            span = slice(first, first + self.chunk_rows)
            groups = None if self.groups is None else self.groups[span]
            yield Chunk(number=number, X=self.X[span], groups=groups)

    def over_inputs(self, work: Callable[[Chunk], PartOf], *, what: str) -> PartOf:  # noqa: ARG002
        """Do some work on every chunk, and merge the parts in the order of the table.

        Parameters
        ----------
        work : callable
            Called with a chunk.
        what : str
            What this pass is for.
        """
        chunks = list(self.chunks())
        if len(chunks) == 1:
            return work(chunks[0])
        # One thread of BLAS for each, so that a result has the same bits however many there are.
        with suitable_threads(0.0), ThreadPoolExecutor(joblib.cpu_count()) as pool:
            return reduce(lambda before, part: before.merge(part), pool.map(work, chunks))
