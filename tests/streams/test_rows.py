"""Rows of a period beside a brute-force reading of the same chunks, row by row."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.columns import Schema
from cloakgp.columns.numbers import Number
from cloakgp.data.raw import RawRows
from cloakgp.streams.declaration import Declaration
from cloakgp.streams.periods import Periods
from cloakgp.streams.rows import Columns, PeriodRows, collect, look_at, record_of
from cloakgp.streams.sources import FrameChunk, PrivateColumn

DECLARED = Declaration(
    output="pay",
    inputs=("age",),
    time="day",
    person="who",
    origin="0",
    length=10.0,
    horizon=3,
    lateness=0.0,
    people="disjoint",
    epsilon=1.0,
    delta=0.0,
    forgetting=None,
    lasting=0.5,
    model="",
    schema="",
    missing_output="refuse",
    ledger="",
    account="",
)
PERIODS = Periods.declared(0.0, length=10.0, horizon=3)
ROW = st.tuples(st.sampled_from([-1.0, 0.0, 5.0, 10.0, 29.0, 30.0]), st.sampled_from("abc"))


@given(
    chunks=st.lists(
        st.tuples(st.lists(ROW, min_size=1, max_size=5), st.integers(0, 3)), min_size=1, max_size=4
    )
)
def test_the_last_row_in_time_of_each_person_and_moment(chunks):
    """Chunks have rows, and come when so many periods have closed."""
    closings = sorted(closed for _, closed in chunks)
    number, frames = 0, []
    for rows, _ in chunks:
        table = pd.DataFrame(rows, columns=["day", "who"])
        table["age"] = np.arange(number, number + len(rows), dtype=float)
        table["pay"] = -table["age"]
        number += len(rows)
        frames.append(FrameChunk(f"chunk {len(frames)}", table))
    columns = Columns.of(frames[0], DECLARED)
    private = PrivateColumn("pay", RawRows(columns.inputs))
    looked = {each.name: look_at(each, columns, DECLARED, private=private) for each in frames}
    records = [
        record_of(each, looked[each.name], periods=PERIODS, closed=closed, version="")
        for each, closed in zip(frames, closings, strict=True)
    ]
    for period in range(3):
        kept, replaced, missed = {}, 0, 0
        for each, closed in zip(frames, closings, strict=True):
            for _, row in each._frame.iterrows():
                if not 10 * period <= row["day"] < 10 * period + 10:
                    continue
                if closed > period:
                    missed += 1
                    continue
                replaced += (row["who"], row["day"]) in kept
                kept.pop((row["who"], row["day"]), None)
                kept[row["who"], row["day"]] = row["age"]
        found = collect(
            period,
            looked=looked,
            records=records,
            periods=PERIODS,
        )
        assert found.count == len(kept)
        assert found.repeated == replaced
        assert sum(dict(each.late).get(period, 0) for each in records) == missed
        if kept:
            assert found.looked.frame["age"].tolist() == list(kept.values())
            assert found.looked.X[:, 0].tolist() == list(kept.values())
            assert found.looked.persons == [who for who, _ in kept]
            # Their outputs are those of the same rows.
            assert found.looked.private.tolist() == [-age for age in kept.values()]
    assert sum(each.before for each in records) == sum(
        day < 0 for rows, _ in chunks for day, _ in rows
    )


def test_digests_go_by_public_columns_alone():
    table = pd.DataFrame({"day": [1.0], "who": ["a"], "age": [3.0], "pay": [5.0]})

    def digest(**changed):
        chunk = FrameChunk("a", table.assign(**changed))
        return look_at(chunk, Columns.of(chunk, DECLARED), DECLARED).digest

    assert digest(pay=6.0) == digest()
    assert len({digest(), digest(day=2.0), digest(who="b"), digest(age=4.0)}) == 4


def test_rows_that_lack_an_input_are_left_out_where_the_schema_says_so():
    table = pd.DataFrame({"day": [1.0, 2.0, 3.0], "who": list("abc"), "age": [3.0, None, 5.0]})
    table["pay"] = 1.0
    chunk = FrameChunk("a", table)
    schema = Schema(columns=(Number(name="age", missing="drop"),))
    columns = Columns.of(chunk, DECLARED, schema=schema)
    looked = look_at(chunk, columns, DECLARED)
    assert looked.X[:, 0].tolist() == looked.frame["age"].tolist() == [3.0, 5.0]
    assert looked.times.tolist() == [1.0, 3.0]
    assert looked.persons == ["a", "c"]
    with pytest.raises(ValueError, match=r"^a: .*day"):
        look_at(FrameChunk("a", table.assign(day=[1.0, None, 3.0])), columns, DECLARED)
    with pytest.raises(ValueError, match=r"^a: .*missing"):
        look_at(FrameChunk("a", table.assign(who=["a", "b", " "])), columns, DECLARED)


def test_notations_that_contradict_each_other_are_refused():
    declared = replace(DECLARED, inputs=("age", "dose"))
    table = pd.DataFrame({"day": ["1", "2"], "age": ["3,5", "4"], "dose": ["5.5", "6"]})
    schema = Schema((Number("age", decimal=","), Number("dose")))
    for settled in ({"private_numbers": False}, {"schema": schema}):
        Columns.of(FrameChunk("a", table), declared, **settled)
    with pytest.raises(ValueError, match="'age' has decimal commas and 'dose' decimal points"):
        Columns.of(FrameChunk("a", table), declared)
    with pytest.raises(ValueError, match="'age' has decimal commas and 'day' decimal points"):
        Columns.of(FrameChunk("a", table.assign(day=["1.5", "2"])), DECLARED)


def test_how_the_first_chunk_is_read_is_told():
    table = pd.DataFrame({"day": ["01/02/2026", "02/02/2026"], "age": ["3,5", "4"]})
    told = Columns.of(FrameChunk("a", table), DECLARED).remarks
    assert [each.partition(":")[0] for each in told] == ["age", "pay", "day"]
    assert told[1].startswith("pay: text in it is read with decimal commas")
    assert told[2].startswith("day: the day is taken to come first")
    schema = Schema((Number("age", decimal=","),))
    (told_of_day,) = Columns.of(FrameChunk("a", table), DECLARED, schema=schema).remarks
    assert told_of_day == told[2]


def test_columns_come_back_from_their_texts():
    chunk = FrameChunk("a", pd.DataFrame({"day": ["2026-01-31"], "age": [3.0]}))
    columns = Columns.of(chunk, DECLARED)
    again = Columns.from_texts(*columns.to_texts())
    assert again == columns
    assert again.dated
    assert again.moment("1970-01-11", name="origin") == 10.0
    with pytest.raises(ValueError, match="origin must be a date"):
        again.moment("10", name="origin")


@pytest.mark.parametrize("private", [None, PrivateColumn("pay", RawRows(Schema((Number("age"),))))])
def test_rows_that_were_read_are_not_pickled(private):
    table = pd.DataFrame({"day": [1.0, 2.0], "age": [3.0, 4.0], "who": ["a", "b"], "pay": 6.0})
    chunk = FrameChunk("a", table)
    read = chunk.read(["day", "age"], private=private)
    looked = look_at(chunk, Columns.of(chunk, DECLARED), DECLARED, private=private)
    for each in (read, looked, looked.part(np.array([0])), PeriodRows(looked)):
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(each)
