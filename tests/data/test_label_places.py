"""Private labels in files and arrays: every cell is matched on its own, with what was declared."""

from __future__ import annotations

import csv
import gzip
import math
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.data import ArrayRows, FileRows
from cloakgp.data.cells import check_labels, label_places
from cloakgp.data.tables import read_labelled_rows
from cloakgp.privacy.entries import read_labels
from cloakgp.privacy.questions.classes import Classes

SECRET = "quinsy-7123456"


class Places:
    def __init__(self, values):
        self.values = values

    def merge(self, other):
        return Places(np.concatenate([self.values, other.values]))


def places_of(rows, labels):
    return rows.over_rows(lambda _, places: Places(places), what="", labels=labels).values


def read(path, labels):
    return places_of(
        FileRows(path, inputs=["age"], output="ill", chunk_rows=3, jobs=1), tuple(labels)
    )


def write_csv(folder, cells):
    path = folder / "people.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["age", "ill"], *(["1", cell] for cell in cells)])
    return path


def write_gzip(folder, cells):
    path = folder / "people.csv.gz"
    path.write_bytes(gzip.compress(write_csv(folder, cells).read_bytes(), compresslevel=1))
    return path


def write_parquet(folder, cells, *, kind=None):
    path = folder / "people.parquet"
    columns = {"age": pa.array([1.0] * len(cells)), "ill": pa.array(cells, pa.string())}
    if kind is not None:
        columns["ill"] = columns["ill"].cast(kind)
    pq.write_table(pa.table(columns), path, row_group_size=5)
    return path


def write_categories(folder, cells):
    return write_parquet(folder, cells, kind=pa.dictionary(pa.int32(), pa.string()))


WRITERS = {
    "csv": write_csv,
    "gzip": write_gzip,
    "parquet": write_parquet,
    "categories": write_categories,
}
LABELS = ("yes", "no", "1")
CELLS = st.sampled_from([*LABELS, " yes", "no ", "Yes", "1.0", "", "NA", "'no'", SECRET]) | st.text(
    st.characters(exclude_categories=["Cs", "Cc"]), max_size=5
)


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS.keys())
@given(column=st.lists(CELLS, min_size=2, max_size=9), other=CELLS, data=st.data())
def test_changing_a_cell_changes_no_other(tmp_path_factory, write, column, other, data):
    folder = tmp_path_factory.mktemp("table")
    place = data.draw(st.integers(0, len(column) - 1))
    neighbour = [*column[:place], other, *column[place + 1 :]]
    before, after = read(write(folder, column), LABELS), read(write(folder, neighbour), LABELS)
    np.testing.assert_array_equal(np.delete(before, place), np.delete(after, place))


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS.keys())
@given(column=st.lists(CELLS, min_size=2, max_size=9))
def test_rows_in_passes_read_what_a_table_in_memory_reads(tmp_path_factory, write, column):
    path = write(tmp_path_factory.mktemp("table"), column)
    found = read(path, LABELS)
    try:
        _, labels = read_labelled_rows(path, inputs=["age"], output="ill", classes=LABELS)
    except ValueError:
        assert np.isnan(found).any()
    else:
        np.testing.assert_array_equal(found, read_labels(labels, LABELS))


def test_cells_match_letter_by_letter_but_for_blanks(tmp_path):
    cells = ["yes", " no ", "\tyes", "Yes", "NO", "1", "1.0", "01", ""]
    expected = [0, 1, 0, *[math.nan] * 2, 2, *[math.nan] * 3]
    np.testing.assert_array_equal(read(write_csv(tmp_path, cells), LABELS), expected)


NUMBERS = {
    "ints": (pa.array([0, 1, None, 2]), (0, 1), [0, 1, math.nan, math.nan]),
    "whole floats": (pa.array([0.0, 1.0, None, 1.5]), (0, 1), [0, 1, math.nan, math.nan]),
    "floats": (pa.array([0.5, 1.5, math.nan]), (1.5, 0.5), [1, 0, math.nan]),
    "declared as floats": (pa.array([0, 1, 1]), (0.0, 1.0), [0, 1, 1]),
    "declared as text": (pa.array([0, 1, 1]), ("0", "1"), [0, 1, 1]),
    "truth values": (pa.array([True, False, None]), (False, True), [1, 0, math.nan]),
    "truth values as text": (pa.array(["True", "true", "False"]), (False, True), [1, math.nan, 0]),
    "ints are no truth values": (pa.array([0, 1]), (False, True), [math.nan] * 2),
    "decimals": (pa.array(["1.5", "2.5"]).cast(pa.decimal128(5, 1)), (1.5, 2.5), [0, 1]),
    "nothing": (pa.nulls(2), (0, 1), [math.nan] * 2),
    "categories of numbers": (pa.array([3, 1, 3]).dictionary_encode(), (1, 3), [1, 0, 1]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_and_truth_values_are_matched_as_they_are_written(tmp_path, name):
    column, labels, expected = NUMBERS[name]
    np.testing.assert_array_equal(label_places(column, labels, name="ill"), expected)
    chunked = pa.chunked_array([column[:1], column[1:]])
    np.testing.assert_array_equal(label_places(chunked, labels, name="ill"), expected)
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"age": pa.array([1.0] * len(column)), "ill": column}), path)
    np.testing.assert_array_equal(read(path, labels), expected)


