"""One cluster for a module: its processes take longer to start than most tests.

No longer than that: its threads begin others, and its environment is that of later children.
"""

from __future__ import annotations

import distributed
import pytest


@pytest.fixture(autouse=True)
def no_threads_are_left():
    """A cluster's threads outlast a test."""


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
