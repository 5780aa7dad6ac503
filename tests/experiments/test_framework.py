"""Experiments as commands: options, small versions, tables that stay whole, and figures."""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar

import pytest
import typer
from matplotlib.figure import Figure
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from typer.testing import CliRunner

from experiments import __main__ as command_line
from experiments import framework, progress


def test_figures_stay_whole_in_a_narrow_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    table = framework.table_titled("wide")
    for number in range(11):
        table.add_column(str(number))
    table.add_row(*11 * ["0.12345"])
    framework.console.print(table)
    assert capsys.readouterr().out.count("0.12345") == 11


def test_progress_is_no_part_of_the_output(capsys):
    with framework.progress("work", steps=2) as tick:
        tick()
        tick()
    assert capsys.readouterr().out == ""


def test_in_a_log_a_line_is_said_now_and_then(monkeypatch, capsys, wait_until):
    """Also within a step that takes long; nothing more is said once all is done."""
    monkeypatch.setattr(progress, "SECONDS", 0.05)
    said = []

    def lines():
        said.append(capsys.readouterr())
        return "".join(each.err for each in said).splitlines()

    with progress.progress("folds", steps=2) as tick:
        wait_until(lambda: len(lines()) >= 2)
        tick()
        wait_until(lambda: "folds: 1 of 2" in lines()[-1])
    assert re.fullmatch(r"folds: 0 of 2, \d+ s", lines()[0])
    assert re.fullmatch(r"folds: 1 of 2, \d+ s, some \d+ s left", lines()[-1])
    time.sleep(0.2)
    assert capsys.readouterr().err == ""
    assert {each.out for each in said} == {""}


def test_what_takes_no_time_says_nothing(capsys):
    with progress.progress("folds", steps=2) as tick:
        tick()
    assert capsys.readouterr().err == ""


def test_a_table_as_wide_as_the_console_is_measured_so():
    """What the other tests measure reports with."""
    table = framework.table_titled("t")
    table.add_column("c")
    table.add_row(200 * "x")
    wide = Console(file=io.StringIO(), width=1000)
    assert Measurement.get(wide, wide.options, table).maximum > framework.WIDTH


@dataclass(frozen=True)
class Toy(framework.Experiment[list[float]]):
    """Squares of a few numbers.

    Not shown in the help.
    """

    name: ClassVar[str] = "toy"
    small: ClassVar[Mapping[str, Any]] = {"count": 2, "scale": 1.0}

    count: Annotated[int, typer.Option(min=1, help="How many.")] = 3
    scale: float = 2.0

    def compute(self, progress: framework.Progress) -> list[float]:
        with progress("squares", steps=self.count) as tick:
            return list(
                framework.ticked(
                    (self.scale * number**2 for number in range(self.count)), tick=tick
                )
            )

    def tables(self, found: list[float]) -> Iterable[Table | str]:
        table = framework.table_titled("Squares", "number", right=["square"])
        for number, square in enumerate(found):
            table.add_row(str(number), f"{square:g}")
        yield table
        yield f"{len(found)} in all"

    def figures(self, found: list[float]) -> Mapping[str, Figure]:
        figure = Figure()
        figure.subplots().plot(found)
        return {"toy.png": figure}


def run_toy(*arguments):
    app = typer.Typer()
    app.command()(framework.command_of(Toy))
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def test_a_command_takes_the_fields_with_options_and_prints_and_draws(tmp_path):
    done = run_toy("--count", "4", "--output-dir", str(tmp_path / "new"))
    assert done.exit_code == 0
    assert "18" in done.output
    assert "4 in all" in done.output
    assert (tmp_path / "new" / "toy.png").stat().st_size > 1000
    said = run_toy("--help").output
    assert "Squares of a few numbers." in said
    assert "Not shown" not in said
    assert "--count" in said
    assert "--scale" not in said
    assert run_toy("--count", "0").exit_code == 2


def test_the_small_version_has_its_own_settings(tmp_path):
    done = run_toy("--fast", "--output-dir", str(tmp_path))
    assert "2 in all" in done.output


@pytest.mark.parametrize("count", ["9", "3"])
def test_what_is_asked_for_wins_over_the_small_version(count, tmp_path):
    """Also where it is the default; what is not asked for is small all the same."""
    done = run_toy("--fast", "--count", count, "--output-dir", str(tmp_path))
    assert f"{count} in all" in done.output
    kept = json.loads((tmp_path / "toy.json").read_text())
    assert kept["shown"][0]["rows"][-1] == [str(int(count) - 1), f"{(int(count) - 1) ** 2}"]


def test_what_is_shown_is_kept(tmp_path):
    run_toy("--output-dir", str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "toy-1.csv",
        "toy.json",
        "toy.md",
        "toy.png",
    ]
    assert (tmp_path / "toy-1.csv").read_text() == "number,square\n0,0\n1,2\n2,8\n"
    assert json.loads((tmp_path / "toy.json").read_text()) == {
        "settings": "toy, count = 3",
        "shown": [
            {
                "title": "Squares",
                "columns": ["number", "square"],
                "rows": [["0", "0"], ["1", "2"], ["2", "8"]],
            },
            "3 in all",
        ],
    }
    assert "| 2 | 8 |\n\n3 in all\n" in (tmp_path / "toy.md").read_text()


def test_every_experiment_is_listed_under_its_name():
    kinds = framework.all_experiments()
    assert "toy" not in kinds
    assert {"kung", "kung2018", "london", "citibike", "table2", "digits"} <= set(kinds)
    done = CliRunner().invoke(command_line.app, ["list"])
    assert done.exit_code == 0
    for name, kind in kinds.items():
        assert name in done.output
        assert kind.title().endswith(".")


@pytest.mark.parametrize("kind", framework.all_experiments().values(), ids=lambda kind: kind.name)
def test_small_versions_set_what_there_is(kind):
    assert set(kind.small) <= {field.name for field in fields(kind)}
    assert kind(**kind.small) != kind() or not kind.small
