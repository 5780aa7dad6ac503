"""Partitions of Dask collections, ``dask.dataframe`` and ``dask.array``.

A partition is made inside of the task that works on it, by the tasks that it alone needs: what
these hold has no key of its own, and their errors reach no log. Tasks that several partitions share
stay tasks of their own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from cloakgp.data.arrays import ArrayRows
from cloakgp.data.chunks import Block
from cloakgp.data.dask.csv_readers import check_private_columns, is_text, without_first_rows
from cloakgp.data.dask.tasks import (
    Graph,
    PackedBlock,
    Parcel,
    PartitionRows,
    PublicError,
    PublicErrorBlock,
    Source,
    public_errors,
)
from cloakgp.data.schema import checked_names

_SHARED = -1


class FrameSource(Source):
    """A ``dask.dataframe``."""

    def __init__(self, frame: Any, *, inputs: Sequence[str], output: str, chunk_rows: int) -> None:
        if not hasattr(frame, "expr"):
            raise ValueError("give a dask.dataframe: dask.dataframe.from_pandas makes one")
        names = checked_names(inputs, output=output)
        columns = [str(name) for name in frame.columns]
        for name in (*names, output):
            if name not in columns:
                raise ValueError(f"there is no column {name!r}: there are {', '.join(columns)}")
            if columns.count(name) > 1:
                raise ValueError(f"several columns are called {name!r}: rename all but one")
        of_csv = check_private_columns(frame, inputs=names, output=output)
        super().__init__(
            input_names=names,
            output_name=output,
            n_inputs=len(names),
            chunk_rows=chunk_rows,
            lengths=None,
        )
        self._frame = frame
        self.holds_text = is_text(frame[output].dtype, objects=of_csv)
        self._of_csv = of_csv

    def partitions(self, *, private: bool) -> tuple[list[PackedBlock], Graph]:
        """Return every partition, without tasks for unwanted columns."""
        columns = [*self.input_names, *((self.output_name,) if private else ())]
        with _in_order():
            # Not tuned: that would join partitions, more of them the fewer columns are wanted.
            lowered = self._frame[columns].expr.simplify().lower_completely()
            graph = lowered.__dask_graph__()
        if self._of_csv:
            graph = without_first_rows(graph)
        return _partitions(
            self, graph, [(key,) for key in lowered.__dask_keys__()], private=private
        )


class ArraySource(Source):
    """Two of ``dask.array``, in blocks of the same rows."""

    def __init__(self, X: Any, private: Any, *, output_name: str, chunk_rows: int) -> None:
        if not (hasattr(X, "rechunk") and hasattr(private, "rechunk")):
            raise ValueError("give two of dask.array: dask.array.from_array makes one")
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}")
        if private.ndim == 2 and private.shape[1] == 1:
            private = private[:, 0]
        if private.ndim != 1:
            raise ValueError("y must have one dimension, with one entry per row")
        if not X.shape[1] >= 1:
            raise ValueError("X needs a known number of columns, at least one")
        with _in_order():
            X = X.rechunk({1: -1})
            known = not np.isnan([*X.chunks[0], *private.chunks[0]]).any()
            if known and X.shape[0] != private.shape[0]:
                raise ValueError(
                    f"X has {X.shape[0]} rows and y has {private.shape[0]}: they must agree"
                )
            if known:
                private = private.rechunk((X.chunks[0],))
        if X.numblocks[0] != private.numblocks[0]:
            raise ValueError(
                f"X has {X.numblocks[0]} chunks of rows and y has {private.numblocks[0]}, of "
                "unknown sizes: chunk them alike, or call compute_chunk_sizes() on both"
            )
        lengths = X.chunks[0]
        super().__init__(
            input_names=(),
            output_name=output_name,
            n_inputs=int(X.shape[1]),
            chunk_rows=chunk_rows,
            lengths=None if np.isnan(lengths).any() else tuple(int(rows) for rows in lengths),
        )
        self._X = X
        self._private = private

    def partitions(self, *, private: bool) -> tuple[list[PackedBlock], Graph]:
        """Return every chunk of rows."""
        dask: Any = import_module("dask")
        with _in_order():
            collections = dask.optimize(*((self._X, self._private) if private else (self._X,)))
            graph = {
                key: task
                for collection in collections
                for key, task in collection.__dask_graph__().items()
            }
        keys = [(key,) for (key,) in collections[0].__dask_keys__()]
        if private:
            pairs = zip(keys, collections[1].__dask_keys__(), strict=True)
            return _partitions(
                self, graph, [(*x_key, y_key) for x_key, y_key in pairs], private=True
            )
        return _partitions(self, graph, keys, private=False)


@contextmanager
def _in_order() -> Iterator[None]:
    """Shuffle by tasks where Dask may choose: between workers, rows come out in any order."""
    import dask

    tasks = {"dataframe.shuffle.method": "tasks", "array.rechunk.method": "tasks"}
    with dask.config.set(tasks):
        yield


def _partitions(
    source: Source, graph: Any, partition_keys: Sequence[tuple[Any, ...]], *, private: bool
) -> tuple[list[PackedBlock], Graph]:
    split, shared = split_graph(graph, partition_keys)
    packed = [
        PackedBlock(
            parcel=Parcel.pack(
                Partition(
                    graph=partition.own,
                    keys=keys,
                    others=partition.others,
                    inputs=source.input_names,
                    output=source.output_name,
                    private=private,
                    chunk_rows=source.chunk_rows,
                )
            ),
            others=partition.others,
        )
        for partition, keys in zip(split, partition_keys, strict=True)
    ]
    return packed, shared


@dataclass(frozen=True, eq=False, repr=False)
class PartitionGraph:
    """The tasks that make one partition.

    Attributes
    ----------
    own : mapping
        Tasks that only this partition needs.
    others : tuple
        Keys of the tasks that it shares with others, or that the cluster holds already.
    """

    own: Mapping[Any, Any]
    others: tuple[Any, ...]


def split_graph(
    graph: Mapping[Any, Any], partition_keys: Sequence[Sequence[Any]]
) -> tuple[list[PartitionGraph], Graph]:
    """Give every partition the tasks that it alone needs.

    Parameters
    ----------
    graph : mapping
        A collection's.
    partition_keys : sequence of sequences of keys
        What every partition consists of.

    Returns
    -------
    list of PartitionGraph
        One for each partition.
    Graph
        Tasks that several partitions share: they stay tasks of their own.
    """
    from dask.task_spec import TaskRef

    # A future is a reference that would bring its client along.
    nodes = {
        key: TaskRef(node.key) if isinstance(node, TaskRef) else node for key, node in graph.items()
    }
    needed = {key: _needed(nodes, key) for key in nodes}
    # What stands for itself is on the cluster already.
    needed = {key: keys for key, keys in needed.items() if key not in keys}
    # What comes after the barrier of a shuffle between workers has to be where the scheduler wants
    # it, and finds that out by failing there with `Reschedule`.
    barriers = {key for key in needed if getattr(nodes[key], "block_fusion", False)}
    owner: dict[Any, int] = {}
    for number, keys in enumerate(partition_keys):
        stack = [(key, number) for key in keys]
        while stack:
            key, asking = stack.pop()
            if key not in needed or owner.get(key) in (asking, _SHARED):
                continue
            alone = key not in owner and barriers.isdisjoint(needed[key])
            owner[key] = asking if alone else _SHARED
            stack += [(dependency, owner[key]) for dependency in needed[key]]
    own: list[Graph] = [{} for _ in partition_keys]
    shared: Graph = {}
    for key, number in owner.items():
        (shared if number == _SHARED else own[number])[key] = nodes[key]
    return [
        PartitionGraph(own=mine, others=_others(mine, keys, needed))
        for mine, keys in zip(own, partition_keys, strict=True)
    ], shared


def _needed(nodes: Graph, key: Any) -> frozenset[Any]:
    """Return the keys that a task asks for, those that are on the cluster alone among them."""
    from dask.core import get_dependencies
    from dask.task_spec import GraphNode, TaskRef

    node = nodes[key]
    if isinstance(node, GraphNode):
        return frozenset(node.dependencies)
    return frozenset([node.key] if isinstance(node, TaskRef) else get_dependencies(nodes, key))


def _others(
    own: Graph, keys: Sequence[Any], needed: Mapping[Any, frozenset[Any]]
) -> tuple[Any, ...]:
    needed_keys = [*keys, *(dependency for key in own for dependency in needed[key])]
    return tuple(key for key in dict.fromkeys(needed_keys) if key not in own)


@dataclass(frozen=True, eq=False, repr=False)
class Partition:
    """One partition of a Dask collection, with the tasks that make it and nothing else.

    Attributes
    ----------
    graph : mapping
        Tasks that only this partition needs; they are done inside of the task that works on it, so
        that what they hold has no key of its own, and their errors reach no log.
    keys : tuple
        Of a frame; or of X; or of X and the outputs.
    others : tuple
        Keys of what other tasks make.
    inputs : tuple of str
        Names of columns; for arrays, empty.
    output : str
        Name of the private column of a frame.
    private : bool
    chunk_rows : int
    """

    graph: Mapping[Any, Any]
    keys: tuple[Any, ...]
    others: tuple[Any, ...]
    inputs: tuple[str, ...]
    output: str
    private: bool
    chunk_rows: int

    def open(self, values: tuple[Any, ...], *, first_row: int) -> PartitionRows | None:
        """Make the partition and return its rows, or None if it has none."""
        from dask.local import get_sync
        from dask.task_spec import DataNode

        given = {key: DataNode(key, value) for key, value in zip(self.others, values, strict=True)}
        parts: Any = get_sync({**self.graph, **given}, list(self.keys))
        X = parts[0][list(self.inputs)] if self.inputs else parts[0]
        # One that takes no room stands in for outputs that are not wanted.
        private: Any = np.broadcast_to(np.nan, len(X))
        if self.private:
            private = parts[0][self.output] if self.inputs else parts[1]
        # How many there are is not said: where y was filtered, it tells how many cells stayed.
        if hasattr(private, "__len__") and len(private) != len(X):
            raise PublicError(
                "a chunk of X and the same chunk of y have different numbers of rows: they must "
                "agree"
            )
        if len(X) == 0:
            return None
        # What is wrong here is a shape or a type.
        with public_errors():
            return _PartitionRows(
                X, private, chunk_rows=self.chunk_rows, names=self.inputs, first_row=first_row
            )


class _PartitionRows(ArrayRows):
    """The rows of a partition, which know where in the table they are."""

    def __init__(
        self, X: Any, private: Any, *, chunk_rows: int, names: tuple[str, ...], first_row: int
    ) -> None:
        super().__init__(X, private, input_names=names, chunk_rows=chunk_rows, jobs=1)
        self._first_row = first_row

    def pieces(self, rows: range, *, room: int, private: bool) -> Generator[Block, None, None]:
        """Yield some of the rows: ``room`` at most at first, and then a chunk at most."""
        first = rows.start
        while first < rows.stop:
            span = slice(first, min(first + room, rows.stop))
            block = self._block(span, private=private)
            yield PublicErrorBlock(
                dataclasses.replace(block, first_row=block.first_row + self._first_row)
            )
            first, room = span.stop, self.chunk_rows
