"""Correlated noise beside brute force, and the closed form of its coefficients."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import toeplitz

from cloakgp.streams.correlated import sum_sds, toeplitz_root


@given(periods=st.integers(1, 80))
def test_the_root_is_one(periods):
    root = toeplitz_root(periods)
    np.testing.assert_allclose(root, [math.comb(2 * k, k) / 4**k for k in range(periods)])
    lower = toeplitz(root, np.zeros(periods))
    np.testing.assert_allclose(lower @ lower, np.tril(np.ones((periods, periods))), atol=1e-12)


@pytest.mark.parametrize("people", ["disjoint", "overlapping"])
@pytest.mark.parametrize("periods", [1, 2, 12, 52])
def test_sds_are_those_of_the_mechanism(periods, people):
    """Σ over periods of A x_t = B (C x + z), for the neighbours that move it most."""
    ones = np.tril(np.ones((periods, periods)))
    moves = [*np.eye(periods)] if people == "disjoint" else [np.ones(periods)]
    for strategy, expected in zip(
        (np.eye(periods), toeplitz(toeplitz_root(periods), np.zeros(periods))),
        sum_sds(periods, people=people),
        strict=True,
    ):
        sensitivity = max(np.linalg.norm(strategy @ move) for move in moves)
        back = ones @ np.linalg.inv(strategy)
        assert np.linalg.norm(back[-1]) * sensitivity == pytest.approx(expected)


def test_it_gains_for_other_people_and_not_for_the_same():
    for periods in (2, 12, 52):
        independent, correlated = sum_sds(periods, people="disjoint")
        assert correlated < independent
        independent, correlated = sum_sds(periods, people="overlapping")
        assert correlated > independent
    # As published for a year of months and of weeks.
    assert [round(sum_sds(n, people="disjoint")[1], 2) for n in (12, 52)] == [1.85, 2.32]
