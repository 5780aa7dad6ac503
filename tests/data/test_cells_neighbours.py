"""One cell of a table decides how it is read itself, and nothing of how others are."""

from __future__ import annotations

import csv
import gzip
import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cloakgp.data import FileRows
from cloakgp.data.cells import as_numbers
from cloakgp.data.tables import read_rows
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.ask import ask
from cloakgp.privacy.entries import read_entry

ODD = (
    *("5.5", "1e18", " 7 ", "1_000", "nan", "", "inf", "-Infinity", "true", "False", "NA", "x"),
    *("1e400", "1,5", "0x10", "٣", '"', "'3'", "2020-01-01", "12:30", "£30", "1 2", ";", "-"),
)
CELLS = (
    st.sampled_from(ODD)
    | st.integers(-(10**25), 10**25).map(str)
    | st.floats().map(repr)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
)


class Outputs:
    def __init__(self, values):
        self.values = values

    def merge(self, other):
        return Outputs(np.concatenate([self.values, other.values]))


def streamed(path):
    rows = FileRows(path, inputs=["age"], output="height", chunk_rows=3, jobs=1)
    return rows.over_rows(lambda _, outputs: Outputs(outputs), what="").values


def refused_or_read(path):
    """Values, or None where cells are refused: which they are must not show."""
    try:
        return read_rows(path, inputs=["age"], output="height")[1]
    except ValueError as refusal:
        assert "which they are is private" in str(refusal)  # noqa: PT017
        return None


def write_csv(folder, cells):
    path = folder / "people.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["age", "height"], *(["1", cell] for cell in cells)])
    return path


def write_gzip(folder, cells):
    path = folder / "people.csv.gz"
    path.write_bytes(gzip.compress(write_csv(folder, cells).read_bytes(), compresslevel=1))
    return path


def write_parquet(folder, cells, *, kind=None):
    path = folder / "people.parquet"
    columns = {"age": pa.array([1.0] * len(cells)), "height": pa.array(cells, pa.string())}
    if kind is not None:
        columns["height"] = columns["height"].cast(kind)
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


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS.keys())
@given(column=st.lists(CELLS, min_size=2, max_size=9), other=CELLS, data=st.data())
def test_changing_a_cell_changes_no_other(tmp_path_factory, write, column, other, data):
    folder = tmp_path_factory.mktemp("table")
    place = data.draw(st.integers(0, len(column) - 1))
    neighbour = [*column[:place], other, *column[place + 1 :]]
    before, after = streamed(write(folder, column)), streamed(write(folder, neighbour))
    np.testing.assert_array_equal(np.delete(before, place), np.delete(after, place))
    alone = np.array([read_entry(cell) for cell in neighbour])
    np.testing.assert_array_equal(after, alone)
    small = refused_or_read(write(folder, neighbour))
    if np.isfinite(alone).all():
        np.testing.assert_array_equal(small, alone)
    else:
        assert small is None


LONG = st.integers(10**17, 10**19).map(str)
FINITE = LONG | st.sampled_from(["5.5", "1e18", " 7 ", "true"]) | st.floats(-9, 9).map(repr)


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS.keys())
@given(column=st.lists(LONG, min_size=2, max_size=9), other=FINITE)
@example(column=["1234567890123456789"] * 3, other="5.5")
@example(column=["1234567890123456789"] * 3, other="1e18")
@example(column=["1234567890123456789"] * 3, other=str(2**64))
def test_changing_a_long_integer_changes_no_other(tmp_path_factory, write, column, other):
    folder = tmp_path_factory.mktemp("table")
    before = refused_or_read(write(folder, column))
    after = refused_or_read(write(folder, [other, *column[1:]]))
    np.testing.assert_array_equal(before, [float(cell) for cell in column])
    np.testing.assert_array_equal(before[1:], after[1:])


COLUMNS = {
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "halves": (pa.float16(), st.floats(width=16).map(np.float16)),
    "floats": (pa.float32(), st.floats(width=32)),
    "truth": (pa.bool_(), st.booleans()),
    "decimals": (
        pa.decimal128(38, 9),
        st.integers(-(10**37), 10**37).map(lambda one: Decimal(one).scaleb(-9)),
    ),
}


@pytest.mark.parametrize(("kind", "cells"), COLUMNS.values(), ids=COLUMNS.keys())
@given(data=st.data())
def test_changing_a_typed_cell_changes_no_other(kind, cells, data):
    column = data.draw(st.lists(cells, min_size=2, max_size=9))
    place = data.draw(st.integers(0, len(column) - 1))
    other = data.draw(cells | st.none())
    neighbour = [*column[:place], other, *column[place + 1 :]]
    (_, before), (missing, after) = (as_numbers(pa.array(one, kind)) for one in (column, neighbour))
    np.testing.assert_array_equal(np.delete(before, place), np.delete(after, place))
    np.testing.assert_array_equal(after, [read_entry(cell) for cell in neighbour])
    assert missing[place] == np.isnan(after[place])


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
@pytest.mark.parametrize("other", ["5.5", "1e18"])
def test_a_person_among_long_integers_moves_answers_by_no_more_than_is_counted(
    tmp_path, rng, monkeypatch, name, other
):
    """Three thousand integers of nineteen digits, whose nearest doubles are 256 apart."""
    middle = 4_000_000_000_000_000_000
    numbers = middle + rng.integers(-2048, 2048, size=3000)
    bounds = (float(middle - 2048), float(middle + 2048))
    asked = []

    def record(integers, *, scale, sensitivity):  # noqa: ARG001
        asked.append((integers, sensitivity))
        return integers

    monkeypatch.setattr("cloakgp.privacy.noise.gaussian.add_discrete_gaussian", record)
    for first in (str(middle + 2048), other):
        path = tmp_path / name
        if name.endswith(".csv"):
            write_csv(tmp_path, [first, *map(str, numbers[1:])])
        else:
            write_parquet(tmp_path, [first, *map(str, numbers[1:])])
        _, y = read_rows(path, inputs=["age"], output="height")
        ask(np.ones((1, 3000)), y, question=OutputBounds.checked(bounds), epsilon=1.0, delta=1e-5)
    (one, sensitivity), (another, _) = asked
    moved = math.sqrt(sum((int(a) - int(b)) ** 2 for a, b in zip(one, another, strict=True)))
    assert 0.99 < moved / sensitivity <= 1


@pytest.mark.parametrize("index", ["person", None])
def test_the_index_of_a_pandas_table_is_a_column(tmp_path: Path, index):
    path = tmp_path / "people.parquet"
    frame = pd.DataFrame({"height": [170.0, 165.0]}, index=pd.Index([7, 3], name=index))
    frame.to_parquet(path)
    name = index or "__index_level_0__"
    X, y = read_rows(path, inputs=[name], output="height")
    np.testing.assert_array_equal(X, [[7.0], [3.0]])
    np.testing.assert_array_equal(y, [170.0, 165.0])
    X, y = read_rows(path, inputs=["height"], output=name)
    np.testing.assert_array_equal(y, [7.0, 3.0])
    rows = FileRows(path, inputs=[name], output="height", jobs=1)
    both = rows.over_rows(lambda chunk, outputs: Outputs([*chunk.X[:, 0], *outputs]), what="")
    np.testing.assert_array_equal(both.values, [7.0, 3.0, 170.0, 165.0])
