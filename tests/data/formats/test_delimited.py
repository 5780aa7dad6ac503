"""Formats are told by name; nothing written to CSV begins like a formula, and numbers stay."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.data.formats import format_of
from cloakgp.data.formats.delimited import without_formulas
from cloakgp.data.schema import FORMATS
from cloakgp.data.tables import column_names_of, read_public

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
FORMULAS = st.builds(
    str.__add__, st.sampled_from(["=", "+", "-", "@", "\t", "\r", " =", "＝"]), TEXT
)


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_every_suffix_is_of_one_format():
    """Names are checked before anything is imported that reads files: formats are there by name."""
    every = [suffix for suffixes in FORMATS.values() for suffix in suffixes]
    assert len(set(every)) == len(every)
    for suffix in every:
        assert suffix in format_of(f"people{suffix}").suffixes


@given(st.lists(FORMULAS | TEXT, min_size=1, max_size=5), FORMULAS | TEXT)
def test_no_text_begins_like_a_formula(cells, name):
    safe = without_formulas(pd.DataFrame({name: pd.Series(cells, dtype=object)}))
    for given_, text in zip([name, *cells], [*safe.columns, *safe.iloc[:, 0]], strict=True):
        assert text in (given_, f"'{given_}")
        assert is_number(text) or not text.lstrip().startswith(("=", "+", "-", "@"))
        assert is_number(text) or not text.startswith(("\t", "\r"))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("  =1+1", "'  =1+1"),
        ("-1.5e3", "-1.5e3"),
        ("+44 20", "'+44 20"),
        ("a=b", "a=b"),
        ("'=1", "'=1"),
    ],
)
def test_text_that_may_stand(text, written):
    frame = without_formulas(pd.DataFrame({"a": [text]}))
    assert frame.iloc[0, 0] == written


def test_numbers_and_the_table_itself_are_not_touched():
    frame = pd.DataFrame({"=x": [-1.5, np.inf], "n": [1, -2], "b": [True, False], "t": ["=", "a"]})
    kept = frame.copy()
    safe = without_formulas(frame)
    pd.testing.assert_frame_equal(frame, kept)
    for before, after in (("=x", "'=x"), ("n", "n"), ("b", "b")):
        pd.testing.assert_series_equal(frame[before], safe[after], check_names=False)


def test_names_that_become_alike_are_all_kept():
    safe = without_formulas(pd.DataFrame([["=1", "=2"]], columns=["=a", "'=a"]))
    assert list(safe.columns) == ["'=a", "'=a"]
    assert safe.iloc[0].tolist() == ["'=1", "'=2"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_written_tables(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    columns = {"=cmd": np.array(["@a", "-2"], dtype=object), "mean": np.array([-1.0, 2.0])}
    with path.open("wb") as file:
        format_of(path).write(iter([pa.table(columns)]), file, suffix=suffix)
    if suffix == ".parquet":
        assert list(pd.read_parquet(path).columns) == ["=cmd", "mean"]
        return
    with path.open(newline="") as file:
        assert list(csv.reader(file)) == [["'=cmd", "mean"], ["'@a", "-1.0"], ["-2", "2.0"]]


BODY = "".join(f"{20 + row};{'ab'[row % 2]};{100 + row},5\n" for row in range(9))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("age;job;y, in EUR, CHF, USD\n" + BODY, "y, in EUR, CHF, USD"),
        ("sep=;\nage;job;y\n" + BODY, "y"),
        ('\ufeff"sep=;"\r\nage;job;y\r\n' + BODY, "y"),
        ("sep=,\nage,job,y\n" + BODY.replace(",", ".").replace(";", ","), "y"),
        (" age ; job ; y \n" + BODY, "y"),
        ('age,"jo\nb",y\n' + BODY.replace(",", ".").replace(";", ","), "y"),
        ("age;job;y\n" + BODY.replace("20;a", f'20;"{"x" * 200_000}"', 1), "y"),
    ],
)
def test_cells_and_names_are_those_that_are_meant(text, name, tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(text.encode())
    names = column_names_of(path)
    assert (len(names), names[-1], names[0]) == (3, name, "age")
    found = read_public(path, names=["age", name])
    assert found["age"].texts().tolist() == [str(20 + row) for row in range(9)]
    assert [cell[:3] for cell in found[name].texts().tolist()] == [str(100 + r) for r in range(9)]


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (("age;job;y\n" + BODY).replace("\n", "\r"), "end in a carriage return alone"),
        ("age;job;y\n" + BODY.replace("\n", ";\n"), "its rows end in a separator that the line of"),
    ],
)
def test_ends_of_lines_and_rows_are_told_and_no_cell(text, advice, tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(text.encode())
    with pytest.raises(ValueError, match=advice) as caught:
        column_names_of(path)
    frames = [frame.frame.f_locals for frame in caught.traceback]
    assert not any("100,5" in str(value) for found in frames[2:] for value in found.values())
