"""Arrays are read chunk by chunk, as they are, and outputs entry by entry."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.data import ArrayRows, InputRows
from cloakgp.models.summary import summarise
from cloakgp.privacy.entries import read_entries


def together(gathered):
    return np.concatenate(gathered.X), np.concatenate(gathered.outputs)


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("chunk_rows", [1, 7, 50, 64])
def test_chunks_together_are_the_table(rng, gather_rows, gather_inputs, chunk_rows, jobs):
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    rows = ArrayRows(X, y, chunk_rows=chunk_rows, jobs=jobs)
    found = gather_rows(rows)
    assert found.numbers == tuple(range(-(-50 // chunk_rows)))
    assert max(map(len, found.X)) <= chunk_rows
    np.testing.assert_array_equal(together(found)[0], X)
    np.testing.assert_array_equal(together(found)[1], y)
    again = gather_inputs(rows)
    assert again.outputs == ()
    assert again.numbers == found.numbers
    for one, other in zip(found.X, again.X, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "make",
    [
        lambda X: X.astype(np.float32),
        lambda X: np.asfortranarray(X),
        lambda X: X.astype(int),
        lambda X: X.tolist(),
        lambda X: pd.DataFrame(X),
        lambda X: pd.DataFrame(X).astype({0: "Int64", 1: "category"}),
        lambda X: X.astype(object),
        lambda X: X.astype(str),
    ],
    ids=["float32", "columns", "whole", "lists", "frame", "mixed frame", "objects", "text"],
)
def test_inputs_of_many_kinds_become_floats(gather_inputs, make):
    X = np.arange(20.0).reshape(10, 2)
    found = gather_inputs(ArrayRows(make(X), np.zeros(10), chunk_rows=3))
    assert all(one.dtype == np.float64 and one.flags.c_contiguous for one in found.X)
    np.testing.assert_array_equal(np.concatenate(found.X), X)


def test_memory_maps_are_not_read_as_a_whole(tmp_path, gather_rows):
    """A map of more than memory, of which one chunk is looked at."""
    path = tmp_path / "X.dat"
    X = np.memmap(path, dtype=np.float64, mode="w+", shape=(2**31, 2))
    X[:3] = 1.5
    outputs = np.broadcast_to(2.5, (2**31,))
    rows = ArrayRows(X, outputs, chunk_rows=4, jobs=1)

    class Enough(Exception):
        pass

    def watch(*_news):
        raise Enough

    with pytest.raises(Enough):
        gather_rows(rows.report_to(watch))
    assert rows.count == 2**31


class Unreadable(np.ndarray):
    """Outputs that nobody may look at."""

    def __getitem__(self, key):
        raise AssertionError("outputs were read")

    def __array__(self, *args, **kwargs):
        raise AssertionError("outputs were read")


def test_over_inputs_does_not_touch_outputs(gather_inputs, gather_rows):
    rows = ArrayRows(np.zeros((5, 1)), np.zeros(5).view(Unreadable))
    gather_inputs(rows)
    with pytest.raises(AssertionError, match="read"):
        gather_rows(rows)


ENTRIES = [
    (1, 1.0),
    (True, 1.0),
    (2.5, 2.5),
    ("3", 3.0),
    (Decimal("4.5"), 4.5),
    (np.float32(0.5), 0.5),
    (np.int8(-3), -3.0),
    (None, np.nan),
    (pd.NA, np.nan),
    (pd.NaT, np.nan),
    ("tall", np.nan),
    ("", np.nan),
    (1j, np.nan),
    (np.complex64(1), np.nan),
    (np.datetime64("2020-01-01"), np.nan),
    (np.timedelta64(5, "s"), np.nan),
    (dt.date(2020, 1, 1), np.nan),
    (pd.Timestamp("2020-01-01"), np.nan),
    (pd.Timedelta(5), np.nan),
    (np.array([1.0]), np.nan),
    ([1.0], np.nan),
    (10**400, np.nan),
    (np.inf, np.inf),
    ("-inf", -np.inf),
    (object(), np.nan),
]


@given(st.lists(st.sampled_from(ENTRIES), min_size=1, max_size=12), st.integers(1, 5))
def test_every_entry_of_a_list_is_read_on_its_own(entries, chunk_rows):
    given_, expected = [entry[0] for entry in entries], [entry[1] for entry in entries]
    X = np.zeros((len(entries), 1))
    as_objects = np.empty(len(entries), dtype=object)
    for place, one in enumerate(given_):
        as_objects[place] = one
    for outputs in (given_, tuple(given_), as_objects, pd.Series(as_objects)):
        found = []
        rows = ArrayRows(X, outputs, chunk_rows=chunk_rows, jobs=1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rows.over_rows(lambda _, values: found.append(values) or Nothing(), what="")  # noqa: B023
        np.testing.assert_array_equal(np.concatenate(found), expected)


class Nothing:
    def merge(self, _other):
        return self


@given(st.lists(st.floats() | st.integers(-(2**70), 2**70) | st.booleans(), min_size=1))
def test_numbers_are_read_as_the_privacy_layer_reads_them(entries):
    found = []
    rows = ArrayRows(np.zeros((len(entries), 1)), entries, jobs=1)
    rows.over_rows(lambda _, values: found.append(values) or Nothing(), what="")
    np.testing.assert_array_equal(found[0], read_entries(entries).values)


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        (np.array([[1.0], [2.0]]), [1, 2]),
        (pd.DataFrame({"y": [1.0, 2.0]}), [1, 2]),
        (pd.Series([1, None], dtype="Int64"), [1, np.nan]),
        (pd.Series(["1", "x"], dtype="category"), [1, np.nan]),
        (pd.Series(["1", "x"]), [1, np.nan]),
        (pd.to_datetime(["2020-01-01"] * 2), [np.nan] * 2),
        (np.array([1, 2], dtype="m8[s]"), [np.nan] * 2),
        (np.array([1j, 2]), [np.nan] * 2),
        (np.array(["1", "x"]), [1, np.nan]),
        (np.array([True, False]), [1, 0]),
        (np.ma.array([1.0, 2.0], mask=[False, True]), [1, np.nan]),
    ],
    ids=lambda one: type(one).__name__,
)
def test_outputs_of_one_type_for_all(gather_rows, outputs, expected):
    found = gather_rows(ArrayRows(np.zeros((2, 1)), outputs)).outputs[0]
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("bad", "fault"),
    [(np.nan, "holds no number"), (np.inf, "is infinite"), (None, "holds no number")],
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_bad_inputs_are_named(bad, fault, jobs, gather_inputs, gather_rows):
    X = np.zeros((30, 2), dtype=object)
    X[17, 1] = bad
    for names, said in (((), "column 1 of X"), (("age", "weight"), "column 'weight'")):
        rows = ArrayRows(X, np.zeros(30), input_names=names, chunk_rows=5, jobs=jobs)
        for gather in (gather_inputs, gather_rows):
            with pytest.raises(ValueError, match=f"{said} {fault} in row 17, counted from 0"):
                gather(rows)


def test_masked_inputs_are_named(gather_inputs):
    X = np.ma.array(np.zeros((3, 2)), mask=[[0, 0], [0, 1], [0, 0]])
    for masked in (X, list(X)):
        with pytest.raises(ValueError, match="column 1 of X holds no number in row 1"):
            gather_inputs(ArrayRows(masked, np.zeros(3)))


def test_text_in_inputs_is_named(gather_inputs):
    frame = pd.DataFrame({"age": ["1", "old"]})
    with pytest.raises(ValueError, match="'age' holds no number in row 1"):
        gather_inputs(ArrayRows(frame, np.zeros(2)))


@pytest.mark.parametrize(
    ("X", "outputs", "advice"),
    [
        (np.zeros((3, 1)), np.zeros(2), "X has 3 rows and y has 2"),
        (np.zeros((3, 1)), None, "missing"),
        (np.zeros((3, 1)), 5.0, "missing"),
        (np.zeros((3, 1)), np.zeros((3, 2, 1)), "one dimension"),
        (np.zeros(3), np.zeros(3), "two dimensions"),
        (np.zeros((0, 2)), [], "0 rows"),
        (np.zeros((2, 0)), [1, 2], "0 columns"),
        (np.zeros((2, 1), dtype="M8[s]"), [1, 2], "datetime64"),
        (pd.DataFrame({"a": pd.to_datetime(["2020-01-01"])}), [1], "datetime64"),
        (np.zeros((2, 1), dtype=complex), [1, 2], "complex"),
    ],
)
def test_shapes_and_types_are_checked(X, outputs, advice):
    with pytest.raises(ValueError, match=advice):
        ArrayRows(X, outputs)


@pytest.mark.parametrize("given", [{"input_names": ["\ud800"]}, {"output_name": "\ud800"}])
def test_names_that_files_cannot_hold_are_refused(given):
    with pytest.raises(ValueError, match="half of a character"):
        ArrayRows(np.zeros((2, 1)), [1, 2], **given)


def test_rows_may_have_several_private_columns():
    table = pd.DataFrame({"height": [1.0, 2.0, 3.0], "weight": ["4", "x", "6"]})
    rows = ArrayRows(np.zeros((3, 1)), table, chunk_rows=2, jobs=1)
    assert (rows.n_outputs, rows.output_names) == (2, ("height", "weight"))
    seen = []

    class Nothing:
        def merge(self, other):
            return other

    def work(chunk, outputs):  # noqa: ARG001
        seen.append(outputs)
        return Nothing()

    rows.over_rows(work, what="reading")
    np.testing.assert_array_equal(np.vstack(seen), [[1, 4], [2, np.nan], [3, 6]])
    assert ArrayRows(np.zeros((3, 1)), np.zeros((3, 1))).n_outputs == 1


def test_names_come_from_the_table():
    frame = pd.DataFrame({"age": [1.0], "weight": [2.0]})
    rows = ArrayRows(frame, [1.0], output_name="height")
    assert rows.input_names == ("age", "weight")
    assert rows.output_name == "height"
    assert (rows.n_inputs, rows.count) == (2, 1)
    assert ArrayRows(np.zeros((1, 2)), [1.0]).input_names == ()
    with pytest.raises(ValueError, match="2 columns and 1 names"):
        ArrayRows(frame, [1.0], input_names=["age"])


def test_outputs_are_not_shown_and_not_pickled():
    rows = ArrayRows(np.zeros((1, 1)), [123.456])
    assert "123" not in repr(rows) + str(rows)
    assert repr(rows) == "ArrayRows(1 rows, 1 inputs)"
    for keep in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="private"):
            keep(rows)


@pytest.mark.parametrize("chunk_rows", [1, 7, 100])
def test_inputs_alone_are_what_rows_with_outputs_are_to_a_design(rng, chunk_rows):
    X = rng.normal(size=(50, 2))
    alone = summarise(InputRows(X, chunk_rows=chunk_rows), size=20)
    rows = summarise(ArrayRows(X, np.zeros(50), chunk_rows=chunk_rows), size=20)
    assert (alone.count, InputRows(X).n_inputs) == (rows.count, 2)
    np.testing.assert_array_equal(alone.ranges, rows.ranges)
    np.testing.assert_array_equal(alone.sample, rows.sample)
    np.testing.assert_array_equal(np.vstack([one.X for one in InputRows(X).chunks()]), X)
