"""Schema of the public columns, and the encoding of a table as a matrix.

`Schema.encode` is the one way from raw columns to numbers: of estimators when they fit, of the
command line, and of a release when it predicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.columns.base import EMPTY_CELL, Coded, Column
from cloakgp.columns.cells import Cells, cells_of
from cloakgp.columns.notation import PLAIN, Notation
from cloakgp.columns.problems import BELOW_HEADER, InvalidCells, check_problems
from cloakgp.privacy.entries import EMPTY
from cloakgp.utils.arrays import Array, check_writable, column_names

# That a file may declare.
MOST_COLUMNS = 10_000
# So many columns are named in a message.
SHOWN = 5
# Of levels that are named in what is said of those not seen before.
SHOWN_LEVELS = 3
# That are remembered of a column, however many there are.
MOST_LEVELS = 1000


@dataclass(frozen=True)
class UnseenLevels:
    """Undeclared levels of a column; ``str()`` describes them in a sentence.

    Attributes
    ----------
    column : str
    meaning : str
        What they are taken for.
    rows : int
        How many rows have one.
    levels : tuple of str
        The first of them, each once, at most `MOST_LEVELS`; none where they are not to be told.
    """

    column: str
    meaning: str
    rows: int
    levels: tuple[str, ...]

    def merge(self, later: UnseenLevels) -> UnseenLevels:
        """Return these levels with those of rows further down.

        Examples
        --------
        >>> first = UnseenLevels("job", "missing", 2, ("cook",))
        >>> print(first.merge(UnseenLevels("job", "missing", 1, ("cook",))))
        column 'job' has levels that were not declared ('cook') in 3 rows: taken as missing
        """
        levels = tuple(dict.fromkeys((*self.levels, *later.levels)))[:MOST_LEVELS]
        return replace(self, rows=self.rows + later.rows, levels=levels)

    def __str__(self) -> str:
        few = ", ".join(repr(level[:40]) for level in self.levels[:SHOWN_LEVELS])
        count = len(self.levels) - SHOWN_LEVELS
        many = "many" if len(self.levels) == MOST_LEVELS else f"{count}"
        shown = f" ({few}{f' and {many} more' if count > 0 else ''})" if few else ""
        return (
            f"column {self.column!r} has levels that were not declared{shown} in "
            f"{self.rows:,} {'row' if self.rows == 1 else 'rows'}: taken as {self.meaning}"
        )


@dataclass(frozen=True, eq=False)
class Encoded:
    """A table as numbers.

    Attributes
    ----------
    X : array of shape (n, D)
        The rows that are kept.
    kept : array of bool, of the length of the table
        Which rows these are; the others lack something, and are to be left out.
    unseen : tuple of UnseenLevels
        Of each column that has some.
    lacking : dict of str to int
        Where rows are encoded one by one: of each column whose empty cells leave a row without a
        prediction, the number of these cells.
    """

    X: Array
    kept: NDArray[np.bool_]
    unseen: tuple[UnseenLevels, ...] = ()
    lacking: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Schema:
    """The kinds of the public columns of a table, in order: plain data, so that a file can hold it.

    Attributes
    ----------
    columns : tuple of Column
    missing_values : tuple of str
        Text that means that a cell is missing.

    Examples
    --------
    >>> from cloakgp.columns import Category, Number
    >>> schema = Schema((Number("age"), Category("sex", levels=("f", "m"), other=False)))
    >>> schema.encode({"sex": ["m", "f"], "age": [30, 40]}).X.round(2)
    array([[30.  ,  0.  ,  0.71],
           [40.  ,  0.71,  0.  ]])
    """

    columns: tuple[Column, ...]
    missing_values: tuple[str, ...] = tuple(sorted(EMPTY))

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns that something is predicted from."""
        return tuple(column for column in self.columns if column.blocks)

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns of a table that are read."""
        return tuple(source for column in self.used for source in column.sources)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers, shape (D,)."""
        return tuple(name for column in self.used for block in column.blocks for name in block)

    @property
    def groups(self) -> tuple[int, ...]:
        """Of each number, which block of one scale it belongs to, from 0, shape (D,)."""
        blocks = [block for column in self.used for block in column.blocks]
        return tuple(number for number, block in enumerate(blocks) for _ in block)

    @property
    def block_names(self) -> tuple[str, ...]:
        """The name of each block: that of its column, with the part of it if there are several."""
        return tuple(
            block[0] if len(block) == 1 else block[0].rpartition(": ")[0] or block[0]
            for column in self.used
            for block in column.blocks
        )

    @property
    def plain(self) -> bool:
        """Whether every number is a column of its own, as it stands in a table of numbers."""
        return self.names == self.sources

    @property
    def decimal(self) -> Notation:
        """Signs of decimals and of thousands in which public numbers are written.

        A column without thousands says nothing of their sign.
        """
        signs: list[Notation] = [
            (getattr(column, "decimal", "."), getattr(column, "thousands", ""))
            for column in self.columns
        ]
        decimal = next((each[0] for each in signs if each != PLAIN), PLAIN[0])
        return decimal, next((each[1] for each in signs if each[0] == decimal and each[1]), "")

    @cached_property
    def _codes(self) -> frozenset[str]:
        return frozenset(self.missing_values)

    def encode(
        self,
        table: Any,
        *,
        first_row: int = 0,
        place: str = "",
        row: str = BELOW_HEADER,
        one_by_one: bool = False,
    ) -> Encoded:
        """Return the encoding of raw columns, which may have any order.

        Parameters
        ----------
        table : mapping of str to columns, or table of pandas, polars or Arrow
            Other columns are passed over.
        first_row : int
            How many rows of the table come before these.
        place : str
            Said after rows' numbers, if there are several files.
        row : str
            How a row is called, with {} for its number from 0 or 1.
        one_by_one : bool
            Whether a row that lacks something is kept, as NaN: there is a prediction for every row
            then, and none for that one, also where an empty cell is refused in a table to be
            fitted.

        Raises
        ------
        ValueError
            If a column is missing. If cells are at fault, one error names all of them.
        """
        check_sources(table, self.sources)
        parts = [
            (column, column.encode(self._cells(table, column), codes=self._codes))
            for column in self.used
        ]
        rows = {len(coded.X) for _, coded in parts}
        if len(rows) != 1:
            raise ValueError("the columns of a table must have as many rows each")
        gaps = [
            coded.left_out | coded.faults[EMPTY_CELL]
            if one_by_one and EMPTY_CELL in coded.faults
            else coded.left_out
            for _, coded in parts
        ]
        left_out = np.logical_or.reduce(gaps)
        check_problems(
            [
                InvalidCells(
                    column=_called(column), fault=fault, rows=np.flatnonzero(mask & ~left_out)
                )
                for column, coded in parts
                for fault, mask in coded.faults.items()
                if (mask & ~left_out).any()
            ],
            first_row=first_row,
            place=place,
            row=row,
        )
        X = np.hstack([coded.X for _, coded in parts])
        unseen = tuple(
            _unseen(column, coded, self._cells(table, column)[0], quoted=one_by_one)
            for column, coded in parts
            if coded.unseen.any()
        )
        if one_by_one:
            X[left_out] = np.nan
            lacking = {
                column.name: int(gap.sum())
                for (column, _), gap in zip(parts, gaps, strict=True)
                if gap.any()
            }
            return Encoded(X=X, kept=np.ones(len(X), dtype=bool), unseen=unseen, lacking=lacking)
        return Encoded(X=np.ascontiguousarray(X[~left_out]), kept=~left_out, unseen=unseen)

    def _cells(self, table: Any, column: Column) -> list[Cells]:
        return [cells_of(table[source]) for source in column.sources]

    def complete(self, table: Any) -> Schema:
        """Return the schema with its open parts taken from public columns.

        Parameters
        ----------
        table
            As for `encode`.
        """
        check_sources(table, self.sources)
        made = replace(
            self,
            columns=tuple(
                column
                if column.complete
                else column.fill_from(self._cells(table, column), codes=self._codes)
                for column in self.columns
            ),
        )
        made.validate()
        return made

    def select(self, names: Sequence[str]) -> Schema:
        """Return the schema of some columns, in this order; one of several has its name or theirs.

        Raises
        ------
        ValueError
            If one is not there.
        """
        chosen: list[Column] = []
        for name in names:
            found = [each for each in self.columns if name in (each.name, *each.sources)]
            if not found:
                raise ValueError(
                    f"the schema has no column {name}: it has "
                    f"{', '.join(column.name for column in self.columns)}"
                )
            chosen += [column for column in found if column not in chosen]
        for column in chosen:
            lacking = set(column.sources) - set(names)
            if len(column.sources) > 1 and column.name not in names and lacking:
                raise ValueError(f"{column.kind} {column.name} needs {_sources_of(column)}")
        return replace(self, columns=tuple(chosen))

    def check_used(self, names: Sequence[str]) -> None:
        """Refuse columns that somebody named, and that nothing would be predicted from.

        Parameters
        ----------
        names : sequence of str

        Raises
        ------
        ValueError
        """
        if told := self.unused_in_words(names):
            raise ValueError(told)

    def unused_in_words(self, names: Sequence[str]) -> str:
        """Return which columns nothing would be predicted from; empty if there are none.

        Parameters
        ----------
        names : sequence of str

        Examples
        --------
        >>> from cloakgp.columns import Identifier
        >>> Schema((Identifier("wait"),)).unused_in_words(["wait"])[:41]
        'nothing would be predicted from wait: it '
        """
        used = {name for column in self.used for name in (column.name, *column.sources)}
        unused = [name for name in names if name not in used]
        if not unused:
            return ""
        taken = "it is taken for an id, or is" if len(unused) == 1 else "they are ids, or"
        return (
            f"nothing would be predicted from {_some_of(unused)}: {taken} empty. "
            "Leave that out of the inputs; or, if it is a category, a date or a number after all, "
            "declare its kind in a schema, which cloakgp schema writes, or write all of its cells "
            "in one way, a duration as a number"
        )

    def and_also(self, column: Column | None) -> Schema:
        """Return the schema with one more column, if there is one, after all others."""
        return self if column is None else replace(self, columns=(*self.columns, column))

    def without(self, name: str) -> Schema:
        """Return the schema without the column of a name, if it has that."""
        return replace(self, columns=tuple(each for each in self.columns if each.name != name))

    def validate(self) -> None:
        """Refuse columns that do not fit each other.

        Raises
        ------
        ValueError
        """
        if len(self.columns) > MOST_COLUMNS:
            raise ValueError(
                f"a schema has {MOST_COLUMNS:,} columns at most, not {len(self.columns):,}"
            )
        if not self.used:
            raise ValueError(self._none_is_used())
        check_writable((*self.names, *self.sources))
        for listed in (self.names, self.sources, tuple(each.name for each in self.columns)):
            if len(set(listed)) < len(listed):
                raise ValueError("a schema names a column twice")
        for column in self.columns:
            column.validate()

    def _none_is_used(self) -> str:
        needed = "a schema needs at least one column that is used"
        if not self.columns:
            return f"{needed}, and there is none"
        names = _some_of([each.name for each in self.columns])
        return (
            f"{needed}: {names} are taken for ids, or are empty, and nothing is predicted "
            "from these. If one is a category, a date or a number after all, declare its kind in a "
            "schema, or write its cells as such"
        )


