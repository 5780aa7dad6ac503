"""Sources of a stream: chunks of rows, in files, in a database, or from any iterable.

A source gives its chunks from the first on whenever it is asked, each under the same name. What is
held of a chunk is read again when its period is asked: no copy of a private value is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from cloakgp.data.schema import ADDRESSES, DATABASES, NoRowsError
from cloakgp.privacy.entries import as_entries, is_missing, read_entry
from cloakgp.privacy.person_ids import PersonIds
from cloakgp.privacy.questions.classes import ClassLabel
from cloakgp.utils.extras import extra

if TYPE_CHECKING:
    import pandas as pd

    from cloakgp.data.formats import TableFormat
    from cloakgp.data.raw import RawRows


@dataclass(frozen=True)
class PrivateColumn:
    """The private column, where it is asked for.

    Attributes
    ----------
    name : str
    raw : RawRows
        How its cells are read, with the classes as files write them.
    classes : tuple
        As they were declared; empty where outputs are numbers.
    """

    name: str
    raw: RawRows
    classes: tuple[ClassLabel, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class ChunkRows:
    """What one read of a chunk gave: all of it is of the same rows, in one order.

    Attributes
    ----------
    frame : pandas.DataFrame of n rows
        Raw public columns.
    persons : PersonIds or None
        Whose rows they are, where that was asked for.
    private : array of shape (n,) or None
        The private column, where it was asked for: to be handed to a fit and to nothing else.
    """

    frame: pd.DataFrame
    persons: PersonIds | None
    private: NDArray[Any] | None

    def __reduce__(self) -> NoReturn:
        raise TypeError("rows of a chunk may hold private outputs, and are not pickled")


class Chunk(Protocol):
    """Rows that come together.

    Attributes
    ----------
    name : str
        Public, and of no other chunk of the source.
    version : str
        Public: another one tells that the rows may have changed. Empty where they must not: rows
        that come again are then compared with those that came first.
    """

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def version(self) -> str:
        """What tells a change."""

    def read(
        self, names: Sequence[str], *, person: str = "", private: PrivateColumn | None = None
    ) -> ChunkRows:
        """Return raw public columns, whose rows they are, and the private column, by one read.

        Rows may be added or replaced at any time: parts of two reads may be of different rows.
        """


class Source(Protocol):
    """What a stream reads.

    Attributes
    ----------
    grows : bool
        Whether one chunk goes on growing, as the answer to a query does.
    """

    @property
    def grows(self) -> bool:
        """Whether one chunk goes on growing."""

    def chunks(self) -> Iterable[Chunk]:
        """Yield all chunks so far, in the order in which they came."""


class TableChunk:
    """A table in a file, or a query of a database.

    Parameters
    ----------
    path : Path
    table_format : TableFormat, optional
        If the name of the file does not tell it.
    """

    def __init__(self, path: Path, table_format: TableFormat | None = None) -> None:
        self.path = path
        self._format = table_format

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.path.name

    @property
    def version(self) -> str:
        """The time of the last change; the size would tell how long private cells are."""
        return str(self.path.stat().st_mtime_ns)

    def check_columns(self, names: Sequence[str]) -> None:
        """Check that columns are there, each once."""
        from cloakgp.data.formats import format_of

        # A file of no bytes has no columns, and no rows that would lack them.
        with suppress(NoRowsError):
            (self._format or format_of(self.path)).check(self.path, names=names)

    def read(
        self, names: Sequence[str], *, person: str = "", private: PrivateColumn | None = None
    ) -> ChunkRows:
        """Return columns of one read, public ones as text where the file has text."""
        with extra("tables"):
            import pandas as pd
        from cloakgp.data.files import describe_change, file_state

        before = file_state(self.path)
        try:
            found = self._read(names, person=person, private=private)
        except NoRowsError:
            nobody = PersonIds([]) if person else None
            gone = None if private is None else np.array([])
            found = ChunkRows(frame=pd.DataFrame(columns=list(names)), persons=nobody, private=gone)
        # A file that is written while it is read is old in one part and new in another. An answer
        # of a database is of one moment.
        if self._format is None and file_state(self.path) != before:
            raise ValueError(describe_change(self.path))
        return found

    def _read(
        self, names: Sequence[str], *, person: str, private: PrivateColumn | None
    ) -> ChunkRows:
        with extra("tables"):
            import pandas as pd
        from cloakgp.data.tables import read_people, read_public_rows

        held = None
        if private is None:
            columns, persons = read_public_rows(
                self.path, names=names, groups=person or None, table_format=self._format
            )
        else:
            people = read_people(
                self.path,
                raw=private.raw,
                output=private.name,
                groups=person or None,
                more=[name for name in names if name not in private.raw.schema.sources],
                table_format=self._format,
            )
            columns, persons = people.columns, people.groups
            held = _as_declared(people.private, private)
        frame = pd.DataFrame(columns.frame(numeric=False))
        return ChunkRows(frame=frame[list(names)], persons=persons, private=held)


class FrameChunk:
    """A table in memory.

    Parameters
    ----------
    name : str
    frame : pandas.DataFrame
        With the private column.
    """

    version = ""

    def __init__(self, name: str, frame: pd.DataFrame) -> None:
        self.name = name
        self._frame = frame

    def __repr__(self) -> str:
        return f"FrameChunk({self.name!r}, {len(self._frame):,} rows)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("chunks hold private outputs, and are not pickled")

    def check_columns(self, names: Sequence[str]) -> None:
        """Check that columns are there, each once."""
        there = list(self._frame.columns)
        if missing := [name for name in names if name not in there]:
            raise ValueError(f"{self.name} has no column {', '.join(missing)}")
        if repeated := [name for name in names if there.count(name) > 1]:
            raise ValueError(f"{self.name} has several columns called {repeated[0]!r}: rename them")

    def read(
        self, names: Sequence[str], *, person: str = "", private: PrivateColumn | None = None
    ) -> ChunkRows:
        """Return columns of the table."""
        frame = self._frame
        self.check_columns(
            [*names, *([person] if person else []), *([private.name] if private else [])]
        )
        return ChunkRows(
            frame=frame[list(names)].reset_index(drop=True),
            persons=PersonIds.of(frame[person].tolist(), rows=len(frame)) if person else None,
            private=None if private is None else _filled(frame[private.name], private),
        )


def _as_declared(texts: NDArray[Any], private: PrivateColumn) -> NDArray[Any]:
    """Return the declared classes that cells of files stand for; numbers as they are."""
    if not private.classes:
        return texts
    with extra("tables"):
        import pyarrow as pa
    from cloakgp.data.cells import label_places

    places = label_places(pa.array(texts, pa.string()), private.classes, name=private.name)
    declared = np.empty(len(private.classes), dtype=object)
    declared[:] = private.classes
    return np.asarray(declared[places.astype(np.intp)])


def _filled(column: pd.Series[Any], private: PrivateColumn) -> NDArray[Any]:
    """Return a private column of pandas with what a missing cell counts as, each on its own."""
    from cloakgp.data.raw import REFUSE

    given = private.raw.missing_output
    if given == REFUSE:
        if not private.classes and column.isna().any():
            raise ValueError(
                f"column {private.name!r} has empty cells: fill them, or say as which number they "
                "count (missing_output): which they are is private, and not shown here"
            )
        return column.to_numpy()
    stands: ClassLabel = read_entry(given)
    if private.classes:
        stands = private.classes[private.raw.classes.index(given)]
    cells = as_entries(column.to_numpy(dtype=object))
    gone = column.isna().to_numpy() | np.array(
        [
            isinstance(cell, str) and cell not in private.classes and is_missing(cell)
            for cell in cells.tolist()
        ],
        dtype=bool,
    )
    return np.where(gone, np.array([stands], dtype=object), cells)


class FolderSource:
    """Files in a folder, each of which is read once; those with a dot or underscore are not.

    Write a file elsewhere and move it there, so that it is whole when it is seen.

    Parameters
    ----------
    folder : str or Path
        Or one file.
    """

    grows = False

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not self.folder.exists():
            raise FileNotFoundError(f"there is no folder {self.folder}")

    def chunks(self) -> Iterator[TableChunk]:
        """Yield the files by name."""
        from cloakgp.data.files import table_paths

        try:
            paths = table_paths(self.folder)
        except FileNotFoundError:
            return
        yield from map(TableChunk, paths)


class QuerySource:
    """The answer to a query of a database, which holds more rows from time to time.

    Parameters
    ----------
    path : str or Path
        A file of SQLite, or one with the address of a database.
    query : str
        One SELECT; empty for the only table.
    """

    grows = True

    def __init__(self, path: str | Path, query: str = "") -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise FileNotFoundError(f"there is no file {self.path}")
        from cloakgp.data.formats import format_of

        self._format = format_of(self.path, query=query)

    def chunks(self) -> Iterator[TableChunk]:
        """Yield all rows, as one chunk."""
        yield TableChunk(self.path, self._format)


class FrameSource:
    """Any iterable of tables; those that were taken from an iterator are held in memory.

    After a restart it must begin with the same tables.

    Parameters
    ----------
    frames : iterable of pandas.DataFrame
    """

    grows = False

    def __init__(self, frames: Iterable[pd.DataFrame]) -> None:
        self._frames = iter(frames)
        self._chunks: list[FrameChunk] = []

    def __repr__(self) -> str:
        return f"FrameSource({len(self._chunks)} chunks so far)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("chunks hold private outputs, and are not pickled")

    def chunks(self) -> Iterator[FrameChunk]:
        """Yield those that were taken before, and further ones."""
        with extra("tables"):
            import pandas as pd
        yield from self._chunks
        for frame in self._frames:
            if not isinstance(frame, pd.DataFrame):
                raise TypeError(f"chunks must be pandas tables, got {type(frame).__name__}")
            chunk = FrameChunk(f"chunk {len(self._chunks) + 1}", frame)
            self._chunks.append(chunk)
            yield chunk


def source_of(source: Any, *, query: str = "") -> Source:
    """Return the source that is meant by a path, an iterable of tables, or a source.

    Parameters
    ----------
    source : str, Path, iterable of pandas.DataFrame, or Source
    query : str
        Of a database.

    Raises
    ------
    FileNotFoundError
        If there is no such file or folder.
    TypeError, ValueError
        If it is none of these, or a query goes with no database.
    """
    if isinstance(source, str | Path):
        queried = str(source).lower().endswith((*DATABASES, *ADDRESSES))
        if query and not queried:
            raise ValueError(f"a query goes with {', '.join((*DATABASES, *ADDRESSES))}")
        return QuerySource(source, query) if queried else FolderSource(source)
    if query:
        raise ValueError("a query goes with a database")
    if hasattr(source, "chunks") and hasattr(source, "grows"):
        found: Source = source
        return found
    if hasattr(source, "columns") or not isinstance(source, Iterable):
        raise TypeError(
            "name a folder of files or a database, or give an iterable of pandas tables, got "
            f"{type(source).__name__}"
        )
    return FrameSource(source)
