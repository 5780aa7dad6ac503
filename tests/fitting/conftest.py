"""Many fits of the same public rows: their k-means centres are found once in a module."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def _centres_once(clustered_once):
    del clustered_once
