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

from cloakgp.data.cells import as_numbers, as_texts
from cloakgp.privacy.entries import EMPTY

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


def is_known(kind):
    """Whether this version of Arrow converts text of a kind at all, and so could read such."""
    try:
        pa.array(["1"]).cast(kind).cast(pa.large_binary())
    except pa.ArrowNotImplementedError:
        return False
    return True


KINDS = [pa.string(), pa.large_string(), pa.binary(), *filter(is_known, [pa.string_view()])]


@given(st.lists(st.sampled_from(CELLS), min_size=1, max_size=20))
def test_every_cell_of_text_is_read_on_its_own(cells):
    texts = [text for text, _ in cells]
    for kind in KINDS:
        missing, values = as_numbers(pa.array(texts).cast(kind))
        np.testing.assert_array_equal(values, [value for _, value in cells])
        np.testing.assert_array_equal(missing, [text in EMPTY for text in texts])


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
        (pa.array(np.array([1.5, np.nan], dtype=np.float16)), [0, 1], [1.5, np.nan]),
        (pa.array([1, None], pa.int8()), [0, 1], [1, np.nan]),
        (pa.array([2**63, 2**64 - 1], pa.uint64()), [0, 0], [2.0**63, 2.0**64]),
        (pa.array([2**53 + 1], pa.int64()), [0], [2.0**53]),
        (pa.array([True, None]), [0, 1], [1, np.nan]),
        (pa.array([Decimal("1.25"), None]), [0, 1], [1.25, np.nan]),
        (pa.array([Decimal("1e5")], pa.decimal128(5, -3)), [0], [1e5]),
        (pa.array([Decimal(1)], pa.decimal256(60, 9)), [0], [1.0]),
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
    for kind in (pa.string(), pa.binary(), pa.large_binary()):
        for first, numbers in ((0, [np.nan, 1, 2]), (1, [1, 2, np.nan]), (2, [2, np.nan, 4])):
            found = as_numbers(column.cast(kind).slice(first, 3))[1]
            np.testing.assert_array_equal(found, numbers)


def test_empty_columns():
    missing, values = as_numbers(pa.array([], pa.string()))
    assert missing.shape == values.shape == (0,)


def test_decimals_are_read_to_the_last_bit():
    """Arrow's own conversion is not: it is off for some of these."""
    rng = np.random.default_rng(1)
    decimals = [Decimal(int(one)).scaleb(-7) for one in rng.integers(-(2**62), 2**62, size=20000)]
    column = pa.array([100 * decimal for decimal in decimals], pa.decimal128(30, 7))
    _, values = as_numbers(column)
    np.testing.assert_array_equal(values, [float(100 * decimal) for decimal in decimals])


def test_columns_in_pieces():
    column = pa.chunked_array([["1", "x"], ["3"]])
    missing, values = as_numbers(column)
    assert not missing.any()
    np.testing.assert_array_equal(values, [1, np.nan, 3])
    assert as_texts(column, name="y") == ["1", "x", "3"]


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (pa.array([" yes\t", "01", "", None, "NA"]), ["yes", "01", "", "", "NA"]),
        # As Arrow gives what stands after a blank, and what stands in quotes.
        (pa.array([' "a ""b"""', '"c"', ' "', ' " d "']), ['a "b"', '"c"', '"', "d"]),
        (pa.array(["yes", "no", None]).dictionary_encode(), ["yes", "no", ""]),
        (pa.array([1.0, 0.5, np.nan, None]), ["1", "0.5", "", ""]),
        (pa.array([2**53 + 1, None]), ["9007199254740993", ""]),
        (pa.array([True, False, None]), ["True", "False", ""]),
        (pa.array([Decimal("1.50"), None]), ["1.50", ""]),
        (pa.nulls(1), [""]),
        (pa.array([b"\xff", "ä".encode(), b"\xe4"]), ["ÿ", "ä", "ä"]),
    ],
    ids=lambda one: str(one.type) if isinstance(one, pa.Array) else "",
)
def test_cells_as_text(column, texts):
    assert as_texts(column, name="y") == texts


def test_columns_that_are_no_text_say_nothing_but_their_name():
    for column in (pa.array([dt.date(2020, 1, 1)]), pa.array([[1.0]]), pa.array([{"a": 1}])):
        with pytest.raises(ValueError, match="column 'ill' holds neither") as caught:
            as_texts(column, name="ill")
        assert not any(digit in str(caught.value) for digit in "0123456789")