def _some_of(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def check_sources(table: Any, sources: Iterable[str]) -> None:
    """Check that a table has the columns that are read, each once.

    Parameters
    ----------
    table : mapping, or table
    sources : iterable of str

    Raises
    ------
    ValueError

    Examples
    --------
    >>> check_sources({"age": [3]}, ["age"])
    """
    present = column_names(table)
    wanted = list(dict.fromkeys(sources))
    missing = [name for name in wanted if name not in present]
    if missing:
        raise ValueError(f"there is no column {', '.join(missing)}: needed are {', '.join(wanted)}")
    repeated = [name for name in wanted if present.count(name) > 1]
    if repeated:
        raise ValueError(f"there is more than one column {', '.join(repeated)}")


def _sources_of(column: Column) -> str:
    sources = column.sources
    if len(sources) == 2:
        return " and ".join(sources)
    return f"all of its {len(sources)} columns, {sources[0]} to {sources[-1]}"


def _called(column: Column) -> str:
    return _sources_of(column) if len(column.sources) == 2 else column.name


def _unseen(column: Column, coded: Coded, cells: Cells, *, quoted: bool) -> UnseenLevels:
    """Return levels that were not declared; which they are only where nothing private is near."""
    found = dict.fromkeys(cells.texts()[coded.unseen].tolist()) if quoted else {}
    return UnseenLevels(
        column=column.name,
        meaning="the level for others" if getattr(column, "other", False) else "missing",
        rows=int(coded.unseen.sum()),
        levels=tuple(found)[:MOST_LEVELS],
    )
