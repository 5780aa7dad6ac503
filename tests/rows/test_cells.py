"""Cells become the nearest float64, or NaN, whatever else is in their column."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.rows.cells import EMPTY, as_numbers

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,9})?", re.ASCII)

CELLS = [
    ("1", 1.0),
    (" -2.5 ", -2.5),
    ("+3e5", 3e5),
    (".5", 0.5),
    ("5.", 5.0),
    ("00012", 12.0),
    ("1E-3", 1e-3),
    (' "7.5"', 7.5),
    ("1e400", np.inf),
    ("-1e400", -np.inf),
    ("1e-400", 0.0),
    ("1e999999999", np.inf),
    ("-1e-999999999", 0.0),
    ("1e9999999999", np.nan),
    ("9" * 2000, np.inf),
    ("0." + "0" * 2000 + "1", 0.0),
    ("inf", np.inf),
    ("-Infinity", -np.inf),
    ("True", 1.0),
    ("false", 0.0),
    ("", np.nan),
    ("NA", np.nan),
    ("nan", np.nan),
    ("tall", np.nan),
    ("1,5", np.nan),
    ("1_000", np.nan),
    ("0x10", np.nan),
    ("1 2", np.nan),
    ("++1", np.nan),
    ("1\n", np.nan),
    ("1\x00", np.nan),
    ("e5", np.nan),
    (".", np.nan),
    ("٣", np.nan),
    ("−1", np.nan),
]


@given(st.lists(st.sampled_from(CELLS), min_size=1, max_size=20))
def test_every_cell_of_text_is_read_on_its_own(cells):
    texts = [text for text, _ in cells]
    for kind in (pa.string(), pa.large_string(), pa.binary(), pa.string_view()):
        missing, values = as_numbers(pa.array(texts).cast(kind))
        np.testing.assert_array_equal(values, [value for _, value in cells])
        np.testing.assert_array_equal(missing, [text.encode() in EMPTY for text in texts])


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_come_back_to_the_last_bit(numbers):
    for written in (repr, "{:.17e}".format, "{:+.20g}".format):
        _, values = as_numbers(pa.array([written(one) for one in numbers]))
        np.testing.assert_array_equal(values, [float(written(one)) for one in numbers])


@given(st.lists(st.text() | st.from_regex(NUMBER, fullmatch=True) | st.none(), min_size=1))
def test_text_is_read_as_python_reads_it(texts):
    missing, values = as_numbers(pa.array(texts, pa.string()))
    for text, gone, value in zip(texts, missing, values, strict=True):
        if text is None:
            assert gone
            assert np.isnan(value)
        elif NUMBER.fullmatch(text):
            assert not gone
            assert value == float(text)


@given(st.lists(st.binary(), min_size=1))
def test_any_bytes_at_all_raise_nothing(cells):
    missing, values = as_numbers(pa.array(cells, pa.binary()))
    assert len(missing) == len(values) == len(cells)


@pytest.mark.parametrize(
    ("column", "missing", "values"),
    [
        (pa.array([1.5, None, np.nan, np.inf]), [0, 1, 1, 0], [1.5, np.nan, np.nan, np.inf]),
        (pa.array([1, None], pa.float32()), [0, 1], [1, np.nan]),
        (pa.array([1, None], pa.int8()), [0, 1], [1, np.nan]),
        (pa.array([2**63, 2**64 - 1], pa.uint64()), [0, 0], [2.0**63, 2.0**64]),
        (pa.array([2**53 + 1], pa.int64()), [0], [2.0**53]),
        (pa.array([True, None]), [0, 1], [1, np.nan]),
        (pa.array([Decimal("1.25"), None]), [0, 1], [1.25, np.nan]),
        (pa.array(["1", None, "x"]).dictionary_encode(), [0, 1, 0], [1, np.nan, np.nan]),
        (pa.array([3, None]).dictionary_encode(), [0, 1], [3, np.nan]),
        (pa.array([dt.date(2020, 1, 1), None]), [0, 1], [np.nan] * 2),
        (pa.array([dt.timedelta(1)]), [0], [np.nan]),
        (pa.array([[1.0], None]), [0, 1], [np.nan] * 2),
        (pa.array([{"a": 1.0}]), [0], [np.nan]),
        (pa.nulls(2), [1, 1], [np.nan] * 2),
        (pa.array([b"1", b"\xff"]), [0, 0], [1, np.nan]),
    ],
    ids=lambda one: str(one.type) if isinstance(one, pa.Array) else "",
)
def test_columns_of_every_type(column, missing, values):
    found = as_numbers(column)
    assert found[0].dtype == bool
    assert found[1].dtype == np.float64
    np.testing.assert_array_equal(found[0], np.array(missing, dtype=bool))
    np.testing.assert_array_equal(found[1], values)


def test_slices_are_read_where_they_lie():
    column = pa.array([None, "1", "2", "x", "4"])
    np.testing.assert_array_equal(as_numbers(column.slice(2, 3))[1], [2, np.nan, 4])


def test_empty_columns():
    missing, values = as_numbers(pa.array([], pa.string()))
    assert missing.shape == values.shape == (0,)
