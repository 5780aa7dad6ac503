"""Ids of persons: one canonical form, so that no spelling and no reader splits a person."""

from __future__ import annotations

import datetime as dt
import math
import unicodedata
import uuid
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laplace_neighbours import furthest

from cloakgp import DPGPRegressor
from cloakgp.columns import infer_schema
from cloakgp.data import ArrayRows, FileRows
from cloakgp.data.raw import RawRows
from cloakgp.data.tables import read_people, read_person_ids, read_public
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.ask import ask
from cloakgp.privacy.groups import checked_groups
from cloakgp.privacy.person_ids import (
    DIGITS,
    TEXT,
    WHOLE,
    PersonIds,
    one_kind,
    person_id,
    person_ids,
)
from cloakgp.utils.passes import group_number

BLANKS = ["", " ", "\t", "\u00a0", "\u2003", "\n "]
texts = st.text(min_size=1, max_size=12).filter(lambda text: text.strip())


def numbers_of(groups, *, rows):
    """The number of every row, as passes have it."""
    return ArrayRows(np.zeros((rows, 1)), np.zeros(rows), groups=groups, jobs=1)._groups.tolist()


@given(text=texts, before=st.sampled_from(BLANKS), after=st.sampled_from(BLANKS))
def test_spellings_of_an_id_are_one_person(text, before, after):
    forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD")]
    spellings = [text, *forms, *(f"{before}{form}{after}" for form in forms)]
    assert len({person_id(each) for each in spellings}) == 1
    assert checked_groups(spellings, rows=5).tolist() == [0] * 5
    assert len(set(numbers_of(spellings, rows=5))) == 1


@given(texts)
def test_the_canonical_form_is_its_own(text):
    assert person_id(person_id(text)) == person_id(text)
    assert unicodedata.is_normalized("NFC", person_id(text))


@given(st.integers(-(10**30), 10**30))
def test_whole_numbers_are_their_digits(number):
    assert list(person_ids([number, number], rows=2)) == [str(number)] * 2


@pytest.mark.parametrize(
    ("one", "other"), [("1", "01"), ("1", "1.0"), ("Eve", "eve"), ("a b", "ab")]
)
def test_what_is_written_differently_is_somebody_else(one, other):
    assert checked_groups([one, other, one], rows=3).tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "groups",
    [
        [5, 7, 5],
        np.array([5, 7, 5], dtype=np.uint8),
        pd.Series([5, 7, 5], dtype="Int64"),
        pd.Series(["5", "7", "5"], dtype="category"),
        pd.Series(["5", "7", "5"], dtype="string[pyarrow]"),
        pa.chunked_array([["5"], ["7", "5"]]),
        pa.array([5, 7, 5]),
        np.array(["5", "7", "5"]),
    ],
)
def test_ids_may_be_held_in_many_ways(groups):
    assert list(person_ids(groups, rows=3)) == ["5", "7", "5"]


@pytest.mark.parametrize("read", [checked_groups, numbers_of])
@pytest.mark.parametrize(
    ("strange", "said"),
    [
        (5.0, "a number with a point"),
        (np.float32(5), "a number with a point"),
        (math.nan, "name none for row 2"),
        (np.nan, "name none for row 2"),
        (None, "name none for row 2"),
        (pd.NA, "name none for row 2"),
        (pd.NaT, "name none for row 2"),
        (" \t", "name none for row 2"),
        (5, "partly text and partly whole numbers"),
        (np.int8(5), "partly text and partly whole numbers"),
        (True, "an object of type bool"),
        (np.True_, "an object of type bool"),
        (("a", math.nan), "an object of type tuple"),
        (("a", 1), "an object of type tuple"),
        (["a"], "an object of type list"),
        (b"a", "an object of type bytes"),
        (dt.date(2020, 1, 1), "an object of type date"),
        (uuid.UUID(int=1), "an object of type UUID"),
    ],
)
def test_what_is_no_id_is_refused(read, strange, said):
    with pytest.raises(ValueError, match=said):
        read(["a", "b", strange, "b"], rows=4)


