"""Tables as people have them, from the raw file to predictions; and whatever they may hold."""

from __future__ import annotations

import codecs
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cloakgp import Release
from cloakgp.cli import app
from cloakgp.columns import Category, Date, Place, schema_from_text
from cloakgp.data.formats import format_of
from cloakgp.release import StreamedStrategy

SECRET = "777.125"


@pytest.fixture
def people():
    rng = np.random.default_rng(3)
    count = 40
    when = pd.Timestamp("2020-01-01 08:00") + pd.to_timedelta(rng.integers(0, 900, count), "D")
    frame = pd.DataFrame(
        {
            "id": [f"p{number // 2}" for number in range(count)],
            "job": rng.choice(["cook", "clerk", "Bürger"], count),
            "when": when.strftime("%d.%m.%Y"),
            "lat": rng.uniform(51.3, 51.6, count).round(5),
            "lon": rng.uniform(-0.3, 0.1, count).round(5),
            "age": rng.uniform(20, 80, count).round(1),
            "pay": rng.uniform(100, 900, count).round(3),
        }
    )
    frame.loc[3, "age"] = np.nan
    frame.loc[4, "job"] = None
    frame.loc[5, "pay"] = float(SECRET)
    return frame


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert SECRET not in result.output
    assert "unforeseen" not in result.output
    return result


def test_the_person_is_no_input_unless_inputs_say_so(people):
    people.to_csv("people.csv", index=False)
    schema = run("schema", "people.csv", "--output", "pay")
    assert schema.exit_code == 0
    words = ("release", "people.csv", "--output", "pay", "--bounds", 0, 1000, "--epsilon", 1)
    more = ("--inputs", "age,job", "--person", "job", "-o", "a.cloak")
    result = run(*words, *more)
    assert result.exit_code == 1
    assert "job (--person) says whose rows they are, and no more" in result.output


def test_a_place_may_begin_with_its_longitude(people):
    people[["id", "lon", "lat", "age", "pay"]].to_csv("people.csv", index=False)
    assert run("schema", "people.csv", "--output", "pay").exit_code == 0
    words = ("release", "people.csv", "--output", "pay", "--bounds", 0, 1000, "--epsilon", 1)
    result = run(*words, "--person", "id", "-o", "a.cloak")
    assert result.exit_code == 0, result.output
    assert Release.load("a.cloak").schema.sources == ("lat", "lon", "age")
    result = released("people.csv", "--overwrite", inputs="lon,lat,age")
    assert result.exit_code == 0, result.output


def released(table, *more, inputs="job,when,lat,lon,age"):
    words = ["--output", "pay", "--bounds", 0, 1000, "--epsilon", 1, "--delta", 1e-3]
    words += ["--stages", "one", "--learn", "none", "--inducing", 5, "-o", "pay.cloak"]
    return run("release", table, "--inputs", inputs, *words, *more)


def test_from_a_raw_file_to_predictions(people):
    people.to_csv("people.csv", index=False)
    made = run("schema", "people.csv", "--output", "pay,id")
    assert made.exit_code == 0, made.output
    schema = schema_from_text(Path("people.schema.json").read_text(encoding="utf-8"))
    assert [type(column) for column in schema.columns[:3]] == [Category, Date, Place]
    # What lies beside the table is gone by; its inputs are those of the release.
    result = released("people.csv", "--person", "id", "--purpose", "a survey")
    assert result.exit_code == 0, result.output
    release = Release.load("pay.cloak")
    assert release.schema == schema
    assert release.provenance.purpose == "a survey"
    people.loc[0, "job"] = "astronaut"
    people.drop(columns="pay").iloc[:, ::-1].to_csv("new.csv", index=False)
    told = run("predict", "pay.cloak", "--at", "new.csv", "-o", "out.csv")
    assert told.exit_code == 0, told.output
    assert "'astronaut'" in told.stderr
    out = pd.read_csv("out.csv")
    assert list(out) == [*people.columns[-2::-1], "mean", "sd", "lower", "upper"]
    assert out["lower"].between(0, 1000).all()
    assert out["upper"].between(0, 1000).all()
    with pytest.warns(UserWarning, match="astronaut"):
        frame = release.predict_frame(people.set_index("id"))
    assert frame.index.tolist() == people["id"].tolist()
    np.testing.assert_allclose(out["mean"], frame["mean"], atol=0.51)


