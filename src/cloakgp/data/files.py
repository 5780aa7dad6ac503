"""Rows in files, read from the start in every pass and never kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cloakgp.data.cells import as_numbers, as_person_ids, check_cells, check_labels, label_places
from cloakgp.data.chunks import CHUNK_ROWS, LocalRows
from cloakgp.data.formats import Batch, TableFormat, format_of
from cloakgp.data.formats.base import check_ids
from cloakgp.data.raw import DROP, RawRows
from cloakgp.data.schema import FORMATS, USUAL, checked_names
from cloakgp.design.streaming.grouping import NO_GROUPS
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import group_number

Paths = str | Path | Sequence[str | Path]


class FileRows(LocalRows):
    r"""Rows of one file or of several, read from the start in every pass and never kept.

    Chunks are cut from all rows one after another, whatever the files and their row groups are.
    Every cell is read on its own, to the nearest float64: ``true`` is 1 and ``false`` is 0, even
    among other numbers. In Parquet, only the columns wanted are read.

    Parameters
    ----------
    path : path, folder, or sequence of paths
        Ending in .csv, .csv.gz or .parquet. Several files must have the same format; they are read
        in the order given, those of a folder sorted by name.
    inputs : sequence of str
        Names of the public columns, in the order wanted.
    output : str
        Name of the private column.
    groups : str, optional
        Name of a public column that says whose row it is, text or whole numbers: those of one
        person, compared as `cloakgp.privacy.person_ids` says, are protected together.
    chunk_rows : int
    jobs : int, optional
        How many threads; if not given, as many as there are processors to be used.
    raw : RawRows, optional
        What the raw columns are, in place of inputs: these are then the numbers that stand for
        them.
    table_format : TableFormat, optional
        If not given, the one that names of files tell.

    Raises
    ------
    FileNotFoundError
        If there is no such file, or none in the folder.
    ValueError
        If a column is missing, groups are no ids, a file is damaged, or its name ends in something
        else.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     people = Path(folder) / "people.csv"
    ...     _ = people.write_text("age,height\n30,170\n40,165\n")
    ...     rows = FileRows(people, inputs=["age"], output="height")
    >>> rows
    FileRows(? rows, 1 inputs)
    """

    def __init__(
        self,
        path: Paths,
        *,
        inputs: Sequence[str] = (),
        output: str,
        groups: str | None = None,
        chunk_rows: int = CHUNK_ROWS,
        jobs: int | None = None,
        raw: RawRows | None = None,
        table_format: TableFormat | None = None,
    ) -> None:
        sources = checked_names(inputs if raw is None else raw.schema.sources, output=output)
        inputs = sources
        if groups is not None and groups in (*inputs, output):
            raise ValueError(f"column {groups!r} says whose rows they are, and can be nothing else")
        super().__init__(
            input_names=sources if raw is None else raw.schema.names,
            output_name=output,
            grouped=groups is not None,
            chunk_rows=chunk_rows,
            jobs=jobs,
        )
        self._groups, self._raw, self._sources = groups, raw, sources
        self.schema = None if raw is None else raw.schema
        self._rows: int | None = None
        self._without_output = 0
        self.paths = table_paths(path)
        self._states = tuple(file_state(file) for file in self.paths)
        self._counts: tuple[int | None, ...] = ()
        self._format = format_of(self.paths[0]) if table_format is None else table_format
        self._counts = self._check_files()

    # A table without a header has somebody's row in its place.
    @forget_on_failure
    def _check_files(self) -> tuple[int | None, ...]:
        """Check the request, and every file; return the number of rows of each, if known."""
        suffixes = self._format.suffixes
        for path in self.paths:
            if not path.name.lower().endswith(suffixes):
                raise ValueError(f"{path}: names must end in {' or '.join(suffixes)}")
        names = [*self._public, self.output_name]
        counts = tuple(self._format.check(path, names=names) for path in self.paths)
        if self._groups is not None:
            check_ids(self._format, self.paths, self._groups)
        if not any(count is None or count for count in counts):
            raise ValueError(f"{self.paths[0]} has column names but no rows")
        return counts

    @property
    def count(self) -> int | None:
        """N, the number of rows of all files together; of CSV, known after a pass."""
        if self._raw is not None and self._raw.drops:
            return self._rows
        known = [count for count in self._counts if count is not None]
        return sum(known) if len(known) == len(self.paths) else None

    @property
    def without_output(self) -> int:
        """The number of rows that are left out as they have no output; known after a pass."""
        return self._without_output

    @property
    def without_inputs(self) -> int:
        """The number of other rows that are left out, for a public cell; known after a pass."""
        if self._rows is None:
            return 0
        return sum(count or 0 for count in self._counts) - self._rows - self._without_output

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs."""
        return len(self.input_names)

    def most_rows_of_person(self) -> int:
        """Return the most rows of one person, after a pass over ids, which are public.

        Raises
        ------
        ValueError
            If rows have no groups.
        """
        if self._groups is None:
            raise ValueError(NO_GROUPS)
        counted: Counter[str] = Counter()
        with closing(self._blocks(private=False)) as blocks:
            for block in blocks:
                counted.update(block.persons())
        return max(counted.values())

    @property
    def _public(self) -> tuple[str, ...]:
        """Names of the inputs, followed by that of the column with persons."""
        return self._sources if self._groups is None else (*self._sources, self._groups)

    def _batches(self, path: Path, names: Sequence[str]) -> Generator[Batch, None, None]:
        return self._format.batches(path, names, rows=self.chunk_rows, threads=self.jobs > 1)

    def _blocks(self, *, private: bool) -> Generator[FileBlock, None, None]:
        self._check_unchanged()
        asked = private or (self._raw is not None and self._raw.missing_output == DROP)
        names = (*self._public, *((self.output_name,) if asked else ()))
        with closing(self._pieces(names, private=private)) as pieces:
            yield from cut_blocks(
                pieces,
                inputs=self.input_names,
                output=self.output_name,
                chunk_rows=self.chunk_rows,
                whose=self._groups,
            )
        self._check_unchanged()

    def _pieces(self, names: Sequence[str], *, private: bool) -> Generator[Piece, None, None]:
        counts, kept, without = [], 0, 0
        for path in self.paths:
            rows = 0
            place = f" of {path}" if len(self.paths) > 1 else ""
            with closing(self._batches(path, names)) as batches:
                for batch in batches:
                    size = batch.num_rows
                    if self._raw is not None:
                        batch, lacking = self._raw.encode(
                            batch, private=private, first_row=rows, place=place
                        )
                        without += lacking
                    if batch.num_rows:
                        yield Piece(batch=batch, first_row=rows, place=place)
                    rows, kept = rows + size, kept + batch.num_rows
            counts.append(rows)
        if not any(counts):
            raise ValueError(f"{self.paths[0]} has column names but no rows")
        if not kept:
            raise ValueError(f"{self.paths[0]} has no row that lacks nothing")
        self._rows, self._without_output = kept, without
        for path, known, rows in zip(self.paths, self._counts, counts, strict=True):
            if known not in (None, rows):
                raise ValueError(describe_change(path))
        self._counts = tuple(counts)

    def _check_unchanged(self) -> None:
        for path, state in zip(self.paths, self._states, strict=True):
            if file_state(path) != state:
                raise ValueError(describe_change(path))