@pytest.mark.parametrize("read", [checked_groups, numbers_of])
@pytest.mark.parametrize(
    "groups",
    [
        pd.DataFrame({"person": list("abab")}),
        # As many columns as rows: their names are no ids.
        pd.DataFrame(np.zeros((4, 4)), columns=list("abab")),
        np.array([["a"], ["b"], ["a"], ["b"]]),
        dict.fromkeys("abcd"),
        {"a", "b", "c", "d"},
        "abab",
        ["a", "b", "a"],
        ["a", "b", "a", "b", "a"],
    ],
)
def test_there_must_be_one_id_for_each_row(read, groups):
    with pytest.raises(ValueError, match="a group for each of 4 rows"):
        read(groups, rows=4)


def test_one_text_for_whole_numbers_wherever_they_are(tmp_path):
    """A person has one number in files, in arrays and in every process."""
    frame = pd.DataFrame({"who": [7, 8], "x": [0.0, 1.0], "y": [1.0, 2.0]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet", index=False)
    frame.to_excel(tmp_path / "rows.xlsx", index=False)
    assert numbers_of(frame["who"], rows=2) == [group_number("7"), group_number("8")]
    for name in ("rows.csv", "rows.parquet", "rows.xlsx"):
        rows = FileRows(tmp_path / name, inputs=["x"], output="y", groups="who")
        [block] = rows._blocks(private=False)
        assert block.groups().tolist() == [group_number("7"), group_number("8")]


# A table that pandas reads in two pieces: person 5 is a number in the first, and text in the
# second, where somebody is called K7.
PIECES = 130
OF_PERSON = {1, 2, 3, 4, 5, 4200, 4201, 4202, 4203}


@pytest.fixture(scope="module")
def long_csv(tmp_path_factory):
    path = tmp_path_factory.mktemp("people") / "people.csv"
    fill = "," * PIECES
    lines = [f"person,x,y{''.join(f',f{place}' for place in range(PIECES))}"]
    for row in range(4300):
        who = 5 if row in OF_PERSON else 10_000 + row
        lines.append(f"{'K7' if row == 4250 else who},{row % 90},{170}{fill}")
    path.write_text("\n".join(lines) + "\n")
    return path


def loss_of_nine_rows(groups):
    """The privacy loss of person 5, whose nine outputs all move, and what is claimed."""
    y = np.zeros(4300)
    moved = y.copy()
    moved[sorted(OF_PERSON)] = 1.0
    found, _, together = furthest(
        lambda outputs: ask(
            np.ones((1, 4300)),
            outputs,
            question=OutputBounds.checked((0, 1)),
            epsilon=4.0,
            delta=0.0,
            noise="laplace",
            groups=groups,
        ),
        [[y, moved]],
    )
    return together, found.guarantee


@pytest.mark.filterwarnings("ignore::pandas.errors.DtypeWarning")
@pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")
def test_a_table_that_pandas_reads_in_pieces_splits_nobody(long_csv):
    frame = pd.read_csv(long_csv)
    kinds = {type(entry) for entry in frame["person"]}
    assert kinds == {int, str}
    with pytest.raises(ValueError, match=r"partly text and partly whole numbers.*dtype"):
        loss_of_nine_rows(frame["person"])
    with pytest.raises(ValueError, match="partly text and partly whole numbers"):
        ArrayRows(frame[["x"]], frame["y"], groups=frame["person"])
    model = DPGPRegressor(bounds=(0, 250), epsilon=1.0)
    with pytest.raises(ValueError, match="partly text and partly whole numbers"):
        model.fit(frame[["x"]], frame["y"], groups=frame["person"])
    # What the grouping of before the refusal spends, and what that of the file does.
    split = [f"{type(entry).__name__} {entry}" for entry in frame["person"]]
    loss, claimed = loss_of_nine_rows(split)
    assert claimed.epsilon == 4.0
    assert loss > Fraction(72, 10) - Fraction(1, 1000)
    schema = infer_schema(read_public(long_csv, names=["x"]), ["x"])
    people = read_people(long_csv, raw=RawRows(schema=schema), output="y", groups="person")
    assert [place for place, who in enumerate(people.groups) if who == "5"] == sorted(OF_PERSON)
    loss, claimed = loss_of_nine_rows(people.groups)
    assert loss <= Fraction(claimed.pure_epsilon)
    assert claimed.epsilon == 4.0


def test_the_same_in_passes(long_csv):
    rows = FileRows(long_csv, inputs=["x"], output="y", groups="person", chunk_rows=1000, jobs=1)
    found = np.concatenate([block.groups() for block in rows._blocks(private=False)])
    assert set(np.flatnonzero(found == group_number("5")).tolist()) >= OF_PERSON
    assert found[4250] == group_number("K7")


def database(path, ids, *, kind=""):
    import sqlite3

    with sqlite3.connect(path) as made:
        made.execute(f"CREATE TABLE rows (who {kind}, x REAL, y REAL)")
        made.executemany("INSERT INTO rows VALUES (?, 1.0, 2.0)", [(one,) for one in ids])
    made.close()


def sheet(path, ids):
    import openpyxl

    book = openpyxl.Workbook()
    for line in [("who", "x", "y"), *((one, 1.0, 2.0) for one in ids)]:
        book.active.append(line)
    book.save(path)


def columns(path, ids):
    table = {"who": ids, "x": [1.0] * len(ids), "y": [2.0] * len(ids)}
    pq.write_table(pa.table(table), path)


@pytest.mark.parametrize(
    ("write", "name", "ids", "said"),
    [
        (database, "a.sqlite", [5, "05", 5], "holds text in some cells and whole numbers"),
        (sheet, "a.xlsx", [5, "05", 5], "holds text in some cells and whole numbers"),
        (database, "a.sqlite", [5.0, 6.0, 5.0], "holds numbers with a point"),
        (sheet, "a.xlsx", [5.5, 6.0, 5.5], "holds numbers with a point"),
        (sheet, "a.xlsx", [True, False, True], "holds truth values"),
        (sheet, "a.xlsx", [dt.date(2020, 1, 1)] * 3, "holds date"),
        (columns, "a.parquet", pa.array([5.0, 6.0, 5.0]), "holds numbers with a point"),
        (columns, "a.parquet", pa.array([True, False, True]), "holds bool"),
        (columns, "a.parquet", pa.array([5.0, None, 5.0]), "holds numbers with a point"),
    ],
)
def test_columns_of_files_that_hold_no_ids_are_refused(tmp_path, write, name, ids, said):
    write(tmp_path / name, ids)
    with pytest.raises(ValueError, match=f"column 'who' says whose rows they are, and {said}"):
        FileRows(tmp_path / name, inputs=["x"], output="y", groups="who")
    schema = infer_schema(read_public(tmp_path / name, names=["x"]), ["x"])
    with pytest.raises(ValueError, match=said):
        read_people(tmp_path / name, raw=RawRows(schema=schema), output="y", groups="who")


def test_files_of_a_table_must_agree(tmp_path):
    columns(tmp_path / "1.parquet", pa.array([5, 6]))
    columns(tmp_path / "2.parquet", pa.array(["05", "6"]))
    with pytest.raises(ValueError, match="holds text in some cells and whole numbers in others"):
        FileRows(tmp_path, inputs=["x"], output="y", groups="who")


@pytest.mark.parametrize(
    ("write", "name", "ids", "found"),
    [
        (database, "a.sqlite", [5, 6, 5], ["5", "6", "5"]),
        (database, "a.sqlite", ["05", " 5 ", "5"], ["05", "5", "5"]),
        (sheet, "a.xlsx", [5, 6, 5], ["5", "6", "5"]),
        (columns, "a.parquet", pa.array([5, 6, 5], pa.uint8()), ["5", "6", "5"]),
        (columns, "a.parquet", pa.array([5, 6, 5], pa.decimal128(9, 0)), ["5", "6", "5"]),
        (columns, "a.parquet", pa.array(["e\u0301", "\u00e9 ", "e"]), ["\u00e9", "\u00e9", "e"]),
        (
            columns,
            "a.parquet",
            pa.array(["05", "5", "05"]).dictionary_encode(),
            ["05", "5", "05"],
        ),
    ],
)
def test_ids_of_typed_files(tmp_path, write, name, ids, found):
    write(tmp_path / name, ids)
    schema = infer_schema(read_public(tmp_path / name, names=["x"]), ["x"])
    people = read_people(tmp_path / name, raw=RawRows(schema=schema), output="y", groups="who")
    assert people.groups == found


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        ([1, 20, -3, 0], WHOLE),
        (["1", " 20", "-3", "0"], DIGITS),
        (["1", "020"], TEXT),
        (["1", "+2"], TEXT),
        (["1", "-0"], TEXT),
        (["1", "1_0"], TEXT),
        (["1", "\u0662"], TEXT),
        (["1", "A7"], TEXT),
        ([], ""),
    ],
)
def test_ids_know_what_they_were_made_of(ids, kind):
    made = PersonIds.of(ids, rows=len(ids))
    assert (list(made), made.kind) == (list(person_ids(ids, rows=len(ids))), kind)
    assert PersonIds.of(made, rows=len(ids)).kind == kind


