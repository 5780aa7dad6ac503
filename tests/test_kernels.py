"""The kernels of OpenBLAS: `make test-kernels` really changes them."""

from __future__ import annotations

import os

import pytest
import scipy.linalg  # noqa: F401
from threadpoolctl import threadpool_info

ASKED = "OPENBLAS_CORETYPE"


@pytest.mark.skipif(
    ASKED not in os.environ, reason=f"{ASKED} is not set: make test-kernels sets it"
)
def test_the_kernels_asked_for_are_in_force():
    found = {one["architecture"] for one in threadpool_info() if one["internal_api"] == "openblas"}
    assert found == {os.environ[ASKED]}
