"""The blocks of a table on a Dask cluster: partitions of a collection, row groups of a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cloakgp.data.arrays import ArrayRows
from cloakgp.data.cells import as_numbers, attempted, check_labels, label_places, read_on
from cloakgp.data.dask.tasks import Refused, refusing
from cloakgp.data.files import table_paths
from cloakgp.data.local import LocalRows
from cloakgp.data.loop import Block
from cloakgp.data.parquet import column_names, opened
from cloakgp.data.schema import check_cells, check_file, check_header
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

with extra("tables"):
    import pyarrow as pa


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

    def opened(self, values: tuple[Any, ...], *, first_row: int) -> LocalRows | None:
        """Make the partition and return its rows, or None if it has none."""
        from dask.local import get_sync
        from dask.task_spec import DataNode

        given = {key: DataNode(key, value) for key, value in zip(self.others, values, strict=True)}
        made: Any = get_sync({**self.graph, **given}, list(self.keys))
        X = made[0][list(self.inputs)] if self.inputs else made[0]
        if len(X) == 0:
            return None
        # One that takes no room stands in for outputs that are not wanted.
        private: Any = np.broadcast_to(np.nan, len(X))
        if self.private:
            private = made[0][self.output] if self.inputs else made[1]
        # What is wrong here is a shape or a type.
        with refusing():
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

    def _blocks(self, *, private: bool) -> Generator[Any, None, None]:
        for block in super()._blocks(private=private):
            yield _Telling(dataclasses.replace(block, first_row=block.first_row + self._first_row))


@dataclass(frozen=True, eq=False, repr=False)
class RowGroups:
    """Some row groups of a Parquet file, next to each other.

    Attributes
    ----------
    path : Path
    groups : tuple of int
    inputs : tuple of str
    output : str
    private : bool
    chunk_rows : int
    skipped : int
        How many rows of the file come before.
    """

    path: Path
    groups: tuple[int, ...]
    inputs: tuple[str, ...]
    output: str
    private: bool
    chunk_rows: int
    skipped: int

    def opened(self, values: tuple[Any, ...], *, first_row: int) -> LocalRows | None:
        """Return the rows, still to be read."""
        del values, first_row
        with refusing():
            return _RowGroupRows(self)


class _RowGroupRows(LocalRows):
    """The rows of some row groups, read in every pass and never kept."""

    def __init__(self, block: RowGroups) -> None:
        super().__init__(
            input_names=block.inputs,
            output_name=block.output,
            chunk_rows=block.chunk_rows,
            jobs=1,
        )
        self._block = block
        rows = group_rows(block.path, names=())
        if max(block.groups) >= len(rows):
            raise ValueError(f"{block.path} has changed since it was first looked at: start again")
        self._count = sum(rows[group] for group in block.groups)

    @property
    def n_inputs(self) -> int:
        return len(self.input_names)

    @property
    def count(self) -> int:
        return self._count

    def _blocks(self, *, private: bool) -> Generator[Any, None, None]:
        names = [*self.input_names, *((self.output_name,) if private else ())]
        first_row = self._block.skipped
        # What is wrong here is the file; what Arrow says of it was dropped.
        with refusing(), attempted(self._block.path, partial(opened, self._block.path)) as file:
            batches = file.iter_batches(
                batch_size=self.chunk_rows,
                row_groups=list(self._block.groups),
                columns=names,
                use_threads=False,
            )
            reading = read_on(self._block.path, (one for one in batches))
            for table in _cut(reading, rows=self.chunk_rows):
                yield _Telling(
                    _TableBlock(
                        # Arrow gives columns in the order of the file.
                        table=table.select(names),
                        n_inputs=self.n_inputs,
                        first_row=first_row,
                        path=self._block.path,
                    )
                )
                first_row += table.num_rows


def _cut(batches: Iterable[Any], *, rows: int) -> Generator[Any, None, None]:
    """Cut rows into tables of equal length, however they were read: that depends on columns."""
    held: list[Any] = []
    room = rows
    for batch in batches:
        first = 0
        while first < batch.num_rows:
            held.append(batch.slice(first, room))
            first, room = first + held[-1].num_rows, room - held[-1].num_rows
            if room == 0:
                yield pa.Table.from_batches(held)
                held, room = [], rows
    if held:
        yield pa.Table.from_batches(held)


@dataclass(frozen=True, eq=False, repr=False)
class _TableBlock:
    """A chunk as Arrow has it: inputs, and behind them the outputs if they are wanted."""

    table: Any
    n_inputs: int
    first_row: int
    path: Path

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def inputs(self) -> Array:
        X = np.empty((self.rows, self.n_inputs))
        for column, name in enumerate(self.table.column_names[: self.n_inputs]):
            missing, X[:, column] = as_numbers(self.table.column(column))
            place = f" of {self.path}"
            check_cells(name, missing, X[:, column], first_row=self.first_row, place=place)
        return X

    def outputs(self) -> Array:
        return as_numbers(self.table.column(self.n_inputs))[1]

    def places(self, labels: tuple[object, ...]) -> Array:
        name, column = self.table.column_names[self.n_inputs], self.table.column(self.n_inputs)
        # In words that may be shown, unlike all that cells could cause.
        with refusing():
            check_labels(column.type, labels, name=name)
        return label_places(column, labels, name=name)


@dataclass(frozen=True, eq=False, repr=False)
class _Telling:
    """A block whose inputs are refused in words that may be shown, unlike all other errors."""

    block: Block

    @property
    def rows(self) -> int:
        return self.block.rows

    def inputs(self) -> Array:
        with refusing():
            return self.block.inputs()

    def outputs(self) -> Array:
        return self.block.outputs()

    def places(self, labels: tuple[object, ...]) -> Array:
        return self.block.places(labels)


def listed_files(path: Path | tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the Parquet files that are meant, those of a folder sorted by name.

    Raises
    ------
    Refused
        If there is none, or a file has another name.
    """
    with refusing():
        found = table_paths(path)
    for one in found:
        if one.suffix.lower() != ".parquet":
            raise Refused(f"{one}: names must end in .parquet")
    return found


