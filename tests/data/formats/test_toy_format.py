"""A new table format is one class and one line of the registry; all else takes it from there."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cloakgp import DPGPRegressor, Release
from cloakgp.cli.app import app
from cloakgp.data import FileRows
from cloakgp.data.formats.rows import RowFormat
from cloakgp.data.schema import FORMATS

COLUMNS = ["age", "city", "height", "who"]
OPTIONS = "--inputs age --output height --bounds 100 200 --epsilon 3 --delta 0.001 --person who"


class LinesFormat(RowFormat):
    """A JSON list on every line, names of columns first."""

    certain_names = True

    def rows(self, path):
        with path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)

    def write(self, tables, file, *, suffix):
        del suffix
        for number, table in enumerate(tables):
            names = [] if number else [table.column_names]
            rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
            file.writelines(json.dumps(row).encode() + b"\n" for row in [*names, *rows])


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(FORMATS, f"{__name__}:LinesFormat", (".lines",))


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ages = np.linspace(0.0, 80.0, 60)
    frame = pd.DataFrame(
        {
            "age": ages,
            "city": ["Oslo", "Bergen"] * 30,
            "height": 150.0 + 30.0 * np.tanh(ages / 20.0),
            "who": [f"p{row // 2}" for row in range(60)],
        }
    )
    frame.to_csv("people.csv", index=False)
    rows = [json.dumps(row) + "\n" for row in [COLUMNS, *frame.values.tolist()]]
    (tmp_path / "people.lines").write_text("".join(rows), encoding="utf-8")
    return frame


def read_lines(path):
    names, *rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return pd.DataFrame(rows, columns=names)


def run(words):
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("kept", [True, False], ids=["held", "in passes"])
def test_it_is_released_saved_loaded_told_predicted_from_and_drawn(people, kept):
    passes = "" if kept else "--inducing 10"
    run(f"release people.lines {OPTIONS} {passes} -o tall.cloak")
    release = Release.load("tall.cloak")
    assert release.output_name == "height"
    assert release.n_rows == len(people)
    assert "height" in run("show tall.cloak --all")
    run("predict tall.cloak --at people.lines -o out.lines")
    out = read_lines(pathlib.Path("out.lines"))
    # Means are written to the digits that noise leaves in them, and within the bounds.
    expected = np.clip(release.predict(people[["age"]]), 100, 200)
    np.testing.assert_allclose(out["mean"], expected, atol=0.01)
    assert list(out["city"]) == list(people["city"])
    assert "height" not in out
    run("plot tall.cloak -o tall.png")


def test_it_is_read_as_the_same_table_in_csv(people):
    """In passes, with persons, and with a schema that it is inferred from."""
    settings = {"inputs": ["age"], "output": "height", "groups": "who", "chunk_rows": 7}
    budget = {"epsilon": 3.0, "delta": 1e-3, "noise": "gaussian", "insecure_seed": 1}
    model = DPGPRegressor(bounds=(100, 200), inducing=5, stages=None, learn=None, **budget)
    means = [
        model.fit_rows(FileRows(name, **settings)).predict(people[["age"]])
        for name in ("people.lines", "people.csv")
    ]
    np.testing.assert_array_equal(*means)
    written = [
        run(f"schema people{suffix} --output height,who -o {suffix[1:]}.json")
        and pathlib.Path(f"{suffix[1:]}.json").read_text(encoding="utf-8")
        for suffix in (".lines", ".csv")
    ]
    assert written[0] == written[1]


def test_a_folder_of_such_files_is_one_table(people, tmp_path, gather_inputs):
    folder = tmp_path / "all"
    folder.mkdir()
    for name in ("a.lines", "b.lines"):
        (folder / name).write_bytes((tmp_path / "people.lines").read_bytes())
    rows = FileRows(folder, inputs=["age"], output="height")
    read = np.concatenate(gather_inputs(rows).X)
    np.testing.assert_array_equal(read[:, 0], np.tile(people["age"], 2))


@pytest.mark.usefixtures("people")
def test_damage_is_called_damage_and_nothing_of_it_is_said(tmp_path, gather_inputs):
    path = tmp_path / "people.lines"
    path.write_text(path.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    rows = FileRows(path, inputs=["age"], output="height")
    with pytest.raises(ValueError, match=r"people\.lines cannot be read as \.lines") as caught:
        gather_inputs(rows)
    assert caught.value.__context__ is None
