"""Tables are copied in chunks as they would be in one piece, and what is left out is not read."""

from __future__ import annotations

import datetime as dt
import gzip
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.data.copying import CopiedColumns, Notation, PublicTable
from cloakgp.data.formats import format_of
from cloakgp.data.formats.delimited import CsvFormat

CELLS = st.sampled_from(["", "1", "2.5", "-3e2", "NA", "x", " y ", "=1", "🙂"])
INSTANTS = st.one_of(
    st.none(),
    st.dates(min_value=dt.date(1900, 1, 1)).map(
        lambda day: dt.datetime(day.year, 1, day.day % 28 + 1)
    ),
    st.datetimes(min_value=dt.datetime(1900, 1, 1), max_value=dt.datetime(2200, 1, 1)),
)


def copied(table, *, rows, text, suffix):
    columns = CopiedColumns(text=text)
    parts = [table.slice(first, rows) for first in range(0, table.num_rows, rows)]
    for part in parts:
        columns.see(part)
    file = io.BytesIO()
    written = (pa.table(columns.copy(part)) for part in parts)
    format_of(f"out{suffix}").write(written, file, suffix=suffix)
    return file.getvalue()


@given(
    rows=st.lists(st.tuples(CELLS, st.integers() | st.none(), INSTANTS), min_size=1, max_size=9),
    suffix=st.sampled_from([".csv", ".tsv.gz", ".csv.zip", ".parquet", ".feather"]),
)
def test_the_size_of_chunks_is_not_to_be_seen(rows, suffix):
    words, numbers, times = zip(*rows, strict=True)
    numbers = [None if each is None else each % 2**60 for each in numbers]
    table = pa.table(
        {
            "a": pa.array(words),
            "n": pa.array(numbers, pa.int64()),
            "t": pa.array(times, pa.timestamp("us")),
        }
    )
    text = not suffix.startswith((".parquet", ".feather"))
    whole = copied(table, rows=len(rows), text=text, suffix=suffix)
    for chunk in (1, 7):
        found = copied(table, rows=chunk, text=text, suffix=suffix)
        if suffix == ".parquet":
            assert pq.read_table(io.BytesIO(found)) == pq.read_table(io.BytesIO(whole))
        elif suffix == ".feather":
            assert pa.ipc.open_file(found).read_all() == pa.ipc.open_file(whole).read_all()
        elif suffix != ".csv.zip":
            assert found == whole


@given(times=st.lists(INSTANTS, min_size=1, max_size=6))
def test_times_are_written_as_pandas_writes_a_whole_column(times):
    frame = pd.DataFrame({"t": pd.array(times, dtype="datetime64[us]"), "end": 1})
    found = copied(pa.Table.from_pandas(frame), rows=1, text=True, suffix=".csv")
    assert found.decode() == frame.to_csv(index=False)


def test_what_has_a_type_keeps_it():
    zone = dt.timezone(dt.timedelta(hours=1))
    table = pa.table(
        {
            "id": pa.array([2**60 + 1, None], pa.int64()),
            "ok": [True, None],
            "day": [dt.date(2020, 1, 2), None],
            "when": pa.array(
                [dt.datetime(2020, 1, 2, 3, tzinfo=zone), None], pa.timestamp("us", "+01:00")
            ),
            "level": pa.array([3, 3]).dictionary_encode(),
            "x": [-1.5, None],
        }
    )
    kept = pq.read_table(io.BytesIO(copied(table, rows=1, text=False, suffix=".parquet")))
    assert kept.column("id").to_pylist() == [2**60 + 1, None]
    assert [kept.schema.field(name).type for name in ("ok", "day", "x")] == [
        pa.bool_(),
        pa.date32(),
        pa.float64(),
    ]
    lines = copied(table, rows=1, text=True, suffix=".csv").decode().splitlines()
    assert lines[1] == f"{2**60 + 1},True,2020-01-02,2020-01-02 03:00:00+01:00,3,-1.5"
    assert lines[2] == ",,,,3,"


def numbered(folder, *parts, name="part-{}.csv"):
    folder.mkdir()
    for number, part in enumerate(parts):
        (folder / name.format(number)).write_text(part, encoding="utf-8")
    return folder


def test_folders_are_read_file_by_file(tmp_path):
    folder = numbered(tmp_path / "f", "a,y,b\n1,9,u\n2,9,v\n3,9,w\n", "b,a,y\nx,4,9\n")
    table = PublicTable(folder, needed=["a"], left_out=["y"], chunk_rows=2)
    assert (table.names, table.left_out, table.count) == (("a", "b"), ("y",), None)
    chunks = list(table.chunks())
    assert [chunk.table.column("b").to_pylist() for chunk in chunks] == [
        [b"u", b"v"],
        [b"w"],
        [b"x"],
    ]
    assert [(chunk.first_row, chunk.place) for chunk in chunks] == [
        (0, f" of {folder / 'part-0.csv'}"),
        (2, f" of {folder / 'part-0.csv'}"),
        (0, f" of {folder / 'part-1.csv'}"),
    ]
    assert table.count == 4


