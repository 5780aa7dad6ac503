"""Row groups of Parquet files, which workers find, look at and read.

The client sends paths, and every worker must find the files under the same names. Statistics of
columns, which say the least and the greatest output, stay where they are.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from cloakgp.data.dask.tasks import (
    Failure,
    Graph,
    PackedBlock,
    Parcel,
    PartitionRows,
    PublicError,
    PublicErrorBlock,
    Source,
    attempt,
    gather,
    new_name,
    public_errors,
    rows_of_a_task,
)
from cloakgp.data.files import FileBlock, Paths, Piece, table_paths
from cloakgp.data.formats.base import attempt as attempt_reading
from cloakgp.data.formats.base import read_batches
from cloakgp.data.formats.columnar import open_parquet, parquet_columns
from cloakgp.data.schema import check_file, check_header, checked_names


class ParquetSource(Source):
    """Parquet files that every worker can read under the same name."""

    def __init__(
        self, path: Paths, *, inputs: Sequence[str], output: str, chunk_rows: int, client: Any
    ) -> None:
        names = checked_names(inputs, output=output)
        meant = (
            Path(path).absolute()
            if isinstance(path, str | Path)
            else tuple(Path(file).absolute() for file in path)
        )
        files = _inspect_files(meant, names=(*names, output), client=client)
        # Of small row groups each would open the file anew.
        enough = rows_of_a_task(sum(sum(counts) for _, counts in files), chunk_rows=chunk_rows)
        self._groups = [
            (file, groups, skipped, rows)
            for file, counts in files
            for groups, skipped, rows in join_groups(counts, at_least=enough)
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

    def partitions(self, *, private: bool) -> tuple[list[PackedBlock], Graph]:
        """Return the row groups that are read together."""
        return [
            PackedBlock(
                parcel=Parcel.pack(
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

    def open(self, values: tuple[Any, ...], *, first_row: int) -> PartitionRows | None:
        """Return the rows, still to be read."""
        del values, first_row
        with public_errors():
            return _RowGroupRows(self)


class _RowGroupRows:
    """The rows of some row groups, read in every pass and never kept."""

    def __init__(self, block: RowGroups) -> None:
        self._block = block
        rows = count_group_rows(block.path, names=())
        if max(block.groups) >= len(rows):
            raise ValueError(f"{block.path} has changed since it was first looked at: start again")
        self._lengths = [rows[group] for group in block.groups]

    @property
    def count(self) -> int:
        return sum(self._lengths)

    def pieces(
        self, rows: range, *, room: int, private: bool
    ) -> Generator[PublicErrorBlock, None, None]:
        """Yield some of the rows: ``room`` at most at first, and then a chunk at most."""
        block = self._block
        names = (*block.inputs, *((block.output,) if private else ()))
        # What is wrong here is the file; what Arrow says of it was dropped.
        with public_errors(), closing(self._read(names, rows=rows)) as reading:
            for piece in reading:
                first = 0
                while first < piece.batch.num_rows:
                    taken = min(room, piece.batch.num_rows - first)
                    part = FileBlock(
                        pieces=(piece.part(first, taken),),
                        names=block.inputs,
                        output=block.output,
                        whose=None,
                    )
                    yield PublicErrorBlock(part)
                    first, room = first + taken, room - taken
                    if room == 0:
                        room = block.chunk_rows

    def _read(self, names: Sequence[str], *, rows: range) -> Generator[Piece, None, None]:
        """Read the row groups that have some of the rows, and cut off what lies around these."""
        ends = list(accumulate(self._lengths, initial=0))
        wanted = [
            place
            for place, (start, stop) in enumerate(pairwise(ends))
            if start < rows.stop and stop > rows.start
        ]
        path, here = self._block.path, ends[wanted[0]]
        with attempt_reading(path, partial(open_parquet, path)) as file:
            batches = file.iter_batches(
                batch_size=self._block.chunk_rows,
                row_groups=[self._block.groups[place] for place in wanted],
                columns=list(names),
                use_threads=False,
            )
            with closing(read_batches(path, (batch for batch in batches))) as reading:
                for batch in reading:
                    if here >= rows.stop:
                        return
                    first = max(rows.start - here, 0)
                    taken = min(rows.stop - here, batch.num_rows) - first
                    if taken > 0:
                        # Arrow gives columns in the order of the file.
                        yield Piece(
                            batch=batch.select(list(names)).slice(first, taken),
                            first_row=self._block.skipped + here + first,
                            place=f" of {path}",
                        )
                    here += batch.num_rows


def _inspect_files(
    path: Path | tuple[Path, ...], *, names: Sequence[str], client: Any
) -> list[tuple[Path, tuple[int, ...]]]:
    """Let workers find the files and look at their ends; return rows of every row group."""
    from dask.task_spec import Task

    what = "looking at files"
    name = new_name(client, "list")
    (paths,) = gather(client, {name: Task(name, _list_files, path)}, [name], what=what)
    name = new_name(client, "look")
    graph = {
        (name, number): Task((name, number), _inspect_file, file, tuple(names))
        for number, file in enumerate(paths)
    }
    return list(zip(paths, gather(client, graph, list(graph), what=what), strict=True))


def _list_files(path: Path | tuple[Path, ...]) -> tuple[Path, ...] | Failure:
    """Return the Parquet files that are meant, those of a folder sorted by name."""

    def listed() -> tuple[Path, ...]:
        with public_errors():
            files = table_paths(path)
        for file in files:
            if file.suffix.lower() != ".parquet":
                raise PublicError(f"{file}: names must end in .parquet")
        return files

    files: tuple[Path, ...] | Failure = attempt(listed, what="listing files")
    return files


def _inspect_file(path: Path, names: tuple[str, ...]) -> tuple[int, ...] | Failure:
    """Return the numbers of rows of the row groups of a file, if it has the columns."""
    rows: tuple[int, ...] | Failure = attempt(
        lambda: count_group_rows(path, names=names), what=f"looking at {path}"
    )
    return rows


def count_group_rows(path: Path, *, names: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of rows of the row groups of a Parquet file, if it has the columns.

    Raises
    ------
    PublicError
        If there is no such file, it is damaged, or it has no such columns.
    """
    with public_errors():
        if names:
            check_file(path)
        with attempt_reading(path, partial(open_parquet, path)) as file:
            if names:
                check_header(path, parquet_columns(file), names=names, certain=True)
            meta = file.metadata
            return tuple(meta.row_group(group).num_rows for group in range(meta.num_row_groups))


def join_groups(rows: Sequence[int], *, at_least: int) -> list[tuple[tuple[int, ...], int, int]]:
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
    >>> join_groups([2, 3, 0, 9, 1], at_least=5)
    [((0, 1), 0, 5), ((3,), 5, 9), ((4,), 14, 1)]
    """
    cut: list[tuple[tuple[int, ...], int, int]] = []
    held: tuple[int, ...] = ()
    before = total = 0
    for group, here in enumerate(rows):
        if here:
            held, total = (*held, group), total + here
        if total >= at_least:
            cut.append((held, before, total))
            held, before, total = (), before + total, 0
    if held:
        cut.append((held, before, total))
    return cut
