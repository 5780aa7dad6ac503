"""Corners for classes, coordinates among them, and the nearest probabilities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from cloakgp.models.simplex import (
    coordinates,
    least_probability,
    nearest_probabilities,
    simplex_corners,
)


@pytest.mark.parametrize("count", [2, 3, 4, 10, 50])
def test_corners_are_of_length_1_and_equally_far_apart(count):
    products = simplex_corners(count) @ simplex_corners(count).T
    expected = np.where(np.eye(count) > 0, 1.0, -1.0 / (count - 1))
    np.testing.assert_allclose(products, expected, atol=1e-12)


@given(st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_coordinates_give_back_the_shares(count, seed):
    rng = np.random.default_rng(seed)
    corners = simplex_corners(count) + rng.normal(size=count - 1)
    shares = rng.normal(size=(5, count)) + 1 / count
    shares += (1 - shares.sum(axis=1, keepdims=True)) / count
    np.testing.assert_allclose(coordinates(shares @ corners, corners), shares, atol=1e-10)


def test_two_classes_are_clipped():
    second = np.linspace(-1, 2, 50)
    found = nearest_probabilities(np.column_stack([1 - second, second]), least=0.01)
    np.testing.assert_allclose(found[:, 1], np.clip(second, 0.01, 0.99), atol=1e-12)


@pytest.mark.parametrize("count", [2, 3, 6])
def test_they_are_the_nearest(count):
    rng = np.random.default_rng(count)
    for weights in rng.normal(size=(8, count)):
        weights += (1 - weights.sum()) / count
        found = nearest_probabilities(weights[None], least=0.01)[0]
        best = minimize(
            lambda p, weights=weights: np.sum((p - weights) ** 2),
            np.full(count, 1 / count),
            bounds=[(0.01, 1)] * count,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        )
        np.testing.assert_allclose(found, best.x, atol=1e-3)
        assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("count", [2, 10, 11, 1000])
def test_an_even_share_is_above_the_least(count):
    assert 0 < least_probability(count) <= 0.1 / min(count, 10)
    assert least_probability(count) * count <= 0.1 + 1e-12
