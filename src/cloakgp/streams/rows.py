"""Rows of a period: chosen from chunks by public columns alone, the last of repeated ones."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cloakgp.columns import Date, Number, Schema, infer_schema, schema_from_text, schema_to_text
from cloakgp.columns.problems import FROM_ZERO
from cloakgp.streams.declaration import Declaration
from cloakgp.streams.periods import Periods
from cloakgp.streams.sources import Chunk
from cloakgp.streams.state import ChunkRecord
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Columns:
    """The public columns of a stream.

    Attributes
    ----------
    inputs : Schema
        Of the inputs of the model; with the time as the last of them, if it is one.
    times : Schema
        Of the time alone.
    """

    inputs: Schema
    times: Schema

    @classmethod
    def of(cls, chunk: Chunk, declaration: Declaration, *, schema: Schema | None = None) -> Columns:
        """Return the columns by the first chunk, where they are not declared.

        Parameters
        ----------
        chunk : Chunk
        declaration : Declaration
        schema : Schema, optional
            Of the inputs.

        Raises
        ------
        ValueError
            If a column is missing, there is no input, or the time is no number and no date.
        """
        time = declaration.time
        times = _times(chunk.public([time]), time)
        names = list(declaration.inputs)
        if schema is not None:
            for other in (time, declaration.person):
                if other and other in schema.sources:
                    schema = schema.without(other)
            schema = schema.select(names) if names else schema
        elif not names:
            raise ValueError("name the public columns that predict: inputs, or a schema")
        if schema is None:
            public = chunk.public(names)
            schema = infer_schema(public, names)
        else:
            schema = schema.complete(chunk.public(schema.sources))
        if declaration.forgetting is not None:
            schema = replace(schema, columns=(*schema.columns, *times.columns))
        schema.validate()
        return cls(inputs=schema, times=times)

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


@dataclass(frozen=True, eq=False, repr=False)
class Looked:
    """The public columns of a chunk.

    Attributes
    ----------
    frame : pandas.DataFrame of n rows
        Raw inputs.
    times : array of shape (n,)
    persons : list of str or None
        Whose rows they are.
    places : array of int, shape (n,)
        Which rows of the chunk these are: others lack an input.
    digest : str
    """

    frame: pd.DataFrame
    times: Array
    persons: list[str] | None
    places: NDArray[np.intp]
    digest: str


def look_at(chunk: Chunk, columns: Columns, declaration: Declaration) -> Looked:
    """Read the public columns of a chunk, and check them.

    Raises
    ------
    ValueError
        If a column is missing, or a cell is not what the schema says. It names the chunk.
    """
    names = list(dict.fromkeys([*columns.inputs.sources, declaration.time]))
    try:
        frame = chunk.public(names)
        times = columns.times.encode(frame).X[:, 0]
        encoded = columns.inputs.encode(frame, row=FROM_ZERO)
        persons = chunk.persons(declaration.person) if declaration.person else None
    except ValueError as error:
        raise ValueError(f"{chunk.name}: {error}") from None
    places = np.flatnonzero(encoded.kept)
    if persons is not None:
        if not all(persons):
            raise ValueError(f"{chunk.name}: a person is missing in {declaration.person}")
        persons = [persons[place] for place in places]
    digest = hashlib.sha256(encoded.X.astype("<f8").tobytes())
    digest.update(times[places].astype("<f8").tobytes())
    digest.update("\0".join(persons or ()).encode())
    return Looked(
        frame=frame.iloc[places][list(columns.inputs.sources)].reset_index(drop=True),
        times=times[places],
        persons=persons,
        places=places,
        digest=digest.hexdigest(),
    )


def record_of(
    chunk: Chunk, looked: Looked, *, periods: Periods, closed: int, version: str
) -> tuple[ChunkRecord, NDArray[np.intp]]:
    """Return the record of a chunk, and how many of its rows came too late for each period.

    Parameters
    ----------
    chunk : Chunk
    looked : Looked
    periods : Periods
    closed : int
        How many had closed before.
    version : str
        Of the chunk, from before it was read.
    """
    place = periods.place(looked.times)
    inside = (place >= 0) & (place < periods.horizon)
    late = inside & (place < closed)
    record = ChunkRecord(
        name=chunk.name,
        version=version,
        rows=len(place),
        digest=looked.digest,
        closed=closed,
        first=int(place.min(initial=periods.horizon)),
        last=int(place.max(initial=-1)),
        late=int(late.sum()),
        before=int((place < 0).sum()),
        beyond=int((place >= periods.horizon).sum()),
    )
    return record, np.bincount(place[late], minlength=periods.horizon)


@dataclass(frozen=True, eq=False, repr=False)
class PeriodRows:
    """The rows of a period.

    Attributes
    ----------
    frame : pandas.DataFrame of n rows
        Raw inputs.
    persons : list of str or None
    parts : sequence of (Chunk, array of int)
        Which rows of which chunk these are, in order.
    repeated : int
        How many others they replace.
    digest : str
    """

    frame: pd.DataFrame
    persons: list[str] | None
    parts: Sequence[tuple[Chunk, NDArray[np.intp]]]
    repeated: int
    digest: str

    @property
    def count(self) -> int:
        """The number of rows, n."""
        return len(self.frame)


def collect(
    number: int,
    *,
    looked: Mapping[str, Looked],
    chunks: Mapping[str, Chunk],
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
    chunks : mapping of str to Chunk
    records : sequence of ChunkRecord
        In the order in which they were read.
    periods : Periods
    """
    with extra("tables"):
        import pandas as pd
    frames, persons, times, owners, places = [], list[str](), list[Array](), list[int](), []
    names = [each.name for each in records if each.closed <= number and each.name in looked]
    for part, name in enumerate(names):
        seen = looked[name]
        own = np.flatnonzero(periods.place(seen.times) == number)
        frames.append(seen.frame.iloc[own])
        times.append(seen.times[own])
        persons += [seen.persons[row] for row in own] if seen.persons is not None else []
        owners += [part] * len(own)
        places += seen.places[own].tolist()
    kept = _last_of_each(persons, np.concatenate([np.empty(0), *times])) if persons else None
    chosen = np.arange(len(owners)) if kept is None else kept
    frame = pd.concat([pd.DataFrame(), *frames], ignore_index=True) if frames else pd.DataFrame()
    whose, where = np.asarray(owners, dtype=np.intp)[chosen], np.asarray(places, dtype=np.intp)
    digest = hashlib.sha256()
    parts = []
    for part, name in enumerate(names):
        own_rows = where[chosen][whose == part]
        digest.update(f"{looked[name].digest}:{own_rows.tolist()}".encode())
        parts.append((chunks[name], own_rows))
    return PeriodRows(
        frame=frame.iloc[chosen].reset_index(drop=True),
        persons=[persons[row] for row in chosen] if persons else None,
        # Rows stay in the order of chunks, and of rows within one.
        parts=parts,
        repeated=len(owners) - len(chosen),
        digest=digest.hexdigest(),
    )


def _last_of_each(persons: Sequence[str], times: Array) -> NDArray[np.intp]:
    """Return the last row of every person and time, in order."""
    last = {key: row for row, key in enumerate(zip(persons, times.tolist(), strict=True))}
    return np.array(sorted(last.values()), dtype=np.intp)


def _times(frame: pd.DataFrame, name: str) -> Schema:
    made = infer_schema(frame, [name])
    (column,) = made.columns
    if isinstance(column, Date):
        column = replace(column, linear=True, cycles=(), missing="refuse")
    elif isinstance(column, Number):
        column = replace(column, missing="refuse")
    else:
        raise ValueError(f"the time {name!r} holds {column.what}: it must be numbers or dates")
    return replace(made, columns=(column,))
