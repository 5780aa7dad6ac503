"""Covariances of answers that rounding leaves with an eigenvalue below zero."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.release.posterior.dense import factor_covariance


def test_a_covariance_that_rounding_spoils_is_factored_with_more_noise_not_less(rng):
    root = 1e6 * rng.standard_normal((30, 3))
    covariance = root @ root.T - 1e-3 * np.eye(30)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(covariance)
    factor = factor_covariance(covariance)
    more = factor @ factor.T - covariance
    assert np.linalg.eigvalsh(more)[0] > 0
    assert np.abs(more).max() < 1e-10 * np.trace(covariance)


def test_others_keep_their_bits_and_no_covariance_is_refused(rng):
    root = rng.standard_normal((5, 9))
    covariance = root @ root.T
    np.testing.assert_array_equal(factor_covariance(covariance), np.linalg.cholesky(covariance))
    with pytest.raises(np.linalg.LinAlgError):
        factor_covariance(-np.eye(3))
