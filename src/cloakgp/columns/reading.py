"""Reading of a table's public columns: what they are, whether that is settled, and remarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from cloakgp.columns.base import Column
from cloakgp.columns.cells import cells_of
from cloakgp.columns.inference import check_one_notation, infer_number, infer_schema
from cloakgp.columns.numbers import Number
from cloakgp.columns.remarks import WHOSE, on_notation, remarks_on, written_with
from cloakgp.columns.schema import Schema


def declared_exposure(schema: Schema, name: str) -> Number | None:
    """Return the numbers that a schema declares a column of exposures to be, or None.

    None of them may be missing.

    Parameters
    ----------
    schema : Schema
    name : str

    Examples
    --------
    >>> declared_exposure(Schema((Number("days", decimal=","),)), "days").decimal
    ','
    """
    found = (each for each in schema.columns if each.name == name and isinstance(each, Number))
    return next((replace(each, missing="refuse", fill=0.0) for each in found), None)


@dataclass(frozen=True, eq=False)
class PublicColumns:
    """Public columns of a table, and how they are read.

    Attributes
    ----------
    table : mapping of str to columns, or table of pandas, polars or Arrow
    schema : Schema
        Of the inputs.
    inferred : bool
        Whether nobody declared it.
    exposure : Number or None
        The further column that says in how much each row was counted, if there is one.
    beside : tuple of str
        Names of all further columns.
    """

    table: Any
    schema: Schema
    inferred: bool = True
    exposure: Number | None = None
    beside: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        table: Any,
        names: Sequence[str],
        *,
        declared: Schema | None = None,
        exposure: Number | str = "",
        beside: Sequence[str] = (),
    ) -> Self:
        """Return the columns as they are declared or, where they are not, inferred together.

        Parameters
        ----------
        table
            As it is kept.
        names : sequence of str
            Of the inputs, where they are not declared.
        declared : Schema, optional
            Of the inputs.
        exposure : Number or str
            What the column of exposures is declared to be, or its name; empty if there is none.
        beside : sequence of str
            Names of other further columns.

        Examples
        --------
        >>> table = {"age": ["30,5", "40"], "days": ["4.706", "956"]}
        >>> PublicColumns.of(table, ["age"], exposure="days").exposure.thousands
        '.'
        """
        counted = exposure.name if isinstance(exposure, Number) else exposure
        further = (*([counted] if counted else []), *beside)
        if declared is None:
            schema = infer_schema(table, names, beside=further)
        else:
            schema = declared.complete(table)
        number = exposure if isinstance(exposure, Number) else None
        if counted and number is None:
            number = infer_number(table, counted, schema=schema)
        return cls(table, schema, inferred=declared is None, exposure=number, beside=further)

    def validate(self, *, private_numbers: bool) -> None:
        """Refuse what is undecided, and what contradicts itself.

        Parameters
        ----------
        private_numbers : bool
            Whether the private column is one of numbers: their text is read as public text is.

        Raises
        ------
        ValueError
        """
        self.schema.validate()
        if self.exposure is not None:
            self.exposure.validate()
        if self.inferred and private_numbers:
            check_one_notation(self.table, self.schema, beside=self.beside)

    def remarks(self, *, private: Sequence[str] = ()) -> list[str]:
        """Return what should be known of how columns are read that nobody declared.

        Each is a sentence with the name of its column.

        Parameters
        ----------
        private : sequence of str
            Names of private columns of numbers. None of their cells is looked at: how their text is
            read follows from public columns.

        Examples
        --------
        >>> PublicColumns.of({"age": ["30,5", "40"]}, ["age"]).remarks(private=["pay"])[1]
        'pay: text in it is read with decimal commas: 1,5 is one and a half'
        """
        found = remarks_on(self.schema, self.table) if self.inferred else {}
        told = {
            name: [remark for remark in remarks if not remark.endswith(WHOSE)]
            for name, remarks in found.items()
        }
        return _sentences(told | self._beside_inputs(private))

    def on_notation(self, *, private: Sequence[str] = ()) -> list[str]:
        """Return those of the remarks that are on cells which could be read in another way, too.

        Parameters
        ----------
        private : sequence of str
            As for `remarks`.
        """
        told = {each.name: self._on_notation(each) for each in self._inferred_inputs}
        return _sentences(told | self._beside_inputs(private))

    @property
    def _inferred_inputs(self) -> tuple[Column, ...]:
        return self.schema.used if self.inferred else ()

    def _beside_inputs(self, private: Sequence[str]) -> dict[str, list[str]]:
        """Return remarks on exposures, and on private columns."""
        columns, told = list(self._inferred_inputs), {}
        if self.exposure is not None:
            columns.append(self.exposure)
            told[self.exposure.name] = self._on_notation(self.exposure)
        numbers = [each for each in columns if isinstance(each, Number)]
        undecided = any(each.undecided for each in numbers)
        if any(map(self._on_notation, numbers)) and not undecided:
            how = written_with(*self.schema.and_also(self.exposure).decimal)
            told |= {name: [f"text in it is read {how}"] for name in private}
        return told

    def _on_notation(self, column: Column) -> list[str]:
        codes = frozenset(self.schema.missing_values)
        return [*on_notation(column, cells_of(self.table[column.sources[0]]), codes=codes)]


def _sentences(told: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"{name}: {remark}" for name, remarks in told.items() for remark in remarks]
