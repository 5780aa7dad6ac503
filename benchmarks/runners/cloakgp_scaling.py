"""One fit in passes of a table in a file, predictions from it, and the plain pass over its rows."""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path

import numpy as np
import plain
import protocol

BOUNDS = (-3.0, 3.0)
PREDICTIONS = 20_000


def answer(arrays, options):
    """Return what a fit, predictions and the plain pass took."""
    del arrays
    from cloakgp import DPGPRegressor

    count, width = options["rows"], options["inputs"]
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(count, width))
    inducing = rng.uniform(size=(options["inducing"], width))
    # So that features are as many, and as smooth, whatever the number of inputs is.
    lengthscale = 0.5 * np.sqrt(width)
    began = time.process_time()
    plain.pass_over(X, inducing, lengthscale=lengthscale)
    found = {"plain_cpu_seconds": time.process_time() - began}
    y = np.sin(5.0 * X.mean(axis=1)) + rng.normal(scale=0.3, size=count)
    points = rng.uniform(size=(options["points"], width))
    places = rng.uniform(size=(PREDICTIONS, width))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        names = write(path, X, y)
        del X, y
        model = DPGPRegressor(
            bounds=BOUNDS,
            epsilon=1.0,
            delta=0.1 / count,
            noise=options["noise"],
            inducing=options["inducing"],
            random_state=0,
        )
        with opened(path, names=names, workers=options["workers"]) as (rows, cluster):
            used = cluster.cpu_seconds()
            _, cost = protocol.measured(lambda: model.fit_rows(rows, points), repeats=1)
            used = cluster.cpu_seconds() - used
            in_tasks, in_passes = cluster.busy()
    release = model.release_
    began = time.process_time()
    release.predict(places, return_std=True)
    found |= {
        "predict_cpu_seconds": time.process_time() - began,
        "predictions": PREDICTIONS,
        "seconds": cost.seconds,
        "cpu_seconds": cost.cpu_seconds + used,
        "task_seconds": in_tasks,
        "pass_seconds": in_passes,
        "peak_mb": cost.peak_mb,
        "gap": release.measurements[0].strategy.certificate.gap,
        "file_mb": len(release.to_bytes()) / 1e6,
    }
    return {}, found


def write(path, X, y):
    """Write a Parquet table, and return the names of its inputs."""
    import pandas as pd

    names = [f"x{number}" for number in range(X.shape[1])]
    frame = pd.DataFrame(dict(zip(names, X.T, strict=True)) | {"y": y})
    # Workers share a file by its row groups.
    frame.to_parquet(path, index=False, row_group_size=plain.CHUNK_ROWS)
    return names


@contextlib.contextmanager
def opened(path, *, names, workers):
    """Yield the rows of a file, read here or by workers of a cluster, and what these do."""
    from cloakgp.data import FileRows

    if not workers:
        yield FileRows(path, inputs=names, output="y"), NoCluster()
        return
    import dask
    import distributed

    from cloakgp.data import DaskRows
    from cloakgp.data.dask.tasks import ALLOCATION

    with (
        # As docs/many-rows.md advises.
        dask.config.set(ALLOCATION),
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        rows = DaskRows.from_parquet([path], inputs=names, output="y", client=client)
        yield rows, Cluster(client)


class NoCluster:
    """What no workers do."""

    def cpu_seconds(self):
        """Return nothing."""
        return 0.0

    def busy(self):
        """Return nothing."""
        return 0.0, 0.0


class Cluster:
    """What the workers of a cluster do from now on."""

    def __init__(self, client):
        self._client = client
        # From the first time that it is asked for, the scheduler keeps what tasks take.
        client.get_task_stream()

    def cpu_seconds(self):
        """Return the CPU seconds of all workers since they were started."""
        return sum(self._client.run(time.process_time).values())

    def busy(self):
        """Return seconds of all tasks together, and from the first to the last of every pass."""
        in_tasks, passes = 0.0, {}
        for task in self._client.get_task_stream():
            # ('cloakgp-inputs-CLIENT-NUMBER', BLOCK), or with -merge behind the number.
            name = str(task["key"]).split("'")[1].removesuffix("-merge")
            for step in task["startstops"]:
                first, last = passes.get(name, (step["start"], step["stop"]))
                passes[name] = min(first, step["start"]), max(last, step["stop"])
                if step["action"] == "compute":
                    in_tasks += step["stop"] - step["start"]
        return in_tasks, sum(last - first for first, last in passes.values())


if __name__ == "__main__":
    protocol.main(answer)
