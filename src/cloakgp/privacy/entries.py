"""Private entries as float64, each read on its own.

Whether an entry is a number, and which, is decided by that entry alone: if it depended on others,
one person's entry could change how those of all others are read, by more than the bounds allow. So
nothing here gives several entries a common type. An array keeps the type that it was made with, and
a list has no type: its entries are converted one by one.

Text is a number if it is written in decimal digits, with a point and an exponent if need be; blanks
and a pair of quotes around it are passed over. It is rounded to the nearest float64, as Python's
``float`` rounds. The words in `WORDS` are numbers too. Reading raises because of no entry; only
`check_numbers` does, which names no value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import DataConversionWarning

from cloakgp.privacy.checks import warn_caller
from cloakgp.utils.arrays import Array, check_writable, column_names

BLANKS = r"[ \t]*"
DIGITS = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?"
NUMBER = rf'{BLANKS}(?:{DIGITS}|"{BLANKS}{DIGITS}{BLANKS}"){BLANKS}'
"""Text that is a number in digits, as a regular expression for the whole of it."""

# Taken off from both ends of text.
AROUND = ' \t"'
WORDS = {"true": 1.0, "false": 0.0} | {
    sign + word: value
    for sign, value in (("", np.inf), ("+", np.inf), ("-", -np.inf))
    for word in ("inf", "infinity")
}
# What spreadsheets and other programs write where a value is missing.
EMPTY = frozenset(
    {"", "NULL", "NaN", "None", "nan", "null", "-NaN", "-nan", "NA", "N/A", "n/a", "#N/A", "#NA"}
    | {"#N/A N/A", "<NA>", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)
# What float takes for numbers, though nobody named a unit or an order.
NO_NUMBERS = complex | np.complexfloating | np.datetime64 | np.timedelta64 | np.ndarray

_IN_DIGITS = re.compile(NUMBER)


@dataclass(frozen=True, eq=False, repr=False)
class Entries:
    """Entries as numbers. Private.

    Attributes
    ----------
    values : array
        NaN where an entry is missing or no number.
    missing : array of bool, of the same shape
        Which entries are NaN, None, masked, or text such as NA.
    """

    values: Array
    missing: NDArray[np.bool_]

    @property
    def unreadable(self) -> bool:
        """Whether an entry is there and is no number."""
        return bool((np.isnan(self.values) & ~self.missing).any())


def read_entries(values: Any) -> Entries:
    """Read numbers, every entry on its own.

    Parameters
    ----------
    values : array-like
        Numbers, text, or objects; a table of pandas is read column by column. Dates, durations
        and complex numbers are no numbers.

    Returns
    -------
    Entries
        Of the shape of the values.

    Raises
    ------
    ValueError
        If they have no shape. Nothing of an entry is said.

    Examples
    --------
    >>> found = read_entries([3, " 4.5", "tall", None])
    >>> found.values.tolist(), found.missing.tolist()
    ([3.0, 4.5, nan, nan], [False, False, False, True])
    """
    if hasattr(values, "iloc") and values.ndim == 2 and values.shape[1]:
        columns = [read_entries(values.iloc[:, column]) for column in range(values.shape[1])]
        return Entries(
            values=np.stack([column.values for column in columns], axis=1),
            missing=np.stack([column.missing for column in columns], axis=1),
        )
    array = as_entries(values)
    if array.dtype.kind in "biuf":
        with np.errstate(all="ignore"):
            # A copy: what is private is not written into by what comes after.
            numbers = array.astype(np.float64)
        return Entries(values=numbers, missing=np.isnan(numbers))
    if array.dtype.kind in "mMcV":
        nothing = np.full(array.shape, np.nan)
        return Entries(values=nothing, missing=np.zeros(array.shape, dtype=bool))
    entries = array.ravel().tolist()
    numbers = np.array([read_entry(entry) for entry in entries], dtype=np.float64)
    missing = np.zeros(len(entries), dtype=bool)
    for place in np.flatnonzero(np.isnan(numbers)):
        missing[place] = is_missing(entries[place])
    return Entries(values=numbers.reshape(array.shape), missing=missing.reshape(array.shape))


def as_entries(values: Any) -> NDArray[Any]:
    """Return values as an array that has None where they are masked.

    Raises
    ------
    ValueError
        If they have no shape. Nothing of an entry is said.

    Examples
    --------
    >>> as_entries([1, "1", True])
    array([1, '1', True], dtype=object)
    >>> as_entries(np.ma.array([1.5, 2.5], mask=[False, True]))
    array([1.5, None], dtype=object)
    """
    if isinstance(values, list | tuple):
        values = [
            as_entries(value) if isinstance(value, np.ma.MaskedArray) and value.ndim else value
            for value in values
        ]
    array: NDArray[Any] | None
    try:
        array = np.asarray(values, dtype=None if hasattr(values, "__array__") else object)
    except Exception:
        # It may quote an entry, and must not live on.
        array = None
    if array is None:
        raise ValueError("entries must have a shape: as many in every row")
    if isinstance(values, np.ma.MaskedArray) and values.dtype.names is None:
        masked = np.ma.getmaskarray(values)
        if masked.any():
            array = array.astype(object)
            array[masked] = None
    return array


def read_labels(values: Any, labels: Sequence[object]) -> Array:
    """Return which of some labels every entry is, each looked up on its own.

    Equal numbers are equal labels, whatever their types: 1, 1.0 and True. Text matches letter by
    letter.

    Parameters
    ----------
    values : array-like
        Private.
    labels : sequence of numbers, strings or truth values

    Returns
    -------
    array
        Of the shape of the values: places among the labels, from 0, and NaN where an entry is none.

    Raises
    ------
    ValueError
        If they have no shape. Nothing of an entry is said.

    Examples
    --------
    >>> read_labels(["ill", "Ill", None, "well"], ["well", "ill"])
    array([ 1., nan, nan,  0.])
    """
    array = as_entries(values)
    place_of = {label: float(place) for place, label in enumerate(labels)}
    places = [_look_up(entry, place_of) for entry in array.ravel().tolist()]
    return np.array(places, dtype=np.float64).reshape(array.shape)


def _look_up(entry: object, place_of: Mapping[object, float]) -> float:
    try:
        return place_of.get(entry, np.nan)
    except Exception:
        # What has no hash, or does not compare, is no label; what it says of itself is not told.
        return np.nan


def read_entry(entry: object) -> float:
    """Return an entry as a number, or NaN if it is missing or none.

    Examples
    --------
    >>> read_entry("9007199254740993"), read_entry(" 7 "), read_entry("1_000")
    (9007199254740992.0, 7.0, nan)
    """
    if isinstance(entry, bytes):
        # Whatever the encoding, digits are ASCII.
        entry = entry.decode("latin-1")
    if isinstance(entry, str):
        text = entry.strip(AROUND)
        if _IN_DIGITS.fullmatch(entry):
            return float(text)
        return WORDS.get(text.lower(), np.nan)
    if isinstance(entry, NO_NUMBERS):
        return np.nan
    try:
        return float(entry)  # type: ignore[arg-type]
    except Exception:
        # Entries may be anything, and say anything, the entry itself included.
        return np.nan


def is_missing(entry: object) -> bool:
    """Return whether an entry that is no number stands for a missing one.

    Examples
    --------
    >>> is_missing(None), is_missing("NA"), is_missing("tall")
    (True, True, False)
    """
    if isinstance(entry, bytes):
        entry = entry.decode("latin-1")
    if isinstance(entry, str):
        return entry.strip(AROUND) in EMPTY
    return entry is None or entry is np.ma.masked or isinstance(entry, float | np.floating)


AnyArray = NDArray[Any]

MISSING = "y contains NaN, or cells that are empty or no numbers: remove those rows, or impute them"
INFINITE = "y contains infinity, or a value too large for float64: remove those rows first"


def number_faults(entries: Array) -> tuple[bool, ...]:
    """Return whether numbers are missing, and whether any is infinite: `MISSING`, `INFINITE`.

    Parameters
    ----------
    entries : array of shape (n,)
        Private.
    """
    return bool(np.isnan(entries).any()), bool(np.isinf(entries).any())


def read_outputs(y: ArrayLike, *, rows: int) -> Array:
    """Return y as finite float64 numbers, one per row.

    Parameters
    ----------
    y : array-like of shape (N,) or (N, 1)
        Private.
    rows : int
        N, the number of rows of X.

    Raises
    ------
    ValueError
        If y is missing, of another length, not numeric, or holds NaN, infinity, or entries that are
        masked or missing. No message shows a value, and no exception that could is kept as its
        cause.
    """
    entries = read_entries(_passed(y))
    outputs = one_column(entries.values, rows=rows, named=hasattr(y, "columns"))
    check_numbers(entries, name=getattr(y, "name", None))
    return outputs


def read_numbers(y: ArrayLike) -> Array:
    """Return outputs as finite float64 numbers, of the shape that they have.

    Parameters
    ----------
    y : array-like
        Private.

    Raises
    ------
    ValueError
        As `read_outputs`, but for their number.
    """
    entries = read_entries(_passed(y))
    check_numbers(entries, name=getattr(y, "name", None))
    return entries.values


def check_numbers(entries: Entries, *, name: object = None) -> None:
    """Check that outputs are finite numbers.

    Parameters
    ----------
    entries : Entries
    name : str, optional
        Of their column.

    Raises
    ------
    ValueError
        If not. No message shows a value, or tells which.
    """
    if entries.unreadable:
        raise ValueError("y must be numeric: encode or remove the other values first")
    if entries.missing.any():
        called = f" (column {name!r})" if isinstance(name, str) else ""
        raise ValueError(
            f"Input y contains NaN, or entries that are masked or missing{called}: give X and y "
            "without those rows, which tells whose values are missing, or the number that a "
            "missing one counts as. Of tables in files, missing_output says which"
        )
    if np.isinf(entries.values).any():
        raise ValueError(
            "Input y contains infinity or a value too large for dtype('float64'): "
            "remove those rows first"
        )


def as_column(y: ArrayLike, *, rows: int) -> AnyArray:
    """Return y as one column of its own type, one entry per row.

    Parameters
    ----------
    y : array-like of shape (N,) or (N, 1)
        Private. Entries that are masked become None.
    rows : int
        N, the number of rows of X.

    Raises
    ------
    ValueError
        If y is missing, ragged, or of another length. No message shows a value.
    """
    return one_column(as_entries(_passed(y)), rows=rows, named=hasattr(y, "columns"))


def _passed(y: ArrayLike) -> ArrayLike:
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    return y


def one_column(outputs: AnyArray, *, rows: int, named: bool) -> AnyArray:
    """Return an array without a second dimension of one, after checking its length.

    Where columns have no names, a second dimension may be a mistake, and is warned of.

    Raises
    ------
    ValueError
        If it has more dimensions, or another length.
    """
    if outputs.ndim == 2 and outputs.shape[1] == 1:
        if not named:
            warn_caller(
                "A column-vector y was passed when a 1d array was expected. Please change the "
                "shape of y to (n_samples,), for example using ravel().",
                DataConversionWarning,
            )
        outputs = outputs[:, 0]
    if outputs.ndim != 1:
        raise ValueError(f"y must have one dimension, got {outputs.ndim} dimensions")
    if len(outputs) != rows:
        raise ValueError(f"X has {rows} rows and y has {len(outputs)}: they must agree")
    return outputs


def check_apart(inputs: Iterable[object], outputs: object) -> None:
    """Refuse a private column that is among the public inputs, and names that files cannot hold.

    Parameters
    ----------
    inputs : iterable
        Names of the columns that are public.
    outputs : array-like
        A column, or a table of several. Without names nothing is refused.

    Raises
    ------
    ValueError
        It names the column, and quotes none of its values.

    Examples
    --------
    >>> import pandas as pd
    >>> check_apart(["age", "height"], pd.Series([1.5], name="height"))
    Traceback (most recent call last):
    ...
    ValueError: column 'height' is among the inputs, which are public, and is the private output...
    """
    single = getattr(outputs, "name", None)
    private = [*column_names(outputs), single]
    inputs = list(inputs)
    check_writable([*inputs, *private])
    both = [name for name in inputs if isinstance(name, str) and name and name in private]
    if both:
        raise ValueError(
            f"column {both[0]!r} is among the inputs, which are public, and is the private output: "
            "leave it out of X, or rename y if it is another column"
        )


def check_same_order(X: object, *others: object) -> None:
    """Refuse tables whose rows have the same labels, once each, in another order.

    Rows are taken as they come; labels are those of pandas, and others have none.

    Parameters
    ----------
    X : table
    *others : columns of the same rows

    Raises
    ------
    ValueError
        It quotes no label.

    Examples
    --------
    >>> import pandas as pd
    >>> ages = pd.DataFrame({"age": [30, 40]})
    >>> check_same_order(ages, pd.Series([1, 2]), np.array([3, 4]))
    >>> check_same_order(ages, pd.Series([1, 2], index=[1, 0]))
    Traceback (most recent call last):
    ...
    ValueError: rows of X, y and groups are taken as they come, and the same labels are in...
    """
    check_same_labels(getattr(X, "index", None), *others, what="rows of X, y and groups")


def check_same_labels(labels: Any, *others: object, what: str) -> None:
    """Refuse columns whose rows have the same labels, once each, in another order.

    Parameters
    ----------
    labels : pandas.Index, or anything else that says nothing of an order
    *others : columns
    what : str
        What errors call all of them.

    Raises
    ------
    ValueError
        It quotes no label.

    Examples
    --------
    >>> import pandas as pd
    >>> labels = pd.Index(["ann", "bob"])
    >>> check_same_labels(labels, pd.Series([1, 2], index=["bob", "ann"]), what="columns and rows")
    Traceback (most recent call last):
    ...
    ValueError: columns and rows are taken as they come, and the same labels are in another...
    """
    for other in others:
        theirs: Any = getattr(other, "index", None)
        # Lists have an `index`, too, which is another thing.
        if not (hasattr(labels, "is_unique") and hasattr(theirs, "is_unique")):
            continue
        if len(labels) != len(theirs) or labels.equals(theirs):
            continue
        if labels.is_unique and theirs.is_unique and theirs.isin(labels).all():
            raise ValueError(
                f"{what} are taken as they come, and the same labels are in another order in one "
                "of them: sort them alike, or hand over arrays without labels"
            )
