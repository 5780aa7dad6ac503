"""What tasks hold is out of sight, and is no fingerprint of it."""

from __future__ import annotations

import sys

import dask

from cloakgp.data.dask.tasks import Parcel

SENTINEL = 98765.4321


def test_a_parcel_shows_nothing():
    parcel = Parcel.pack([SENTINEL])
    other = Parcel.pack([SENTINEL + 1])
    assert repr(parcel) == "<Parcel>"
    assert dask.base.tokenize(parcel) == dask.base.tokenize(other)
    assert sys.getsizeof(parcel) > len(parcel.payload)
