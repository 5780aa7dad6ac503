"""A whole release on a cluster, of several workers or of one, a process of which is killed."""

from __future__ import annotations

import importlib
import os
import signal

import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest

from cloakgp import DPGPRegressor
from cloakgp.data import ArrayRows, DaskRows

door = importlib.import_module("cloakgp.privacy.ask")

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:distributed"),
    pytest.mark.filterwarnings("ignore:.*:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.usefixtures("few_learning_cells", "clustered_once"),
]

INPUTS = ["age", "weight"]
# Chunks are those of the row groups, so that arrays can be cut alike.
GROUP_ROWS, GROUPS = 400, 8


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(3)
    count = GROUP_ROWS * GROUPS
    frame = pd.DataFrame({"age": rng.uniform(0, 90, count), "weight": rng.uniform(3, 90, count)})
    frame["height"] = 60 + 90 * np.sin(frame["age"] / 60) + rng.normal(scale=5, size=count)
    path = tmp_path_factory.mktemp("table") / "people.parquet"
    frame.to_parquet(path, index=False, row_group_size=GROUP_ROWS)
    return path, frame


def model(**settings):
    chosen = {"inducing": 8, "insecure_seed": 4, "stages": None, "interval": False} | settings
    return DPGPRegressor(bounds=(40, 200), epsilon=1.0, delta=1e-6, **chosen)


@pytest.fixture
def draws(monkeypatch):
    """How often noise is drawn, and for which integers."""
    seen = []
    whole = door.with_noise

    def watched(integers, **settings):
        seen.append(integers.copy())
        return whole(integers, **settings)

    monkeypatch.setattr(door, "with_noise", watched)
    return seen


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"criterion": "trace"},
        {"stages": [(0.4, None), (0.6, 1.0)], "noise": "gaussian"},
    ],
    ids=["bayes", "trace", "stages"],
)
def test_a_cluster_releases_what_one_machine_does(workers, table, settings):
    path, frame = table
    rows = DaskRows.from_parquet(
        path, inputs=INPUTS, output="height", client=workers, chunk_rows=GROUP_ROWS
    )
    there = model(**settings).fit_rows(rows).release_
    here = (
        model(**settings)
        .fit_rows(ArrayRows(frame[INPUTS], frame["height"].to_numpy(), chunk_rows=GROUP_ROWS))
        .release_
    )
    assert there.n_rows == here.n_rows == len(frame)
    assert there.input_names == here.input_names
    assert there.guarantee == here.guarantee
    assert there.measurements[0].strategy.longest == pytest.approx(
        here.measurements[0].strategy.longest, rel=1e-9
    )
    # Other places of inducing inputs and other noise, but the same curve.
    at = frame[INPUTS].to_numpy()[:20]
    mean, sd = there.predict(at, return_std=True)
    other, other_sd = here.predict(at, return_std=True)
    assert np.abs(mean - other).max() < 4 * np.hypot(sd, other_sd).max()
    truth = 60 + 90 * np.sin(at[:, 0] / 60)
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 10
    assert there.verify(rows) == pytest.approx(there.measurements[0].strategy.longest, rel=1e-9)


def test_any_number_of_workers_releases_the_same(client, table, draws):
    """The design, the sums that noise is added to, and the answers, bit for bit."""
    path, _ = table

    def released(client):
        rows = DaskRows.from_parquet(
            path, inputs=INPUTS, output="height", client=client, chunk_rows=GROUP_ROWS
        )
        return model(stages=[(0.4, None), (0.6, 1.0)], noise="gaussian").fit_rows(rows).release_

    several = released(client)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=3, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as other,
    ):
        one = released(other)
    assert len(several.measurements) == len(one.measurements) > 1
    for first, second in zip(several.measurements, one.measurements, strict=True):
        np.testing.assert_array_equal(first.answers.values, second.answers.values)
        assert first.strategy.longest == second.strategy.longest
    for first, second in zip(draws[: len(draws) // 2], draws[len(draws) // 2 :], strict=True):
        np.testing.assert_array_equal(first, second)
    at = np.array([[20.0, 40.0], [70.0, 60.0]])
    np.testing.assert_array_equal(
        several.predict(at, return_std=True), one.predict(at, return_std=True)
    )


def test_where_partitions_end_the_same_is_released(workers, table):
    """Whatever bytes, private ones among them, have decided it: bit for bit."""
    path, frame = table
    of_columns = {"inputs": INPUTS, "output": "height", "client": workers, "chunk_rows": GROUP_ROWS}
    partitions = dd.from_pandas(frame, npartitions=11, sort=False)
    first, second = (
        model(noise="gaussian").fit_rows(rows).release_
        for rows in (
            DaskRows.from_parquet(path, **of_columns),
            DaskRows.from_dataframe(partitions, **of_columns),
        )
    )
    for one, two in zip(first.measurements, second.measurements, strict=True):
        np.testing.assert_array_equal(one.answers.values, two.answers.values)
        assert one.strategy.longest == two.strategy.longest
    at = frame[INPUTS].to_numpy()[:5]
    np.testing.assert_array_equal(
        first.predict(at, return_std=True), second.predict(at, return_std=True)
    )


def test_a_worker_killed_while_outputs_are_asked_changes_nothing(client, table, draws, patience):
    path, _ = table
    rows = DaskRows.from_parquet(
        path, inputs=INPUTS, output="height", client=client, chunk_rows=GROUP_ROWS
    )
    undisturbed = model(noise="gaussian").fit_rows(rows).release_
    assert len(draws) == 1
    killed = []

    def kill(what, done, _of):
        if what == "asking the private column" and done >= 2 * GROUP_ROWS and not killed:
            # Any that has worked: what it knew is lost.
            workers = client.scheduler_info(n_workers=-1)["workers"]
            killed.append(client.run(os.getpid, workers=[next(iter(workers))]).popitem()[1])
            os.kill(killed[0], signal.SIGKILL)

    disturbed = model(noise="gaussian").fit_rows(rows.report_to(kill)).release_
    client.wait_for_workers(2, timeout=patience)
    assert killed
    assert len(draws) == 2
    np.testing.assert_array_equal(draws[0], draws[1])
    np.testing.assert_array_equal(
        disturbed.measurements[0].answers.values, undisturbed.measurements[0].answers.values
    )
    assert disturbed.guarantee == undisturbed.guarantee
    at = np.array([[20.0, 40.0], [70.0, 60.0]])
    np.testing.assert_array_equal(disturbed.predict(at), undisturbed.predict(at))
