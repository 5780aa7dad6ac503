"""State of a stream: what was read, closed, asked and released, durable at every step.

A folder holds the state (JSON, for its owner alone), a file of marks of the persons of each period
that was asked, the noisy answers of one that is being asked, and the releases. Nothing of it is an
output, or made of one before its noise: of files there is the time of their last change, and a
digest of their public columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cloakgp.privacy.filters import Amount
from cloakgp.privacy.spending import Cost
from cloakgp.streams.declaration import Declaration
from cloakgp.streams.marks import new_token
from cloakgp.utils.files import PERSONAL, remove_unfinished, reserve_file
from cloakgp.utils.locks import locked_folder

VERSION = 3
STATE = "stream.json"

Stage = Literal["open", "closed", "asking", "released", "lost", "empty"]
"""The stages of a period: *lost* is one for which noise was drawn, and no release was made."""
SETTLED: tuple[Stage, ...] = ("released", "lost", "empty")
# What a period can be as long as no account, and no draw, knows of it.
UNASKED: tuple[Stage, ...] = ("open", "closed", "empty")


class StreamStateError(ValueError):
    """The folder of a stream cannot be gone on with."""


@dataclass(frozen=True, kw_only=True)
class ChunkRecord:
    """A chunk that was read.

    Attributes
    ----------
    name, version : str
        As of `cloakgp.streams.sources.Chunk`.
    rows : int
    digest : str
        Of its public columns.
    closed : int
        How many periods had closed before it was read: rows of these came too late.
    ids : str
        What the ids of its persons are, the kind of `cloakgp.privacy.person_ids.PersonIds`.
    first, last : int
        Periods of its earliest and latest row.
    late : tuple of (int, int)
        Periods for which rows came too late, and how many: they are left out.
    before, beyond : int
        Numbers of rows that are left out: before the first period, after the last.
    """

    name: str
    version: str
    rows: int
    digest: str
    closed: int
    ids: str
    first: int
    last: int
    late: tuple[tuple[int, int], ...] = ()
    before: int = 0
    beyond: int = 0


@dataclass(frozen=True, kw_only=True)
class PeriodRecord:
    """A period, and what has become of it. All of it is public.

    Attributes
    ----------
    number : int
        From 0.
    start, end : float
        In units of the time.
    stage : str
    rows : int
        Those that were asked, or will be.
    repeated : int
        Rows that a later one of the same person and time replaced.
    late : int
        Rows that came after it had closed, and are left out.
    digest : str
        Of the public columns of its rows.
    drawn : tuple of Cost
        What noise was drawn for at most, noted before each draw; of a release that a ledger kept,
        or of a draw of which it alone knows, what it counts.
    release : str
        Name of the release's file.
    sha256 : str
        Of that file.
    """

    number: int
    start: float
    end: float
    stage: Stage = "open"
    rows: int = 0
    repeated: int = 0
    late: int = 0
    digest: str = ""
    drawn: tuple[Cost, ...] = ()
    release: str = ""
    sha256: str = ""

    @property
    def spent(self) -> Amount:
        """What was drawn at most about the people of the period, as a ledger counts it."""
        return sum(map(Amount.of, self.drawn), start=Amount())

    @property
    def settled(self) -> bool:
        """Whether nothing more will be asked of it."""
        return self.stage in SETTLED


@dataclass(frozen=True, kw_only=True)
class StreamState:
    """All that is known of a stream.

    Attributes
    ----------
    id : str
        Of this stream, by which a ledger knows its charges.
    key : str
        Of marks of persons.
    declaration : Declaration
    schema, times : str
        Files of the schemas of the inputs, and of the time; empty before the first row.
    edges : tuple of float
        Of the periods; empty before the first row.
    clock : float or None
        The latest time that was seen, or given.
    chunks : tuple of ChunkRecord
    periods : tuple of PeriodRecord
    """

    id: str
    key: str
    declaration: Declaration
    schema: str = ""
    times: str = ""
    edges: tuple[float, ...] = ()
    clock: float | None = None
    chunks: tuple[ChunkRecord, ...] = ()
    periods: tuple[PeriodRecord, ...] = ()

    @classmethod
    def begin(cls, declaration: Declaration) -> StreamState:
        """Return the state of a stream of which nothing was read."""
        return cls(
            id=new_token(),
            key=new_token(),
            declaration=declaration,
        )

    @property
    def unasked(self) -> bool:
        """Whether nothing was drawn or reserved for any period, so that nothing goes on from it."""
        return all(each.stage in UNASKED and not each.drawn for each in self.periods)

    def with_period(self, number: int, **changes: Any) -> StreamState:
        """Return a state with another record of a period."""
        periods = list(self.periods)
        periods[number] = replace(periods[number], **changes)
        return replace(self, periods=tuple(periods))

    def with_chunk(self, chunk: ChunkRecord) -> StreamState:
        """Return a state with the record of a chunk, in the place of an earlier one."""
        names = [each.name for each in self.chunks]
        if chunk.name not in names:
            return replace(self, chunks=(*self.chunks, chunk))
        place = names.index(chunk.name)
        return replace(self, chunks=(*self.chunks[:place], chunk, *self.chunks[place + 1 :]))

    def chunk(self, name: str) -> ChunkRecord | None:
        """Return the record of a chunk, None if it was not read."""
        return next((each for each in self.chunks if each.name == name), None)

    def to_bytes(self) -> bytes:
        """Return the file."""
        content = asdict(self) | {
            "version": VERSION,
            "declaration": self.declaration.to_dict(),
        }
        return json.dumps(content, indent=1).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> StreamState:
        """Return the state of a file.

        Raises
        ------
        StreamStateError
            If it is none, or a later version of this package wrote it.
        """
        try:
            found = json.loads(content)
            version = found.pop("version")
            if version == VERSION:
                return cls._read(found)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise StreamStateError(f"{STATE} is damaged: restore it from a copy") from None
        raise StreamStateError(
            f"{STATE} was written by another version of this package: go on with that one, or "
            "begin another stream in another folder; people in both pay for both"
        )

    @classmethod
    def _read(cls, found: Mapping[str, Any]) -> StreamState:
        return cls(
            **{
                **found,
                "declaration": Declaration.from_dict(found["declaration"]),
                "edges": tuple(map(float, found["edges"])),
                "chunks": tuple(map(_chunk, found["chunks"])),
                "periods": tuple(map(_period, found["periods"])),
            }
        )


class StreamFolder:
    """The folder of a stream.

    Parameters
    ----------
    path : str or Path
        Made when it is first written to.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def load(self) -> StreamState | None:
        """Return the state, None if there is none yet.

        Raises
        ------
        StreamStateError
            If it cannot be read.
        """
        try:
            content = (self.path / STATE).read_bytes()
        except FileNotFoundError:
            return None
        return StreamState.from_bytes(content)

    def save(self, state: StreamState) -> None:
        """Write the state, to the disk, in one step."""
        self._write(STATE, state.to_bytes(), overwrite=True)

    def keep_persons(self, number: int, marks: Sequence[str]) -> None:
        """Write the marks of the persons of a period, row by row."""
        self._write(_persons(number), "\n".join(marks).encode(), overwrite=True)

    def persons(self, number: int) -> list[str]:
        """Return the marks of the persons of a period, row by row.

        Raises
        ------
        StreamStateError
            If they are not there.
        """
        path = self.path / _persons(number)
        try:
            return path.read_text().splitlines()
        except FileNotFoundError:
            raise StreamStateError(f"{path} is missing: restore it from a copy") from None

    def keep_answers(self, number: int, answers: Sequence[NDArray[np.int64]]) -> None:
        """Write the noisy answers of a period's draws, which may be published."""
        content = json.dumps([each.tolist() for each in answers]).encode()
        self._write(_answers(number), content, overwrite=True)

    def answers(self, number: int) -> list[NDArray[np.int64]]:
        """Return the noisy answers of a period's draws so far; none if none were kept.

        Raises
        ------
        StreamStateError
            If they are damaged.
        """
        path = self.path / _answers(number)
        try:
            return [np.array(each, dtype=np.int64) for each in json.loads(path.read_bytes())]
        except FileNotFoundError:
            return []
        except (ValueError, TypeError, OverflowError):
            raise StreamStateError(f"{path} is damaged: restore it from a copy") from None

    def drop_answers(self, number: int) -> None:
        """Remove the answers of a period, which its release has."""
        (self.path / _answers(number)).unlink(missing_ok=True)

    def keep_release(self, number: int, content: bytes) -> str:
        """Write a release, and return the name of its file."""
        name = release_name(number)
        with reserve_file(self.path / name) as target:
            target.write(content, keep=True)
        return name

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from going on with the stream.

        Raises
        ------
        StreamStateError
            If another one does.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(locked_folder(self.path))
            except BlockingIOError:
                raise StreamStateError(
                    f"another process goes on with the stream in {self.path}"
                ) from None
            # Nobody else writes these files, so that whoever began them is no more.
            remove_unfinished(self.path, OWN_FILES)
            yield

    def _write(self, name: str, content: bytes, *, overwrite: bool) -> None:
        with reserve_file(self.path / name, overwrite=overwrite, mode=PERSONAL) as target:
            target.write(content)


# The names of files that a stream writes.
OWN_FILES = re.compile(r"stream\.json|period-\d{4,}\.(cloak|answers|persons)")


def release_name(number: int) -> str:
    """Return the name of the release after a period, counted from 1.

    Examples
    --------
    >>> release_name(0)
    'period-0001.cloak'
    """
    return f"period-{number + 1:04d}.cloak"


def _persons(number: int) -> str:
    return f"period-{number + 1:04d}.persons"


def _answers(number: int) -> str:
    return f"period-{number + 1:04d}.answers"


def _chunk(found: Mapping[str, Any]) -> ChunkRecord:
    late = tuple((int(number), int(rows)) for number, rows in found["late"])
    return ChunkRecord(**{**found, "late": late})


def _period(found: Mapping[str, Any]) -> PeriodRecord:
    drawn = tuple(Cost(**each) for each in found["drawn"])
    if found["stage"] not in get_args(Stage):
        raise ValueError
    return PeriodRecord(**{**found, "drawn": drawn})
