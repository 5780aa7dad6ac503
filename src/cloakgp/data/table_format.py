"""What formats of tables have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from cloakgp.data.cells import attempted
from cloakgp.data.schema import check_file, check_header

Batch = Any
"""Of Arrow: some rows of a table, column by column."""


class TableFormat(ABC):
    """A format of tables in files: how columns are named and read.

    Attributes
    ----------
    suffixes : tuple of str
        How the names of such files end.
    certain_names : bool
        Whether the names of columns are known to be names; the first line of a text file may hold
        a person's values instead.
    """

    suffixes: ClassVar[tuple[str, ...]]
    certain_names: ClassVar[bool]

    @abstractmethod
    def look(self, path: Path) -> tuple[list[str], int | None]:
        """Return the names of a file's columns, and how many rows it has, if that is known.

        Raises
        ------
        ValueError, OSError, EOFError, zlib.error, pyarrow.ArrowException, csv.Error
            If it cannot be read; these may quote a cell, and must not reach anybody.
        """

    @abstractmethod
    def batches(
        self, path: Path, names: Sequence[str], *, rows: int, threads: bool
    ) -> Generator[Batch, None, None]:
        """Read the named columns of a file, in this order and no others.

        Parameters
        ----------
        path : Path
        names : sequence of str
        rows : int
            About how many rows to read at once, where the format allows a choice.
        threads : bool
            Whether columns may be read side by side.

        Raises
        ------
        ValueError
            If the file is damaged. Nothing of what is in it is said.
        """

    def check(self, path: Path, *, names: Sequence[str]) -> int | None:
        """Check that a file is there and has columns; return how many rows it has, if known.

        Raises
        ------
        FileNotFoundError, IsADirectoryError
            If there is no such file.
        ValueError
            If a column is missing, or the file cannot be read.
        """
        check_file(path)
        header, rows = attempted(path, lambda: self.look(path))
        check_header(path, header, names=names, certain=self.certain_names)
        return rows
