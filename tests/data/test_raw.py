"""Private cells are read one by one, whatever the others are."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.columns import Category, Date, Number, Schema
from cloakgp.data import FileRows
from cloakgp.data.cells import as_numbers
from cloakgp.data.raw import DROP, ArrowCells, RawRows
from cloakgp.data.tables import read_people

SCHEMA = Schema((Number("age"),))
CELLS = st.sampled_from(["", "NA", "1,5", "1.000,5", "1.5", "x", "-3", " 7 ", "true", "inf", None])


def private_numbers(raw, cells):
    column, kept = raw.private(pa.array(cells, pa.string()))
    missing, values = as_numbers(column)
    kept = np.ones(len(cells), dtype=bool) if kept is None else kept
    return list(zip(missing, map(repr, values.tolist()), kept, strict=True))


@given(st.lists(CELLS, max_size=6), st.sampled_from(["refuse", DROP, "3"]), st.booleans())
def test_no_cell_changes_how_others_are_read(cells, meaning, comma):
    notation = {"decimal": ",", "thousands": "."} if comma else {}
    raw = RawRows(SCHEMA, missing_output=meaning, **notation)
    together = private_numbers(raw, cells)
    assert together == [private_numbers(raw, [cell])[0] for cell in cells]


def test_the_notation_of_public_columns_is_that_of_private_cells():
    raw = RawRows(SCHEMA, decimal=",", thousands=".")
    told = private_numbers(raw, ["1.000,5", "2,5", "2.5", ""])
    assert [value for _, value, _ in told] == ["1000.5", "2.5", "nan", "nan"]
    assert [missing for missing, _, _ in told] == [False, False, False, True]


@pytest.mark.parametrize(
    ("column", "typed", "texts"),
    [
        (pa.array(["a", None, "b"]).dictionary_encode(), "text", ["a", "", "b"]),
        (pa.array([1, None]), "numbers", ["1", ""]),
        (pa.array([True, None]), "truths", ["true", ""]),
        (pa.array([b" \xe4 ", "ä".encode()]), "text", ["ä", "ä"]),
        (pa.chunked_array([["a"], ["b", None]]), "text", ["a", "b", ""]),
        (pa.array([18290, None], pa.date32()), "times", ["2020-01-29", ""]),
        (pa.array([], pa.string()), "text", []),
    ],
)
def test_cells_of_arrow(column, typed, texts):
    cells = ArrowCells(column)
    assert (cells.typed, cells.texts().tolist()) == (typed, texts)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_stamps_of_every_unit(unit):
    day = dt.datetime(2020, 1, 29, 12, tzinfo=dt.UTC)
    column = pa.array([day, None], pa.timestamp(unit, "Europe/Berlin"))
    days, missing = ArrowCells(column).times("default")
    assert days[0] == 18290.5
    assert missing.tolist() == [False, True]
    schema = Schema((Date("when", missing="drop"),))
    assert schema.encode({"when": column}).X.tolist() == [[18290.5]]


def test_rows_read_at_once_and_by_passes_are_alike(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("job;pay;age\na;1,5;30\nb;;31\nc;2;\na;3,5;33\n", "utf-8")
    columns = (Number("age", missing="drop"), Category("job", levels=("a", "b")))
    raw = RawRows(Schema(columns), missing_output=DROP, decimal=",")
    rows = FileRows(path, output="pay", raw=raw, chunk_rows=2)
    people = read_people(path, raw=raw, output="pay")
    dense = raw.schema.encode(people.columns)
    streamed = [block.inputs() for block in rows._blocks(private=True)]
    outputs = [block.outputs() for block in rows._blocks(private=True)]
    np.testing.assert_array_equal(np.concatenate(streamed), dense.X)
    np.testing.assert_array_equal(np.concatenate(outputs), people.private[dense.kept])
    assert np.concatenate(outputs).tolist() == [1.5, 3.5]
    assert rows.count == 2


def test_ordered_levels_of_chunks_are_those_of_the_one_that_has_all():
    def chunk(codes, levels):
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), levels, ordered=True)

    chunks = [chunk([0, 1], ["low", "high"]), chunk([2, 1, None], ["low", "mid", "high"])]
    cells = ArrowCells(pa.chunked_array(chunks))
    assert cells.levels == ("low", "mid", "high")
    assert cells.texts().tolist() == ["low", "high", "high", "mid", ""]
    other = ArrowCells(pa.chunked_array([chunks[0], chunk([0], ["high", "low"])]))
    with pytest.raises(ValueError, match="levels in different orders in parts of the table"):
        _ = other.levels
