"""Growth along each size: waiting, failures, and the plain pass it is measured against."""

from __future__ import annotations

import importlib
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

from benchmarks import peers, plots, scaling
from benchmarks.processes import FAILED, Limits, Outcome
from benchmarks.runners import plain
from benchmarks.store import Store
from cloakgp.models import SparsePrior


def rows_of(store, **settings):
    return list(
        scaling.measure_all(
            along=None, repeats=1, limits=Limits(seconds=600), store=store, small=True, **settings
        )
    )


def test_waiting_is_the_time_of_workers_that_is_not_in_tasks(tmp_path, monkeypatch):
    report = {
        "seconds": 10.0,
        "cpu_seconds": 16.0,
        "task_seconds": 7.5,
        "pass_seconds": 8.0,
        "plain_cpu_seconds": 4.0,
        "predict_cpu_seconds": 0.1,
        "predictions": 1000,
        "peak_mb": 300.0,
        "file_mb": 1.0,
        "gap": 0.0,
    }
    monkeypatch.setattr(scaling, "run", lambda *_, **__: Outcome("ok", report=report))
    monkeypatch.setattr(scaling, "SMALL_ALONG", {"workers": (1, 2, 4)})
    rows = rows_of(Store(tmp_path / "kept"))
    assert [row["waiting"] for row in rows] == pytest.approx([0.25, 0.625, 0.8125])
    assert rows[1]["waiting in passes"] == pytest.approx(1 - 7.5 / 16)
    assert [row["over the plain pass"] for row in rows] == [4.0] * 3
    assert rows[0]["µs a prediction"] == pytest.approx(100.0)
    [table] = scaling.tables_for_pages(rows, setting="a test")
    assert table.title == (
        "One fit by the number of workers: 6,000 rows, 2 inputs, 10 inducing inputs, "
        "10 query points; a test"
    )
    assert table.rows[0] == {
        "workers": "1",
        "CPU seconds": 16.0,
        "over the plain pass": 4.0,
        "peak MB": 300.0,
        "file MB": 1.0,
        "certified gap": 0.0,
        "waiting": pytest.approx(0.25),
        "waiting in passes": pytest.approx(1 - 7.5 / 8),
    }


def test_every_size_that_is_varied_has_a_table_for_pages(tmp_path, monkeypatch):
    monkeypatch.setattr(scaling, "run", lambda *_, **__: Outcome(FAILED, "a reason"))
    monkeypatch.setattr(scaling, "SMALL_ALONG", {"rows": (10, 20_000), "inducing": (5,)})
    tables = scaling.tables_for_pages(rows_of(Store(tmp_path / "kept")), setting="a test")
    assert [table.columns for table in tables] == [
        ("rows", "failed"),
        ("inducing inputs", "failed"),
    ]
    assert [row["rows"] for row in tables[0].rows] == ["10", "20,000"]


def task(key, *compute):
    """Return what the scheduler says of a task, which waited for its data at first."""
    start, stop = compute
    return {
        "key": key,
        "startstops": [
            {"action": "transfer", "start": start - 0.25, "stop": start},
            {"action": "compute", "start": start, "stop": stop},
        ],
    }


def test_what_workers_do_is_seen_task_by_task(monkeypatch):
    streams = [
        (),
        [
            task("('cloakgp-inputs-Client-a-b-7', 0)", 1.0, 3.0),
            task("('cloakgp-inputs-Client-a-b-7', 1)", 2.0, 3.5),
            task("('cloakgp-inputs-Client-a-b-7-merge', 1, 0)", 4.0, 5.0),
            task("('cloakgp-rows-Client-a-b-8', 0)", 9.0, 9.5),
        ],
    ]
    client = SimpleNamespace(get_task_stream=lambda: streams.pop(0))
    monkeypatch.syspath_prepend(str(peers.RUNNERS))
    cluster = importlib.import_module("cloakgp_scaling").Cluster(client)
    assert cluster.busy() == (5.0, 5.0 - 0.75 + 9.5 - 8.75)


def test_a_run_that_fails_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(scaling, "run", lambda *_, **__: Outcome(FAILED, "a reason"))
    rows = rows_of(Store(tmp_path / "kept"))
    assert {row["status"] for row in rows} == {"failed: a reason"}
    scaling.report(rows, folder=tmp_path, setting="a test")
    assert not (tmp_path / "scaling.png").exists()


def test_the_plain_pass_has_the_models_own_features():
    rng = np.random.default_rng(0)
    X, inducing = rng.uniform(size=(40, 2)), rng.uniform(size=(6, 2))
    prior = SparsePrior(kernel=Matern(0.7, nu=1.5), noise_variance=1.0, mean=0.0, inducing=inducing)
    V = prior.features(X)
    np.testing.assert_allclose(
        plain.pass_over(X, inducing, lengthscale=0.7), V @ V.T, rtol=1e-4, atol=1e-6
    )


def test_medians_are_over_runs_alike():
    rows = [{"n": 1, "s": value} for value in (5.0, 1.0, 3.0)] + [{"n": 2}, {"n": 0, "s": 1.0}]
    assert plots.medians(rows, x="n", y="s") == [plots.Point(1, 3.0), plots.Point(0, 1.0)]
