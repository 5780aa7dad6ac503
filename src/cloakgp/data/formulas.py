"""Text in CSV that spreadsheets would take for formulas, and run.

Names of columns and classes come from files that others made. A spreadsheet takes text that begins
with one of `BEGINNINGS` for a formula, which may start programs or send away what stands beside
it. An apostrophe before it makes it text again, as everywhere in spreadsheets. Numbers stay as they
are, those that are written as text too.
"""

from __future__ import annotations

import re

from cloakgp.privacy.entries import NUMBER
from cloakgp.utils.extras import extra

with extra("tables"):
    import pandas as pd

# After blanks too, which some programs take off; the last four are wide forms of the first.
BEGINNINGS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
# They separate cells in some programs, whatever stands behind them.
SEPARATORS = ("\t", "\r", "\n")


def without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which no name and no text begins like a formula.

    Parameters
    ----------
    frame : pandas.DataFrame

    Examples
    --------
    >>> odd = pd.DataFrame({"=cmd": ["@risk", "-1", "no"], "x": [-1.0, 2.0, 3.0]})
    >>> print(without_formulas(odd).to_csv(index=False))
    '=cmd,x
    '@risk,-1.0
    -1,2.0
    no,3.0
    <BLANKLINE>
    """
    safe = frame.copy()
    for position in range(frame.shape[1]):
        column = frame.iloc[:, position]
        if not pd.api.types.is_numeric_dtype(column.dtype):
            safe.isetitem(position, column.map(_as_text).to_numpy())
    safe.columns = pd.Index([_as_text(name) for name in frame.columns])
    return safe


def _as_text(cell: object) -> object:
    if not isinstance(cell, str) or re.fullmatch(NUMBER, cell):
        return cell
    return (
        f"'{cell}" if cell.startswith(SEPARATORS) or cell.lstrip().startswith(BEGINNINGS) else cell
    )