def as_csv(separator, encoding, decimal=".", mark=b""):
    def write(frame, path):
        text = frame.to_csv(index=False, sep=separator, decimal=decimal)
        path.write_bytes(mark + text.encode(encoding))

    return write


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("cp1252", b""),
        ("utf-8", b""),
        ("utf-8", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
    ],
)
def test_predictions_are_written_as_the_table_is(people, encoding, mark):
    people.to_csv("people.csv", index=False, sep=";", decimal=",")
    words = ["--bounds", 0, 1000, "--epsilon", 1, "--inputs", "job,age", "-o", "a.cloak"]
    assert run("release", "people.csv", "--output", "pay", *words).exit_code == 0
    new = people[["job", "age", "lat"]].copy()
    new.loc[0, ["job", "lat"]] = ["Bürger", -12.25]
    as_csv(";", encoding, ",", mark)(new, Path("new.csv"))
    result = run("predict", "a.cloak", "--at", "new.csv", "-o", "out.csv")
    assert result.exit_code == 0, result.output
    written = Path("out.csv").read_bytes()
    assert written.startswith(mark)
    lines = written.removeprefix(mark).decode(encoding).splitlines()
    assert lines[0] == "job;age;lat;mean;sd;lower;upper"
    job, age, lat, mean, *_ = lines[1].split(";")
    assert (job, age, lat) == ("Bürger", str(new["age"][0]).replace(".", ","), "-12,25")
    assert "." not in "".join(lines)
    out = pd.read_csv("out.csv", sep=";", decimal=",", encoding=encoding.removesuffix("-le"))
    assert out["mean"].between(0, 1000).all()
    assert float(mean.replace(",", ".")) == out["mean"][0]
    # And it is read again as it was.
    again = run("predict", "a.cloak", "--at", "out.csv", "-o", "again.csv")
    assert again.exit_code == 0, again.output


def as_format(frame, path):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with path.open("wb") as file:
        format_of(path).write(iter([table]), file, suffix="".join(path.suffixes))


def as_sqlite(frame, path):
    with sqlite3.connect(path) as database:
        frame.to_sql("people", database, index=False)
    database.close()


WAYS = {
    "semicolons and commas": ("a.csv", as_csv(";", "utf-8", ",")),
    "tabs": ("a.tsv", as_csv("\t", "utf-8")),
    "Latin-1": ("a.csv", as_csv(",", "latin-1")),
    "byte-order mark": ("a.csv", as_csv(";", "utf-8-sig")),
    "UTF-16": ("a.csv", as_csv(";", "utf-16-le", ",", codecs.BOM_UTF16_LE)),
    **{name: (name, as_format) for name in ("a.csv.xz", "a.csv.zip", "a.csv.zst")},
    **{name: (name, as_format) for name in ("a.parquet", "a.feather")},
    "SQLite": ("a.sqlite", as_sqlite),
}


@pytest.mark.parametrize(("name", "write"), WAYS.values(), ids=WAYS.keys())
def test_every_dialect_says_the_same(people, folder, name, write):
    write(people, folder / name)
    result = released(folder / name)
    assert result.exit_code == 0, result.output
    release = Release.load("pay.cloak")
    oracle = Release.load("pay.cloak").schema.encode(people).X
    np.testing.assert_allclose(release.measurements[0].strategy.X, oracle, rtol=1e-12)
    assert "job: Bürger" in release.input_names


def test_spreadsheets(people, folder):
    pytest.importorskip("python_calamine")
    pytest.importorskip("openpyxl")
    as_format(people, folder / "a.xlsx")
    assert released("a.xlsx").exit_code == 0
    told = run("predict", "pay.cloak", "--at", "a.xlsx", "-o", "out.xlsx")
    assert told.exit_code == 1 or "mean" in pd.read_excel("out.xlsx", engine="calamine")


