"""Quantiles of mixtures of normal laws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cloakgp.utils.normal_mixtures import mixture_quantiles


@pytest.mark.parametrize("probability", [1e-6, 0.1, 0.5, 0.975])
def test_so_much_lies_below_them(probability):
    rng = np.random.default_rng(0)
    means, sds = rng.normal(0, 5, size=(40, 3)), rng.exponential(size=(40, 3))
    weights = np.array([0.5, 0.2, 0.3])
    found = mixture_quantiles(means, sds, weights, probability)
    below = stats.norm.cdf(found[:, None], means, sds) @ weights
    np.testing.assert_allclose(below, probability, rtol=1e-9)


def test_of_one_law_they_are_its_own_also_without_a_spread():
    means, sds = np.array([[1.0], [2.0]]), np.array([[3.0], [0.0]])
    found = mixture_quantiles(means, sds, np.ones(1), 0.9)
    np.testing.assert_allclose(found, [stats.norm.ppf(0.9, 1.0, 3.0), 2.0])
