"""The small version of everything, measured once: each of its processes takes seconds to start."""

from __future__ import annotations

import csv
import shutil

import pytest
from typer.testing import CliRunner

from benchmarks import growth, jobs, scaling, trips, workloads
from benchmarks.__main__ import app
from benchmarks.processes import Limits
from benchmarks.store import Store

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def small_version(tmp_path_factory):
    """The folder into which ``python -m benchmarks --small`` wrote."""
    folder = tmp_path_factory.mktemp("benchmarks")
    result = CliRunner().invoke(app, ["--small", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def measured(small_version, tmp_path):
    """A copy of what it measured, to go on with."""
    return shutil.copytree(small_version / "measurements", tmp_path / "measurements")


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


def test_our_methods_run_and_others_are_said_not_to_be_installed(measured, tmp_path):
    job = workloads.tiny_job()
    limits, store = Limits(seconds=600, cache=tmp_path), Store(measured / "jobs", resume=True)
    rows = list(jobs.measure_all([job], limits=limits, store=store, draws=2))
    by_method = {row["method"]: row for row in rows}
    assert by_method["dp4gp, standard"]["status"] == "not installed"
    ours = by_method["cloakgp, defaults"]
    assert (ours["draws"], ours["time / ours"], ours["guarantee"]) == (2, 1, "(1, 0.01)")
    assert 0 < ours["RMSE"] < job.bounds[1] - job.bounds[0]
    assert by_method["histogram, laplace noise"]["guarantee"] == "(1, 0)"
    exact = by_method["scikit-learn GP, not private"]
    assert (exact["draws"], exact["guarantee"]) == (1, "none")
    assert exact["RMSE"] < 0.2
    store = Store(measured / "jobs", resume=True)
    some = jobs.measure_all([job], limits=limits, store=store, draws=2, only=["histogram", "dp4gp"])
    assert [row["method"] for row in some] == [
        "dp4gp, standard", "histogram, laplace noise", "histogram, gaussian noise",
    ]  # fmt: skip
    jobs.report(rows, folder=tmp_path, setting="here")
    assert (tmp_path / "jobs.png").read_bytes().startswith(b"\x89PNG")
    assert "not installed" in (tmp_path / "jobs.md").read_text(encoding="utf-8")
    [table] = jobs.tables_for_pages(rows, setting="here")
    assert table.title == "artificial, 30 rows to fit; here"
    shown = {row["method"]: row for row in table.rows}
    assert shown["cloakgp, defaults"]["RMSE"] == ours["RMSE"]
    assert shown["cloakgp, defaults"]["CPU seconds a fit"] == ours["cpu per fit"]
    assert shown["dp4gp, standard"]["failed"] == "not installed"


@pytest.mark.parametrize("criterion", ["bayes", "trace"])
def test_growth_with_rows_is_measured(criterion, measured, tmp_path, monkeypatch):
    """Rows that nobody keeps, read in passes, by the noise that the forecast chooses."""
    # Kept, and not measured again.
    monkeypatch.setattr(growth, "run", None)
    (row,) = growth.measure_all(
        rows=[6000],
        criteria=[criterion],
        repeats=1,
        limits=Limits(seconds=600),
        store=Store(measured / "growth", resume=True),
        small=True,
    )
    assert row["status"] == "ok"
    # With so few inducing inputs, private predictions need not be better than the mean.
    assert 0 < row["RMSE"] < trips.BOUNDS[1]
    assert 0 < row["RMSE of the mean"] < trips.BOUNDS[1]
    assert row["seconds"] > row["release seconds"] > 0
    assert row["peak MB"] > 50
    assert row["noise"] == ("laplace" if criterion == "bayes" else "gaussian")
    assert row["longest column"] == pytest.approx(1.0, abs=1e-9)
    assert row["answers"] >= 1
    assert 0 <= row["gap"] < 0.5
    growth.report([row], folder=tmp_path, setting="a test")
    assert (tmp_path / "growth.png").stat().st_size > 5_000
    [table] = growth.tables_for_pages([row], setting="a test")
    [shown] = table.rows
    assert (shown["rows"], shown["peak MB"]) == ("6,000", row["peak MB"])
    assert shown["CPU µs a row"] == pytest.approx(1e6 * row["cpu seconds"] / 6000)
    assert "failed" not in table.columns
    assert criterion in table.title
    assert f"| 6000 | 1 | {criterion} |" in (tmp_path / "growth.md").read_text(encoding="utf-8")


def test_growth_along_a_size_is_measured(measured, tmp_path, monkeypatch):
    # Kept, and not measured again.
    monkeypatch.setattr(scaling, "run", lambda *_, **__: pytest.fail("measured again"))
    (row,) = scaling.measure_all(
        along=None,
        repeats=1,
        limits=Limits(seconds=600),
        store=Store(measured / "scaling", resume=True),
        small=True,
    )
    assert (row["rows"], row["status"]) == (6000, "ok")
    assert row["over the plain pass"] == row["CPU seconds"] / row["plain CPU seconds"] > 1
    assert row["rows a second"] == row["rows"] / row["seconds"]
    assert row["peak MB"] > 50
    assert row["waiting"] is row["waiting in passes"] is None
    scaling.report([row], folder=tmp_path, setting="a test")
    assert (tmp_path / "scaling.png").stat().st_size > 5_000
    assert "| rows | 6000 | 2 | 10 |" in (tmp_path / "scaling.md").read_text(encoding="utf-8")
