"""Rows of a period: chosen from chunks by public columns alone, the last of repeated ones."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from cloakgp.columns import Date, Number, Schema, infer_schema, schema_from_text, schema_to_text
from cloakgp.columns.problems import BELOW_HEADER, FROM_ZERO
from cloakgp.columns.reading import PublicColumns
from cloakgp.data.schema import checked_names
from cloakgp.privacy.person_ids import one_kind
from cloakgp.streams.declaration import Declaration
from cloakgp.streams.periods import Periods
from cloakgp.streams.sources import Chunk, PrivateColumn, TableChunk
from cloakgp.streams.state import ChunkRecord
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

if TYPE_CHECKING:
    import pandas as pd

# After the minutes of a time.
ZONE = re.compile(r":\d\d.*(Z|[+-]\d\d(:?\d\d)?)\s*$")


@dataclass(frozen=True)
class Columns:
    """The public columns of a stream.

    Attributes
    ----------
    inputs : Schema
        Of the inputs of the model; with the time as the last of them, if it is one.
    times : Schema
        Of the time alone.
    remarks : tuple of str
        On cells of the first chunk that could be read in another way, too; none where they were
        kept as texts.
    """

    inputs: Schema
    times: Schema
    remarks: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(
        cls,
        chunk: Chunk,
        declaration: Declaration,
        *,
        schema: Schema | None = None,
        private_numbers: bool = True,
    ) -> Columns:
        """Return the columns by the first chunk, where they are not declared.

        Parameters
        ----------
        chunk : Chunk
        declaration : Declaration
        schema : Schema, optional
            From `declared_inputs`.
        private_numbers : bool
            Whether the private column is one of numbers, which is read as public ones are.

        Raises
        ------
        ValueError
            If a column is missing, there is no input, the time is no number and no date, or nothing
            tells how numbers are written.
        """
        time = declaration.time
        names = list(declaration.inputs)
        if schema is None and not names:
            raise ValueError("name the public columns that predict: inputs, or a schema")
        sources = names if schema is None else schema.sources
        frame = chunk.read(list(dict.fromkeys([*sources, time]))).frame
        times = _times(frame, time, beside=sources)
        public = PublicColumns.of(frame, names, declared=schema, beside=[time])
        schema = public.schema
        if declaration.forgetting is not None:
            schema = replace(schema, columns=(*schema.columns, *times.columns))
        schema.check_used(names)
        schema.validate()
        times.validate()
        public.validate(private_numbers=private_numbers)
        remarks = public.on_notation(private=[declaration.output] if private_numbers else ())
        if time not in sources:
            remarks += PublicColumns(frame, times).on_notation()
        return cls(inputs=schema, times=times, remarks=tuple(remarks))

    @classmethod
    def from_texts(cls, inputs: str, times: str) -> Columns:
        """Return the columns of `to_texts`."""
        return cls(inputs=schema_from_text(inputs), times=schema_from_text(times))

    def to_texts(self) -> tuple[str, str]:
        """Return the two schemas as texts."""
        return schema_to_text(self.inputs), schema_to_text(self.times)

    @property
    def dated(self) -> bool:
        """Whether times are dates, in days since the start of 1970."""
        return isinstance(self.times.columns[0], Date)

    def moment(self, text: str, *, name: str) -> float:
        """Return a time that is written as in the tables.

        Raises
        ------
        ValueError
            If it is none.
        """
        (column,) = self.times.columns
        try:
            return float(self.times.encode({column.name: [text]}).X[0, 0])
        except ValueError:
            pass
        kind = "a date, as 2026-01-31 or as in the tables," if self.dated else "a number,"
        raise ValueError(f"{name} must be {kind} as {column.name!r} is; got {text!r}")


def declared_inputs(schema: Schema | None, declaration: Declaration) -> Schema | None:
    """Return a declared schema without the columns that are no inputs; None if none is declared.

    Raises
    ------
    ValueError
        If an input is not in it, or the private column is read as one.
    """
    if schema is None:
        return None
    for other in (declaration.time, declaration.person):
        if other and other in schema.sources:
            schema = schema.without(other)
    if declaration.inputs:
        schema = schema.select(declaration.inputs)
    checked_names(schema.sources, output=declaration.output)
    return schema


@dataclass(frozen=True, eq=False, repr=False)
class Looked:
    """The rows of a chunk that lack no input, by one read.

    Attributes
    ----------
    frame : pandas.DataFrame of n rows
        Raw inputs.
    X : array of shape (n, D)
        Inputs as numbers.
    times : array of shape (n,)
    persons : list of str or None
        Whose rows they are.
    ids : str
        What their ids are, the kind of `cloakgp.privacy.person_ids.PersonIds`; empty for none.
    zoned : bool
        Whether times of a chunk are written with a zone.
    private : array of shape (n,) or None
        The private column, where it was asked for: to be handed to a fit and to nothing else.
    """

    frame: pd.DataFrame
    X: Array
    times: Array
    persons: list[str] | None
    ids: str = ""
    zoned: bool = False
    private: NDArray[Any] | None = None

    def __reduce__(self) -> NoReturn:
        raise TypeError("rows of a chunk may hold private outputs, and are not pickled")

    @property
    def digest(self) -> str:
        """Of all that is public."""
        made = hashlib.sha256(self.X.astype("<f8").tobytes())
        made.update(self.times.astype("<f8").tobytes())
        made.update("\0".join(self.persons or ()).encode())
        return made.hexdigest()

    def part(self, rows: NDArray[np.intp]) -> Looked:
        """Return some rows, in that order."""
        return Looked(
            frame=self.frame.iloc[rows].reset_index(drop=True),
            X=self.X[rows],
            times=self.times[rows],
            persons=None if self.persons is None else [self.persons[row] for row in rows],
            ids=self.ids,
            private=None if self.private is None else self.private[rows],
        )

    @classmethod
    def joined(cls, parts: Sequence[Looked]) -> Looked:
        """Return the rows of all parts, one at least, of the same columns, one after another."""
        with extra("tables"):
            import pandas as pd
        persons = [one for part in parts for one in part.persons or ()]
        private = [part.private for part in parts if part.private is not None]
        return cls(
            frame=pd.concat([part.frame for part in parts], ignore_index=True),
            X=np.vstack([part.X for part in parts]),
            times=np.concatenate([part.times for part in parts]),
            persons=None if parts[0].persons is None else persons,
            ids=one_kind({f"part {place}": part.ids for place, part in enumerate(parts, 1)}),
            private=np.concatenate(private) if private else None,
        )


def look_at(
    chunk: Chunk,
    columns: Columns,
    declaration: Declaration,
    *,
    private: PrivateColumn | None = None,
) -> Looked:
    """Read the public columns of a chunk, and check them; and the private one, if it is asked for.

    Raises
    ------
    ValueError
        If a column is missing, or a cell is not what the schema says. It names the chunk.
    """
    names = list(dict.fromkeys([*columns.inputs.sources, declaration.time]))
    row = BELOW_HEADER if isinstance(chunk, TableChunk) else FROM_ZERO
    with _named(chunk):
        read = chunk.read(names, person=declaration.person, private=private)
        if not len(read.frame):
            return _nothing(read.frame, columns, declaration)
        times = columns.times.encode(read.frame, row=row).X[:, 0]
        encoded = columns.inputs.encode(read.frame, row=row)
    if read.persons is not None and not all(read.persons):
        raise ValueError(f"{chunk.name}: a person is missing in {declaration.person}")
    if any(len(each) != len(times) for each in (read.persons, read.private) if each is not None):
        raise ValueError(f"{chunk.name}: its columns have different numbers of rows")
    rows = np.flatnonzero(encoded.kept)
    return Looked(
        frame=read.frame.iloc[rows][list(columns.inputs.sources)].reset_index(drop=True),
        X=encoded.X,
        times=times[rows],
        persons=None if read.persons is None else [read.persons[row] for row in rows],
        ids="" if read.persons is None else read.persons.kind,
        zoned=_zoned(read.frame[declaration.time]),
        private=None if read.private is None else read.private[rows],
    )


def check_columns(chunk: Chunk, declaration: Declaration) -> None:
    """Refuse a chunk that lacks the private column, or has it twice, before its period is asked.

    Parameters
    ----------
    chunk : Chunk
        One that cannot be looked into without reading it is taken.
    declaration : Declaration

    Raises
    ------
    ValueError
    """
    check = getattr(chunk, "check_columns", None)
    if check is not None:
        names = (declaration.time, declaration.person, declaration.output)
        with _named(chunk):
            check([each for each in names if each])


def has_rows(chunk: Chunk, declaration: Declaration) -> bool:
    """Return whether a chunk has rows; of one that has none, no columns can be inferred."""
    with _named(chunk):
        return len(chunk.read([declaration.time]).frame) > 0


@contextmanager
def _named(chunk: Chunk) -> Iterator[None]:
    """Have errors name a chunk, once."""
    try:
        yield
    except ValueError as error:
        said = str(error)
        # Of files, by their path.
        is_named = said.startswith(chunk.name) or f"/{chunk.name}" in said
        raise ValueError(said if is_named else f"{chunk.name}: {said}") from None


def _nothing(frame: pd.DataFrame, columns: Columns, declaration: Declaration) -> Looked:
    return Looked(
        frame=frame[list(columns.inputs.sources)],
        X=np.empty((0, len(columns.inputs.names))),
        times=np.empty(0),
        persons=[] if declaration.person else None,
        private=None,
    )


def record_of(
    chunk: Chunk, looked: Looked, *, periods: Periods, closed: int, version: str
) -> ChunkRecord:
    """Return the record of a chunk.

    Parameters
    ----------
    chunk : Chunk
    looked : Looked
    periods : Periods
    closed : int
        How many had closed before: rows of these came too late.
    version : str
        Of the chunk, from before it was read.
    """
    place = periods.place(looked.times)
    inside = (place >= 0) & (place < periods.horizon)
    late = inside & (place < closed)
    numbers, rows = np.unique(place[late], return_counts=True)
    return ChunkRecord(
        name=chunk.name,
        version=version,
        rows=len(place),
        digest=looked.digest,
        closed=closed,
        ids=looked.ids,
        first=int(place.min(initial=periods.horizon)),
        last=int(place.max(initial=-1)),
        late=tuple(zip(numbers.tolist(), rows.tolist(), strict=True)),
        before=int((place < 0).sum()),
        beyond=int((place >= periods.horizon).sum()),
    )


@dataclass(frozen=True, eq=False, repr=False)
class PeriodRows:
    """The rows of a period.

    Attributes
    ----------
    looked : Looked or None
        In the order of chunks, and of rows within one; None if there is no chunk of it.
    repeated : int
        How many others they replace.
    """

    looked: Looked | None
    repeated: int = 0

    @property
    def count(self) -> int:
        """The number of rows, n."""
        return 0 if self.looked is None else len(self.looked.times)

    @property
    def digest(self) -> str:
        """Of all that is public of them; of other rows of their chunks it tells nothing."""
        return "" if self.looked is None else self.looked.digest


def collect(
    number: int,
    *,
    looked: Mapping[str, Looked],
    records: Sequence[ChunkRecord],
    periods: Periods,
) -> PeriodRows:
    """Return the rows of a period that came before it closed.

    Of rows with the same person and time the last stays. Rows without persons are all different.

    Parameters
    ----------
    number : int
        Of the period.
    looked : mapping of str to Looked
        By names of chunks.
    records : sequence of ChunkRecord
        In the order in which they were read.
    periods : Periods
    """
    parts = []
    for record in records:
        if record.closed <= number and record.name in looked:
            seen = looked[record.name]
            parts.append(seen.part(np.flatnonzero(periods.place(seen.times) == number)))
    if not parts:
        return PeriodRows(None)
    found = Looked.joined(parts)
    if found.persons is None:
        return PeriodRows(found)
    kept = _last_of_each(found.persons, found.times)
    return PeriodRows(found.part(kept), repeated=len(found.times) - len(kept))


def _last_of_each(persons: Sequence[str], times: Array) -> NDArray[np.intp]:
    """Return the last row of every person and time, in order."""
    last = {key: row for row, key in enumerate(zip(persons, times.tolist(), strict=True))}
    return np.array(sorted(last.values()), dtype=np.intp)


def has_zone(text: str) -> bool:
    """Return whether a time is written with a zone.

    Examples
    --------
    >>> has_zone("2026-01-31T12:00+09:00"), has_zone("2026-01-31 12:00Z"), has_zone("2026-01-31")
    (True, True, False)
    """
    return ZONE.search(text) is not None


def _zoned(times: pd.Series[Any]) -> bool:
    if getattr(times.dtype, "tz", None) is not None:
        return True
    if times.dtype.kind in "biufM":
        return False
    return any(
        has_zone(cell) if isinstance(cell, str) else getattr(cell, "tzinfo", None) is not None
        for cell in times.tolist()
    )


def _times(frame: pd.DataFrame, name: str, *, beside: Sequence[str]) -> Schema:
    made = infer_schema(frame, [name], beside=beside)
    (column,) = made.columns
    if isinstance(column, Date):
        column = replace(column, linear=True, cycles=(), missing="refuse")
    elif isinstance(column, Number):
        column = replace(column, missing="refuse")
    else:
        raise ValueError(f"the time {name!r} holds {column.what}: it must be numbers or dates")
    return replace(made, columns=(column,))
