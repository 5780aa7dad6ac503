"""Raw columns of tables in files: as cells of public columns, and encoded batch by batch.

Private cells are only passed on here, each on its own: whether one is missing, and in which
notation it is written, decides nothing about any other but, if the custodian says so, whether its
row is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cloakgp.columns.cells import Cells, Typed, is_gap, write_cell
from cloakgp.columns.notation import ALWAYS_THOUSANDS
from cloakgp.columns.numbers import Number, read_number
from cloakgp.columns.schema import Schema
from cloakgp.data.cells import as_numbers, as_texts
from cloakgp.data.mixed import is_mixed, kinds_of, objects_of, texts_of
from cloakgp.privacy.entries import EMPTY, Entries, read_entry
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

with extra("tables"):
    import pyarrow as pa
    import pyarrow.compute as pc

REFUSE, DROP = "refuse", "drop"
# Stands for a private cell that is no number, whatever it holds.
UNREADABLE = "unreadable"
# In the order of the kinds of `cloakgp.data.mixed`.
KINDS: tuple[Typed, ...] = ("text", "numbers", "truths", "times")
SECONDS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
DAY_SECONDS = 86400.0


@dataclass(frozen=True, eq=False, repr=False)
class ArrowCells(Cells):
    """Cells of a public column, as Arrow has it.

    Attributes
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray
    """

    column: Any

    @property
    def count(self) -> int:
        """Their number."""
        return len(self.column)

    @property
    def typed(self) -> Typed:
        """The kind of cells by the column's type."""
        kind, types = self._kind, pa.types
        if is_mixed(kind):
            return self._typed_cells
        if types.is_boolean(kind):
            return "truths"
        if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
            return "numbers"
        return "times" if types.is_timestamp(kind) or types.is_date(kind) else "text"

    @cached_property
    def _typed_cells(self) -> Typed:
        """The kind of all cells that are there, if each has one and it is the same."""
        there = pc.is_valid(texts_of(self.column)).to_numpy(zero_copy_only=False)
        kinds = set(kinds_of(self.column)[there].tolist())
        return KINDS[kinds.pop()] if len(kinds) == 1 else "text"

    def of_kind(self, kind: Typed) -> NDArray[np.bool_]:
        """Return which cells are of a kind by their type."""
        if not is_mixed(self._kind):
            return super().of_kind(kind)
        return np.asarray(kinds_of(self.column) == KINDS.index(kind))

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels in their order, where the column's type names and orders them.

        Raises
        ------
        ValueError
            If chunks of the column have them in different orders.
        """
        kind = self.column.type
        if not (pa.types.is_dictionary(kind) and kind.ordered):
            return ()
        parts = self.column.chunks if isinstance(self.column, pa.ChunkedArray) else [self.column]
        orders = {tuple(map(write_cell, part.dictionary.to_pylist())) for part in parts}
        longest = max(orders, key=len, default=())
        for order in orders:
            if list(order) != [level for level in longest if level in order]:
                raise ValueError(
                    "an ordered column has its levels in different orders in parts of the table, "
                    "or others in each: give all of them one order (unify_dictionaries of Arrow)"
                )
        return longest

    @property
    def _kind(self) -> Any:
        kind = self.column.type
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    def numbers(self) -> Entries:
        """Return cells as numbers."""
        missing, values = as_numbers(self.column)
        return Entries(values=values, missing=missing)

    @cached_property
    def _texts(self) -> NDArray[np.object_]:
        column = texts_of(self.column)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
        if pa.types.is_nested(column.type):
            # Arrow has no dictionaries of these.
            return np.array(self._written(column), dtype=object)
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        found = np.array([*self._written(column.dictionary), ""], dtype=object)
        places = column.indices.fill_null(len(found) - 1).to_numpy(zero_copy_only=False)
        return np.asarray(found[places.astype(np.intp)], dtype=object)

    def _written(self, cells: Any) -> list[str]:
        if pa.types.is_string(cells.type) or self.typed == "text":
            try:
                return as_texts(cells, name="")
            except ValueError:
                pass
        return [write_cell(cell) for cell in cells.to_pylist()]

    def texts(self) -> NDArray[np.object_]:
        """Return cells as text."""
        return self._texts

    def times(self, form: str) -> tuple[Array, NDArray[np.bool_]]:
        """Return days since the start of 1970; of text, read in that form."""
        kind = self._kind
        if pa.types.is_date32(kind):
            days = self.column.cast(pa.int32()).to_numpy(zero_copy_only=False)
            return np.asarray(days, dtype=np.float64), np.isnan(np.asarray(days, dtype=np.float64))
        if self.typed == "times" and not is_mixed(kind):
            stamps = self.column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False)
            whole = stamps.cast(pa.int64()).to_numpy(zero_copy_only=False)
            days = np.asarray(whole, dtype=np.float64) / (SECONDS["us"] * DAY_SECONDS)
            return days, np.isnan(days)
        return super().times(form)


@dataclass(frozen=True, eq=False, repr=False)
class RawTable(Mapping[str, Cells]):
    """Public columns of a table, before they are encoded.

    Attributes
    ----------
    cells : dict of str to Cells
    """

    cells: dict[str, Cells]

    @classmethod
    def of(cls, table: Any, names: Sequence[str]) -> RawTable:
        """Return the first columns of an Arrow table."""
        return cls({name: ArrowCells(table.column(place)) for place, name in enumerate(names)})

    def frame(self, *, numeric: bool) -> dict[str, NDArray[Any]]:
        """Return columns as arrays, as they were.

        Parameters
        ----------
        numeric : bool
            Whether text that is numbers throughout becomes numbers.
        """
        columns: dict[str, NDArray[Any]] = {}
        for name, cells in self.cells.items():
            column = getattr(cells, "column", None)
            mixed = column is not None and is_mixed(column.type)
            if cells.typed != "text" and not mixed:
                columns[name] = np.asarray(column.to_pandas())  # type: ignore[union-attr]
                continue
            texts = cells.texts().copy()
            found = cells.numbers() if numeric else None
            if found is not None and not found.unreadable and not found.missing.all():
                columns[name] = found.values
            elif mixed:
                columns[name] = np.empty(cells.count, dtype=object)
                columns[name][:] = objects_of(column)
            else:
                texts[texts == ""] = None
                columns[name] = texts
        return columns

    def filter(self, kept: NDArray[np.bool_]) -> RawTable:
        """Return the rows that are kept, of a table as it was read."""
        mask = pa.array(kept)
        return RawTable(
            {
                name: ArrowCells(cells.column.filter(mask))
                for name, cells in self.cells.items()
                if isinstance(cells, ArrowCells)
            }
        )

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return next(iter(self.cells.values())).count, len(self.cells)

    def __getitem__(self, name: str) -> Cells:
        return self.cells[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)


def check_missing_output(given: str, *, classes: Sequence[str]) -> None:
    """Refuse what is no meaning of a missing private cell.

    Parameters
    ----------
    given : str
        As of `RawRows`.
    classes : sequence of str
        As they are written; empty where outputs are numbers.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> check_missing_output("0", classes=())
    >>> check_missing_output("0", classes=["no", "yes"])
    Traceback (most recent call last):
    ...
    ValueError: missing_output (--missing-output) is 0, which is none of the classes
    """
    if given in (REFUSE, DROP):
        return
    if classes and given not in classes:
        raise ValueError(
            f"missing_output (--missing-output) is {given}, which is none of the classes"
        )
    if not classes and not np.isfinite(read_entry(given)):
        raise ValueError(
            "missing_output (--missing-output) is refuse, drop, or what missing cells count as: "
            "a number"
        )


@dataclass(frozen=True)
class RawRows:
    """How batches of raw columns become batches of numbers.

    Attributes
    ----------
    schema : Schema
        Of the public columns.
    missing_output : str
        What is done about missing private cells: "refuse"; "drop", which leaves the rows out, and
        so tells which they are; or what they count as, a number or a class.
    classes : tuple of str
        Where the private column holds classes: a declared one is never a missing cell.
    decimal, thousands : str
        How private numbers are written.
    fixed : bool
        Whether which rows there are is settled by public columns, so that messages advise no one
        to leave rows out.
    exposure : Number or None
        The further public column that says in how much each row was counted, if there is one.
    """

    schema: Schema
    missing_output: str = REFUSE
    classes: tuple[str, ...] = ()
    decimal: str = "."
    thousands: str = ""
    fixed: bool = False
    exposure: Number | None = None

    @classmethod
    def by_schema(
        cls,
        schema: Schema,
        *,
        missing_output: str = REFUSE,
        classes: tuple[str, ...] = (),
        exposure: Number | None = None,
    ) -> Self:
        """Return rows whose private numbers are written as their public ones are.

        Parameters
        ----------
        schema : Schema
        missing_output : str
        classes : tuple of str
        exposure : Number, optional
        """
        decimal, thousands = schema.and_also(exposure).decimal
        return cls(schema, missing_output, classes, decimal, thousands, exposure=exposure)

    @property
    def with_exposure(self) -> Self:
        """The same rows, with the exposure as the last of their inputs if there is one."""
        return replace(self, schema=self.schema.and_also(self.exposure))

    @property
    def drops(self) -> bool:
        """Whether rows may be left out."""
        by_inputs = any(column.missing == "drop" for column in self.schema.columns)
        return by_inputs or self.missing_output == DROP

    def private(self, column: Any) -> tuple[Any, NDArray[np.bool_] | None]:
        """Return the private column in the notation of this package, and which rows are kept.

        Numbers by type are what they are, in whatever notation text is read.

        Parameters
        ----------
        column : pyarrow.Array or pyarrow.ChunkedArray

        Returns
        -------
        column : pyarrow.Array or pyarrow.ChunkedArray
        kept : array of bool or None
            None for all.
        """
        plain = (self.decimal, self.thousands) == (".", "")
        if self.missing_output == REFUSE and (plain or self.classes):
            return column, None
        typed = ArrowCells(column).of_kind("numbers")
        column = texts_of(column)
        if pa.types.is_nested(column.type) or pa.types.is_temporal(column.type):
            return column, None
        texts = [write_cell(each) for each in as_texts(column, name="private")]
        empty = EMPTY - set(self.classes)
        missing = np.array([text in empty for text in texts], dtype=bool)
        if not self.classes and not plain:
            texts = [
                text if is_number else self._in_points(text)
                for text, is_number in zip(texts, typed.tolist(), strict=True)
            ]
        if self.missing_output not in (REFUSE, DROP):
            texts = [
                self.missing_output if gone else text
                for text, gone in zip(texts, missing.tolist(), strict=True)
            ]
        return pa.array(texts, pa.string()), ~missing if self.missing_output == DROP else None

    def _in_points(self, text: str) -> str:
        if text in EMPTY:
            return text
        number = read_number(text, self.decimal, self.thousands)
        if is_gap(number) and self.thousands in ALWAYS_THOUSANDS:
            # Then commas and points are both decimals, in whatever columns there are some.
            number = read_number(text, "." if self.decimal == "," else ",", self.thousands)
        return UNREADABLE if is_gap(number) else repr(number)

    def encode(self, batch: Any, *, private: bool, first_row: int, place: str) -> tuple[Any, int]:
        """Return a batch of numbers, with its other columns behind them.

        And the number of rows that are left out because their private cell is missing.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            The schema's columns; behind them, any others, the private one last if it is there.
        private : bool
            Whether the private column is wanted.
        first_row : int
            How many rows of the file come before.
        place : str
            Said after rows' numbers in messages.
        """
        sources = self.schema.sources
        kept: NDArray[np.bool_] = np.ones(batch.num_rows, dtype=bool)
        others = [batch.column(number) for number in range(len(sources), batch.num_columns)]
        if private or self.missing_output == DROP:
            others[-1], present = self.private(others[-1])
            kept = kept if present is None else present
            others = others if private else others[:-1]
        raw = RawTable.of(batch, sources)
        encoded = self.schema.encode(raw, first_row=first_row, place=place)
        chosen = pa.array(kept[encoded.kept])
        numbers = [pa.array(column).filter(chosen) for column in encoded.X.T]
        mask = pa.array(kept & encoded.kept)
        columns = [*numbers, *(column.filter(mask) for column in others)]
        made = pa.RecordBatch.from_arrays(columns, names=[str(n) for n in range(len(columns))])
        return made, batch.num_rows - int(kept.sum())
