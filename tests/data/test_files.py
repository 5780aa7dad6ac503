"""Files are read in chunks that are always the same, and no private cell comes out of them."""

from __future__ import annotations

import gzip
import logging
import os
import pickle
import sqlite3
import subprocess
import sys
import traceback
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv as arrow_csv

from cloakgp.data import FileRows
from cloakgp.data.formats import format_of
from cloakgp.data.formats.delimited import END
from cloakgp.data.tables import read_rows
from cloakgp.estimators.regression import DPGPRegressor
from cloakgp.models.summary import summarise

SECRET = "123.456789"
NAMES = ["people.csv", "people.csv.gz", "people.parquet"]


def write(frame: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=13, index=False)
    else:
        frame.to_csv(path, index=False)
    return path


def table(rng, rows=100):
    return pd.DataFrame(
        {
            "name": [f"person, {number}" for number in range(rows)],
            "height": rng.normal(size=rows),
            "age": rng.integers(0, 90, size=rows),
            "weight": rng.normal(size=rows),
        }
    )


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("chunk_rows", [1, 7, 100, 2**15])
@pytest.mark.parametrize("name", NAMES)
def test_chunks_together_are_the_table(
    tmp_path, rng, gather_rows, gather_inputs, name, chunk_rows, jobs
):
    frame = table(rng)
    path = write(frame, tmp_path / name)
    rows = FileRows(
        path, inputs=["weight", "age"], output="height", chunk_rows=chunk_rows, jobs=jobs
    )
    assert (rows.n_inputs, rows.input_names, rows.output_name) == (2, ("weight", "age"), "height")
    found, again = gather_rows(rows), gather_inputs(rows)
    np.testing.assert_array_equal(np.concatenate(found.X), frame[["weight", "age"]])
    np.testing.assert_array_equal(np.concatenate(found.outputs), frame["height"])
    assert [len(one) for one in found.X[:-1]] == [min(chunk_rows, 100)] * (len(found.X) - 1)
    assert found.numbers == again.numbers == tuple(range(-(-100 // chunk_rows)))
    for one, other in zip(found.X, again.X, strict=True):
        np.testing.assert_array_equal(one, other)
    assert rows.count == 100
    X, y = read_rows(path, inputs=["weight", "age"], output="height")
    np.testing.assert_array_equal(np.concatenate(found.X), X)
    np.testing.assert_array_equal(np.concatenate(found.outputs), y)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=4).filter(any),
    chunk_rows=st.integers(1, 40),
    groups=st.integers(1, 40),
)
def test_chunks_do_not_depend_on_files_and_row_groups(
    tmp_path_factory, gather_rows, suffix, lengths, chunk_rows, groups
):
    folder = tmp_path_factory.mktemp("parts")
    first = 0
    for number, length in enumerate(lengths):
        part = pd.DataFrame({"age": np.arange(first, first + length), "height": 0.5})
        path = folder / f"part-{number}{suffix}"
        if suffix == ".parquet":
            part.to_parquet(path, row_group_size=groups)
        else:
            part.to_csv(path, index=False)
        first += length
    (folder / "_SUCCESS").touch()
    (folder / f".hidden{suffix}").touch()
    (folder / "readme.txt").touch()
    rows = FileRows(folder, inputs=["age"], output="height", chunk_rows=chunk_rows, jobs=1)
    found = gather_rows(rows)
    everything = np.arange(first, dtype=np.float64)[:, None]
    for one, start in zip(found.X, range(0, first, chunk_rows), strict=True):
        np.testing.assert_array_equal(one, everything[start : start + chunk_rows])
    assert rows.count == first


def test_files_may_have_columns_of_other_types_and_places(tmp_path, gather_rows):
    pd.DataFrame({"age": [1, 2], "height": ["1.5", None]}).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame({"height": [3.5], "age": [3.0]}).to_parquet(tmp_path / "b.parquet")
    paths = [tmp_path / "b.parquet", str(tmp_path / "a.parquet")]
    found = gather_rows(FileRows(paths, inputs=["age"], output="height"))
    np.testing.assert_array_equal(found.X[0], [[3.0], [1.0], [2.0]])
    np.testing.assert_array_equal(found.outputs[0], [3.5, 1.5, np.nan])


def text(content):
    return lambda folder: _written(folder / "people.csv", content.encode())


def _written(path, content):
    path.write_bytes(content)
    return path


def zipped(content):
    return lambda folder: _written(folder / "people.csv.gz", gzip.compress(content.encode()))


def columns(**values):
    def make(folder):
        path = folder / "people.parquet"
        pd.DataFrame(values).to_parquet(path)
        return path

    return make


def cut(name):
    def make(folder):
        whole = folder / f"whole-{name}"
        frame = pd.DataFrame({"age": np.arange(500.0), "height": float(SECRET)})
        write(frame, whole)
        return _written(folder / name, whole.read_bytes()[:-40])

    return make


def spoilt(folder):
    """Parquet whose pages of the inputs are overwritten."""
    path = folder / "people.parquet"
    frame = pa.table({"age": np.arange(5000.0), "height": np.full(5000, float(SECRET))})
    pq.write_table(frame, path, compression="gzip")
    content = bytearray(path.read_bytes())
    content[100:400] = b"\xff" * 300
    return _written(path, bytes(content))


BAD_TABLES = {
    "no such column": (text(f"age,size\n30,{SECRET}\n"), "no column height; its columns are: age"),
    "no header": (text(f"30,{SECRET}\n40,{SECRET}\n"), "first line must name the columns"),
    "no header, odd separator": (text(f"Smith|{SECRET}\n"), "first line must name the columns"),
    "column twice": (text(f"age,height,height\n3,1,{SECRET}\n"), "several columns"),
    "text in an input": (text(f"age,height\n30,{SECRET}\nold,{SECRET}\n"), "'age' is no.*row 2"),
    "shifted into an input": (text(f"age,height\nx{SECRET},1\n"), "'age' is not a number in row 1"),
    "empty input": (text(f"age,height\n30,{SECRET}\n,{SECRET}\n"), "'age' is empty in row 2"),
    "NA in an input": (text(f"age,height\n30,{SECRET}\nNA,{SECRET}\n"), "'age' is empty in row 2"),
    "infinite input": (text(f"age,height\ninf,{SECRET}\n"), "'age' is infinite in row 1"),
    "huge input": (text(f"age,height\n1e999,{SECRET}\n"), "'age' is infinite in row 1"),
    "zipped text in an input": (zipped(f"age,height\nold,{SECRET}\n"), "'age' is not a number"),
    "fifth row": (
        text(f"age,height\n{f'3,{SECRET}' * 0}" + f"3,{SECRET}\n" * 4 + "x,1\n"),
        "row 5",
    ),
    "cut-off row": (text(f"age,height\n30,{SECRET}\n40"), "cannot be read"),
    "row too long": (text(f"age,height\n30,1\n40,5,{SECRET}\n"), "cannot be read"),
    "all rows too long": (text(f"age,height\n30,5,{SECRET}\n"), "cannot be read"),
    "open quote": (text(f'age,height\n30,"{SECRET}\n4,5\n'), "cannot be read"),
    "open quote elsewhere": (
        text(f'age,height,name\n30,{SECRET},x\n4,5,"y\n4,5,z\n'),
        "cannot be read",
    ),
    "open quote at the end": (text(f'age,height\n30,1\n30,"{SECRET}'), "cannot be read"),
    "open quote, much below": (
        text(f'age,height\n30,"{SECRET}\n' + "4,5\n" * 2_000_000),
        "cannot be read",
    ),
    "open quote in the header": (text(f'age,"height\n30,{SECRET}\n'), "cannot be read"),
    "no rows": (text("age,height\n"), "no rows"),
    "no rows, no end of line": (text("age,height"), "no rows"),
    "nothing": (text(""), "is empty"),
    "nothing, zipped": (zipped(""), "cannot be read"),
    "blank lines": (text("\n\n"), "cannot be read"),
    "not gzip": (
        lambda folder: _written(folder / "a.csv.gz", f"age,height\n1,{SECRET}\n".encode()),
        "cannot be read",
    ),
    "cut-off gzip": (cut("cut.csv.gz"), "cannot be read"),
    "cut-off Parquet": (cut("cut.parquet"), "cannot be read"),
    "not Parquet": (
        lambda folder: _written(folder / "a.parquet", f"age,height\n1,{SECRET}\n".encode()),
        "cannot be read",
    ),
    "spoilt Parquet": (spoilt, "cannot be read"),
    "unknown suffix": (lambda folder: _written(folder / "people.txt", b"x"), r"must end in \.csv"),
    "dates": (
        columns(age=pd.to_datetime(["2020-01-01"]), height=[float(SECRET)]),
        "'age' is not a number in row 1",
    ),
    "missing in Parquet": (
        columns(age=[1.0, np.nan], height=[float(SECRET)] * 2),
        "empty in row 2",
    ),
    "infinite in Parquet": (columns(age=[np.inf], height=[float(SECRET)]), "'age' is infinite"),
    "text in Parquet": (columns(age=["old"], height=[float(SECRET)]), "'age' is not a number"),
    "no rows in Parquet": (columns(age=[], height=[]), "no rows"),
    "no column in Parquet": (columns(age=[1.0], size=[float(SECRET)]), "no column height"),
}


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("asked", ["inputs", "rows"])
@pytest.mark.parametrize(("make", "advice"), BAD_TABLES.values(), ids=BAD_TABLES.keys())
def test_bad_tables_are_refused_without_a_private_value(
    tmp_path, caplog, held_by, gather_inputs, gather_rows, make, advice, asked, jobs
):
    caplog.set_level(logging.DEBUG)
    path = make(tmp_path)
    gather = gather_inputs if asked == "inputs" else gather_rows
    with pytest.raises(ValueError, match=advice) as caught:
        gather(FileRows(path, inputs=["age"], output="height", jobs=jobs, chunk_rows=3))
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert SECRET not in held_by(caught.value)
    assert SECRET not in caplog.text
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


OUTPUTS = {
    "text": f"{SECRET}cm",
    "commas": f'"1,{SECRET}"',
    "empty": "",
    "zero byte": f"{SECRET}\x00",
    "quotes": f'{SECRET}"',
    "lines": f'"{SECRET}\n{SECRET}"',
    "letters": "ÿé",
}


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("cell", OUTPUTS.values(), ids=OUTPUTS.keys())
def test_bad_outputs_are_nan_and_nothing_is_said(tmp_path, caplog, capfd, gather_rows, cell, jobs):
    caplog.set_level(logging.DEBUG)
    content = f"age,height\n1,-inf\n2,{cell}\n3,1e999\n4,5\n"
    for encoding in ("utf-8", "latin-1"):
        path = _written(tmp_path / "people.csv", content.encode(encoding))
        rows = FileRows(path, inputs=["age"], output="height", jobs=jobs)
        found = gather_rows(rows)
        np.testing.assert_array_equal(found.outputs[0], [-np.inf, np.nan, np.inf, 5.0])
        np.testing.assert_array_equal(found.X[0][:, 0], [1, 2, 3, 4])
        assert SECRET not in repr(rows) + str(vars(rows)) + str(pickle.dumps(rows))
    assert caplog.text == ""
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_errors_in_work_hold_no_outputs(tmp_path, held_by, name, jobs):
    path = write(pd.DataFrame({"age": np.arange(50), "height": float(SECRET)}), tmp_path / name)

    def work(chunk, outputs):
        doubled = outputs * (1 + chunk.number)
        raise RuntimeError("no") from ValueError(len(doubled))

    rows = FileRows(path, inputs=["age"], output="height", chunk_rows=9, jobs=jobs)
    with pytest.raises(RuntimeError) as caught:
        rows.over_rows(work, what="asking")
    assert SECRET not in held_by(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_pickled_without_who_watches(tmp_path, rng, gather_rows, name):
    path = write(table(rng), tmp_path / name)
    told = []
    rows = FileRows(path, inputs=["age"], output="height", chunk_rows=30, jobs=2)
    watched = rows.report_to(lambda *news: told.append(news))
    first = gather_rows(watched)
    assert [news[:2] for news in told] == [("gathering", done) for done in (30, 60, 90, 100)]
    # CSV must be read to be counted.
    assert all(news[2] in ({100, None} if name != "people.parquet" else {100}) for news in told)
    assert rows.count == (None if name != "people.parquet" else 100)
    assert watched.count == 100
    again = pickle.loads(pickle.dumps(watched))
    assert again.watch is None
    np.testing.assert_array_equal(
        np.concatenate(gather_rows(again).outputs), np.concatenate(first.outputs)
    )


@pytest.mark.parametrize("name", NAMES)
def test_files_must_not_change_between_passes(tmp_path, rng, gather_inputs, gather_rows, name):
    path = write(table(rng), tmp_path / name)
    rows = FileRows(path, inputs=["age"], output="height")
    gather_inputs(rows)
    content = path.read_bytes()
    for change in (
        lambda: write(table(rng, rows=101), path),
        lambda: os.utime(path, ns=(1, 1)),
        path.unlink,
    ):
        change()
        for gather in (gather_inputs, gather_rows):
            with pytest.raises(ValueError, match="has changed since"):
                gather(rows)
        path.write_bytes(content)


def test_files_that_pretend_not_to_have_changed_are_counted(tmp_path, gather_inputs):
    path = text("age,height\n1,2\n3,4\n")(tmp_path)
    rows = FileRows(path, inputs=["age"], output="height")
    gather_inputs(rows)
    then = path.stat()
    path.write_text("age,height\n1,23456\n")
    os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))
    assert path.stat().st_size == then.st_size
    with pytest.raises(ValueError, match="has changed since"):
        gather_inputs(rows)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_files_must_not_change_in_a_pass(tmp_path, rng, gather_inputs, name, jobs):
    path = write(table(rng), tmp_path / name)
    rows = FileRows(path, inputs=["age"], output="height", chunk_rows=2, jobs=jobs)
    with pytest.raises(ValueError, match="has changed since"):
        gather_inputs(rows.report_to(lambda *_: os.utime(path, ns=(1, 1))))


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_files_are_closed_whatever_happens(tmp_path, rng, gather_inputs, name, jobs):
    path = write(table(rng), tmp_path / name)
    rows = FileRows(path, inputs=["age"], output="height", chunk_rows=2, jobs=jobs)

    def opened():
        found = set()
        for one in Path("/proc/self/fd").iterdir():
            try:
                found.add(str(one.readlink()))
            except OSError:
                continue
        return str(path) in found

    class Enough(Exception):
        pass

    def watch(_what, done, _all):
        if done >= 10:
            # Held now, or the test could not fail.
            held.append(opened())
            raise Enough

    held = []
    gather_inputs(rows)
    assert not opened()
    with pytest.raises(Enough):
        gather_inputs(rows.report_to(watch))
    assert not opened()
    assert held == [True]