def test_queries_of_a_database(people, folder):
    as_sqlite(people, folder / "a.db")
    query = "SELECT age, lat, pay FROM people WHERE age > 30"
    result = released("a.db", "--sql", query, inputs="age,lat")
    assert result.exit_code == 0, result.output
    assert Release.load("pay.cloak").n_rows == int((people["age"] > 30).sum())


@pytest.mark.parametrize(("meaning", "rows"), [("drop", 38), ("250", 40)])
def test_missing_outputs_mean_what_the_custodian_says(people, meaning, rows):
    people.loc[[1, 2], "pay"] = np.nan
    people.to_csv("people.csv", index=False)
    assert "empty cells" in released("people.csv").output
    result = released("people.csv", "--missing-output", meaning)
    assert result.exit_code == 0, result.output
    assert ("becomes public" in result.stderr) == (meaning == "drop")
    assert Release.load("pay.cloak").n_rows == rows


def test_advice_about_private_decimal_commas_holds(people):
    """Where public columns are whole numbers nothing else says how private ones are written."""
    people["age"] = np.arange(len(people)) % 40
    people["pay"] = [f"1.{value:03.0f},5" if value > 500 else "7,5" for value in people["pay"]]
    people.to_csv("people.csv", index=False)
    told = released("people.csv", inputs="age")
    assert '"decimalChar": ",", "groupChar": "."' in told.output
    assert "drop" not in told.output
    run("schema", "people.csv", "--inputs", "age")
    path = Path("people.schema.json")
    schema = json.loads(path.read_text(encoding="utf-8"))
    schema["fields"][0] |= {"decimalChar": ",", "groupChar": "."}
    path.write_text(json.dumps(schema), "utf-8")
    made = released("people.csv", "--bounds", 0, 2000, inputs="age")
    assert made.exit_code == 0, made.output


ASKED = ("--output", "pay", "--bounds", 0, 1000, "--epsilon", 1)


@pytest.mark.parametrize("command", ["plan", "release"])
def test_what_a_comma_means_is_not_guessed(people, command):
    people["age"] = [f"{value:,}" for value in range(1000, 81000, 2000)]
    people.to_csv("people.csv", index=False)
    ask = [command, "people.csv", *ASKED, *(["-o", "pay.cloak"] if command == "release" else [])]
    refused = run(*ask, "--inputs", "age,job")
    assert refused.exit_code == 1
    said = " ".join(refused.output.split())
    assert "column 'age': nothing tells whether 1,234 is a little more than one or more" in said
    assert '"decimalChar": "." and "groupChar": ","' in said
    assert not Path("pay.cloak").exists()
    # A point behind another number tells it, and of private ones, too.
    told = run(*ask, "--inputs", "age,job,lat")
    assert told.exit_code == 0, told.output
    assert "age: read with decimal points, and ',' between thousands" in told.stderr
    run("schema", "people.csv", "--inputs", "age,job")
    schema = json.loads(Path("people.schema.json").read_text(encoding="utf-8"))
    assert (schema["fields"][0]["decimalChar"], schema["fields"][0]["groupChar"]) == (",", ",")
    assert "fill" not in schema["fields"][0]
    again = run(*ask, *(["--overwrite"] if command == "release" else []))
    assert "nothing tells whether 1,234" in " ".join(again.output.split())


def test_decimal_commas_beside_decimal_points_tell_nothing_of_private_numbers(people):
    people["age"] = people["age"].map(lambda value: str(value).replace(".", ","))
    people.to_csv("people.csv", index=False)
    refused = released("people.csv", inputs="age,lat")
    assert refused.exit_code == 1
    assert "column 'age' has decimal commas and 'lat' decimal points" in " ".join(
        refused.output.split()
    )


