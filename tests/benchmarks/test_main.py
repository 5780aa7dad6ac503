import csv
import doctest
import importlib

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app

MODULES = ("jobs", "noise", "peers", "plots", "problems", "solvers", "store", "tables", "workloads")


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(f"benchmarks.{name}")
    failed, _ = doctest.testmod(module)
    assert failed == 0


def test_the_small_version_runs_without_other_packages_and_writes_everything(small_version):
    for stem in ("solvers", "claims", "jobs"):
        assert (small_version / f"{stem}.md").read_text(encoding="utf-8").startswith("## ")
    for stem, count in (("solvers", 4), ("jobs", 4)):
        with (small_version / f"{stem}.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == count
        assert {row["status"] for row in rows} == {"ok"}
    for stem in ("solvers-predictions", "jobs"):
        assert (small_version / f"{stem}.png").exists()
    table = small_version / "solvers.csv"
    before = table.read_text(encoding="utf-8")
    words = ["solvers", "--small", "--resume", "--out", str(small_version)]
    again = CliRunner().invoke(app, words)
    assert again.exit_code == 0
    assert table.read_text(encoding="utf-8") == before