def test_columns_have_one_role_and_files_one_format(tmp_path):
    path = text("age,height\n30,170\n")(tmp_path)
    with pytest.raises(ValueError, match="as input and as output"):
        FileRows(path, inputs=["age", "height"], output="height")
    with pytest.raises(ValueError, match="named twice"):
        FileRows(path, inputs=["age", "age"], output="height")
    with pytest.raises(ValueError, match="at least one"):
        FileRows(path, inputs=[], output="height")
    with pytest.raises(FileNotFoundError, match="no file"):
        FileRows(tmp_path / "none.csv", inputs=["age"], output="height")
    with pytest.raises(FileNotFoundError, match="at least one file"):
        FileRows([], inputs=["age"], output="height")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileNotFoundError, match="no table in"):
        FileRows(tmp_path / "folder", inputs=["age"], output="height")
    other = columns(age=[1.0], height=[2.0])(tmp_path)
    for paths in ([path, other], [other, path]):
        with pytest.raises(ValueError, match="names must end in"):
            FileRows(paths, inputs=["age"], output="height")


def test_rows_of_several_files_are_named_with_their_file(tmp_path, gather_inputs):
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("age,height\n1,2\n")
    second.write_text("age,height\n1,2\nold,3\n")
    with pytest.raises(ValueError, match=r"row 2 below the header of .*b\.csv"):
        gather_inputs(FileRows([first, second], inputs=["age"], output="height"))


