"""Chunks: what one read of them gives."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

from cloakgp.columns import Number, Schema
from cloakgp.data import tables
from cloakgp.data.raw import RawRows
from cloakgp.streams.sources import FrameChunk, PrivateColumn, TableChunk

SCHEMA = Schema((Number("age"),))


def column(*, classes=(), missing="refuse"):
    return PrivateColumn(
        "pay", RawRows(SCHEMA, missing, tuple(map(str, classes))), classes=tuple(classes)
    )


def table(outputs):
    return pd.DataFrame({"who": list("abc"), "day": [1.0, 2.0, 3.0], "age": 5.0, "pay": outputs})


def chunks(outputs, tmp_path):
    """The same rows in memory, and in a file."""
    made = table(outputs)
    made.to_csv(tmp_path / "rows.csv", index=False)
    return FrameChunk("rows", made), TableChunk(tmp_path / "rows.csv")


def test_one_read_gives_columns_persons_and_outputs(tmp_path):
    for chunk in chunks([1.5, 2.5, 3.5], tmp_path):
        found = chunk.read(["day", "age"], person="who", private=column())
        assert list(found.frame) == ["day", "age"]
        assert found.frame["day"].astype(float).tolist() == [1.0, 2.0, 3.0]
        assert found.persons == list("abc")
        assert found.private.tolist() == [1.5, 2.5, 3.5]
        found = chunk.read(["age"])
        assert (found.persons, found.private) == (None, None)


def test_a_file_is_opened_once_for_all_of_them(monkeypatch, tmp_path):
    _, chunk = chunks([1.5, 2.5, 3.5], tmp_path)
    read, opened = tables._read_columns, []

    def counted(path, **how):
        opened.append(how["names"])
        return read(path, **how)

    monkeypatch.setattr(tables, "_read_columns", counted)
    chunk.read(["day", "age"], person="who", private=column())
    chunk.read(["day", "age"], person="who")
    assert opened == [["age", "day", "who", "pay"], ["day", "age", "who"]]


def test_a_file_that_is_written_while_it_is_read_is_refused(monkeypatch, tmp_path):
    _, chunk = chunks([1.5, 2.5, 3.5], tmp_path)
    read = tables._read_columns

    def written(path, **how):
        found = read(path, **how)
        os.utime(path, ns=(1, 1))
        return found

    monkeypatch.setattr(tables, "_read_columns", written)
    with pytest.raises(ValueError, match="has changed since it was first looked at"):
        chunk.read(["age"], private=column())


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, "", "NA"])
def test_missing_numbers_count_as_what_was_said(gap, tmp_path):
    for chunk in chunks([1.5, gap, 3.5], tmp_path):
        found = chunk.read(["age"], private=column(missing="0.25"))
        assert found.private.astype(float).tolist() == [1.5, 0.25, 3.5]
    # Of numbers that pandas knows as such, too.
    numbers = FrameChunk("rows", table(np.array([1.5, np.nan, 3.5])))
    found = numbers.read(["age"], private=column(missing="7"))
    assert found.private.astype(float).tolist() == [1.5, 7.0, 3.5]


def test_missing_classes_count_as_what_was_said_unless_they_are_classes(tmp_path):
    for chunk in chunks(["NA", None, "yes"], tmp_path):
        asked = column(classes=["NA", "yes", "none"], missing="none")
        assert chunk.read(["age"], private=asked).private.tolist() == ["NA", "none", "yes"]
        assert (
            chunk.read(["age"], private=column(classes=["NA", "yes"], missing="yes")).private[1]
            == "yes"
        )
    whole = FrameChunk("rows", table([0, None, 1]))
    found = whole.read(["age"], private=column(classes=[0, 1], missing="1"))
    assert found.private.tolist() == [0, 1, 1]


def test_classes_of_files_are_those_that_were_declared(tmp_path):
    for classes, outputs in (([0, 1], [0, 1, 0]), (["0", "1"], [0, 1, 0]), ([True, False], None)):
        values = outputs or [True, False, True]
        _, chunk = chunks(values, tmp_path)
        found = chunk.read(["age"], private=column(classes=classes)).private.tolist()
        assert found == [classes[0 if each == values[0] else 1] for each in values]
        assert {type(each) for each in found} == {type(classes[0])}
    _, chunk = chunks([0, 1, 987654], tmp_path)
    with pytest.raises(ValueError, match="not among the declared classes 0, 1") as caught:
        chunk.read(["age"], private=column(classes=[0, 1]))
    assert "987654" not in str(caught.value)
    with pytest.raises(ValueError, match="not all written differently"):
        chunks([1, 1, 1], tmp_path)[1].read(["age"], private=column(classes=[1, "1"]))
