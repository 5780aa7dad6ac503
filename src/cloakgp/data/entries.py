"""Rows of several private outputs as rows of their entries, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cloakgp.models.kernels.coregion import as_entries
from cloakgp.privacy.several_outputs import OutputColumns
from cloakgp.release.several_outputs import WHICH_OUTPUT
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Chunk, PartOf


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


@dataclass(frozen=True, eq=False)
class _OnInputs:
    work: Callable[[Chunk], Any]
    count: int

    def __call__(self, chunk: Chunk) -> Any:
        return self.work(entries_of(chunk, count=self.count))


@dataclass(frozen=True, eq=False)
class _OnRows:
    work: Callable[[Chunk, Array], Any]
    units: OutputColumns | None
    within: OutputColumns | None
    count: int

    def __call__(self, chunk: Chunk, outputs: Array) -> Any:
        if outputs.shape not in {(len(chunk.X), self.count), (len(chunk.X) * self.count,)}:
            raise TypeError("rows must give as many private entries each as there are outputs")
        values = outputs.reshape(len(chunk.X), self.count)
        if self.units is not None:
            values = self.units.standardised_rows(values, within=self.within)
        return self.work(entries_of(chunk, count=self.count), np.ascontiguousarray(values).ravel())


@dataclass(frozen=True, eq=False, repr=False)
class EntryRows:
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

    passes: Any
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

    @property
    def output_name(self) -> str:
        """Name of the private column."""
        return str(self.passes.output_name)

    @property
    def grouped(self) -> bool:
        """Whether rows have groups, to be protected together."""
        return bool(self.passes.grouped)

    def with_units(self, units: OutputColumns | None) -> EntryRows:
        """Return the same entries in widths from the middles of some bounds, or as they are."""
        return replace(self, units=units)

    def over_inputs(self, work: Callable[[Chunk], PartOf], *, what: str) -> PartOf:
        """Do some work on every chunk, and merge the parts in the order of the table."""
        found: PartOf = self.passes.over_inputs(_OnInputs(work, self.together), what=what)
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
            _OnRows(work, units=self.units, within=within, count=self.together), what=what
        )
        return found