@pytest.mark.parametrize("command", ["plan", "release"])
def test_an_input_that_would_not_be_used_is_refused(people, command):
    mixed = [when if row % 2 else when[6:] + "-" for row, when in enumerate(people["when"])]
    people["when"] = [f"{text}{row}" for row, text in enumerate(mixed)]
    people.to_csv("people.csv", index=False)
    ask = [command, "people.csv", *ASKED, *(["-o", "pay.cloak"] if command == "release" else [])]
    refused = run(*ask, "--inputs", "age,when")
    assert refused.exit_code == 1
    assert "nothing would be predicted from when" in " ".join(refused.output.split())
    assert not Path("pay.cloak").exists()
    run("schema", "people.csv", "--inputs", "age,when")
    assert "nothing would be predicted from when" in " ".join(
        run(*ask, "--inputs", "age,when").output.split()
    )
    assert run(*ask).exit_code == 0


@pytest.mark.parametrize("command", ["plan", "release", "release-several", "release-chosen"])
def test_remarks_on_how_inputs_are_read_are_told_before_anything_is_asked(people, command):
    people["rent"] = people["pay"] / 2
    people["visits"] = [*["1", "2"] * 18, "a", "b", "c", "d"]
    people.to_csv("people.csv", index=False)
    of_command = {
        "plan": ASKED,
        "release": (*ASKED, "-o", "pay.cloak"),
        "release-several": (
            *("--output", "pay=0:1000", "--output", "rent=0:500", "--epsilon", 1),
            *("--noise", "laplace", "-o", "pay.cloak"),
        ),
        "release-chosen": (
            *("--output", "pay=0:1000", "--epsilon", 1, "--delta", 1e-3, "-o", "pay.cloak"),
            *("--lengthscale", "1", "--selection-epsilon", 1),
        ),
    }
    told = run(command, "people.csv", "--inputs", "lat,visits", *of_command[command])
    assert "visits: 4 of its 40 cells are no numbers" in " ".join(told.stderr.split())
    run("schema", "people.csv", "--output", "pay,rent,id")
    quiet = run(command, "people.csv", "--inputs", "lat", *of_command[command])
    assert "visits" not in quiet.output


LACKING = "2 more rows have no private value, and are left out: that choice makes public"


@pytest.mark.parametrize("copies", [1, 140], ids=["held", "in passes"])
def test_rows_that_are_left_out_are_counted_and_told_before_and_after(people, copies):
    people.loc[[1, 2], "pay"] = np.nan
    many = pd.concat([people, *[people.drop([1, 2])] * (copies - 1)], ignore_index=True)
    many.to_csv("people.csv", index=False)
    run("schema", "people.csv", "--output", "pay,id")
    path = Path("people.schema.json")
    path.write_text(path.read_text(encoding="utf-8").replace('"impute"', '"drop"'), "utf-8")
    words = ("--output", "pay", "--bounds", 0, 1000, "--epsilon", 1, "--person", "id")
    words += ("--missing-output", "drop", "--stages", "one", "--learn", "none", "--inducing", 5)
    planned = run("plan", "people.csv", *words, "--quick")
    assert planned.exit_code == 0, planned.output
    made = run("release", "people.csv", *words, "-o", "pay.cloak")
    assert made.exit_code == 0, made.output
    release = Release.load("pay.cloak")
    rows, lacking = 37 * copies, 1 * copies
    assert release.n_rows == rows
    passes = [isinstance(one.strategy, StreamedStrategy) for one in release.measurements]
    assert passes == [copies > 1]
    found = release.provenance
    assert (found.without_output, found.without_inputs) == (2, lacking)
    others = "1 more row lacks" if copies == 1 else f"{lacking} more rows lack"
    for said in (planned, made, run("show", "pay.cloak")):
        text = " ".join(said.stdout.split())
        assert LACKING in text
        assert f"{others} a public value, and" in text
    plan = " ".join(planned.stdout.split())
    assert f"rows {rows:,} of" in plan
    assert "who is in the table; which rows are the same person; which rows have a private" in plan
    assert "Of the private column was read which cells are empty, and nothing spent." in plan


