"""Tables as files: Markdown to read, JSON and CSV to compute with."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from rich.text import Text

from experiments.keeping import write_whole


@dataclass(frozen=True)
class Plain:
    """A table without its looks.

    Attributes
    ----------
    title : str
    columns : list of str
    rows : list of list of str
    """

    title: str
    columns: list[str]
    rows: list[list[str]]

    @classmethod
    def of(cls, table: Table) -> Plain:
        """Take the words out of a table that is printed.

        Examples
        --------
        >>> table = Table("a", "b", title="t")
        >>> table.add_row("1", "[bold]2")
        >>> Plain.of(table)
        Plain(title='t', columns=['a', 'b'], rows=[['1', '2']])
        """
        cells = [[_words(cell) for cell in column.cells] for column in table.columns]
        return cls(
            title=_words(table.title or ""),
            columns=[_words(column.header) for column in table.columns],
            rows=[list(row) for row in zip(*cells, strict=True)],
        )

    def markdown(self) -> str:
        """Return it as a table of Markdown under its title."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
        body = "\n".join("| " + " | ".join(line) + " |" for line in escaped)
        return f"{self.title}\n\n{body}" if self.title else body

    def csv(self) -> str:
        """Return it as CSV, the columns' names first."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([self.columns, *self.rows])
        return file.getvalue()


def write_tables(
    shown: Sequence[Table | str], *, folder: Path, name: str, settings: str = ""
) -> list[Path]:
    """Write tables and sentences: all in ``name.md`` and ``name.json``, and each table as CSV.

    Parameters
    ----------
    shown : sequence of Table or str
        In the order in which they are printed.
    folder : Path
    name : str
        Of the files.
    settings : str
        Of what computed them.

    Returns
    -------
    list of Path
        What was written.
    """
    plain = plainly(shown)
    made = {
        f"{name}.md": "\n\n".join(_parts(plain, head=settings)) + "\n",
        f"{name}.json": as_json(plain, settings=settings),
    }
    tables = [one for one in plain if isinstance(one, Plain)]
    made |= {f"{name}-{number}.csv": one.csv() for number, one in enumerate(tables, start=1)}
    for file, text in made.items():
        write_whole(folder / file, text)
    return [folder / file for file in made]


def plainly(shown: Iterable[Table | str]) -> list[Plain | str]:
    """Return what is printed without its looks."""
    return [one if isinstance(one, str) else Plain.of(one) for one in shown]


def as_json(plain: Iterable[Plain | str], **said: str) -> str:
    """Return tables and sentences as JSON, with what is said of them."""
    shown = [one if isinstance(one, str) else vars(one) for one in plain]
    return json.dumps(said | {"shown": shown}, ensure_ascii=False, indent=1) + "\n"


def _parts(plain: Iterable[Plain | str], *, head: str) -> Iterable[str]:
    if head:
        yield f"`{head}`"
    for one in plain:
        yield one if isinstance(one, str) else one.markdown()


def _words(cell: object) -> str:
    text = cell.plain if isinstance(cell, Text) else Text.from_markup(str(cell)).plain
    return " ".join(text.split())
