"""Cells with a type of their own are read as what they are, in whatever notation text is."""

from __future__ import annotations

import datetime as dt
import sqlite3
from contextlib import closing
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cloakgp.columns import Boolean, Date, Number, Schema, infer_schema
from cloakgp.data import FileRows
from cloakgp.data.cells import as_numbers
from cloakgp.data.mixed import mixed_column
from cloakgp.data.raw import ArrowCells, RawRows
from cloakgp.data.tables import read_people, read_private_columns, read_public

GERMAN = Schema((Number("area", decimal=",", thousands="."),))
AREAS = [12.125, 845.125, 120.0]
KINDS = ["people.xlsx", "people.parquet", "people.db"]


def write(frame, path):
    if path.suffix == ".xlsx":
        frame.to_excel(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        with closing(sqlite3.connect(path)) as database:
            frame.to_sql("people", database, index=False)
    return path


@pytest.mark.parametrize("name", KINDS)
def test_numbers_by_type_are_numbers_of_a_schema_with_decimal_commas(name, tmp_path):
    path = write(pd.DataFrame({"area": AREAS, "y": AREAS}), tmp_path / name)
    assert GERMAN.encode(read_public(path, names=["area"])).X.ravel().tolist() == AREAS
    raw = RawRows.by_schema(GERMAN)
    assert read_people(path, raw=raw, output="y").private.tolist() == AREAS
    seen = []
    rows = FileRows(path, output="y", raw=raw, chunk_rows=2, jobs=1)
    rows.over_rows(lambda _, outputs: seen.extend(outputs) or Nothing(), what="a test")
    assert seen == AREAS
    cells, y = read_private_columns(path, schema=GERMAN, output="y")
    assert (cells["area"].tolist(), y.tolist()) == (AREAS, AREAS)


class Nothing:
    def merge(self, other):
        return other


@pytest.mark.parametrize("name", KINDS[:2])
def test_dates_and_truths_by_type_are_those_of_a_schema_of_text(name, tmp_path):
    frame = pd.DataFrame({"when": [pd.Timestamp(2023, 5, 4)], "ill": [True]})
    path = write(frame, tmp_path / name)
    schema = Schema(
        (
            Date("when", form="%d.%m.%Y"),
            Boolean("ill", true_values=("yes",), false_values=("no",)),
        )
    )
    expected = schema.encode({"when": ["04.05.2023"], "ill": ["yes"]}).X
    assert schema.encode(read_public(path, names=["when", "ill"])).X.tolist() == expected.tolist()


@pytest.mark.parametrize("mixed", [True, False])
def test_each_cell_is_read_by_its_own_type_and_text_in_the_notation(mixed):
    cells = ["12.125", 845.125, "1,5", Decimal("2.250"), None, 3]
    column = mixed_column(cells) if mixed else np.array(cells, dtype=object)
    schema = Schema((Number("area", decimal=",", thousands=".", missing="impute", fill=0.5),))
    found = schema.encode({"area": ArrowCells(column) if mixed else column}).X[:, 0]
    assert found.tolist() == [12125.0, 845.125, 1.5, 2.25, 0.5, 3.0]
    days = [dt.date(2023, 5, 4), "04.05.2023"]
    dates = ArrowCells(mixed_column(days)) if mixed else np.array(days, dtype=object)
    first, second = Schema((Date("when", form="%d.%m.%Y"),)).encode({"when": dates}).X[:, 0]
    assert first == second
    truths = [True, "no", "yes", False]
    said = ArrowCells(mixed_column(truths)) if mixed else np.array(truths, dtype=object)
    ill = Schema((Boolean("ill", true_values=("yes",), false_values=("no",)),))
    assert ill.encode({"ill": said}).X[:, 0].tolist() == [1.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([6.125, 4.0, 1234.5, 2.5]),
        pa.array([Decimal("6.125"), Decimal("4.000"), Decimal("1234.500"), Decimal("2.500")]),
        pa.chunked_array([[6.125, 4.0], [1234.5, 2.5]]),
        mixed_column([6.125, 4.0, 1234.5, 2.5]),
        pa.array(["6,125", "4", "1.234,5", "2,5"]),
        mixed_column(["6,125", 4.0, "1.234,5", 2.5]),
    ],
)
@pytest.mark.parametrize("missing", ["refuse", "drop", "0"])
def test_private_numbers_by_type_are_what_they_are(column, missing):
    raw = RawRows.by_schema(GERMAN, missing_output=missing)
    assert as_numbers(raw.private(column)[0])[1].tolist() == [6.125, 4.0, 1234.5, 2.5]


def test_whatever_others_are_a_private_cell_is_read_alike():
    raw, cells = RawRows.by_schema(GERMAN), [6.125, "6.125", True, "x", None, "1,5"]
    together = as_numbers(raw.private(mixed_column(cells))[0])
    alone = [as_numbers(raw.private(mixed_column([cell]))[0]) for cell in cells]
    for one, each in zip(together, zip(*alone, strict=True), strict=True):
        np.testing.assert_array_equal(one, np.concatenate(each))


def test_a_schema_of_mixed_cells_is_that_of_their_types():
    table = {
        "when": ArrowCells(mixed_column([dt.date(2020, 1, day) for day in range(1, 9)])),
        "area": ArrowCells(mixed_column([0.5, None, 3.25, 4, 5, 6, 7, 8])),
        "ill": ArrowCells(mixed_column([True, False] * 4)),
    }
    assert [type(each) for each in infer_schema(table, list(table)).columns] == [
        Date,
        Number,
        Boolean,
    ]
