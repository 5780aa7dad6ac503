"""Bins against numpy's histogram, and their edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.release.histogram import Bins, Occupancy


@given(
    seed=st.integers(0, 2**32 - 1),
    bins=st.lists(st.integers(1, 6), min_size=1, max_size=3),
)
def test_counts_and_sums_are_numpys(seed, bins):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, size=(30, len(bins))) / 2.0
    values = rng.normal(size=30)
    ranges = [(0.0, 4.0)] * len(bins)
    grid = Bins.over(X, bins=bins, ranges=ranges)
    found = Occupancy.of(X, grid)
    sums = np.zeros(np.prod(bins))
    sums[found.cells] = found.strategy @ values
    expected, edges = np.histogramdd(X, bins=bins, range=ranges, weights=values)
    np.testing.assert_allclose(sums.reshape(bins), expected, atol=1e-12)
    for one, other in zip(grid.edges, edges, strict=True):
        np.testing.assert_allclose(one, other)
    np.testing.assert_array_equal(found.counts, found.strategy.sum(axis=1))
    np.testing.assert_array_equal(found.strategy.sum(axis=0), 1)
    assert set(np.unique(found.strategy)) <= {0.0, 1.0}


def test_every_row_lies_in_its_box(rng):
    X = rng.normal(size=(50, 3))
    grid = Bins.over(X, bins=[2, 3, 5])
    boxes = grid.boxes(grid.cells(X))
    assert boxes.shape == (50, 6)
    assert (boxes[:, :3] <= X).all()
    assert (boxes[:, 3:] >= X).all()
    np.testing.assert_allclose(
        boxes[:, 3:] - boxes[:, :3], np.tile(np.ptp(X, axis=0) / [2, 3, 5], (50, 1))
    )


def test_edges_belong_to_the_upper_bin_and_the_last_to_the_last():
    grid = Bins.over(np.zeros((1, 1)), bins=[[0.0, 1.0, 5.0]])
    inputs = np.array([[0.0], [0.999], [1.0], [5.0]])
    np.testing.assert_array_equal(grid.cells(inputs), [0, 0, 1, 1])


def test_what_lies_outside_belongs_to_the_nearest_bin():
    grid = Bins.over(np.zeros((1, 2)), bins=[2, [0.0, 1.0, 3.0]], ranges=[(0.0, 2.0), (0.0, 3.0)])
    inputs = np.array([[-9.0, -9.0], [-9.0, 9.0], [9.0, 0.5], [1.5, 1e300]])
    np.testing.assert_array_equal(grid.cells(inputs), [0, 1, 2, 3])


def test_an_input_that_never_varies_has_one_bin():
    X = np.column_stack([np.full(4, 7.0), np.arange(4.0)])
    grid = Bins.over(X, bins=3)
    assert grid.shape == (1, 3)
    np.testing.assert_array_equal(grid.boxes(grid.cells(X))[:, [0, 2]], 7.0)


def test_many_bins_are_numbered_without_being_held(rng):
    X = rng.normal(size=(20, 6))
    found = Occupancy.of(X, Bins.over(X, bins=1000))
    assert len(found.cells) == 20
    with pytest.raises(ValueError, match="too many"):
        Bins.over(rng.normal(size=(5, 7)), bins=1000)
    with pytest.raises(ValueError, match="too many"):
        Bins.over(X, bins=2**63)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"bins": 0}, "at least one"),
        ({"bins": True}, "truth"),
        ({"bins": [3]}, "2 input columns"),
        ({"bins": 2.5}, "2 input columns"),
        ({"bins": [3, [1.0]]}, "at least two numbers"),
        ({"bins": [3, [1.0, 1.0]]}, "ascending"),
        ({"bins": [3, [0.0, np.inf]]}, "ascending"),
        ({"ranges": [(0, 1)]}, "2 pairs"),
        ({"ranges": [(0, 1), (1, 1)]}, "lower end"),
        ({"ranges": [(0, 1), (0, np.nan)]}, "lower end"),
    ],
)
def test_bad_settings(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        Bins.over(np.zeros((3, 2)), **settings)
