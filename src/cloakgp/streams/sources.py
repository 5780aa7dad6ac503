"""Sources of a stream: chunks of rows, in files, in a database, or from any iterable.

A source gives its chunks from the first on whenever it is asked, each under the same name. What is
held of a chunk is read again when its period is asked: no copy of a private value is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from numpy.typing import NDArray

from cloakgp.data.schema import ADDRESSES, DATABASES
from cloakgp.privacy.person_ids import person_ids
from cloakgp.utils.extras import extra

if TYPE_CHECKING:
    import pandas as pd

    from cloakgp.data.formats import TableFormat
    from cloakgp.data.raw import RawRows


class Chunk(Protocol):
    """Rows that come together.

    Attributes
    ----------
    name : str
        Public, and of no other chunk of the source.
    version : str
        Public: another one tells that the rows may have changed.
    """

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def version(self) -> str:
        """What tells a change."""

    def public(self, names: Sequence[str]) -> pd.DataFrame:
        """Return raw public columns."""

    def persons(self, name: str) -> list[str]:
        """Return whose rows they are."""

    def private(self, output: str, *, raw: RawRows) -> NDArray[Any]:
        """Return the private column, to be handed to a fit and to nothing else."""


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

    def public(self, names: Sequence[str]) -> pd.DataFrame:
        """Return raw public columns, as text where the file has text."""
        with extra("tables"):
            import pandas as pd
        from cloakgp.data.tables import read_public

        table = read_public(self.path, names=names, table_format=self._format)
        return pd.DataFrame(table.frame(numeric=False))

    def persons(self, name: str) -> list[str]:
        """Return whose rows they are."""
        from cloakgp.data.tables import read_person_ids

        return read_person_ids(self.path, name=name, table_format=self._format)

    def private(self, output: str, *, raw: RawRows) -> NDArray[Any]:
        """Return the private column."""
        from cloakgp.data.tables import read_people

        people = read_people(self.path, raw=raw, output=output, table_format=self._format)
        return people.private


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

    def public(self, names: Sequence[str]) -> pd.DataFrame:
        """Return raw public columns."""
        self._check(names)
        return self._frame[list(names)].reset_index(drop=True)

    def persons(self, name: str) -> list[str]:
        """Return whose rows they are."""
        self._check([name])
        return list(person_ids(self._frame[name].tolist(), rows=len(self._frame)))

    def private(self, output: str, *, raw: RawRows) -> NDArray[Any]:  # noqa: ARG002
        """Return the private column."""
        self._check([output])
        return self._frame[output].to_numpy()

    def _check(self, names: Sequence[str]) -> None:
        missing = [name for name in names if name not in self._frame.columns]
        if missing:
            raise ValueError(f"{self.name} has no column {', '.join(missing)}")


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
