"""One cluster for all tests: its processes take longer to start than most tests."""

from __future__ import annotations

import distributed
import pytest


@pytest.fixture(autouse=True)
def no_threads_are_left():
    """A cluster's threads outlast a test."""


@pytest.fixture(scope="session")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