READING = """
import sys
from dataclasses import dataclass
from cloakgp.data import FileRows
from cloakgp.data.formats import format_of

@dataclass
class Total:
    value: float
    def merge(self, other):
        return Total(self.value + other.value)

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))

small, path, *names = sys.argv[1:]
def read(path):
    rows = FileRows(path, inputs=names, output="y", jobs=2)
    inputs = rows.over_inputs(lambda chunk: Total(chunk.X.sum()), what="")
    both = rows.over_rows(lambda chunk, y: Total(chunk.X.sum() + y.sum()), what="")
    return inputs.value, both.value
read(small)
before = peak()
found = read(path)
print(peak() - before, *found)
"""


def _growth(small, path, names):
    done = subprocess.run(
        [sys.executable, "-c", READING, small, path, *names],
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(one) for one in done.stdout.split()]


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="peaks of memory are read from /proc"
)


@needs_proc
def test_huge_row_groups_are_read_in_bounded_memory(tmp_path, rng):
    """A million rows in one row group, 120 MB as floats, none of which compress."""
    values = rng.normal(size=1_000_000)
    names = [f"x{number}" for number in range(14)]
    whole = pa.table(dict.fromkeys([*names, "y"], values))
    pq.write_table(whole, tmp_path / "a.parquet", row_group_size=2**31 - 1, use_dictionary=False)
    pq.write_table(whole.slice(0, 100_000), tmp_path / "small.parquet", use_dictionary=False)
    assert pq.ParquetFile(tmp_path / "a.parquet").num_row_groups <= 2
    growth, inputs, both = _growth(tmp_path / "small.parquet", tmp_path / "a.parquet", names)
    np.testing.assert_allclose([inputs, both], values.sum() * np.array([14, 15]), rtol=1e-9)
    assert growth < 50


