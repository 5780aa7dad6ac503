"""Where the rows of a Dask cluster come from: a table, arrays, or Parquet files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from cloakgp.data.dask.blocks import Partition, RowGroups, cut_groups, group_rows, listed_files
from cloakgp.data.dask.graphs import Graph, Packed, counting_graph, gathered, new_name, sealed
from cloakgp.data.dask.tasks import Failure, Parcel, attempted
from cloakgp.data.files import Paths
from cloakgp.data.schema import checked_names

# Row groups are worked on together until they have as many chunks: a task costs a millisecond.
CHUNKS_OF_A_TASK = 8


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
    def blocks(self, *, private: bool) -> tuple[list[Packed], Graph]:
        """Return every block, and the tasks that they share."""

    def counted(self, client: Any) -> tuple[int, ...]:
        """Return the rows of every block, after a pass over the inputs if need be."""
        if self.lengths is None:
            packed, shared = self.blocks(private=False)
            graph, keys = counting_graph(packed, name=new_name(client, "count"))
            what = "counting rows"
            self.lengths = tuple(gathered(client, {**shared, **graph}, keys, what=what))
        return self.lengths


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
        super().__init__(
            input_names=names,
            output_name=output,
            n_inputs=len(names),
            chunk_rows=chunk_rows,
            lengths=None,
        )
        self._frame = frame

    def blocks(self, *, private: bool) -> tuple[list[Packed], Graph]:
        """Return one block for each partition; what makes unwanted columns is left out."""
        columns = [*self.input_names, *((self.output_name,) if private else ())]
        with _in_order():
            # Not tuned: that would join partitions, more of them the fewer columns are wanted.
            lowered = self._frame[columns].expr.simplify().lower_completely()
            graph = lowered.__dask_graph__()
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

    def blocks(self, *, private: bool) -> tuple[list[Packed], Graph]:
        """Return one block for each chunk of rows."""
        dask: Any = import_module("dask")
        with _in_order():
            wanted = dask.optimize(*((self._X, self._private) if private else (self._X,)))
            graph = {key: task for one in wanted for key, task in one.__dask_graph__().items()}
        keys = [(key,) for (key,) in wanted[0].__dask_keys__()]
        if private:
            pairs = zip(keys, wanted[1].__dask_keys__(), strict=True)
            return _partitions(self, graph, [(*one, other) for one, other in pairs], private=True)
        return _partitions(self, graph, keys, private=False)


class ParquetSource(Source):
    """Parquet files that every worker can read under the same name."""

    def __init__(
        self, path: Paths, *, inputs: Sequence[str], output: str, chunk_rows: int, client: Any
    ) -> None:
        names = checked_names(inputs, output=output)
        meant = (
            Path(path).absolute()
            if isinstance(path, str | Path)
            else tuple(Path(one).absolute() for one in path)
        )
        self._groups = [
            (one, groups, skipped, rows)
            for one, counts in _looked_at(meant, names=(*names, output), client=client)
            for groups, skipped, rows in cut_groups(counts, at_least=CHUNKS_OF_A_TASK * chunk_rows)
        ]
        super().__init__(
            input_names=names,
            output_name=output,
            n_inputs=len(names),
            chunk_rows=chunk_rows,
            lengths=tuple(rows for *_, rows in self._groups),
        )
        if not self._groups:
            raise ValueError("the files have column names but no rows")

    def blocks(self, *, private: bool) -> tuple[list[Packed], Graph]:
        """Return the row groups that are worked on together."""
        return [
            Packed(
                block=Parcel.of(
                    RowGroups(
                        path=path,
                        groups=groups,
                        inputs=self.input_names,
                        output=self.output_name,
                        private=private,
                        chunk_rows=self.chunk_rows,
                        skipped=skipped,
                    )
                )
            )
            for path, groups, skipped, _ in self._groups
        ], {}


@contextmanager
def _in_order() -> Iterator[None]:
    """Shuffle by tasks where Dask may choose: between workers, rows come out in any order."""
    import dask

    tasks = {"dataframe.shuffle.method": "tasks", "array.rechunk.method": "tasks"}
    with dask.config.set(tasks):
        yield


def _partitions(
    source: Source, graph: Any, wanted: Sequence[tuple[Any, ...]], *, private: bool
) -> tuple[list[Packed], Graph]:
    split, shared = sealed(graph, wanted)
    packed = [
        Packed(
            block=Parcel.of(
                Partition(
                    graph=one.own,
                    keys=keys,
                    others=one.others,
                    inputs=source.input_names,
                    output=source.output_name,
                    private=private,
                    chunk_rows=source.chunk_rows,
                )
            ),
            others=one.others,
        )
        for one, keys in zip(split, wanted, strict=True)
    ]
    return packed, shared


def _looked_at(
    path: Path | tuple[Path, ...], *, names: Sequence[str], client: Any
) -> list[tuple[Path, tuple[int, ...]]]:
    """Let workers find the files and look at their ends; return rows of every row group."""
    from dask.task_spec import Task

    what = "looking at files"
    name = new_name(client, "list")
    (paths,) = gathered(client, {name: Task(name, _listed, path)}, [name], what=what)
    name = new_name(client, "look")
    graph = {
        (name, number): Task((name, number), _group_rows, one, tuple(names))
        for number, one in enumerate(paths)
    }
    return list(zip(paths, gathered(client, graph, list(graph), what=what), strict=True))


def _listed(path: Path | tuple[Path, ...]) -> tuple[Path, ...] | Failure:
    found: tuple[Path, ...] | Failure = attempted(lambda: listed_files(path), what="listing files")
    return found


def _group_rows(path: Path, names: tuple[str, ...]) -> tuple[int, ...] | Failure:
    rows: tuple[int, ...] | Failure = attempted(
        lambda: group_rows(path, names=names), what=f"looking at {path}"
    )
    return rows