@given(
    numbers=st.sets(st.integers(0, 40), min_size=1),
    others=st.sets(st.integers(0, 40), min_size=1),
    width=st.sampled_from([0, 2, 3]),
    letter=st.booleans(),
)
def test_whoever_is_read_in_two_ways_is_one_person_or_refused(numbers, others, width, letter):
    """Two tables of one spelling, as pandas reads them: as numbers, or as text with a letter."""
    first = [f"{number:0{width}d}" for number in sorted(numbers)]
    second = [f"{number:0{width}d}" for number in sorted(others)] + ["A7"] * letter
    read = [
        PersonIds.of(list(map(int, ids)) if all(map(str.isdigit, ids)) else ids, rows=len(ids))
        for ids in (first, second)
    ]
    try:
        one_kind({"first": read[0].kind, "second": read[1].kind})
    except ValueError:
        assert letter
        return
    assert len(set(read[0]) & set(read[1])) == len(set(first) & set(second))


def test_the_kind_of_all_tables_is_that_of_any_that_tells():
    assert one_kind({"a": DIGITS, "b": ""}) == DIGITS
    assert one_kind({"a": DIGITS, "b": WHOLE, "c": DIGITS}) == WHOLE
    assert one_kind({"a": DIGITS, "b": TEXT}) == TEXT
    with pytest.raises(ValueError, match=r"whole numbers in c and text in b.* text in all tables"):
        one_kind({"a": DIGITS, "b": TEXT, "c": WHOLE})


def test_ids_of_files_know_what_they_were(tmp_path):
    for number, (ids, kind) in enumerate(
        (([1, 2], WHOLE), (["1", "2"], DIGITS), (["01", "2"], TEXT))
    ):
        for write, ending in ((columns, "parquet"), (database, "sqlite"), (sheet, "xlsx")):
            path = tmp_path / f"{number}.{ending}"
            write(path, ids)
            assert read_person_ids(path, name="who").kind == kind
            schema = infer_schema(read_public(path, names=["x"]), ["x"])
            raw = RawRows(schema=schema, missing_output="drop")
            assert read_people(path, raw=raw, output="y", groups="who").groups.kind == kind
