"""The density of answers beside scipy's, and its derivatives beside differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from cloakgp.release.hyperparameters.evidence import Evidence


@pytest.fixture
def asked():
    rng = np.random.default_rng(3)
    root = rng.normal(size=(6, 6))
    return rng.normal(size=6), root @ root.T + 0.1 * np.eye(6)


def test_it_is_scipys_but_for_a_constant(asked):
    residuals, covariance = asked
    density = stats.multivariate_normal(cov=covariance).logpdf(residuals)
    constant = len(residuals) / 2 * np.log(2 * np.pi)
    assert Evidence.of(residuals, covariance).value == pytest.approx(-density - constant)


def test_its_derivatives_are_those_of_differences(asked):
    residuals, covariance = asked
    found = Evidence.of(residuals, covariance)
    by_residuals = optimize.approx_fprime(
        residuals, lambda moved: Evidence.of(moved, covariance).value, 1e-7
    )
    np.testing.assert_allclose(found.solved, by_residuals, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(found.sensitivity, found.sensitivity.T)
    for row, column in ((0, 0), (4, 1)):
        step = np.zeros_like(covariance)
        step[row, column] = step[column, row] = 1e-6
        moved, other = (Evidence.of(residuals, covariance + sign * step).value for sign in (1, -1))
        slope = (moved - other) / (2 * step.max())
        expected = 0.5 * np.vdot(found.sensitivity, step) / step.max()
        assert slope == pytest.approx(expected, rel=1e-5)


def test_what_is_no_covariance_is_refused(asked):
    residuals, covariance = asked
    with pytest.raises(np.linalg.LinAlgError):
        Evidence.of(residuals, -covariance)