def test_where_nothing_is_left_out_nothing_is_said_of_it(people):
    people.to_csv("people.csv", index=False)
    words = ("--inputs", "job", "--output", "pay", "--bounds", 0, 1000, "--epsilon", 1)
    planned = run("plan", "people.csv", *words, "--quick")
    assert planned.exit_code == 0, planned.output
    assert released("people.csv", inputs="job").exit_code == 0
    for said in (planned, run("show", "pay.cloak")):
        assert "left out" not in said.stdout
        assert "which rows have a private value" not in said.stdout


def test_many_rows_are_encoded_alike(people):
    """By passes, with rows that are dropped, and persons."""
    many = pd.concat([people] * 130, ignore_index=True)
    many.to_csv("many.csv", index=False)
    run("schema", "many.csv", "--output", "pay,id")
    path = Path("many.schema.json")
    path.write_text(path.read_text(encoding="utf-8").replace('"impute"', '"drop"'), "utf-8")
    result = released("many.csv", "--person", "id")
    assert result.exit_code == 0, result.output
    release = Release.load("pay.cloak")
    assert release.n_rows == 130 * 39
    assert isinstance(release.measurements[0].strategy, StreamedStrategy)
    kept = people.drop(index=3)
    assert np.isfinite(release.predict(kept)).all()
    assert np.isnan(release.predict(people)).nonzero()[0].tolist() == [3]


NUMBERS = ["1", "2,5", "1.000,5", "-3e2", "inf", "2020-01-02", "3.4.2021"]
WORDS = ["", "NA", "x", "Ü", '"', "a\nb", "yes", "no", "=1", "\x00", "1;2", "ﬁ", "🙂"]
CELL = st.sampled_from([*NUMBERS, *WORDS])
TABLES = st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=6)


@given(
    rows=TABLES,
    separator=st.sampled_from([",", ";", "\t"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16"]),
    output=st.sampled_from(["numbers", "words"]),
    meaning=st.sampled_from(["refuse", "drop", "1"]),
    damage=st.booleans(),
)
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_whatever_a_table_holds_there_is_a_release_or_advice(
    folder, rows, separator, encoding, output, meaning, damage
):
    for file in folder.iterdir():
        file.unlink()
    private = SECRET if output == "numbers" else f"<{SECRET}>"
    frame = pd.DataFrame(rows, columns=["a", "b", "c"]).assign(pay=private)
    text = frame.to_csv(index=False, sep=separator).encode(encoding, "replace")
    (folder / "t.csv").write_bytes(text[: -len(text) // 5] if damage else text)
    made = run("schema", "t.csv", "--output", "pay")
    result = released("t.csv", "--missing-output", meaning, inputs="a,b,c")
    for each in (made, result):
        assert each.exit_code in (0, 1)
        assert each.exit_code == 0 or "Error: " in each.stderr
    if result.exit_code == 0:
        told = run("predict", "pay.cloak", "--at", "t.csv", "-o", "out.parquet")
        assert told.exit_code in (0, 1)
        assert SECRET not in run("show", "pay.cloak").output


def test_a_schema_of_a_query_is_written_and_names_may_have_commas(people):
    people = people.rename(columns={"age": "age, in years"})
    with closing(sqlite3.connect("people.db")) as database:
        people.to_sql("people", database, index=False)
        people.to_sql("copies", database, index=False)
    query = ("--sql", "SELECT * FROM people WHERE lat > 51.4")
    inputs = 'job,"age, in years"'
    made = run("schema", "people.db", "--inputs", inputs, *query)
    assert made.exit_code == 0, made.output
    schema = schema_from_text(Path("people.schema.json").read_text(encoding="utf-8"))
    assert [column.name for column in schema.columns] == ["job", "age, in years"]
    made = released("people.db", *query, inputs=inputs)
    assert made.exit_code == 0, made.output
    assert Release.load("pay.cloak").schema.sources == ("job", "age, in years")
