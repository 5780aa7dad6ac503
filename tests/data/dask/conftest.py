"""One cluster for a module: its processes take longer to start than most tests.

No longer than that: its threads begin others, and its environment is that of later children.
"""

from __future__ import annotations

from contextlib import contextmanager

import distributed
import pytest


@pytest.fixture(autouse=True)
def no_threads_are_left():
    """A cluster's threads outlast a test."""


@contextmanager
def two_workers(*, processes):
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=processes, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    with two_workers(processes=True) as client:
        yield client


@pytest.fixture(scope="module")
def workers():
    """Of this process: for what does not depend on what is sent to others."""
    with two_workers(processes=False) as client:
        yield client
