"""Rows with other entries: transformed outputs, several outputs in turn, or rows of known groups.

Each goes through the chunks of other rows, and changes the private entries as they are read. Where
rows are with several custodians, each of these is told the same by a `RowReading`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cloakgp.columns.schema import Schema
from cloakgp.design.streaming.grouping import GroupedPasses, places_of, weighed
from cloakgp.models.kernels.coregion import as_entries
from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy.ask import NoisySums
from cloakgp.privacy.several_outputs import OutputColumns
from cloakgp.privacy.transforms import transform_entries
from cloakgp.release.several_outputs import WHICH_OUTPUT
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Chunk, PartOf

Work = Callable[[Chunk, Array], Any]
POSITIVE_EXPOSURE = "exposure must be positive and finite in every row"


@dataclass(frozen=True, eq=False, repr=False)
class _OtherRows:
    """Rows of other rows' chunks."""

    passes: Any

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs."""
        return int(self.passes.n_inputs)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the public columns, if there are any."""
        return tuple(self.passes.input_names)

    @property
    def output_name(self) -> str:
        """Name of the private column."""
        return str(self.passes.output_name)

    @property
    def grouped(self) -> bool:
        """Whether rows have groups, to be protected together."""
        return bool(self.passes.grouped)

    @property
    def places(self) -> int:
        """At how many custodians a person may have rows."""
        return places_of(self.passes)

    def over_inputs(self, work: Callable[[Chunk], PartOf], *, what: str) -> PartOf:
        """Do some work on every chunk, and merge the parts in the order of the table."""
        found: PartOf = self.passes.over_inputs(work, what=what)
        return found


class _OtherEntries:
    """Passes over the rows of others, whose private entries are changed as they are read."""

    passes: Any

    def _on_entries(self, work: Work) -> Work:
        """Return work on the entries of the others that does some work on the changed ones."""
        raise NotImplementedError

    def over_rows(
        self,
        work: Callable[[Chunk, Array], PartOf],
        *,
        what: str,
        labels: tuple[object, ...] | None = None,
    ) -> PartOf:
        """Do some work on every chunk and its private entries: for `cloakgp.privacy`."""
        found: PartOf = self.passes.over_rows(self._on_entries(work), what=what, labels=labels)
        return found


@dataclass(frozen=True, eq=False, repr=False)
class TransformedRows(_OtherRows, _OtherEntries):
    """Rows that give transformed outputs; see `cloakgp.privacy.transforms`.

    Attributes
    ----------
    passes : LocalRows or DaskRows
    transform : OutputTransform

    Examples
    --------
    >>> import numpy as np
    >>> from cloakgp.data import ArrayRows
    >>> rows = ArrayRows(np.zeros((2, 1)), [1.0, 10.0])
    >>> TransformedRows(rows, OutputTransform(name="log", bounds=(1.0, 100.0))).n_inputs
    1
    """

    transform: OutputTransform

    @classmethod
    def of(cls, rows: Any, transform: OutputTransform | None) -> Any:
        """Return rows that give transformed outputs, or the rows themselves."""
        return rows if transform is None else cls(rows, transform)

    def _on_entries(self, work: Work) -> Work:
        return partial(_transformed, work, self.transform)


def _transformed(work: Work, transform: OutputTransform, chunk: Chunk, entries: Array) -> Any:
    return work(chunk, transform_entries(entries, transform))


