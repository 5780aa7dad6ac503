"""Public inputs in memory, in passes."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.data import ArrayRows, InputRows
from cloakgp.models.summary import summarise


@pytest.mark.parametrize("chunk_rows", [1, 7, 100])
def test_they_are_what_rows_with_outputs_are_to_a_design(rng, chunk_rows):
    X = rng.normal(size=(50, 2))
    alone = summarise(InputRows(X, chunk_rows=chunk_rows), size=20)
    rows = summarise(ArrayRows(X, np.zeros(50), chunk_rows=chunk_rows), size=20)
    assert (alone.count, InputRows(X).n_inputs) == (rows.count, 2)
    np.testing.assert_array_equal(alone.ranges, rows.ranges)
    np.testing.assert_array_equal(alone.sample, rows.sample)
    np.testing.assert_array_equal(np.vstack([one.X for one in InputRows(X).chunks()]), X)