def describe_change(path: Path) -> str:
    """Return a message about a changed file.

    Examples
    --------
    >>> describe_change(Path("people.csv"))
    'people.csv has changed since it was first looked at: start again'
    """
    return f"{path} has changed since it was first looked at: start again"


def file_state(path: Path) -> tuple[int, int] | None:
    """Return a file's size and time of change, or None if it is gone."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_size, state.st_mtime_ns


def table_paths(path: Paths) -> tuple[Path, ...]:
    """Return the files that are meant, those of a folder sorted by name.

    In a folder, names that start with a dot or an underscore are passed over, and so are folders.

    Raises
    ------
    FileNotFoundError
        If no file is meant.

    Examples
    --------
    >>> [one.name for one in table_paths(["b.csv", "a.csv"])]
    ['b.csv', 'a.csv']
    """
    if not isinstance(path, str | Path):
        files = tuple(Path(file) for file in path)
        if not files:
            raise FileNotFoundError("name at least one file")
        return files
    folder = Path(path)
    if not folder.is_dir():
        return (folder,)
    files = tuple(
        sorted(
            file
            for file in folder.iterdir()
            if file.is_file()
            and file.name.lower().endswith(tuple(chain.from_iterable(FORMATS.values())))
            and not file.name.startswith((".", "_"))
        )
    )
    if not files:
        raise FileNotFoundError(
            f"there is no table in {folder}: names must end in {', '.join(USUAL)}, ..., and "
            "folders inside are not searched"
        )
    return files


@dataclass(frozen=True, eq=False, repr=False)
class Piece:
    """Some rows of one file.

    Attributes
    ----------
    batch : pyarrow.RecordBatch
        Columns of inputs; behind them the one that says whose rows they are, if there is one; and
        behind that the one of outputs, if it is wanted.
    first_row : int
        How many rows of the file come before.
    place : str
        Said of the file in messages; empty if there is one file.
    """

    batch: Batch
    first_row: int
    place: str

    def part(self, first: int, rows: int) -> Piece:
        """Return a number of rows from a row on."""
        return Piece(self.batch.slice(first, rows), self.first_row + first, self.place)


@dataclass(frozen=True, eq=False, repr=False)
class FileBlock:
    """The rows of a chunk, from one batch or from several.

    Attributes
    ----------
    pieces : tuple of Piece
    names : tuple of str
        Of the inputs.
    output : str
        Name of the private column.
    whose : str or None
        Name of the column that says whose rows they are.
    """

    pieces: tuple[Piece, ...]
    names: tuple[str, ...]
    output: str
    whose: str | None = None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(piece.batch.num_rows for piece in self.pieces)

    def inputs(self) -> Array:
        """Return public inputs, shape (n, D), or raise ValueError if one is not finite."""
        return np.concatenate([self._inputs(piece) for piece in self.pieces])

    def _inputs(self, piece: Piece) -> Array:
        columns = []
        for column, name in enumerate(self.names):
            missing, values = as_numbers(piece.batch.column(column))
            check_cells(name, missing, values, first_row=piece.first_row, place=piece.place)
            columns.append(values)
        return np.column_stack(columns)

    def groups(self) -> NDArray[np.intp] | None:
        """Return the groups of the rows, shape (n,), or raise ValueError if a cell is empty."""
        if self.whose is None:
            return None
        return np.concatenate([self._groups(piece) for piece in self.pieces])

    def _groups(self, piece: Piece) -> NDArray[np.intp]:
        return np.array([group_number(cell) for cell in self._ids(piece)], dtype=np.intp)

    def persons(self) -> list[str]:
        """Return the ids of the persons of the rows, or raise ValueError if a cell is empty."""
        return [one for piece in self.pieces for one in self._ids(piece)]

    def _ids(self, piece: Piece) -> list[str]:
        assert self.whose is not None
        cells = as_person_ids(piece.batch.column(len(self.names)), name=self.whose)
        empty = np.array([not cell for cell in cells], dtype=bool)
        nothing = np.zeros(len(cells))
        check_cells(self.whose, empty, nothing, first_row=piece.first_row, place=piece.place)
        return cells

    @property
    def _private(self) -> int:
        """Where the private column is."""
        return len(self.names) + (self.whose is not None)

    def outputs(self) -> Array:
        """Return private outputs, shape (n,), with NaN for cells that are no numbers."""
        column = self._private
        return np.concatenate([as_numbers(piece.batch.column(column))[1] for piece in self.pieces])

    def check_labels(self, labels: tuple[object, ...]) -> None:
        """Refuse labels that cells cannot be compared with; the message shows no cell."""
        column = self.pieces[0].batch.column(self._private)
        check_labels(column.type, labels, name=self.output)

    def places(self, labels: tuple[object, ...]) -> Array:
        """Return which of the labels each private cell is, shape (n,), with NaN for none."""
        column = self._private
        return np.concatenate(
            [
                label_places(piece.batch.column(column), labels, name=self.output)
                for piece in self.pieces
            ]
        )


def cut_blocks(
    pieces: Iterator[Piece],
    *,
    inputs: tuple[str, ...],
    output: str,
    chunk_rows: int,
    whose: str | None = None,
) -> Generator[FileBlock, None, None]:
    """Cut rows into blocks of equal length, however they were read."""
    held: list[Piece] = []
    room = chunk_rows
    for piece in pieces:
        first, rows = 0, piece.batch.num_rows
        while first < rows:
            taken = min(room, rows - first)
            held.append(piece.part(first, taken))
            first, room = first + taken, room - taken
            if room == 0:
                yield FileBlock(pieces=tuple(held), names=inputs, output=output, whose=whose)
                held, room = [], chunk_rows
    if held:
        yield FileBlock(pieces=tuple(held), names=inputs, output=output, whose=whose)