@dataclass(frozen=True, eq=False, repr=False)
class ExposedRows(_OtherRows, _OtherEntries):
    """Rows of which one public column is no input: how much of something each was counted in.

    Their inputs are all others; behind them, chunks have the logarithm of exposures.

    Attributes
    ----------
    passes : LocalRows or DaskRows
    place : int
        Of the column, from 0.

    Examples
    --------
    >>> from cloakgp.data import ArrayRows
    >>> rows = ArrayRows(np.array([[5.0, 1.0], [6.0, 2.0]]), [3, 4], input_names=("age", "years"))
    >>> ExposedRows.of(rows, "years").input_names
    ('age',)
    """

    place: int

    @classmethod
    def of(cls, rows: Any, exposure: str | int) -> ExposedRows:
        """Return rows with one of their public columns set apart.

        Parameters
        ----------
        rows : LocalRows or DaskRows
        exposure : str or int
            The name of the column, or its place, from 0.

        Raises
        ------
        ValueError
            If there is no such column, or no other.
        """
        names = tuple(rows.input_names)
        place = exposure
        if isinstance(place, str):
            if place not in names:
                raise ValueError(f"exposure {place!r} is none of the public columns of the rows")
            place = names.index(place)
        if not 0 <= place < rows.n_inputs:
            raise ValueError(f"exposure is one of {rows.n_inputs} public columns, counted from 0")
        if rows.n_inputs < 2:
            raise ValueError("the rows have no public column beside their exposure")
        return cls(passes=rows, place=int(place))

    @property
    def n_inputs(self) -> int:
        """D, without exposures."""
        return int(self.passes.n_inputs) - 1

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the public columns, without that of exposures."""
        names = tuple(self.passes.input_names)
        return (*names[: self.place], *names[self.place + 1 :])

    @property
    def schema(self) -> Schema | None:
        """The schema of the inputs, if rows have one."""
        schema: Schema | None = getattr(self.passes, "schema", None)
        names = self.passes.input_names
        return None if schema is None else schema.without(names[self.place])

    def over_inputs(self, work: Callable[[Chunk], PartOf], *, what: str) -> PartOf:
        """Do some work on every chunk, and merge the parts in the order of the table."""
        found: PartOf = self.passes.over_inputs(partial(_on_exposed, work, self.place), what=what)
        return found

    def _on_entries(self, work: Work) -> Work:
        return partial(_on_exposed_rows, work, self.place)


def exposed(chunk: Chunk, *, place: int) -> Chunk:
    """Return a chunk whose exposures come last, by their logarithm.

    Parameters
    ----------
    chunk : Chunk
    place : int
        Of the column of exposures.

    Raises
    ------
    ValueError
        Unless they are positive.

    Examples
    --------
    >>> exposed(Chunk(number=0, X=np.array([[1.0, 7.0]])), place=0).X.tolist()
    [[7.0, 0.0]]
    """
    exposures = chunk.X[:, place]
    if not (exposures > 0).all():
        raise ValueError(POSITIVE_EXPOSURE)
    inputs = np.delete(chunk.X, place, axis=1)
    return replace(chunk, X=np.column_stack([inputs, np.log(exposures)]))


def _on_exposed(work: Callable[[Chunk], Any], place: int, chunk: Chunk) -> Any:
    return work(exposed(chunk, place=place))


def _on_exposed_rows(work: Work, place: int, chunk: Chunk, entries: Array) -> Any:
    return work(exposed(chunk, place=place), entries)


@dataclass(frozen=True, eq=False)
class GroupedRows(_OtherEntries, GroupedPasses):
    """Rows whose inputs have one more column, with the sizes of their groups.

    Attributes
    ----------
    passes : LocalRows
        Whose chunks have groups.
    counts : array of int, shape (GROUP_NUMBERS,)
    """

    passes: Any

    def _on_entries(self, work: Work) -> Work:
        return partial(_weighed, work, self.counts)


def _weighed(work: Work, counts: NDArray[np.intp], chunk: Chunk, entries: Array) -> Any:
    return work(weighed(chunk, counts), entries)


@dataclass(frozen=True, eq=False, repr=False)
class EntryRows(_OtherRows):
    """Rows whose entries are those of several outputs in turn.

    All entries of a row are in one chunk, next to each other, and in the group of the row.

    Attributes
    ----------
    passes : ArrayRows
        With as many private columns.
    columns : OutputColumns
        Their declared bounds.
    units : OutputColumns or None
        From whose middles, and in widths of which, entries are; None for outputs as they are.

    Examples
    --------
    >>> from cloakgp.data import ArrayRows
    >>> rows = ArrayRows(np.zeros((3, 1)), np.zeros((3, 2)))
    >>> EntryRows(rows, OutputColumns.checked([(0, 1), (0, 5)])).n_inputs
    2
    """

    columns: OutputColumns
    units: OutputColumns | None = None

    @classmethod
    def of(cls, rows: Any, columns: OutputColumns) -> EntryRows:
        """Return the entries of rows, or raise an error if they have other columns.

        Raises
        ------
        ValueError
            Unless there is one private column for each pair of bounds.
        """
        found, count = getattr(rows, "n_outputs", 1), len(columns.bounds)
        if found != count:
            raise ValueError(
                f"the rows have {found} private columns and bounds are given for {count}: they "
                "must agree"
            )
        return cls(passes=rows, columns=columns)

    @property
    def together(self) -> int:
        """T, the number of adjacent entries of one row."""
        return len(self.columns.bounds)

    @property
    def n_inputs(self) -> int:
        """D + 1: the last is the number of an entry's output."""
        return int(self.passes.n_inputs) + 1

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the public columns, if there are any."""
        names = tuple(self.passes.input_names)
        return (*names, WHICH_OUTPUT) if names else ()

    def with_units(self, units: OutputColumns | None) -> EntryRows:
        """Return the same entries in widths from the middles of some bounds, or as they are."""
        return replace(self, units=units)

    def over_inputs(self, work: Callable[[Chunk], PartOf], *, what: str) -> PartOf:
        """Do some work on every chunk, and merge the parts in the order of the table."""
        found: PartOf = self.passes.over_inputs(partial(_in_chunks, work, self.together), what=what)
        return found

    def over_rows(
        self,
        work: Callable[[Chunk, Array], PartOf],
        *,
        what: str,
        labels: tuple[object, ...] | None = None,
    ) -> PartOf:
        """Do some work on every chunk and its private entries: for `cloakgp.privacy`.

        Raises
        ------
        TypeError
            If entries are to be labels.
        """
        if labels is not None:
            raise TypeError("several outputs are numbers")
        # Later bands may go beyond intervals that were found, and no first question does.
        within = None if self.units in (None, self.columns) else self.columns
        found: PartOf = self.passes.over_rows(
            partial(_in_turn, work, self.together, self.units, within), what=what
        )
        return found


def entries_of(chunk: Chunk, *, count: int) -> Chunk:
    """Return a chunk of the entries of its rows, those of one row next to each other.

    Parameters
    ----------
    chunk : Chunk
    count : int
        T.

    Examples
    --------
    >>> chunk = Chunk(number=0, X=np.array([[5.0], [7.0]]), groups=np.array([3, 4]))
    >>> entries = entries_of(chunk, count=2)
    >>> entries.X.tolist(), entries.groups.tolist()
    ([[5.0, 0.0], [5.0, 1.0], [7.0, 0.0], [7.0, 1.0]], [3, 3, 4, 4])
    """
    groups = None if chunk.groups is None else np.repeat(chunk.groups, count)
    return replace(chunk, X=as_entries(chunk.X, count=count), groups=groups)


def _in_chunks(work: Callable[[Chunk], Any], count: int, chunk: Chunk) -> Any:
    return work(entries_of(chunk, count=count))


def _in_turn(
    work: Work,
    count: int,
    units: OutputColumns | None,
    within: OutputColumns | None,
    chunk: Chunk,
    outputs: Array,
) -> Any:
    if outputs.shape not in {(len(chunk.X), count), (len(chunk.X) * count,)}:
        raise TypeError("rows must give as many private entries each as there are outputs")
    values = outputs.reshape(len(chunk.X), count)
    if units is not None:
        values = units.standardised_rows(values, within=within)
    return work(entries_of(chunk, count=count), np.ascontiguousarray(values).ravel())


@dataclass(frozen=True)
class RowReading:
    """The change of rows' inputs and private entries as they are read. All of it is public.

    Attributes
    ----------
    exposure : int or None
        As of `ExposedRows`: the place of a column that is no input.
    transform : OutputTransform or None
        Of outputs.
    columns, units : OutputColumns or None
        As of `EntryRows`, of several outputs.
    grouped : bool
        Whether all rows of a group are protected together.

    Examples
    --------
    >>> from cloakgp.data import ArrayRows
    >>> rows = ArrayRows(np.zeros((2, 1)), [1.0, 10.0])
    >>> RowReading.of(rows) == RowReading(), RowReading().rows(rows) is rows
    (True, True)
    """

    exposure: int | None = None
    transform: OutputTransform | None = None
    columns: OutputColumns | None = None
    units: OutputColumns | None = None
    grouped: bool = False

    @classmethod
    def of(cls, rows: Any) -> RowReading:
        """Return how rows differ from those that they are made of."""
        found: dict[str, Any] = {}
        for layer in _layers(rows):
            if isinstance(layer, ExposedRows):
                found["exposure"] = layer.place
            elif isinstance(layer, TransformedRows):
                found["transform"] = layer.transform
            elif isinstance(layer, EntryRows):
                found |= {"columns": layer.columns, "units": layer.units}
            elif isinstance(layer, GroupedRows):
                found["grouped"] = True
        return cls(**found)

    @property
    def together(self) -> int:
        """T, the number of adjacent entries of one row."""
        return 1 if self.columns is None else len(self.columns.bounds)

    def rows(self, rows: Any) -> Any:
        """Return rows that are read so, after a pass that counts those of groups, if any.

        Parameters
        ----------
        rows : Rows

        Raises
        ------
        ValueError
            If they have no such columns, or groups that are asked for.
        """
        read = rows if self.exposure is None else ExposedRows.of(rows, self.exposure)
        read = TransformedRows.of(read, self.transform)
        if self.columns is not None:
            read = EntryRows.of(read, self.columns).with_units(self.units)
        return GroupedRows.of(read, together=self.together) if self.grouped else read

    def validate(self) -> None:
        """Refuse bounds of several outputs that are none, or another number of units.

        Raises
        ------
        ValueError
        """
        if self.units is not None and (
            self.columns is None or len(self.units.bounds) != len(self.columns.bounds)
        ):
            raise ValueError("its outputs are damaged")


AS_THEY_ARE = RowReading()


@runtime_checkable
class CustodialRows(Protocol):
    """Rows whose private entries are with several custodians."""

    @property
    def noise_ratio(self) -> float:
        """As of `NoisySums`."""

    def read_as(self, reading: RowReading) -> NoisySums:
        """Return the same rows, of which custodians are told how they are read."""


def custodians_of(rows: Any) -> CustodialRows | None:
    """Return the rows of several custodians that others are made of; None if there are none."""
    *_, inmost = (rows, *(layer.passes for layer in _layers(rows)))
    return inmost if isinstance(inmost, CustodialRows) else None


def added_noise(rows: Any) -> float:
    """Return the sd of the noise that rows are answered with over that of one custodian's budget.

    Parameters
    ----------
    rows : Rows, or those of a class above
    """
    custodians = custodians_of(rows)
    return 1.0 if custodians is None else custodians.noise_ratio * places_of(rows)


def as_asked(rows: Any) -> Any:
    """Return rows as `cloakgp.privacy.ask` takes them: of custodians, who are told of all changes.

    Parameters
    ----------
    rows : Rows, or those of a class above
    """
    custodians = custodians_of(rows)
    return rows if custodians is None else custodians.read_as(RowReading.of(rows))


def _layers(rows: Any) -> Iterator[Any]:
    """Yield rows that are made of others, from the outermost."""
    while isinstance(rows, _OtherRows | GroupedRows):
        yield rows
        rows = rows.passes
