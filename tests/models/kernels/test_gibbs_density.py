"""Densities against scikit-learn's and SciPy's, and the lengthscales that follow them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.neighbors import KernelDensity

from cloakgp.models.kernels.gibbs import (
    density_lengthscale,
    row_density,
    smallest_density,
)


@pytest.mark.parametrize("inputs", [1, 2, 4])
def test_the_density_is_scikit_learns_times_the_rows(rng, inputs):
    rows, X = rng.normal(size=(40, inputs)), rng.normal(size=(15, inputs))
    oracle = KernelDensity(kernel="gaussian", bandwidth=0.7).fit(rows)
    expected = 40 * np.exp(oracle.score_samples(X))
    np.testing.assert_allclose(row_density(X, centres=rows, bandwidth=0.7), expected, rtol=1e-10)


def test_the_density_is_scikit_learns_with_weights(rng):
    rows, X, weights = rng.normal(size=(40, 2)), rng.normal(size=(15, 2)), rng.uniform(size=40)
    oracle = KernelDensity(bandwidth=0.7).fit(rows, sample_weight=weights)
    expected = weights.sum() * np.exp(oracle.score_samples(X))
    found = row_density(X, centres=rows, bandwidth=0.7, weights=weights)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_a_bandwidth_for_every_input_is_scipys_diagonal_covariance(rng):
    rows, X, spread = rng.normal(size=(12, 2)), rng.normal(size=(5, 2)), np.array([0.3, 4.0])
    expected = [sum(multivariate_normal.pdf(x, mean=row, cov=spread**2) for row in rows) for x in X]
    np.testing.assert_allclose(row_density(X, centres=rows, bandwidth=spread), expected, rtol=1e-10)


def test_the_density_holds_all_rows():
    rows, grid = np.array([[0.0], [3.0], [3.5]]), np.linspace(-30.0, 30.0, 4001)
    density = row_density(grid[:, None], centres=rows, bandwidth=1.3)
    assert np.trapezoid(density, grid) == pytest.approx(3.0, rel=1e-9)


def test_the_smallest_density_is_a_brute_force_search_s(rng):
    rows, X = rng.uniform(0.0, 10.0, size=(30, 1)), np.linspace(-5.0, 15.0, 21)[:, None]
    found = smallest_density(X, centres=rows, bandwidth=1.0, radius=2.0)
    places = X + np.linspace(-2.0, 2.0, 11)
    densities = row_density(places.reshape(-1, 1), centres=rows, bandwidth=1.0)
    np.testing.assert_allclose(found, densities.reshape(places.shape).min(axis=1), rtol=1e-12)
    # Between its places it misses little of a density that is smooth on their scale.
    fine = X + np.linspace(-2.0, 2.0, 2001)
    densities = row_density(fine.reshape(-1, 1), centres=rows, bandwidth=1.0)
    assert (found <= 1.1 * densities.reshape(fine.shape).min(axis=1)).all()


def test_the_smallest_density_looks_along_every_axis(rng):
    rows, X = rng.normal(size=(30, 2)), rng.normal(size=(6, 2))
    found = smallest_density(X, centres=rows, bandwidth=1.0, radius=(0.0, 5.0))
    ends = [X + np.array([0.0, step]) for step in np.linspace(-5.0, 5.0, 11)]
    expected = np.min([row_density(end, centres=rows, bandwidth=1.0) for end in ends], axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_without_a_radius_the_smallest_density_is_the_density(rng):
    rows, X = rng.normal(size=(30, 2)), rng.normal(size=(6, 2))
    found = smallest_density(X, centres=rows, bandwidth=1.0, radius=0.0)
    assert np.array_equal(found, row_density(X, centres=rows, bandwidth=1.0))


@given(
    st.lists(st.just(0.0) | st.floats(1e-9, 1e6), min_size=2, max_size=10),
    st.floats(0.1, 1e3),
    st.floats(0.1, 1e3),
)
def test_the_lengthscale_falls_with_density_from_the_longest(densities, longest, crowd):
    density = np.sort(np.array(densities))
    lengthscale = density_lengthscale(density, longest=longest, crowd=crowd)
    assert (np.diff(lengthscale) <= 0).all()
    assert (lengthscale > 0).all()
    assert lengthscale.max() <= longest * (1 + 1e-12)
    dense = density > 0
    assert (lengthscale[dense] <= crowd / density[dense] * (1 + 1e-12)).all()


def test_evenly_spread_rows_get_the_crowd_they_ask_for():
    """With one input and m far away, n rows lie within a stretch of one lengthscale."""
    rows = np.arange(0.0, 1000.0, 0.5)[:, None]
    density = row_density(np.array([[500.0]]), centres=rows, bandwidth=5.0)
    lengthscale = density_lengthscale(density, longest=1e12, crowd=12.0)
    near = np.abs(rows[:, 0] - 500.1) < lengthscale / 2
    assert near.sum() == 12


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"bandwidth": 0.0}, "bandwidth must be positive"),
        ({"bandwidth": np.nan}, "one finite number"),
        ({"bandwidth": [1.0, 1.0, 1.0]}, "for each of 2 inputs"),
        ({"radius": -1.0}, "at least 0"),
        ({"weights": [1.0]}, "3 numbers"),
        ({"weights": [1.0, -1.0, 1.0]}, "3 numbers"),
        ({"centres": np.zeros((3, 1))}, "centres has 1 columns, expected 2"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(changed, message):
    parameters = {"centres": np.zeros((3, 2)), "bandwidth": 1.0, "radius": 0.0, "weights": None}
    with pytest.raises(ValueError, match=message):
        smallest_density(np.zeros((1, 2)), **parameters | changed)


@pytest.mark.parametrize("changed", [{"longest": 0.0}, {"crowd": -1.0}, {"crowd": np.nan}])
def test_lengthscales_need_positive_numbers(changed):
    with pytest.raises(ValueError, match="must be positive"):
        density_lengthscale(np.ones(1), **{"longest": 1.0, "crowd": 1.0} | changed)
