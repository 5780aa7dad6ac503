"""Clusters of rows: against where rows lie."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.utils.clusters import cluster_rows


@pytest.mark.parametrize("most", [3, 4])
def test_few_distinct_rows_are_their_own_centres(most):
    X = np.array([[1 / 3, 0.1], [0.0, 7.0], [1 / 3, 0.1], [-1.0, 2.0]])
    centres, places = cluster_rows(X, most=most, units=np.array([3.0, 0.7]))
    assert len(centres) == 3
    assert (centres[places] == X).all()


def test_centres_of_many_are_the_means_of_their_rows(rng):
    X = rng.normal(size=(300, 2))
    centres, places = cluster_rows(X, most=5)
    means = [X[places == place].mean(axis=0) for place in range(5)]
    np.testing.assert_allclose(centres, means, atol=1e-3)
    nearest = np.square(X[:, None] - centres).sum(axis=2).argmin(axis=1)
    assert np.mean(nearest == places) > 0.99
    again, _ = cluster_rows(X, most=5)
    assert (again == centres).all()


@pytest.mark.parametrize(("units", "split"), [([1.0, 1.0], 0), ([100.0, 1.0], 1)])
def test_units_decide_what_is_near(units, split):
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [10.0, 0.0], [10.0, 1.0]])
    _, places = cluster_rows(corners, most=2, units=np.array(units), restarts=10)
    for value in np.unique(corners[:, split]):
        assert len(np.unique(places[corners[:, split] == value])) == 1
