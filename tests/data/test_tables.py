"""Tables come in as they are, or are refused with advice and without a private value."""

from __future__ import annotations

import gzip
import io
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cloakgp.data import FileRows
from cloakgp.data.formats import format_of
from cloakgp.data.schema import table_suffix
from cloakgp.data.tables import read_inputs, read_labelled_rows, read_public, read_rows

SECRET = "123.456789"


def _text(content: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / "people.csv"
        path.write_text(content, encoding="utf-8")
        return path

    return write


def _bytes(name: str, content: bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content)
        return path

    return write


def _frame(**columns: object) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / "people.parquet"
        pd.DataFrame(columns).to_parquet(path)
        return path

    return write


def _cut(name: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        whole = folder / f"whole-{name}"
        pd.DataFrame({"age": np.arange(500.0), "height": float(SECRET)}).pipe(
            lambda frame: (
                frame.to_parquet(whole) if name.endswith(".parquet") else frame.to_csv(whole)
            )
        )
        path = folder / name
        path.write_bytes(whole.read_bytes()[:-40])
        return path

    return write


BAD_TABLES = {
    "no such column": (_text(f"age,size\n30,{SECRET}\n"), "no column height; its columns are: age"),
    "no header": (_text(f"30,{SECRET}\n40,{SECRET}\n"), "first line must name the columns"),
    "no header, odd separator": (_text(f"Smith|{SECRET}\n"), "first line must name the columns"),
    "column twice": (_text(f"age,height,height\n3,1,{SECRET}\n"), "several columns"),
    "text in an input": (_text(f"age,height\n30,{SECRET}\nold,{SECRET}\n"), "'age'.*row 2"),
    "shifted into an input": (_text(f"age,height\nx{SECRET},1\n"), "'age'.*row 1"),
    "empty input": (_text(f"age,height\n30,{SECRET}\n,{SECRET}\n"), "'age' is empty in row 2"),
    "infinite input": (_text(f"age,height\ninf,{SECRET}\n"), "'age' is infinite in row 1"),
    "text in the output": (_text(f"age,height\n30,{SECRET}cm\n"), "'height' has cells"),
    "number with commas": (_text(f'age,height\n30,"1,{SECRET}"\n'), "'height' has cells"),
    "zero byte": (_text(f"age,height\n30,{SECRET}\x00\n"), "'height' has cells"),
    "empty output": (_text(f"age,height\n30,\n3,{SECRET}\n"), "'height' has empty cells"),
    "infinite output": (_text(f"age,height\n30,-inf\n3,{SECRET}\n"), "'height' has infinite"),
    "cut-off row": (_text(f"age,height\n30,{SECRET}\n40"), "cannot be read"),
    "row too long": (_text(f"age,height\n30,1\n40,5,{SECRET}\n"), "cannot be read"),
    "all rows too long": (_text(f"age,height\n30,5,{SECRET}\n"), "cannot be read"),
    "open quote": (_text(f'age,height\n30,"{SECRET}\n4,5\n'), "cannot be read"),
    "no rows": (_text("age,height\n"), "no rows"),
    "nothing": (_text(""), "is empty"),
    "blank lines": (_text("\n\n"), "cannot be read"),
    "output not UTF-8": (
        _bytes("a.csv", f"age,height\n1,{SECRET}\xe9\n".encode("latin-1")),
        "'height' has cells that are not numbers",
    ),
    "not gzip": (_bytes("a.csv.gz", f"age,height\n1,{SECRET}\n".encode()), "cannot be read"),
    "cut-off gzip": (_cut("cut.csv.gz"), "cannot be read"),
    "cut-off Parquet": (_cut("cut.parquet"), "cannot be read"),
    "not Parquet": (_bytes("a.parquet", f"age,height\n1,{SECRET}\n".encode()), "cannot be read"),
    "unknown suffix": (_bytes("people.txt", b""), r"must end in \.csv"),
    "dates": (
        _frame(age=pd.to_datetime(["2020-01-01"]), height=[float(SECRET)]),
        "'age' is not a number",
    ),
    "missing in Parquet": (_frame(age=[1.0], height=[np.nan]), "'height' has empty cells"),
}


# No digit and no odd separator tells that these lines are people.
HEADERLESS = {
    "words": "alice,hiv-positive\nbob,healthy\n",
    "semicolons": "alice;hiv-positive\nbob;healthy\n",
    "quotes": '"alice", "hiv-positive"\n"bob", "healthy"\n',
    "tabs": "alice\thiv-positive\nbob\thealthy\n",
    "one column": "hiv-positive\nhealthy\n",
}


@pytest.mark.parametrize("content", HEADERLESS.values(), ids=HEADERLESS.keys())
@pytest.mark.parametrize(
    "read",
    [
        lambda path: read_rows(path, inputs=["age"], output="ill"),
        lambda path: read_labelled_rows(path, inputs=["age"], output="ill", classes=["a", "b"]),
        lambda path: read_inputs(path, names=["age"]),
        lambda path: FileRows(path, inputs=["age"], output="ill"),
    ],
    ids=["rows", "labels", "inputs", "streamed"],
)
def test_a_first_line_without_a_name_that_was_asked_for_is_not_shown(tmp_path, content, read):
    cells = 1 if content.startswith("hiv") else 2
    with pytest.raises(ValueError, match=f"first line has {cells} cells") as caught:
        read(_text(content)(tmp_path))
    said = "".join(traceback.format_exception(caught.value))
    assert "the first line must name the columns" in said
    assert not any(word in said for word in ("alice", "positive", "bob", "healthy"))


def test_columns_are_listed_where_they_are_known_to_be_columns(tmp_path):
    with pytest.raises(ValueError, match="its columns are: age, size"):
        read_inputs(_text("age,size\n1,2\n")(tmp_path), names=["age", "height"])
    with pytest.raises(ValueError, match=r"its columns are: 12\.5, size"):
        read_inputs(_frame(**{"12.5": [1.0], "size": [2.0]})(tmp_path), names=["height"])


@pytest.mark.parametrize(("write", "advice"), BAD_TABLES.values(), ids=BAD_TABLES.keys())
def test_bad_tables_are_refused_without_a_private_value(tmp_path, write, advice):
    path = write(tmp_path)
    with pytest.raises(ValueError, match=advice) as caught:
        read_rows(path, inputs=["age"], output="height")
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    # A cause would be printed by whoever prints the error with its history.
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file"):
        read_rows(tmp_path / "none.csv", inputs=["age"], output="height")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="folder"):
        read_inputs(tmp_path / "folder.csv", names=["age"])


def test_a_column_has_one_role(tmp_path):
    path = _text("age,height\n30,170\n")(tmp_path)
    with pytest.raises(ValueError, match="as input and as output"):
        read_rows(path, inputs=["age", "height"], output="height")
    with pytest.raises(ValueError, match="named twice"):
        read_inputs(path, names=["age", "age"])
    with pytest.raises(ValueError, match="at least one"):
        read_inputs(path, names=[])


@pytest.mark.parametrize(
    "content",
    [
        "height,age,name\n170,30,x\n165.5,40,y\n",
        "\ufeffheight, age\n170, 30\n165.5, 40\n",
        "height;age\n170;30\n165.5;40\n",
        "height,age,\n170,30,\n165.5,40,\n",
    ],
    ids=["comma", "byte-order mark and blanks", "semicolon", "comma at the end"],
)
def test_the_usual_dialects_of_csv_are_read(tmp_path, content):
    X, y = read_rows(_text(content)(tmp_path), inputs=["age"], output="height")
    np.testing.assert_array_equal(X, [[30.0], [40.0]])
    np.testing.assert_array_equal(y, [170.0, 165.5])
    assert X.dtype == y.dtype == np.float64


def test_yes_and_no_are_one_and_zero(tmp_path):
    path = _text("age,ill\n30,True\n40,False\n")(tmp_path)
    _, y = read_rows(path, inputs=["age"], output="ill")
    np.testing.assert_array_equal(y, [1.0, 0.0])


def test_parquet_types_become_floats(tmp_path):
    path = _frame(age=pd.Categorical([1, 2]), height=["3", "4.5"], n=[1, 2])(tmp_path)
    X, y = read_rows(path, inputs=["n", "age"], output="height")
    np.testing.assert_array_equal(X, [[1.0, 1.0], [2.0, 2.0]])
    np.testing.assert_array_equal(y, [3.0, 4.5])


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet", "OUT.CSV"])
def test_what_is_written_is_read_again(tmp_path, rng, name):
    columns = {"age": rng.normal(size=5), "mean": rng.normal(size=5)}
    path = tmp_path / name
    with path.open("wb") as file:
        format_of(path).write(iter([pa.table(columns)]), file, suffix=table_suffix(name))
    found = read_inputs(tmp_path / name, names=["mean", "age"])
    np.testing.assert_allclose(
        found, np.column_stack([columns["mean"], columns["age"]]), rtol=1e-15
    )


def test_gzipped_tables_are_gzipped():
    content = io.BytesIO()
    rows = iter([pa.table({"age": [1.0]})])
    format_of(Path("out.csv.gz")).write(rows, content, suffix=".csv.gz")
    assert gzip.decompress(content.getvalue()) == b"age\n1.0\n"


CLASSES = ("no", "yes")


@pytest.mark.parametrize(
    ("content", "classes"),
    [
        ("age,ill\n30,yes\n40,no\n", ("yes", "no")),
        ("age,ill\n30, yes\n40,no \n", ("yes", "no")),
        ("age;ill\n30;yes\n40;no\n", ("yes", "no")),
        ("age,ill\n30,1\n40,0\n", ("1", "0")),
        ("age,ill\n30,01\n40,1\n", ("01", "1")),
        ("age,ill\n30,1.0\n40,0.0\n", ("1.0", "0.0")),
        ("age,ill\n30,True\n40,False\n", ("True", "False")),
        # What pandas would take for empty cells.
        ("age,ill\n30,None\n40,NA\n", ("None", "NA")),
        ('age,ill\n30,"a,b"\n40,c\n', ("a,b", "c")),
        ('age, ill\n30, "a"\n40, "b ""c"""\n', ("a", 'b "c"')),
        ("age,ill\n30,naïve\n40,é\n", ("naïve", "é")),
    ],
)
def test_labels_in_csv_are_read_letter_by_letter(tmp_path, content, classes):
    X, y = read_labelled_rows(
        _text(content)(tmp_path), inputs=["age"], output="ill", classes=classes
    )
    assert tuple(y) == classes
    np.testing.assert_array_equal(X, [[30.0], [40.0]])


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([1, 0], ("1", "0")),
        ([1.0, 0.0], ("1", "0")),
        ([0.5, 1.5], ("0.5", "1.5")),
        ([True, False], ("True", "False")),
        (["yes", " no"], ("yes", "no")),
        (pd.Categorical(["yes", "no"]), ("yes", "no")),
        (pd.Categorical([1, 0]), ("1", "0")),
        (pd.array([1, 0], dtype="Int64"), ("1", "0")),
    ],
    ids=str,
)
def test_labels_in_parquet_are_written_out(tmp_path, values, texts):
    path = _frame(age=[30.0, 40.0], ill=values)(tmp_path)
    _, y = read_labelled_rows(path, inputs=["age"], output="ill", classes=texts)
    assert tuple(y) == texts


