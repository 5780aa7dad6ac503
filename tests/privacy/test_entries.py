"""One entry decides how it is read itself, and nothing of how others are."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.data import ArrayRows
from cloakgp.privacy.entries import as_entries, is_missing, read_entries, read_entry, read_outputs
from cloakgp.privacy.inputs import checked_private_inputs
from cloakgp.privacy.several_outputs import OutputColumns

TEXTS = [
    ("5.5", 5.5),
    ("1e18", 1e18),
    (" 7 ", 7.0),
    ("1234567890123456789", 1234567890123456768.0),
    ("9007199254740993", 9007199254740992.0),
    ("0.1000000000000000055511151231257827021181583404541015625", 0.1),
    ("1e-400", 0.0),
    ("1e400", math.inf),
    ("inf", math.inf),
    ("-Infinity", -math.inf),
    ("true", 1.0),
    ("False", 0.0),
    ('"2.5"', 2.5),
    ("1_000", math.nan),
    ("nan", math.nan),
    ("", math.nan),
    ("1,5", math.nan),
    ("0x10", math.nan),
    ("٣", math.nan),
    ("1\n", math.nan),
    ("tall", math.nan),
]
OBJECTS = [
    (1234567890123456789, 1234567890123456768.0),
    (10**400, math.nan),
    (True, 1.0),
    (np.float16(0.1), 0.0999755859375),
    (np.float32(0.1), 0.10000000149011612),
    (Decimal("0.1"), 0.1),
    (Fraction(1, 3), 1 / 3),
    (None, math.nan),
    (pd.NA, math.nan),
    (np.ma.masked, math.nan),
    (1j, math.nan),
    (np.datetime64("2020-01-01"), math.nan),
    (np.array([1.0]), math.nan),
    (object, math.nan),
]
NUMBERS = st.floats() | st.integers(-(2**70), 2**70) | st.booleans()
TEXT = st.sampled_from([text for text, _ in TEXTS]) | st.text(max_size=5) | NUMBERS.map(str)
ENTRIES = NUMBERS | TEXT | st.sampled_from([entry for entry, _ in OBJECTS[:8]])


@pytest.mark.parametrize(("entry", "number"), TEXTS + OBJECTS, ids=repr)
def test_entries_are_read_to_the_nearest_number(entry, number):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_equal(read_entry(entry), number)
        if isinstance(entry, str):
            np.testing.assert_equal(read_entry(entry.encode()), number)


@given(st.floats(allow_nan=False) | st.integers(-(2**70), 2**70))
def test_numbers_and_their_digits_are_read_as_python_reads_them(number):
    assert read_entry(number) == read_entry(str(number)) == float(str(number))


@pytest.mark.parametrize(
    ("entry", "missing"),
    [
        *((one, True) for one in (None, "", " NA ", b"null", math.nan)),
        *((one, True) for one in (np.float32("nan"), np.ma.masked)),
        *((one, False) for one in ("tall", 1j, Decimal("NaN"))),
    ],
)
def test_what_is_missing(entry, missing):
    assert is_missing(entry) is missing


def as_objects(entries):
    column = np.empty(len(entries), dtype=object)
    for place, entry in enumerate(entries):
        column[place] = entry
    return column


class _Numbers:
    def __init__(self, numbers):
        self.numbers = numbers

    def merge(self, other):
        return _Numbers(np.concatenate([self.numbers, other.numbers]))


def through_rows(outputs):
    rows = ArrayRows(np.zeros((len(outputs), 1)), outputs, chunk_rows=3, jobs=1)
    return rows.over_rows(lambda _, numbers: _Numbers(numbers), what="").numbers


def as_frame(column):
    return pd.DataFrame({"y": as_objects(column)}, dtype=object)


WAYS = {
    "list": lambda column: read_entries(column).values,
    "tuple": lambda column: read_entries(tuple(column)).values,
    "objects": lambda column: read_entries(as_objects(column)).values,
    "series": lambda column: read_entries(pd.Series(as_objects(column), dtype=object)).values,
    "frame": lambda column: read_entries(as_frame(column)).values[:, 0],
    "nested": lambda column: read_entries([[one, 0.5] for one in column]).values[:, 0],
    "rows of a list": through_rows,
    "rows of objects": lambda column: through_rows(as_objects(column)),
    "rows of a series": lambda column: through_rows(pd.Series(as_objects(column), dtype=object)),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@given(st.lists(ENTRIES, min_size=2, max_size=8), ENTRIES, st.data())
def test_changing_an_entry_changes_no_other(way, column, other, data):
    place = data.draw(st.integers(0, len(column) - 1))
    neighbour = [*column[:place], other, *column[place + 1 :]]
    before, after = way(column), way(neighbour)
    np.testing.assert_array_equal(np.delete(before, place), np.delete(after, place))
    np.testing.assert_array_equal(after, [read_entry(one) for one in neighbour])


@pytest.mark.parametrize(
    ("values", "numbers", "missing"),
    [
        (np.array([1, 2], dtype=np.float16), [1, 2], [0, 0]),
        (np.array([2**63 + 1025], dtype=np.uint64), [float(2**63 + 1025)], [0]),
        (np.array([1.5, np.nan]), [1.5, np.nan], [0, 1]),
        (np.array(["1.5", "x", "NA"]), [1.5, np.nan, np.nan], [0, 0, 1]),
        (np.array([b"1.5", b"x"]), [1.5, np.nan], [0, 0]),
        (np.array(["2020-01-01", "NaT"], dtype="M8[D]"), [np.nan] * 2, [0, 0]),
        (np.array([1j]), [np.nan], [0]),
        (np.array([(1.0,)], dtype=[("a", float)]), [np.nan], [0]),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), [1.0, np.nan], [0, 1]),
        (np.ma.array([1, 2], mask=[0, 1]), [1.0, np.nan], [0, 1]),
        (np.ma.array([1.0, 2.0]), [1.0, 2.0], [0, 0]),
        ([np.ma.array([1.0, 2.0], mask=[0, 1]), [3, 4]], [[1, np.nan], [3, 4]], [[0, 1], [0, 0]]),
        ([1.0, np.ma.masked], [1.0, np.nan], [0, 1]),
        (pd.Series([1, None], dtype="Int64"), [1, np.nan], [0, 1]),
        (pd.Series([1, None], dtype="category"), [1, np.nan], [0, 1]),
        (pd.Series(["1", "x"], dtype="string"), [1, np.nan], [0, 0]),
        (pd.DataFrame({"a": [1, 2], "b": ["3", "x"]}), [[1, 3], [2, np.nan]], np.zeros((2, 2))),
        (pa.array([1, None]), [1, np.nan], [0, 1]),
        (pa.array(["1", "x"]), [1, np.nan], [0, 0]),
        (3.0, 3.0, False),
        ([], [], []),
    ],
    ids=lambda one: f"{type(one).__name__}-{getattr(one, 'dtype', '')}",
)
def test_arrays_and_tables_of_many_kinds(values, numbers, missing):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read_entries(values)
    assert found.values.dtype == np.float64
    np.testing.assert_array_equal(found.values, numbers)
    np.testing.assert_array_equal(found.missing, np.array(missing, dtype=bool))
    assert found.unreadable == bool((np.isnan(found.values) & ~found.missing).any())


def test_what_is_read_is_a_copy():
    y = np.array([1.0, 2.0])
    read_entries(y).values[0] = 5.0
    assert y[0] == 1.0


class Shapeless:
    def __array__(self, *args, **kwargs):
        raise TypeError("the value is 12345")


def test_what_has_no_shape_is_refused_without_a_word_of_it():
    with pytest.raises(ValueError, match="shape") as caught:
        as_entries(Shapeless())
    assert "12345" not in str(caught.value)
    assert caught.value.__context__ is None


MASKED = {
    "floats": np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]),
    "whole numbers": np.ma.array([1, 2, 3], mask=[0, 1, 0]),
    "objects": np.ma.array([1, "2", 3.0], mask=[0, 1, 0], dtype=object),
    "a list": [1.0, np.ma.masked, 3.0],
    "nullable": pd.Series([1, None, 3], dtype="Int64"),
    "arrow": pa.array([1, None, 3]),
}


def test_missing_outputs_are_told_by_the_name_of_their_column():
    with pytest.raises(ValueError, match=r"NaN.*\(column 'pay'\).*missing_output"):
        read_outputs(pd.Series([1.0, np.nan], name="pay"), rows=2)
    with pytest.raises(ValueError, match="missing: give"):
        read_outputs([1.0, np.nan], rows=2)


@pytest.mark.parametrize("y", MASKED.values(), ids=MASKED.keys())
def test_masked_outputs_are_refused_without_telling_which(y):
    with pytest.raises(ValueError, match="masked or missing") as caught:
        read_outputs(y, rows=3)
    assert not any(digit in str(caught.value) for digit in "123")
    several = np.ma.column_stack([y, [0.0] * 3]) if isinstance(y, np.ndarray) else None
    if several is not None:
        for both in (several, list(several)):
            with pytest.raises(ValueError, match="masked or missing"):
                OutputColumns.checked([(0, 9), (0, 9)]).standardised(both, rows=3)
            with pytest.raises(ValueError, match="masked or missing"):
                checked_private_inputs(both)