def test_files_of_a_folder_must_be_alike(tmp_path):
    def opened(folder):
        return PublicTable(folder, needed=["a"], left_out=["y"], chunk_rows=9)

    with pytest.raises(ValueError, match="no column b"):
        opened(numbered(tmp_path / "lacking", "a,b\n1,2\n", "a\n1\n"))
    with pytest.raises(ValueError, match="several columns called 'b'"):
        opened(numbered(tmp_path / "twice", "a,b\n1,2\n", "a,b,b\n1,2,3\n"))
    nothing = opened(numbered(tmp_path / "empty", "a,b\n", "a,b\n"))
    [chunk] = nothing.chunks()
    assert (chunk.table.column_names, chunk.table.num_rows, nothing.count) == (["a", "b"], 0, 0)
    folder = tmp_path / "types"
    folder.mkdir()
    pq.write_table(pa.table({"a": [1]}), folder / "0.parquet")
    pq.write_table(pa.table({"a": ["1"]}), folder / "1.parquet")
    with pytest.raises(ValueError, match="other types"):
        list(opened(folder).chunks())
    (folder / "2.csv").write_text("a\n1\n")
    with pytest.raises(ValueError, match="must end in"):
        opened(folder)


def test_a_change_between_passes_is_noticed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    table = PublicTable(path, needed=["a"], left_out=[], chunk_rows=9)
    list(table.chunks())
    path.write_text("a\n1\n2\n")
    with pytest.raises(ValueError, match="has changed"):
        list(table.chunks())


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_what_is_left_out_is_never_read(tmp_path, monkeypatch, name):
    frame = pd.DataFrame({"y": [5.0], "a": [1.0]})
    with (tmp_path / name).open("wb") as file:
        format_of(tmp_path / name).write(iter([pa.Table.from_pandas(frame)]), file, suffix=name[1:])
    asked = []
    reader = type(format_of(name))
    usual = reader.batches

    def batches(self, path, names, **given):
        asked.extend(names)
        return usual(self, path, names, **given)

    monkeypatch.setattr(reader, "batches", batches)
    table = PublicTable(tmp_path / name, needed=["a"], left_out=["y"], chunk_rows=1)
    (chunk,) = table.chunks()
    assert asked == ["a"]
    np.testing.assert_array_equal(chunk.cells["a"].numbers().values, [1.0])


def seen(*cells):
    found = Notation()
    found.see(pa.chunked_array([[cell] for cell in cells], pa.binary()))
    return found


@pytest.mark.parametrize(
    ("cells", "decimal"),
    [
        ([b"16,5", b"1.234"], ","),
        ([b" -0,125 "], ","),
        ([b"16,5", b"16.5"], "."),
        ([b"2,145", b"12"], "."),
        ([b"12.05.2020", b"1,5"], ","),
        ([b"a,b", b"", None], "."),
    ],
)
def test_decimals(cells, decimal):
    assert seen(*cells).decimal == decimal


@pytest.mark.parametrize(
    ("start", "cells", "also", "encoding"),
    [
        (b"", ["Zürich".encode("cp1252")], [], "cp1252"),
        (b"", ["Zürich".encode("cp1252")], ["ε"], "utf-8"),
        (b"", ["Zürich".encode("cp1252"), "Łódź".encode()], [], "utf-8"),
        (b"", [b"\x81 odd"], [], "utf-8"),
        (b"", ["Zürich".encode()], [], "utf-8"),
        (b"", [b"Zug"], [], "utf-8"),
        (b"\xef\xbb\xbf", ["Zürich".encode()], [], "utf-8-sig"),
        (b"\xff\xfe", ["Zürich".encode()], [], "utf-16"),
    ],
)
def test_encodings(tmp_path, start, cells, also, encoding):
    path = tmp_path / "a.csv"
    path.write_bytes(start + "town;x\n".encode("utf-16-le" if start == b"\xff\xfe" else "utf-8"))
    read = CsvFormat().dialect_of(path)
    found = seen(*cells).dialect(read, name=path, suffix=".csv", decimal=".", also=also)
    assert (found.separator, found.encoding) == (";", encoding)


@pytest.mark.parametrize(
    ("name", "suffix", "line", "decimal", "separator"),
    [
        ("a.csv", ".csv", "a;b", ",", ";"),
        ("a.csv.gz", ".csv", "a\tb", ",", "\t"),
        ("a.csv", ".tsv", "a;b", ",", "\t"),
        ("a.tsv", ".csv", "a\tb", ",", ";"),
        ("a.tsv", ".csv.zip", "a\tb", ".", ","),
        ("a.tsv", ".tsv", "a\tb", ".", "\t"),
    ],
)
def test_separators(tmp_path, name, suffix, line, decimal, separator):
    content = f"{line}\n1\n".encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    path = tmp_path / name
    read = CsvFormat().dialect_of(path)
    found = Notation().dialect(read, name=path, suffix=suffix, decimal=decimal, also=())
    assert (found.separator, found.decimal) == (separator, decimal)