LABEL = "hushhush"
BAD_LABELS = {
    "undeclared": (
        _text(f"age,ill\n30,{LABEL}\n40,no\n"),
        "not among the declared classes no, yes",
    ),
    "in capitals": (_text(f"age,ill\n30,Yes\n40,{LABEL}\n"), "not among the declared"),
    "numbers with points": (_text("age,ill\n30,1.0\n40,0.0\n"), "not among the declared"),
    "empty": (_text(f"age,ill\n30,\n40,{LABEL}\n"), "'ill' has empty cells"),
    "blanks": (_text(f'age,ill\n30," "\n40,{LABEL}\n'), "'ill' has empty cells"),
    "cut off": (_text(f"age,ill\n30,{LABEL}\n40"), "cannot be read"),
    "not UTF-8": (
        _bytes("a.csv", f"age,ill\n30,{LABEL}\xe9\n".encode("latin-1")),
        "not among the declared",
    ),
    "row too long": (_text(f"age,ill\n30,no,{LABEL}\n"), "cannot be read"),
    "no header": (_text(f"30,{LABEL}\n"), "first line must name the columns"),
    "text in an input": (_text(f"age,ill\n{LABEL},no\n"), "'age' is not a number in row 1"),
    "missing in Parquet": (_frame(age=[1.0, 2.0], ill=[LABEL, None]), "'ill' has empty cells"),
    "missing number": (_frame(age=[1.0, 2.0], ill=[1.0, np.nan]), "'ill' has empty cells"),
    "dates": (_frame(age=[1.0], ill=pd.to_datetime(["2020-01-01"])), "'ill' holds neither text"),
}


