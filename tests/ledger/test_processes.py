"""Several processes at once, killed and cut off: the ledger has what their journals have."""

from __future__ import annotations

import sys
from functools import partial

import pytest
from typer.testing import CliRunner

from benchmarks import __main__ as command_line
from benchmarks.chaos import wreak
from experiments.pages import Kept, keep_tables


def test_nothing_is_overspent_and_nothing_lost(url, tmp_path):
    found = wreak(url, charges=60, processes=3, folder=tmp_path)
    assert found.attempts >= 60
    assert found.lost == 0
    assert found.drawn > 0
    assert found.spent <= found.limit
    assert found.sound


@pytest.mark.slow
def test_nothing_is_overspent_and_nothing_lost_by_many(url, tmp_path):
    found = wreak(url, charges=2000, processes=4, folder=tmp_path)
    assert found.kills > 0
    assert found.refused > 0
    assert (found.lost, found.sound) == (0, True)
    assert found.spent <= found.limit


def test_what_was_found_stands_in_a_column_for_each_database(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "chaos"])
    monkeypatch.setattr(command_line, "keep_tables", partial(keep_tables, folder=tmp_path))
    words = ["chaos", "--charges", "8", "--processes", "2", "--keep", "charges"]
    done = CliRunner().invoke(command_line.app, words)
    assert done.exit_code == 0, done.output
    table = Kept.read("charges", folder=tmp_path).table(1)
    assert table.columns == ["", "SQLite"]
    found = dict(table.rows)
    assert int(found["charges tried"]) >= 8
    assert found["draws that no charge counts for"] == "0"
    assert found["the audit finds"] == "nothing"