@needs_proc
@pytest.mark.parametrize("suffix", [".csv", pytest.param(".csv.gz", marks=pytest.mark.slow)])
def test_csv_is_read_in_bounded_memory(tmp_path, suffix):
    """A million rows, 100 MB as text."""
    row = ",".join(["1.5"] * 4 + ["x" * 80, "2.5"]) + "\n"
    header = "a,b,c,d,name,y\n"
    for name, count in (("small", 200_000), ("people", 1_000_000)):
        content = (header + row * count).encode()
        if suffix == ".csv.gz":
            content = gzip.compress(content, compresslevel=1)
        (tmp_path / f"{name}{suffix}").write_bytes(content)
    small, path = tmp_path / f"small{suffix}", tmp_path / f"people{suffix}"
    growth, inputs, both = _growth(small, path, ["a", "b", "c", "d"])
    assert (inputs, both) == (6e6, 8.5e6)
    assert growth < 60


def test_over_inputs_reads_no_pages_of_the_private_column(tmp_path, gather_inputs, gather_rows):
    path = tmp_path / "people.parquet"
    ages = np.arange(5000.0)
    whole = pa.table({"age": ages, "height": ages, "height.cm": ages})
    pq.write_table(whole, path, compression="gzip", row_group_size=1000)
    content = bytearray(path.read_bytes())
    metadata = pq.ParquetFile(path).metadata
    for group in range(metadata.num_row_groups):
        private = metadata.row_group(group).column(1)
        first = private.dictionary_page_offset or private.data_page_offset
        content[first : first + private.total_compressed_size] = (
            b"\xff" * private.total_compressed_size
        )
    path.write_bytes(content)
    for inputs in (["age"], ["height.cm"], ["height.cm", "age"]):
        rows = FileRows(path, inputs=inputs, output="height", chunk_rows=700)
        np.testing.assert_array_equal(np.concatenate(gather_inputs(rows).X)[:, 0], ages)
        with pytest.raises(ValueError, match="cannot be read"):
            gather_rows(rows)


