"""K-means centres of public inputs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.models import kmeans_centres


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 30),
    count=st.integers(1, 12),
    values=st.integers(1, 40),
)
def test_every_row_belongs_to_one_centre(seed, rows, count, values):
    X = np.random.default_rng(seed).integers(0, values, size=(rows, 2)).astype(np.float64)
    centres, sizes = kmeans_centres(X, count=count)
    distinct = len(np.unique(X, axis=0))
    assert len(centres) == len(sizes) == min(count, distinct)
    assert sizes.sum() == rows
    assert (sizes >= 1).all()
    # Means of means weighed by size are the mean of all rows.
    np.testing.assert_allclose(sizes @ centres / rows, X.mean(axis=0), atol=1e-9)
    assert (centres >= X.min(axis=0) - 1e-9).all()
    assert (centres <= X.max(axis=0) + 1e-9).all()


def test_centres_are_the_means_of_their_nearest_rows(rng):
    X = rng.normal(size=(200, 2))
    centres, sizes = kmeans_centres(X, count=7)
    nearest = np.square(X[:, None] - centres).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(np.bincount(nearest, minlength=7), sizes)
    for number, centre in enumerate(centres):
        np.testing.assert_allclose(centre, X[nearest == number].mean(axis=0), atol=1e-2)


def test_well_separated_groups_are_found():
    X = np.repeat([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0]], [5, 3, 2], axis=0)
    X = X + np.linspace(0, 1, 10)[:, None]
    centres, sizes = kmeans_centres(X, count=3)
    assert sorted(sizes.tolist()) == [2.0, 3.0, 5.0]
    assert sorted(map(tuple, (centres // 50).tolist())) == [(0, 0), (0, 2), (2, 0)]


def test_few_distinct_rows_are_their_own_centres():
    X = np.array([[1.0], [0.0], [1.0], [1.0]])
    centres, sizes = kmeans_centres(X, count=5)
    np.testing.assert_array_equal(centres, [[0.0], [1.0]])
    np.testing.assert_array_equal(sizes, [1.0, 3.0])


def test_the_same_inputs_and_state_give_the_same_centres(rng):
    X = rng.normal(size=(100, 3))
    first, second = (kmeans_centres(X, count=6, random_state=4)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("count", [0, -1, 2.5, True])
def test_no_centres_are_refused(count):
    with pytest.raises(ValueError, match="must be at least 1"):
        kmeans_centres(np.zeros((3, 1)), count=count)


def test_lists_are_rows_and_what_is_none_is_refused():
    centres, sizes = kmeans_centres([[0.0], [0.0], [9.0]], count=2)
    np.testing.assert_array_equal(np.sort(centres, axis=0), [[0.0], [9.0]])
    assert sizes.sum() == 3
    for X, complaint in (
        ([1.0, 2.0], "X must have two dimensions"),
        ([[1.0], [np.nan]], "X contains NaN"),
        ([["a"]], "X has entries that are no numbers"),
        (np.zeros((0, 1)), "X needs at least one row"),
    ):
        with pytest.raises(ValueError, match=complaint):
            kmeans_centres(X, count=2)