@pytest.mark.parametrize(("write", "advice"), BAD_LABELS.values(), ids=BAD_LABELS.keys())
def test_bad_labels_are_refused_without_showing_one(tmp_path, write, advice):
    with pytest.raises(ValueError, match=advice) as caught:
        read_labelled_rows(write(tmp_path), inputs=["age"], output="ill", classes=CLASSES)
    assert LABEL not in "".join(traceback.format_exception(caught.value))
    assert "2020" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_refusals_of_labels_do_not_depend_on_how_many_or_which(tmp_path):
    """Neighbours that are both refused are refused in the same words."""
    said = set()
    for rows in ("1,a\n2,no\n3,no", "1,b\n2,no\n3,no", "1,a\n2,b\n3,c", "1,no\n2,yes\n3,d"):
        with pytest.raises(ValueError, match="declared") as caught:
            read_labelled_rows(
                _text(f"age,ill\n{rows}\n")(tmp_path),
                inputs=["age"],
                output="ill",
                classes=CLASSES,
            )
        said.add(str(caught.value))
    assert len(said) == 1


def test_a_label_column_has_one_role(tmp_path):
    path = _text("age,ill\n30,no\n")(tmp_path)
    with pytest.raises(ValueError, match="as input and as output"):
        read_labelled_rows(path, inputs=["age", "ill"], output="ill", classes=CLASSES)


@pytest.mark.parametrize("private", ["170", "170." + "1" * 5_000])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_the_first_rows_are_as_many_as_were_wanted_however_long_private_cells_are(
    private, suffix, tmp_path
):
    """Files are read in pieces of so many bytes: their last rows would tell these."""
    rows, most = 60_000, 30_000
    table = pd.DataFrame({"age": np.arange(rows), "job": "cook", "height": "171"})
    # What only the last of the rows that are wanted has, and only the next one.
    table.loc[most - 1, "job"] = "nurse"
    table.loc[most, "job"] = "pilot"
    table.loc[5, "height"] = private
    path = tmp_path / f"people{suffix}"
    if suffix == ".parquet":
        table.to_parquet(path, row_group_size=7_000)
    else:
        table.to_csv(path, index=False)
    seen = read_public(path, names=["age", "job"], most=most)
    assert seen.shape == (most, 2)
    assert set(seen["job"].texts()) == {"cook", "nurse"}
    # A table that is shorter is read whole.
    assert read_public(path, names=["job"], most=2 * rows).shape == (rows, 1)
