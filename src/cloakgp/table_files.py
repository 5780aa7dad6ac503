"""Tables as files: which formats there are, and how public results are written."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import NDArray

SUFFIXES = (".csv", ".csv.gz", ".parquet")


def write_table(
    path: str | Path, columns: Mapping[str, NDArray[Any]], *, overwrite: bool = False
) -> None:
    """Write public columns to a table, in one step: readers see all of it or nothing.

    Parameters
    ----------
    path : str or Path
        Ending in .csv, .csv.gz or .parquet.
    columns : mapping of str to arrays of shape (n,)
    overwrite : bool
        Replace a file that exists.

    Raises
    ------
    FileExistsError
        If it exists and overwrite is False.
    FileNotFoundError
        If its folder does not exist.
    ValueError
        If the name ends in something else.

    Examples
    --------
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(Path(folder) / "out.csv", {"mean": np.array([1.5])})
    ...     print((Path(folder) / "out.csv").read_text().splitlines())
    ['mean', '1.5']
    """
    target = Path(path)
    suffix = table_suffix(target)
    check_target(target, overwrite=overwrite)
    frame = pd.DataFrame(dict(columns))
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".cloakgp-") as folder:
        unfinished = Path(folder) / f"table{suffix}"
        if suffix == ".parquet":
            frame.to_parquet(unfinished, index=False)
        else:
            frame.to_csv(unfinished, index=False)
        unfinished.replace(target)


def check_target(path: str | Path, *, overwrite: bool) -> None:
    """Raise unless a file may be written there, so that nobody waits, or spends, in vain.

    Raises
    ------
    FileExistsError
        If it exists and overwrite is False.
    FileNotFoundError
        If its folder does not exist.
    IsADirectoryError
        If it is a folder itself.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder: name a file")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent}: create it first")
    if target.exists() and not overwrite:
        raise FileExistsError(
            f"{target} exists: choose another name, or replace it with --overwrite"
        )


def table_suffix(path: str | Path) -> str:
    """Return the suffix that tells a table's format, or say which ones do.

    Examples
    --------
    >>> table_suffix("people.CSV.gz")
    '.csv.gz'
    """
    name = Path(path).name.lower()
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return suffix
    raise ValueError(f"{path}: the name of a table must end in {', '.join(SUFFIXES)}")
