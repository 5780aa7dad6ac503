"""Problems of a table's public columns, all in one report. Cells are not quoted.

A row that is shifted may hold a private value in a public column: rows and columns are named, and
what stands there is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

BELOW_HEADER = "row {} below the header"
FROM_ZERO = "row {}, counted from 0"
# Of each problem; the others are counted.
SHOWN_ROWS = 5
SHOWN_PROBLEMS = 20


@dataclass(frozen=True, eq=False)
class InvalidCells:
    """Invalid cells of a public column, and their fault.

    Attributes
    ----------
    column : str
    fault : str
        Such as "is empty".
    rows : array of int
        From 0, at least one.
    """

    column: str
    fault: str
    rows: NDArray[Any]


def check_problems(
    problems: Sequence[InvalidCells],
    *,
    first_row: int = 0,
    place: str = "",
    row: str = BELOW_HEADER,
) -> None:
    """Raise one error that names all problems, if there are some.

    Parameters
    ----------
    problems : sequence of InvalidCells
    first_row : int
        How many rows of the table come before these.
    place : str
        Said after rows' numbers.
    row : str
        How a row is called.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> import numpy as np
    >>> check_problems([InvalidCells("age", "is empty", np.array([0]))])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: column 'age' is empty in row 1 below the header: correct that cell, ...
    """
    if not problems:
        return
    start = first_row + (1 if row == BELOW_HEADER else 0)
    told = [_tell(problem, start=start, place=place, row=row) for problem in problems]
    cells = sum(len(problem.rows) for problem in problems)
    if cells == 1:
        raise ValueError(f"{told[0]}: correct that cell, or leave the row out")
    advice = "correct these cells, leave the rows out, or say in a schema what missing cells mean"
    if len(told) == 1:
        raise ValueError(f"{told[0]}: {advice}")
    listed = "; ".join(told[:SHOWN_PROBLEMS])
    more = len(told) - SHOWN_PROBLEMS
    rest = f"; and {more} more" if more > 0 else ""
    raise ValueError(
        f"public columns have {cells:,} cells that cannot be used; {advice}: {listed}{rest}"
    )


def _tell(problem: InvalidCells, *, start: int, place: str, row: str) -> str:
    numbers = [str(start + int(each)) for each in problem.rows]
    first = row.format(numbers[0])
    others = numbers[1:SHOWN_ROWS]
    more = len(numbers) - 1
    if not more:
        return f"column {problem.column!r} {problem.fault} in {first}{place}"
    etc = ", …" if more > len(others) else ""
    return (
        f"column {problem.column!r} {problem.fault} in {first}{place}, and in {more:,} more "
        f"({', '.join(others)}{etc})"
    )
