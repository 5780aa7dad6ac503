"""The interval beside declared bounds: the small comparison, and what is kept of it."""

import contextlib

import numpy as np
import pytest

from cloakgp.privacy import OutputBounds
from experiments.datasets import DatasetUnavailableError
from experiments.interval import (
    DECLARED,
    FOUND,
    MEAN,
    Interval,
    mean_with_interval,
    widened,
)


@contextlib.contextmanager
def progress(what, *, steps):
    del what, steps
    yield lambda: None


def test_wide_bounds_hold_the_good_ones():
    for draw in range(20):
        wide = widened(OutputBounds(2.0, 5.0), factor=10, rng=np.random.default_rng(draw))
        assert wide.lo <= 2.0 < 5.0 <= wide.hi + 1e-9
        assert np.isclose(wide.width, 30.0)


def test_a_search_pays_where_bounds_are_wide():
    y = np.random.default_rng(0).uniform(size=2000)
    bounds = OutputBounds(-500.0, 500.0)
    errors = [
        np.median(
            [
                abs(mean_with_interval(y, bounds=bounds, epsilon=1.0, interval=way) - y.mean())
                for _ in range(15)
            ]
        )
        for way in (True, False)
    ]
    assert errors[0] < 0.3 * errors[1]


@pytest.mark.slow
def test_the_small_version_lays_out_tables_and_a_map():
    experiment = Interval(**Interval.small | {"map_rows": (100,)})
    try:
        found = experiment.compute(progress)
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    assert {way for *_, way in found.tables} == {FOUND, DECLARED, MEAN}
    assert all(np.isfinite(errors).all() for errors in found.tables.values())
    overall, by_table, mapped = experiment.tables(found)
    assert list(overall.columns[1].cells) == [FOUND, DECLARED, MEAN]
    # One table alone is its own mean; a mean of good bounds is not tried with wide ones.
    first, *others = (list(column.cells) for column in overall.columns[2:])
    assert [next(iter(column.cells)) for column in by_table.columns[1:]] == [
        first[0],
        others[0][0],
        first[1],
        others[0][1],
        first[2],
    ]
    assert others[0][2] == ""
    assert mapped.row_count == 1
