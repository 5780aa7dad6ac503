import csv
import sys
from functools import partial

import numpy as np
from typer.testing import CliRunner

from benchmarks import __main__ as command_line
from benchmarks import scaling
from benchmarks.plots import Point, draw_panels
from benchmarks.processes import FAILED, Outcome
from benchmarks.store import Store
from benchmarks.tables import Table
from experiments.pages import Kept, keep_tables

ROWS = [{"who": "us", "seconds": 0.0123456789, "extra": 1}, {"who": "them, too"}]


def test_csv_keeps_every_digit_and_markdown_what_is_shown(tmp_path):
    table = Table("times", ("who", "seconds"), ROWS, shown=("seconds", "who"), notes=("n",))
    table.write(tmp_path / "new", stem="t")
    with (tmp_path / "new" / "t.csv").open(encoding="utf-8") as file:
        assert list(csv.DictReader(file)) == [
            {"who": "us", "seconds": "0.0123456789"},
            {"who": "them, too", "seconds": ""},
        ]
    assert (tmp_path / "new" / "t.md").read_text(encoding="utf-8").splitlines() == [
        "## times",
        "",
        "| seconds | who |",
        "| --- | --- |",
        "| 0.0123 | us |",
        "|  | them, too |",
        "",
        "* n",
    ]


def test_a_picture_is_drawn_of_lines_and_of_rows_of_unequal_length(tmp_path):
    panel = {"cloakgp": [Point(10, 1), Point(100, 2)], "peer": [Point(10, 3, whole=False)]}
    draw_panels(
        [{"a": panel, "b": panel}, {"a": panel}],
        x_label="N",
        y_labels=("seconds", "MB"),
        path=tmp_path / "new" / "p.png",
    )
    assert (tmp_path / "new" / "p.png").read_bytes().startswith(b"\x89PNG")


def test_what_was_measured_is_kept_and_measured_again_only_when_asked(tmp_path):
    def measure():
        made.append(0)
        return Outcome("ok", arrays={"a": np.ones(2)}, report={"seconds": len(made)})

    made = []
    Store(tmp_path).get("x: y", measure)
    kept = Store(tmp_path, resume=True).get("x: y", measure)
    assert (len(made), kept.status, kept.report) == (1, "ok", {"seconds": 1})
    np.testing.assert_array_equal(kept.arrays["a"], np.ones(2))
    assert Store(tmp_path).get("x: y", measure).report == {"seconds": 2}


def test_what_failed_is_measured_again(tmp_path):
    outcomes = iter([Outcome("failed", "out of luck"), Outcome("not installed"), Outcome("ok")])
    store = Store(tmp_path, resume=True)
    found = [store.get("x", lambda: next(outcomes)).status for _ in range(4)]
    assert found == ["failed", "not installed", "ok", "ok"]


def test_tables_are_kept_as_those_of_experiments_are(tmp_path, monkeypatch):
    """By the command whose runs fail, which takes no time."""
    monkeypatch.setattr(scaling, "run", lambda *_, **__: Outcome(FAILED, "a reason"))
    monkeypatch.setattr(command_line, "keep_tables", partial(keep_tables, folder=tmp_path))
    monkeypatch.setattr(sys, "argv", ["benchmarks", "scaling", "--small", "--keep", "sizes"])
    done = CliRunner().invoke(
        command_line.app, ["scaling", "--small", "--out", str(tmp_path), "--keep", "sizes"]
    )
    assert done.exit_code == 0, done.output
    kept = Kept.read("sizes", folder=tmp_path)
    assert kept.settings == "benchmarks scaling --small --keep sizes"
    [table] = kept.tables
    assert table.columns == ["rows", "failed"]
    assert table.rows == [["6,000", "failed: a reason"]]
