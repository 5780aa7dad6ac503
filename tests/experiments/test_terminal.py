"""Reports stay whole however wide the terminal is."""

from __future__ import annotations

import io

from rich.console import Console
from rich.measure import Measurement

from cloakgp.experiments import terminal


def test_figures_stay_whole_in_a_narrow_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    table = terminal.table_titled("wide")
    for number in range(11):
        table.add_column(str(number))
    table.add_row(*11 * ["0.12345"])
    terminal.console.print(table)
    assert capsys.readouterr().out.count("0.12345") == 11


def test_progress_is_no_part_of_the_output(capsys):
    with terminal.progress("work", steps=2) as tick:
        tick()
        tick()
    assert capsys.readouterr().out == ""


def test_a_table_as_wide_as_the_console_is_measured_so():
    """What the other tests measure reports with."""
    table = terminal.table_titled("t")
    table.add_column("c")
    table.add_row(200 * "x")
    wide = Console(file=io.StringIO(), width=1000)
    assert Measurement.get(wide, wide.options, table).maximum > terminal.WIDTH
