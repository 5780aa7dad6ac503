"""Whose rows they are, in arrays and in files: equal groups have equal numbers, in every chunk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cloakgp.data import ArrayRows, FileRows
from cloakgp.utils.passes import GROUP_NUMBERS, group_number


@dataclass(frozen=True)
class Seen:
    """What chunks say, in order."""

    groups: tuple
    inputs: tuple
    entries: tuple = ()

    @classmethod
    def of(cls, chunk, *entries):
        groups = None if chunk.groups is None else tuple(chunk.groups.tolist())
        return cls(
            (groups,),
            tuple(chunk.X[:, 0].tolist()),
            tuple(np.concatenate(entries).tolist()) if entries else (),
        )

    def merge(self, other):
        return Seen(
            self.groups + other.groups, self.inputs + other.inputs, self.entries + other.entries
        )


def numbers_of(rows):
    """The number of every row, alike in both kinds of passes."""
    public = rows.over_inputs(Seen.of, what="looking")
    private = rows.over_rows(Seen.of, what="looking")
    assert public.groups == private.groups
    assert public.inputs == private.inputs
    flat = [one for chunk in public.groups for one in chunk]
    assert all(0 <= one < GROUP_NUMBERS for one in flat)
    return flat, private.entries


@pytest.mark.parametrize("chunk_rows", [1, 2, 3, 100])
@pytest.mark.parametrize("jobs", [1, 3])
def test_arrays_give_the_number_of_every_row(chunk_rows, jobs):
    groups = ["eve", "1", "1.0", "eve ", "01", "é", "e\u0301", "1"]
    rows = ArrayRows(
        np.zeros((8, 1)), np.arange(8.0), groups=groups, chunk_rows=chunk_rows, jobs=jobs
    )
    assert rows.grouped
    found, entries = numbers_of(rows)
    assert found == [group_number(one) for one in ("eve", "1", "1.0", "eve", "01", "é", "é", "1")]
    assert entries == tuple(range(8))


@pytest.mark.parametrize("make", [np.array, list, tuple, pd.Series, pd.Categorical])
def test_groups_may_be_held_in_many_ways(make):
    rows = ArrayRows(np.zeros((4, 1)), np.zeros(4), groups=make(["b", "a", "b", "c"]), chunk_rows=3)
    assert numbers_of(rows)[0] == [group_number(one) for one in "babc"]


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT, " "])
def test_rows_that_are_nobodys_are_refused(missing):
    groups = ["a", "b", missing, "b"]
    with pytest.raises(ValueError, match="name none for row 2"):
        ArrayRows(np.zeros((4, 1)), np.zeros(4), groups=groups)


def test_a_table_of_groups_is_refused(monkeypatch):
    """Its one entry is the name of its column, and what was no group's was whatever memory held."""

    def planted(shape, dtype=float, **_):
        return np.zeros(shape, dtype=dtype)

    monkeypatch.setattr(np, "empty", planted)
    frame = pd.DataFrame({"person": ["a", "b", "a", "c"]})
    with pytest.raises(ValueError, match=r"one dimension.*table\['person'\]"):
        numbers_of(ArrayRows(np.zeros((4, 1)), np.zeros(4), groups=frame, jobs=1))


@pytest.mark.parametrize("groups", [["a"], "abcd", []])
def test_there_must_be_a_group_for_every_row(groups):
    with pytest.raises(ValueError, match="a group for each of 4 rows"):
        ArrayRows(np.zeros((4, 1)), np.zeros(4), groups=groups)


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
@pytest.mark.parametrize("chunk_rows", [2, 100])
def test_files_give_the_number_of_every_row(name, chunk_rows, tmp_path):
    who = ["eve", "bob", "eve", "é", "007", " bob ", "7"]
    frame = pd.DataFrame({"who": who, "y": np.arange(7), "a": np.arange(7.0) / 8})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet", index=False, row_group_size=3)
    rows = FileRows(
        tmp_path / name, inputs=["a"], output="y", groups="who", chunk_rows=chunk_rows, jobs=1
    )
    assert rows.grouped
    assert rows.n_inputs == 1
    found, entries = numbers_of(rows)
    assert found == [group_number(one.strip()) for one in who]
    assert entries == tuple(range(7))
    places = rows.over_rows(Seen.of, what="looking", labels=(0, 1, 2, 3, 4, 5, 6)).entries
    assert places == entries


def test_a_person_is_the_same_however_files_hold_numbers(tmp_path):
    """Rows of one group that got different numbers would not be protected together."""
    for name, kind in (("1", pa.int64()), ("2", pa.uint8()), ("3", pa.decimal128(19, 0))):
        who = pa.array([7, 8]).cast(kind)
        table = pa.table({"a": [0.0, 1.0], "y": [1.0, 2.0], "who": who})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    rows = FileRows(tmp_path, inputs=["a"], output="y", groups="who", jobs=1)
    seven, eight = group_number("7"), group_number("8")
    assert numbers_of(rows)[0] == [seven, eight] * 3


def test_empty_cells_are_nobodys(tmp_path):
    pd.DataFrame({"who": ["a", None, "b"], "y": [1.0] * 3, "a": [1.0] * 3}).to_parquet(
        tmp_path / "rows.parquet"
    )
    rows = FileRows(tmp_path / "rows.parquet", inputs=["a"], output="y", groups="who", jobs=1)
    with pytest.raises(ValueError, match="column 'who' is empty in row 2 below the header"):
        numbers_of(rows)


@pytest.mark.parametrize("groups", ["a", "y", "nobody"])
def test_the_column_of_groups_is_one_of_its_own(groups, tmp_path):
    (tmp_path / "rows.csv").write_text("a,y\n1,2\n")
    with pytest.raises(ValueError, match=r"can be nothing else|no column nobody"):
        FileRows(tmp_path / "rows.csv", inputs=["a"], output="y", groups=groups)


def test_rows_without_groups_say_so():
    rows = ArrayRows(np.zeros((4, 1)), np.zeros(4), chunk_rows=3, jobs=1)
    assert not rows.grouped
    assert rows.over_inputs(Seen.of, what="looking").groups == (None, None)


def test_rows_of_persons_are_counted_by_their_ids(tmp_path):
    one, other = "patient 51", "patient 61400"
    assert group_number(one) == group_number(other)
    ids = [one, one, other, "x", f" {other} "]
    table = pd.DataFrame({"who": ids, "age": [1.0] * 5, "y": [0.0] * 5})
    table.to_csv(tmp_path / "rows.csv", index=False)
    files = FileRows(tmp_path / "rows.csv", inputs=["age"], output="y", groups="who", chunk_rows=2)
    arrays = ArrayRows(table[["age"]], table["y"], groups=ids)
    assert files.most_rows_of_person() == arrays.most_rows_of_person() == 2
    # Ids that are told once are numbers since.
    once = ArrayRows(table[["age"]], table["y"], groups=iter(ids))
    assert once.most_rows_of_person() == 4
    for rows in (
        ArrayRows(table[["age"]], table["y"]),
        FileRows(tmp_path / "rows.csv", inputs=["age"], output="y"),
    ):
        with pytest.raises(ValueError, match="whose they are"):
            rows.most_rows_of_person()
