import csv
import doctest
import importlib

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app

MODULES = ("jobs", "noise", "peers", "problems", "solvers", "store", "tables", "workloads")


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(f"benchmarks.{name}")
    failed, _ = doctest.testmod(module)
    assert failed == 0


def test_the_small_version_runs_without_other_packages_and_writes_everything(tmp_path):
    result = CliRunner().invoke(app, ["--small", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for stem in ("solvers", "claims", "jobs"):
        assert (tmp_path / f"{stem}.md").read_text(encoding="utf-8").startswith("## ")
    for stem, count in (("solvers", 4), ("jobs", 4)):
        with (tmp_path / f"{stem}.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == count
        assert {row["status"] for row in rows} == {"ok"}
    for stem in ("solvers-predictions", "jobs"):
        assert (tmp_path / f"{stem}.png").exists()
    table = tmp_path / "solvers.csv"
    before = table.read_text(encoding="utf-8")
    again = CliRunner().invoke(app, ["solvers", "--small", "--resume", "--out", str(tmp_path)])
    assert again.exit_code == 0
    assert table.read_text(encoding="utf-8") == before
