"""Weak priors around declared values: against scipy's densities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import optimize, stats

from cloakgp.release.hyperparameters.hyperprior import weak_prior

POSITIONS = arrays.arrays(float, st.integers(1, 5), elements=st.floats(-12, 12))


@given(position=POSITIONS, degrees=st.sampled_from([1.0, 4.0, 30.0, np.inf]))
def test_densities_are_those_of_scipy(position, degrees):
    value, gradient = weak_prior(position, degrees=degrees)
    law = stats.t(degrees)
    assert value == pytest.approx(float((law.logpdf(0.0) - law.logpdf(position)).sum()), abs=1e-9)
    differences = optimize.approx_fprime(position, lambda at: weak_prior(at, degrees=degrees)[0])
    np.testing.assert_allclose(gradient, differences, atol=1e-4)


def test_what_is_far_costs_less_under_heavy_tails_and_what_is_near_about_as_much():
    """The figures that `DEGREES_IN_PASSES` is chosen by: a factor of ten."""
    tenfold = np.array([np.log(10.0) / 0.35])
    assert weak_prior(tenfold)[0] == pytest.approx(21.6, abs=0.1)
    assert weak_prior(tenfold, degrees=4.0)[0] == pytest.approx(6.2, abs=0.1)
    near = np.array([0.5])
    assert weak_prior(near, degrees=4.0)[0] == pytest.approx(weak_prior(near)[0], rel=0.25)
