"""Cells of Arrow columns as float64, every cell read on its own.

Whether one cell is a number, and which, never depends on another: else one person's cell would
change how all others are read. Nothing here raises because of a cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cloakgp.arrays import Array

# Blanks and quotes around a number are taken off: a quote after a blank is no quote to Arrow.
AROUND = ' \t"'
NUMBER = r"[ \t]*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?[ \t]*"
PLAIN = rf'^(?:{NUMBER}|[ \t]*"{NUMBER}"[ \t]*)$'
# What pandas takes for an empty cell.
EMPTY = frozenset(
    b"|#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|None|n/a|"
    b"nan|null".split(b"|")
)
WORDS = {b"true": 1.0, b"false": 0.0} | {
    sign + word: sign_value * np.inf
    for sign, sign_value in ((b"", 1), (b"+", 1), (b"-", -1))
    for word in (b"inf", b"infinity")
}


def as_numbers(column: pa.Array) -> tuple[NDArray[np.bool_], Array]:
    """Return which cells are empty, and all as float64 with NaN for what is no number.

    Numbers in text are read to the nearest float64. Dates and durations are no numbers: nobody
    named their unit.

    Parameters
    ----------
    column : pyarrow.Array of length n
        Of any type.

    Returns
    -------
    missing : array of bool, shape (n,)
    values : array of shape (n,)

    Examples
    --------
    >>> missing, values = as_numbers(pa.array(["3", " 4.5", "tall", None]))
    >>> missing.tolist(), values.tolist()
    ([False, False, False, True], [3.0, 4.5, nan, nan])
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return as_numbers(column.dictionary_decode())
    if _is_text(kind):
        return _text_numbers(column.cast(pa.large_binary()))
    missing = _as_bools(column.is_null())
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return missing, np.full(len(column), np.nan)
    values = _as_floats(column.cast(pa.float64(), safe=False))
    if pa.types.is_floating(kind):
        missing = np.isnan(values)
    return missing, values


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
    )


def _text_numbers(cells: Any) -> tuple[NDArray[np.bool_], Array]:
    """Read text in any encoding that contains ASCII, as bytes."""
    plain = pc.fill_null(pc.match_substring_regex(cells, PLAIN), False)
    # With ASCII only from here on, and only what can be converted.
    digits = pc.if_else(plain, cells, pa.scalar(None, cells.type)).cast(pa.large_string())
    digits = pc.ascii_ltrim(pc.ascii_trim(digits, AROUND), "+")
    values = _as_floats(digits.cast(pa.float64()))
    missing = _as_bools(cells.is_null())
    others = np.flatnonzero(~_as_bools(plain) & ~missing)
    for row, cell in zip(others, cells.take(pa.array(others)).to_pylist(), strict=True):
        word = cell.strip(AROUND.encode())
        missing[row] = word in EMPTY
        values[row] = WORDS.get(word.lower(), np.nan)
    return missing, values


def _as_floats(column: Any) -> Array:
    return np.array(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _as_bools(column: Any) -> NDArray[np.bool_]:
    return np.array(column.to_numpy(zero_copy_only=False), dtype=bool)