def group_rows(path: Path, *, names: Sequence[str]) -> tuple[int, ...]:
    """Return how many rows the row groups of a Parquet file have, if it has the columns.

    Statistics of columns, which say the least and the greatest output, stay where they are.

    Raises
    ------
    Refused
        If there is no such file, it is damaged, or it has no such columns.
    """
    with refusing():
        if names:
            check_file(path)
        with attempted(path, partial(opened, path)) as file:
            if names:
                check_header(path, column_names(file), names=names, certain=True)
            meta = file.metadata
            return tuple(meta.row_group(group).num_rows for group in range(meta.num_row_groups))


def cut_groups(rows: Sequence[int], *, at_least: int) -> list[tuple[tuple[int, ...], int, int]]:
    """Gather neighbouring row groups until they have enough rows; those without rows are left out.

    Parameters
    ----------
    rows : sequence of int
        Of every row group.
    at_least : int

    Returns
    -------
    list of (tuple of int, int, int)
        Row groups, how many rows come before, and how many rows they have.

    Examples
    --------
    >>> cut_groups([2, 3, 0, 9, 1], at_least=5)
    [((0, 1), 0, 5), ((3,), 5, 9), ((4,), 14, 1)]
    """
    cut: list[tuple[tuple[int, ...], int, int]] = []
    held: tuple[int, ...] = ()
    before = many = 0
    for group, here in enumerate(rows):
        if here:
            held, many = (*held, group), many + here
        if many >= at_least:
            cut.append((held, before, many))
            held, before, many = (), before + many, 0
    if held:
        cut.append((held, before, many))
    return cut
