"""Table schema: the registry of table formats by suffix, and the columns that a table must have.

Imports nothing that takes long: the command line checks names before it reads anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

TEXT = (".csv", ".tsv")
DELIMITED = tuple(
    kind + packed for kind in TEXT for packed in ("", ".gz", ".bz2", ".xz", ".zst", ".zip")
)
SPREADSHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
DATABASES = (".sqlite", ".sqlite3", ".db")
# Files that hold the address of a database.
ADDRESSES = (".url",)
# How names of files end, by the class that reads them, which is imported when there is such a file.
FORMATS: dict[str, tuple[str, ...]] = {
    "cloakgp.data.formats.delimited:CsvFormat": DELIMITED,
    "cloakgp.data.formats.columnar:ParquetFormat": (".parquet",),
    "cloakgp.data.formats.columnar:ArrowFormat": (".arrow", ".feather"),
    "cloakgp.data.formats.rows:SpreadsheetFormat": SPREADSHEETS,
    "cloakgp.data.formats.rows:DatabaseFormat": DATABASES,
    "cloakgp.data.formats.address:AddressFormat": ADDRESSES,
}
# Named in advice: the others are told in the documentation.
USUAL = (*TEXT, ".parquet", ".xlsx", ".sqlite")


def table_suffix(path: str | Path) -> str:
    """Return the suffix of a table's format, or raise an error that lists all.

    Examples
    --------
    >>> table_suffix("people.CSV.gz")
    '.csv.gz'
    """
    name = Path(path).name.lower()
    for suffix in chain.from_iterable(FORMATS.values()):
        if name.endswith(suffix):
            return suffix
    raise ValueError(f"{path}: the name of a table must end in {', '.join(USUAL)}, ...")


def checked_names(inputs: Sequence[str], *, output: str | None = None) -> tuple[str, ...]:
    """Return the names of inputs, if they are some, each once, and none is the output's.

    Raises
    ------
    ValueError
        If not.

    Examples
    --------
    >>> checked_names(["age", "weight"], output="height")
    ('age', 'weight')
    """
    names = tuple(inputs)
    if isinstance(inputs, str) or not names:
        raise ValueError("name at least one input column, in a list")
    if output in names:
        raise ValueError(f"column {output!r} is named as input and as output: inputs are public")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"column {repeated[0]!r} is named twice: name every column once")
    return names


class NoRowsError(ValueError):
    """A table has no rows."""


def check_file(path: Path) -> None:
    """Check that a file exists, is not empty, and has a suffix of a known format.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        If there is no such file.
    ValueError
        If it is empty, or its name ends in something else.
    """
    table_suffix(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}: check its name and folder")
    if path.stat().st_size == 0:
        raise NoRowsError(f"{path} is empty: it needs a line of column names, then rows")


def check_header(path: Path, header: Sequence[str], *, names: Sequence[str], certain: bool) -> None:
    """Check that every column asked for is there, once.

    Parameters
    ----------
    path : Path
    header : sequence of str
    names : sequence of str
        The columns asked for.
    certain : bool
        Whether the header is known to hold names. The first line of a text file may be somebody's
        row instead, and is known to hold names only if one of them was asked for.

    Raises
    ------
    ValueError
        If not. Tells what columns there are, unless the header may be somebody's row.

    Examples
    --------
    >>> people = Path("people.csv")
    >>> check_header(people, ["age", "size"], names=["age", "height"], certain=False)
    Traceback (most recent call last):
    ...
    ValueError: people.csv has no column height; its columns are: age, size
    """
    missing = [name for name in names if name not in header]
    if missing:
        listed = ", ".join(missing)
        if not certain and len(missing) == len(names):
            named = sum(bool(name.strip()) for name in header)
            title = " If a title stands above the names, delete its rows." if named == 1 else ""
            raise ValueError(
                f"{path} has no column {listed}. Its first line has {len(header)} cells, "
                f"{'one' if named == 1 else f'{named:,}'} of them not empty, and none is a name "
                "that was asked for. It may be a person's row, and is not shown: the first line "
                f"must name the columns.{title}"
            )
        existing = ", ".join(name for name in header if name)
        raise ValueError(f"{path} has no column {listed}; its columns are: {existing}")
    for name in names:
        if list(header).count(name) > 1:
            raise ValueError(f"{path} has several columns called {name!r}: rename all but one")