def test_an_empty_cell_is_no_label_even_if_one_is_empty():
    np.testing.assert_array_equal(
        label_places(pa.array(["", None, "a"]), ("", "a"), name="ill"), [math.nan, math.nan, 1]
    )


@pytest.mark.parametrize("labels", [(1, "1"), (1.0, "1"), ("True", True)])
def test_labels_that_are_written_alike_are_refused(tmp_path, labels):
    path = write_csv(tmp_path, ["1", "1"])
    with pytest.raises(ValueError, match="not all written differently"):
        read(path, labels)
    # In memory they are different.
    np.testing.assert_array_equal(
        places_of(ArrayRows(np.ones((2, 1)), list(labels)), labels), [0.0, 1.0]
    )


@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.timestamp("s"), pa.list_(pa.string()), pa.struct([("a", pa.int8())])]
)
def test_columns_that_hold_no_labels_are_refused(kind):
    with pytest.raises(ValueError, match="column 'ill' holds neither text nor numbers"):
        check_labels(kind, ("a", "b"), name="ill")


SAME = {
    "words": ["a", "b", "b", "a"],
    "word objects": np.array(["a", "b", "b", "a"], dtype=object),
    "an array of words": np.array(["a", "b", "b", "a"]),
    "series": pd.Series(["a", "b", "b", "a"], index=[9, 3, 1, 7]),
    "strings of pandas": pd.Series(["a", "b", "b", "a"], dtype="string"),
    "categories": pd.Series(["a", "b", "b", "a"], dtype="category"),
    "a tuple": ("a", "b", "b", "a"),
    "a column": np.array([["a"], ["b"], ["b"], ["a"]]),
}


@pytest.mark.parametrize("name", SAME)
def test_arrays_of_every_type(name):
    rows = ArrayRows(np.ones((4, 1)), SAME[name], chunk_rows=3, jobs=2)
    np.testing.assert_array_equal(places_of(rows, ("a", "b")), [0, 1, 1, 0])


MIXED = {
    "numbers": ([0, 1.0, True, np.int8(0)], (0, 1), [0, 1, 1, 0]),
    "masked": (np.ma.array([0, 1, 1, 0], mask=[0, 0, 1, 0]), (0, 1), [0, 1, math.nan, 0]),
    "missing": (pd.Series([0, 1, None, 0], dtype="Int64"), (0, 1), [0, 1, math.nan, 0]),
    "not hashable": ([{SECRET: 1}, "a", [SECRET], "b"], ("a", "b"), [math.nan, 0, math.nan, 1]),
    "undeclared": (["a", SECRET, "A", "a "], ("a", "b"), [0, *[math.nan] * 3]),
    "NaN": ([math.nan, 1, 0, None], (0, 1), [math.nan, 1, 0, math.nan]),
}


@pytest.mark.parametrize("name", MIXED)
def test_entries_that_are_none_of_the_labels(name):
    entries, labels, expected = MIXED[name]
    rows = ArrayRows(np.ones((4, 1)), entries, chunk_rows=2)
    np.testing.assert_array_equal(places_of(rows, labels), expected)


def test_what_a_label_says_of_itself_is_not_told():
    class Hostile:
        def __hash__(self):
            raise RuntimeError(SECRET)

    np.testing.assert_array_equal(read_labels([Hostile(), "a"], ("a", "b")), [math.nan, 0])


def test_numbers_are_still_read_where_no_labels_are_given(tmp_path):
    path = write_csv(tmp_path, ["1.5", "yes", "true"])
    rows = FileRows(path, inputs=["age"], output="ill", jobs=1)
    found = rows.over_rows(lambda _, outputs: Places(outputs), what="").values
    np.testing.assert_array_equal(found, [1.5, math.nan, 1.0])


def test_errors_on_the_way_hold_no_labels(tmp_path, held_by):
    path = write_csv(tmp_path, [SECRET, "no", "yes"])
    rows = FileRows(path, inputs=["age"], output="ill", chunk_rows=2, jobs=1)

    def fail(_chunk, _places):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError) as caught:
        rows.over_rows(fail, what="", labels=("yes", "no"))
    assert SECRET not in held_by(caught.value)


def test_places_are_those_that_classes_encode():
    classes = Classes(("a", "b", "c"))
    cells = ["c", "a", "b", "b"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        places = places_of(ArrayRows(np.ones((4, 1)), cells, chunk_rows=3), classes.labels)
    np.testing.assert_array_equal(places, classes.read(cells, rows=4))
    assert classes.faults(places) == (False,)