def test_over_inputs_converts_no_cell_of_the_private_column(tmp_path, monkeypatch, gather_inputs):
    path = tmp_path / "people.csv"
    path.write_bytes(b"height,age,other\n\xff\xfe,1,\xff\n\x00'\x80,2,\x00\n,3,\n")
    asked = []

    def spying(*args, convert_options, **kwargs):
        asked.append((convert_options.include_columns, list(convert_options.column_types)))
        return whole(*args, convert_options=convert_options, **kwargs)

    whole = arrow_csv.open_csv
    monkeypatch.setattr(arrow_csv, "open_csv", spying)
    found = gather_inputs(FileRows(path, inputs=["age"], output="height"))
    np.testing.assert_array_equal(found.X[0], [[1.0], [2.0], [3.0]])
    assert asked == [(["1"], ["1"])]


@pytest.mark.parametrize(
    "content",
    [
        "height,age,name\n170,30,x\n165.5,40,y\n",
        "\ufeffheight, age\n170, 30\n165.5, 40\n",
        "height;age\n170;30\n165.5;40\n",
        "height,age,\n170,30,\n165.5,40,\n",
        '"height","age"\n"170","30"\n"165.5","40"\n',
        'height, "age"\n170, "30"\n165.5, "40"\n',
        "height,age\r\n170,30\r\n165.5,40\r\n",
        "\n\nheight,age\n\n170,30\n\n165.5,40\n\n",
        "height,age\n170,30\n165.5,40",
        'name,height,age\n"a ""b""\n, c",170,30\n5\'10",165.5,40\n',
        '"a\nb",height,age\n1,170,30\n2,165.5,40\n',
        '"a ""b"" c",age,height\nx,30,170\nx,40,165.5\n',
        "naïve,age,height\né,30,170\né,40,165.5\n",
    ],
)
@pytest.mark.parametrize("zip_it", [False, True])
def test_the_usual_dialects_of_csv_are_read(tmp_path, gather_rows, gather_inputs, content, zip_it):
    path = (zipped if zip_it else text)(content)(tmp_path)
    for jobs in (1, 2):
        rows = FileRows(path, inputs=["age"], output="height", jobs=jobs)
        found = gather_rows(rows)
        np.testing.assert_array_equal(found.X[0], [[30.0], [40.0]])
        np.testing.assert_array_equal(found.outputs[0], [170.0, 165.5])
        np.testing.assert_array_equal(gather_inputs(rows).X[0], [[30.0], [40.0]])


