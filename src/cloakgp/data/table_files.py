"""Tables as files: which formats there are, and how public results are written."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cloakgp.utils.extras import extra

if TYPE_CHECKING:
    from numpy.typing import NDArray


SUFFIXES = (".csv", ".csv.gz", ".parquet")


def table_bytes(columns: Mapping[str, NDArray[Any]], *, suffix: str) -> bytes:
    """Return the file of a table of public columns.

    In CSV, names and text that a spreadsheet would take for formulas have an apostrophe before
    them.

    Parameters
    ----------
    columns : mapping of str to arrays of shape (n,)
    suffix : str
        .csv, .csv.gz or .parquet.

    Examples
    --------
    >>> import numpy as np
    >>> table_bytes({"mean": np.array([1.5])}, suffix=".csv").split()
    [b'mean', b'1.5']
    """
    with extra("tables"):
        import pandas as pd

        from cloakgp.data.formulas import without_formulas
    content = io.BytesIO()
    if suffix == ".parquet":
        pd.DataFrame(dict(columns)).to_parquet(content, index=False)
    else:
        compression: Literal["gzip"] | None = "gzip" if suffix.endswith(".gz") else None
        frame = without_formulas(pd.DataFrame(dict(columns)))
        frame.to_csv(content, index=False, compression=compression)
    return content.getvalue()


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
