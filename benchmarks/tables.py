"""Tables of measurements, as CSV with every digit and as Markdown to read."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table as Printed

from experiments.framework import table_titled

Cell = str | float | int | None


@dataclass(frozen=True)
class Table:
    """Rows under the same columns.

    Attributes
    ----------
    title : str
    columns : tuple of str
        All of them go to the CSV file.
    rows : sequence of mapping of column to cell
        A column that is missing is an empty cell.
    shown : tuple of str
        Those that go to the Markdown file; all if empty.
    notes : tuple of str
        Lines below the table.
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Cell]]
    shown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        """Return the table as Markdown.

        Examples
        --------
        >>> print(Table("t", ("a", "b"), [{"a": 1.23456}, {"b": "x|y"}]).markdown())
        ## t
        <BLANKLINE>
        | a | b |
        | --- | --- |
        | 1.23 |  |
        |  | x/y |
        <BLANKLINE>
        """
        columns = self.shown or self.columns
        lines = [f"## {self.title}", "", _line(columns), _line(["---"] * len(columns))]
        lines += [_line([shown(row.get(column)) for column in columns]) for row in self.rows]
        lines += ["", *(f"* {note}" for note in self.notes)]
        return "\n".join(lines) + ("\n" if self.notes else "")

    def laid_out(self) -> Printed:
        """Return the table as those of experiments are laid out, so that pages can show it.

        Examples
        --------
        >>> list(Table("t", ("a", "b"), [{"a": 1.23456, "b": 2}]).laid_out().columns[0].cells)
        ['1.23']
        """
        columns = self.shown or self.columns
        laid = table_titled(self.title, columns[0], right=columns[1:])
        for row in self.rows:
            laid.add_row(*(shown(row.get(column)) for column in columns))
        return laid

    def write(self, folder: Path, *, stem: str) -> None:
        """Write ``stem.csv`` and ``stem.md``.

        Parameters
        ----------
        folder : Path
            Created if need be.
        stem : str
        """
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{stem}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self.columns, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
        (folder / f"{stem}.md").write_text(self.markdown(), encoding="utf-8")


def by_value(
    rows: Sequence[Mapping[str, Cell]], column: str
) -> Iterator[tuple[Cell, list[Mapping[str, Cell]]]]:
    """Yield each value of a column, in the order in which they come, with its rows.

    Parameters
    ----------
    rows : sequence of mapping of column to cell
    column : str

    Examples
    --------
    >>> [(value, len(own)) for value, own in by_value([{"a": 2}, {"a": 1}, {"a": 2}], "a")]
    [(2, 2), (1, 1)]
    """
    for value in dict.fromkeys(row[column] for row in rows):
        yield value, [row for row in rows if row[column] == value]


def for_page(title: str, rows: Sequence[Mapping[str, Cell]], heads: Mapping[str, str]) -> Table:
    """Return a table for a page, which is narrow: some columns, under heads to read.

    Parameters
    ----------
    title : str
    rows : sequence of mapping of column to cell
    heads : mapping of head to column
        Those without a cell in any row are left out.

    Examples
    --------
    >>> for_page("t", [{"a": 1, "b": None}], {"first": "a", "second": "b"}).columns
    ('first',)
    """
    filled = {
        head: column
        for head, column in heads.items()
        if any(row.get(column) is not None for row in rows)
    }
    renamed = [{head: row.get(column) for head, column in filled.items()} for row in rows]
    return Table(title, tuple(filled), renamed)


def shown(cell: Cell) -> str:
    """Return a cell for reading: three significant digits, and no exponent where none is needed.

    Examples
    --------
    >>> [shown(one) for one in (None, 0.012345, 12345.6, 4, math.inf, 1.5e-7)]
    ['', '0.0123', '12346', '4', 'infinite', '1.5e-07']
    """
    if cell is None:
        return ""
    if isinstance(cell, float):
        if not math.isfinite(cell):
            return "infinite" if cell > 0 else str(cell)
        return f"{cell:.0f}" if abs(cell) >= 100 else f"{cell:.3g}"
    return str(cell).replace("|", "/")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