def test_zipped_files_may_have_several_members(tmp_path, gather_inputs):
    path = tmp_path / "people.CSV.GZ"
    path.write_bytes(gzip.compress(b"age,height\n1,2\n") + gzip.compress(b"3,4\n"))
    found = gather_inputs(FileRows(path, inputs=["age"], output="height"))
    np.testing.assert_array_equal(found.X[0], [[1.0], [3.0]])


def test_rows_that_cross_blocks_are_read_whole(tmp_path, gather_rows):
    """Cells are split a megabyte at a time; here are rows longer than a tenth of that."""
    path = tmp_path / "people.csv"
    filler = ("x" * 1000 + "\n") * 130
    path.write_text(
        "age,name,height\n" + "".join(f'{number},"{filler}",{number}.5\n' for number in range(40))
    )
    found = gather_rows(FileRows(path, inputs=["age"], output="height", chunk_rows=11))
    np.testing.assert_array_equal(np.concatenate(found.X)[:, 0], np.arange(40.0))
    np.testing.assert_array_equal(np.concatenate(found.outputs), np.arange(40.0) + 0.5)


def test_a_first_row_is_left_out_only_if_it_is_the_header(tmp_path, monkeypatch, gather_inputs):
    """Whatever the header is read with: Arrow must see the same."""
    path = text("1,2\n3,4\n")(tmp_path)
    header = (["age", "height"], ",")
    monkeypatch.setattr("cloakgp.data.formats.delimited._read_header", lambda *_, **__: header)
    with pytest.raises(ValueError, match="cannot be read"):
        gather_inputs(FileRows(path, inputs=["age"], output="height"))


def test_a_last_row_that_looks_like_the_end_is_a_row(tmp_path, gather_inputs):
    path = text(f"age,height\n1,2\n{END},{END}\n")(tmp_path)
    with pytest.raises(ValueError, match="'age' is not a number in row 2"):
        gather_inputs(FileRows(path, inputs=["age"], output="height"))


def test_a_database_is_read_by_as_many_threads_as_there_are(tmp_path):
    frame = pd.DataFrame({"age": np.arange(100.0), "pay": 0.0})
    with closing(sqlite3.connect(tmp_path / "people.db")) as database:
        frame.to_sql("people", database, index=False)
    rows = FileRows(tmp_path / "people.db", inputs=["age"], output="pay", chunk_rows=3, jobs=4)
    assert summarise(rows, size=1).count == 100


def test_an_order_that_differs_in_each_pass_moves_answers_no_further(tmp_path, rng):
    """Columns of all rows of a person add up to no more than the noise is for."""
    age, owners = rng.uniform(20, 80, 60), [f"p{row // 3}" for row in range(60)]
    frame = pd.DataFrame({"id": owners, "age": age, "pay": rng.uniform(0, 1, 60)})
    with closing(sqlite3.connect(tmp_path / "people.db")) as database:
        frame.to_sql("people", database, index=False)
    rows = FileRows(
        tmp_path / "people.db",
        inputs=["age"],
        output="pay",
        groups="id",
        chunk_rows=7,
        table_format=format_of(
            tmp_path / "people.db", query="SELECT * FROM people ORDER BY random()"
        ),
    )
    model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, noise="laplace", inducing=4)
    model.fit_rows(rows)
    asked = [one for one in model.release_.measurements if one.strategy.n_answers > 1]
    assert asked
    for one in asked:
        inputs = np.column_stack([age, np.full(60, 3.0)])
        lengths = np.abs(one.strategy.columns(one.question)(inputs)).sum(axis=0)
        reach = pd.Series(lengths).groupby(owners).sum().max()
        scale = reach * one.question.distance / one.answers.guarantee.pure_epsilon
        assert one.answers.noise_sd >= np.sqrt(2) * scale * (1 - 1e-9)
