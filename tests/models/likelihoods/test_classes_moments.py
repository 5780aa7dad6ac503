"""Covariances of labels against the bivariate normal, closed forms and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cloakgp.models.likelihoods.classes import label_covariance

# Thresholds and correlations that the quadrature must reach.
THRESHOLDS = [0.0, 0.8, -1.5, 2.5]
CORRELATIONS = [-0.95, -0.4, 0.0, 0.2, 0.7, 0.97]


def pair(rho, one, other):
    return label_covariance(np.array([[1.0, rho], [rho, 1.0]]), np.array([one, other]))


def by_scipy(rho, one, other):
    """4 [Φ₂(a, b; ρ) − Φ(a) Φ(b)], from scipy's own bivariate normal."""
    both = stats.multivariate_normal(np.zeros(2), [[1.0, rho], [rho, 1.0]]).cdf([one, other])
    return 4 * (both - stats.norm.cdf(one) * stats.norm.cdf(other))


@pytest.mark.parametrize("rho", CORRELATIONS)
@pytest.mark.parametrize("one", THRESHOLDS)
@pytest.mark.parametrize("other", THRESHOLDS)
def test_values_against_scipys_bivariate_normal(rho, one, other):
    assert pair(rho, one, other).values[0, 1] == pytest.approx(by_scipy(rho, one, other), abs=2e-6)


@given(rho=st.floats(-0.999, 0.999))
def test_the_arcsine_law(rho):
    equal = pair(rho, 0.0, 0.0)
    assert equal.values[0, 1] == pytest.approx(2 / np.pi * np.arcsin(rho), abs=1e-12)
    # By quadrature rather than Owen's T, as soon as one threshold differs.
    mixed = label_covariance(
        np.array([[1.0, rho, 0.1], [rho, 1.0, 0.1], [0.1, 0.1, 1.0]]), np.array([0.0, 0.0, 1.0])
    )
    assert mixed.values[0, 1] == pytest.approx(2 / np.pi * np.arcsin(rho), abs=1e-12)


@given(rho=st.floats(-0.9, 0.95), threshold=st.floats(-3, 3))
def test_owens_function_and_quadrature_agree(rho, threshold):
    alone = pair(rho, threshold, threshold).values[0, 1]
    correlation = np.array([[1.0, rho, 0.0], [rho, 1.0, 0.0], [0.0, 0.0, 1.0]])
    mixed = label_covariance(correlation, np.array([threshold, threshold, threshold + 1.0]))
    assert mixed.values[0, 1] == pytest.approx(alone, abs=1e-6)


@pytest.mark.parametrize("common", [True, False])
def test_derivatives_against_finite_differences(common):
    rng = np.random.default_rng(3)
    size, step = 5, 1e-6
    root = rng.normal(size=(size, size))
    covariance = root @ root.T + np.eye(size)
    scales = np.sqrt(np.diag(covariance))
    rho = 0.9 * covariance / np.outer(scales, scales)
    thresholds = np.full(size, 0.6) if common else rng.normal(size=size)
    found = label_covariance(rho, thresholds)
    by_rho = (
        label_covariance(rho + step, thresholds).values
        - label_covariance(rho - step, thresholds).values
    ) / (2 * step)
    np.testing.assert_allclose(found.by_correlation, by_rho, atol=1e-7)
    for index in range(size):
        moved = step * np.eye(size)[index]
        both = (
            label_covariance(rho, thresholds + moved).values
            - label_covariance(rho, thresholds - moved).values
        ) / (2 * step)
        # Entry (i, j) changes with a_i by `by_threshold`, and with a_j by its transpose.
        expected = np.zeros((size, size))
        expected[index] += found.by_threshold[index]
        expected[:, index] += found.by_threshold[index]
        np.testing.assert_allclose(both, expected, atol=1e-6)


@pytest.mark.parametrize("threshold", [0.0, 0.7, -2.0])
def test_rows_that_share_their_latent_value_share_their_label_partly(threshold):
    """At ρ → 1 the covariance is the variance of Φ's argument: 4 Φ(a)(1 − Φ(a))."""
    probability = stats.norm.cdf(threshold)
    for rho in (1.0, 1.0 + 1e-12, 1.0 - 1e-12):
        found = label_covariance(np.array([[rho]]), np.array([threshold]))
        assert found.values[0, 0] == pytest.approx(4 * probability * (1 - probability), abs=1e-4)
        for part in (found.values, found.by_correlation, found.by_threshold):
            assert np.isfinite(part).all()
    opposite = label_covariance(np.full((1, 1), -1.0), np.array([threshold]))
    both = max(2 * probability - 1, 0)
    assert opposite.values[0, 0] == pytest.approx(4 * (both - probability**2), abs=1e-4)


@pytest.mark.parametrize(("rho", "one", "other"), [(0.9999, 0.5, 0.6), (0.999, -1.0, 1.0)])
def test_correlations_near_one_with_mixed_thresholds(rho, one, other):
    found = label_covariance(np.array([[1.0, rho], [rho, 1.0]]), np.array([one, other])).values[
        0, 1
    ]
    assert found == pytest.approx(by_scipy(rho, one, other), abs=2e-3)


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 6))
def test_they_are_covariances_of_labels(seed, size):
    """Symmetric, with own variances on the diagonal positive semi-definite, and bounded."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size))
    covariance = root @ root.T + 0.2 * np.eye(size)
    # A latent function and its link: ρ_ij = k_ij/√((1 + v_i)(1 + v_j)).
    spread = np.sqrt(1 + np.diag(covariance))
    rho = covariance / np.outer(spread, spread)
    thresholds = rng.normal(size=size)
    values = label_covariance(rho, thresholds).values
    np.testing.assert_allclose(values, values.T, atol=1e-9)
    expected = 2 * stats.norm.cdf(thresholds) - 1
    np.fill_diagonal(values, 1 - expected**2)
    assert np.linalg.eigvalsh(values).min() > -1e-5
    assert (np.abs(values) <= 1 + 1e-9).all()


def test_against_simulated_labels():
    rng = np.random.default_rng(11)
    covariance, mean, draws = np.array([[2.0, 1.4], [1.4, 1.5]]), 0.6, 400_000
    latent = rng.multivariate_normal([mean, mean], covariance, size=draws)
    labels = np.where(latent + rng.normal(size=latent.shape) > 0, 1.0, -1.0)
    spread = np.sqrt(1 + np.diag(covariance))
    found = label_covariance(covariance / np.outer(spread, spread), mean / spread).values[0, 1]
    # Products of signs have sd at most 1.
    assert np.cov(labels.T)[0, 1] == pytest.approx(found, abs=4.5 / np.sqrt(draws))


def test_one_row_alone():
    found = label_covariance(np.array([[0.5]]), np.zeros(1))
    assert found.values.shape == (1, 1)
    assert found.values[0, 0] == pytest.approx(1 / 3)
